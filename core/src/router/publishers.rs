//! Which ranks a publisher concerns.

use super::slot_id::SlotId;
use crate::id::PublisherId;
use core::hash::{Hash, Hasher};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The ranks of one publisher: one while all goes well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ranks {
    follower: Option<SlotId>,
    selector: Option<SlotId>,
}

/// A lookup-only map: it is never iterated, so its order cannot reach an output. It follows from the
/// slots, so it adds nothing to a hash of the state. At most two entries a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Publishers(HashMap<PublisherId, Ranks, FxBuildHasher>);

impl Hash for Publishers {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Publishers {
    /// Who follows a publisher.
    pub(super) fn follower(&self, publisher: PublisherId) -> Option<SlotId> {
        self.0.get(&publisher).and_then(|ranks| ranks.follower)
    }

    /// Whom the newest snapshot gives a publisher to, followed already or not.
    pub(super) fn selector(&self, publisher: PublisherId) -> Option<SlotId> {
        self.0.get(&publisher).and_then(|ranks| ranks.selector)
    }

    pub(super) fn followed(&mut self, publisher: PublisherId, by: SlotId) {
        self.0.entry(publisher).or_default().follower = Some(by);
    }

    pub(super) fn selected(&mut self, publisher: PublisherId, by: SlotId) {
        self.0.entry(publisher).or_default().selector = Some(by);
    }

    /// No longer followed by this slot; another's following stays.
    pub(super) fn left(&mut self, publisher: PublisherId, by: SlotId) {
        self.update(publisher, |ranks| ranks.follower.take_if(|follower| *follower == by));
    }

    /// No longer selected by this slot; another's selection stays.
    pub(super) fn deselected(&mut self, publisher: PublisherId, by: SlotId) {
        self.update(publisher, |ranks| ranks.selector.take_if(|selector| *selector == by));
    }

    fn update(
        &mut self,
        publisher: PublisherId,
        change: impl FnOnce(&mut Ranks) -> Option<SlotId>,
    ) {
        if let Some(ranks) = self.0.get_mut(&publisher) {
            change(ranks);
            if *ranks == Ranks::default() {
                self.0.remove(&publisher);
            }
        }
    }
}
