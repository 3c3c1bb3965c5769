//! The machine's own timers: one ordered map, the earliest always at hand.

use super::slot_id::SlotId;
use crate::time::Timestamp;
use alloc::collections::BTreeMap;
use core::num::NonZeroU64;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TimerKind {
    /// The recovery's current stage ends.
    Recovery,
    /// A fenced rank retries its reset.
    Heal,
    /// A rejected source has cooled down.
    CoolDown,
    /// A quiet source is asked for its tail.
    Probe,
    /// A failed recovery is tried again in the background.
    Repair,
}

/// Names a set timer, so that it can be taken back. Equal deadlines fire in the order in which they
/// were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Timer {
    at: Timestamp,
    order: NonZeroU64,
}

/// What a set timer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Aim {
    slot: SlotId,
    kind: TimerKind,
    chain: u8,
}

/// A timer that fired late may set one that is late as well. So many in a row fire at their own
/// time; the next one fires at the time it is, so that a clock that jumps cannot keep the machine
/// busy for ever.
const LONGEST_CHAIN: u8 = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timers {
    set: BTreeMap<Timer, Aim>,
    /// How many have ever been set.
    order: u64,
    /// How many timers in a row led to what is being worked off now.
    chain: u8,
    /// The earliest deadline, so that the live path need not look for it.
    earliest: Option<Timestamp>,
}

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) slot: SlotId,
    pub(super) kind: TimerKind,
    /// The time at which it counts as fired.
    pub(super) at: Timestamp,
}

impl Timers {
    /// Sets a timer, always to a time that has not come yet. One at the end of time never fires.
    pub(super) fn set(&mut self, at: Timestamp, slot: SlotId, kind: TimerKind) -> Timer {
        let timer = Timer { at, order: NonZeroU64::MIN.saturating_add(self.order) };
        self.order += 1;
        if at < Timestamp(u64::MAX) {
            self.set.insert(timer, Aim { slot, kind, chain: self.chain });
            self.look_up();
        }
        timer
    }

    pub(super) fn cancel(&mut self, timer: &mut Option<Timer>) {
        if let Some(timer) = timer.take() {
            self.set.remove(&timer);
            self.look_up();
        }
    }

    pub(super) const fn next(&self) -> Option<Timestamp> {
        self.earliest
    }

    /// Whether a timer is due at `now`.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.earliest.is_some_and(|earliest| earliest <= now)
    }

    /// Takes the earliest timer at or before `now`. What is set until the next call counts as led to
    /// by it.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Due> {
        self.chain = 0;
        let first = self.set.first_entry()?;
        let set_to = first.key().at;
        if set_to > now {
            return None;
        }
        let aim = first.remove();
        self.look_up();
        self.chain = aim.chain.saturating_add(1);
        let at = if aim.chain >= LONGEST_CHAIN { now } else { set_to };
        Some(Due { slot: aim.slot, kind: aim.kind, at })
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    fn look_up(&mut self) {
        self.earliest = self.set.first_key_value().map(|(timer, _)| timer.at);
    }
}
