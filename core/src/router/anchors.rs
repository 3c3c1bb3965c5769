//! Digests of the messages admitted last: what proves that a source is still the life that was
//! followed (B7).

use crate::id::EventId;
use core::num::NonZeroU64;

/// How many messages are remembered.
const KEPT: usize = 16;

/// A ring of the last admitted (id, digest) pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Anchors {
    /// The life's first message: kept, since a second one with its id is how most lives begin.
    beginning: Option<(EventId, NonZeroU64)>,
    ring: [Option<(EventId, NonZeroU64)>; KEPT],
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
        if let Some(place) = self.ring.get_mut(self.next) {
            *place = Some((id, digest));
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Forgets all but the beginning.
    pub(super) fn forget_recent(&mut self) {
        self.ring = [None; KEPT];
    }

    /// The lowest id from which every message up to `head` is remembered; `head` when none is.
    pub(super) fn reach(&self, head: EventId) -> EventId {
        let mut lowest = head;
        let held = |id: EventId| self.ring.iter().flatten().any(|(known, _)| *known == id);
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
        let known =
            self.ring.iter().chain([&self.beginning]).flatten().find(|(known, _)| *known == id);
        match known {
            None => Likeness::Unknown,
            Some((_, known)) if *known == digest => Likeness::Same,
            Some(_) => Likeness::Other,
        }
    }
}
