//! The machine's own timers: one ordered set, the earliest in O(log n).

use crate::time::Timestamp;
use alloc::collections::BTreeSet;

/// Index of a slot in the machine's slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlotId(pub(super) u32);

/// What a timer is for. Declared in no particular order: equal deadlines fire in the order in
/// which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TimerKind {
    /// The recovery's current stage ends.
    Recovery,
    /// A fenced rank retries its reset.
    Heal,
    /// A quiet raw engine is asked for its tail.
    Probe,
    /// A failed recovery is tried again in the background.
    Repair,
}

/// Names a set timer, so that it can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Timer {
    at: Timestamp,
    order: u64,
    slot: SlotId,
    kind: TimerKind,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timers {
    set: BTreeSet<Timer>,
    order: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Timestamp, slot: SlotId, kind: TimerKind) -> Timer {
        let timer = Timer { at, order: self.order, slot, kind };
        self.order += 1;
        self.set.insert(timer);
        timer
    }

    pub(super) fn cancel(&mut self, timer: &mut Option<Timer>) {
        if let Some(timer) = timer.take() {
            self.set.remove(&timer);
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.set.first().map(|timer| timer.at)
    }

    /// A mark in time: timers set from here on do not count for a [`Timers::pop_due`] that is
    /// given it.
    pub(super) const fn mark(&self) -> u64 {
        self.order
    }

    /// Takes the earliest timer at or before `now` that was set before `mark`, so that a timer
    /// which sets itself again without a wait (at the end of time) cannot keep the caller for ever.
    pub(super) fn pop_due(&mut self, now: Timestamp, mark: u64) -> Option<(SlotId, TimerKind)> {
        let first = *self.set.first()?;
        if first.at > now || first.order >= mark {
            return None;
        }
        self.set.remove(&first);
        Some((first.slot, first.kind))
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }
}
