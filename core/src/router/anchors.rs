//! Digests of the messages admitted last: what proves that a source is still the life that was
//! followed (B7).

use crate::id::EventId;
use core::num::NonZeroU64;

/// How many messages are remembered.
const KEPT: usize = 16;

/// A ring of the last admitted (id, digest) pairs. Every rank has one, so the ids are held as
/// distances from a base that moves along; a message more than 2³¹ ids away from a later one may be
/// forgotten for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Anchors {
    /// The life's first message: kept, since a second one with its id is how most lives begin.
    beginning: Option<(EventId, NonZeroU64)>,
    digests: [Option<NonZeroU64>; KEPT],
    /// The ids of `digests`, as distances from `base`.
    offsets: [u32; KEPT],
    base: EventId,
    next: usize,
}

/// What a message's digest says beside the remembered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// The same message.
    Same,
    /// Another message under the same id: another life.
    Other,
    /// Nothing to compare with.
    Unknown,
}

impl Anchors {
    pub(super) fn remember(&mut self, id: EventId, digest: Option<NonZeroU64>, beginning: bool) {
        let Some(digest) = digest else { return };
        if beginning {
            self.beginning = Some((id, digest));
        }
        let offset = match distance(self.base, id) {
            Some(offset) => offset,
            None => self.move_base(id),
        };
        if let Some(place) = self.digests.get_mut(self.next) {
            *place = Some(digest);
        }
        if let Some(place) = self.offsets.get_mut(self.next) {
            *place = offset;
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Forgets all but the beginning.
    pub(super) fn forget_recent(&mut self) {
        self.digests = [None; KEPT];
    }

    /// The lowest id from which every message up to `head` is remembered; `head` when none is.
    pub(super) fn reach(&self, head: EventId) -> EventId {
        let mut lowest = head;
        let held = |id: EventId| self.recent().any(|(known, _)| known == id);
        while held(lowest)
            && let Some(below) = lowest.0.checked_sub(1).map(EventId)
            && held(below)
        {
            lowest = below;
        }
        lowest
    }

    pub(super) fn compare(&self, id: EventId, digest: Option<NonZeroU64>) -> Likeness {
        let Some(digest) = digest else { return Likeness::Unknown };
        match self.recent().chain(self.beginning).find(|(known, _)| *known == id) {
            None => Likeness::Unknown,
            Some((_, known)) if known == digest => Likeness::Same,
            Some(_) => Likeness::Other,
        }
    }

    fn recent(&self) -> impl Iterator<Item = (EventId, NonZeroU64)> {
        self.digests.iter().zip(&self.offsets).filter_map(|(digest, offset)| {
            // Each offset was a distance between two ids, so the sum is one.
            digest.map(|digest| (EventId(self.base.0.saturating_add(u64::from(*offset))), digest))
        })
    }

    /// Moves the base so that `id` lies half its reach above it, and returns that distance.
    fn move_base(&mut self, id: EventId) -> u32 {
        let base = EventId(id.0.saturating_sub(u64::from(u32::MAX / 2)));
        for (digest, offset) in self.digests.iter_mut().zip(&mut self.offsets) {
            let known = EventId(self.base.0.saturating_add(u64::from(*offset)));
            match distance(base, known) {
                Some(moved) => *offset = moved,
                None => *digest = None,
            }
        }
        self.base = base;
        u32::try_from(id.0 - base.0).unwrap_or(u32::MAX)
    }
}

fn distance(from: EventId, to: EventId) -> Option<u32> {
    to.0.checked_sub(from.0).and_then(|distance| u32::try_from(distance).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = 1 << 31;

    fn digest(id: u64) -> Option<NonZeroU64> {
        NonZeroU64::new(id ^ 0x5eed)
    }

    fn remembering(ids: impl IntoIterator<Item = u64>) -> Anchors {
        let mut anchors = Anchors::default();
        for id in ids {
            anchors.remember(EventId(id), digest(id), false);
        }
        anchors
    }

    fn knows(anchors: &Anchors, id: u64) -> bool {
        anchors.compare(EventId(id), digest(id)) == Likeness::Same
    }

    #[test]
    fn the_last_sixteen_are_remembered_wherever_their_ids_lie() {
        for start in [0, 7, u64::from(u32::MAX) - 8, FAR - 8, u64::MAX - 17] {
            let anchors = remembering(start..=start + 17);
            for id in start..=start + 17 {
                assert_eq!(knows(&anchors, id), id >= start + 2, "{id} of those from {start}");
            }
            assert_eq!(anchors.reach(EventId(start + 17)), EventId(start + 2));
        }
    }

    #[test]
    fn another_message_under_a_remembered_id_is_told_from_one_that_was_never_seen() {
        let anchors = remembering([5, 6]);
        assert_eq!(anchors.compare(EventId(6), digest(7)), Likeness::Other);
        assert_eq!(anchors.compare(EventId(7), digest(7)), Likeness::Unknown);
        assert_eq!(anchors.compare(EventId(6), None), Likeness::Unknown);
    }

    #[test]
    fn ids_may_jump_up_and_fall_back() {
        let anchors = remembering([10, FAR, 2 * FAR + 5, FAR + 10]);
        assert!([FAR + 10, 2 * FAR + 5].into_iter().all(|id| knows(&anchors, id)));
        let anchors = remembering([2 * FAR + 5, FAR + 10, 12]);
        assert!([12, FAR + 10].into_iter().all(|id| knows(&anchors, id)));
        // Each out of reach of the other: the later one stays.
        let anchors = remembering([u64::MAX, 0]);
        assert!(knows(&anchors, 0) && !knows(&anchors, u64::MAX));
        let anchors = remembering([0, u64::MAX]);
        assert!(knows(&anchors, u64::MAX) && !knows(&anchors, 0));
        // What is out of reach is not taken for an id that lies within it.
        let anchors = remembering([1, 1 + 4 * FAR]);
        assert_eq!(anchors.compare(EventId(1 + 2 * FAR), digest(2)), Likeness::Unknown);
    }

    #[test]
    fn the_beginning_outlives_the_ring() {
        let mut anchors = Anchors::default();
        anchors.remember(EventId(0), digest(0), true);
        for id in 1..40 {
            anchors.remember(EventId(id), digest(id), false);
        }
        assert!(knows(&anchors, 0) && !knows(&anchors, 1));
        anchors.forget_recent();
        assert!(knows(&anchors, 0) && !knows(&anchors, 39));
        assert_eq!(anchors.reach(EventId(39)), EventId(39));
    }
}
