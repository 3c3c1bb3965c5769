//! Query permits: who may ask, and who waits for it (S5, B9).

use super::policy::Policy;
use super::slot_id::SlotId;
use crate::id::TargetId;
use alloc::collections::{BTreeSet, VecDeque};

/// What a query asks for; each kind has its own limit when recovery is fair (B9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Lane {
    /// Events from an id on.
    Range,
    /// A whole state, or all that a source still has.
    Whole,
}

/// One wait for a permit; the ticket tells it from earlier ones of the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    ticket: u64,
    slot: SlotId,
    target: TargetId,
}

/// At most `concurrency` queries in flight, first come first served.
///
/// When recovery is fair, whole states have a limit of their own and a target is asked one question
/// at a time; who could not be served anyhow does not hold up who waits behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Permits {
    range: u32,
    whole: u32,
    asked: BTreeSet<TargetId>,
    waiting_range: VecDeque<Waiting>,
    waiting_whole: VecDeque<Waiting>,
    ticket: u64,
}

impl Permits {
    /// Takes a permit if one is free and nobody waits for it already.
    pub(super) fn take(&mut self, lane: Lane, target: TargetId, policy: &Policy) -> bool {
        let nobody_waits =
            if policy.fair_recovery { self.waiting(lane).is_empty() } else { self.is_calm() };
        let free = nobody_waits && self.free(lane, policy) && self.may_ask(target, policy);
        if free {
            self.use_up(lane, target, policy);
        }
        free
    }

    /// Queues for a permit.
    pub(super) fn wait(&mut self, lane: Lane, slot: SlotId, target: TargetId) -> u64 {
        self.ticket += 1;
        let waiting = Waiting { ticket: self.ticket, slot, target };
        match lane {
            Lane::Range => self.waiting_range.push_back(waiting),
            Lane::Whole => self.waiting_whole.push_back(waiting),
        }
        self.ticket
    }

    pub(super) fn release(&mut self, lane: Lane, target: TargetId) {
        let count = match lane {
            Lane::Range => &mut self.range,
            Lane::Whole => &mut self.whole,
        };
        *count = count.saturating_sub(1);
        self.asked.remove(&target);
    }

    /// Takes back a wait.
    pub(super) fn forget(&mut self, ticket: u64) {
        self.waiting_range.retain(|waiting| waiting.ticket != ticket);
        self.waiting_whole.retain(|waiting| waiting.ticket != ticket);
    }

    /// Whether nobody waits.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.waiting_range.is_empty() && self.waiting_whole.is_empty()
    }

    /// Hands a free permit to whoever of those it could serve waits longest.
    pub(super) fn grant(&mut self, policy: &Policy) -> Option<SlotId> {
        let next = [Lane::Range, Lane::Whole]
            .into_iter()
            .filter(|lane| self.free(*lane, policy))
            .filter_map(|lane| {
                let waiting = self.waiting(lane);
                let at = waiting.iter().position(|one| self.may_ask(one.target, policy))?;
                waiting.get(at).map(|one| (one.ticket, lane, at))
            })
            .min()?;
        let (_, lane, at) = next;
        let waiting = match lane {
            Lane::Range => self.waiting_range.remove(at),
            Lane::Whole => self.waiting_whole.remove(at),
        }?;
        self.use_up(lane, waiting.target, policy);
        Some(waiting.slot)
    }

    /// Whether somebody could use the permit that a query of `lane` to `target` holds.
    pub(super) fn contended(&self, lane: Lane, target: TargetId, policy: &Policy) -> bool {
        let served = |one: &Waiting| one.target == target || self.may_ask(one.target, policy);
        let within = |lane: Lane| self.waiting(lane).iter().any(served);
        let crossing = match lane {
            Lane::Range => self.whole < policy.snapshot_concurrency && within(Lane::Whole),
            Lane::Whole => within(Lane::Range),
        };
        // While a permit is free, whoever waits does so for another reason.
        self.in_flight() >= policy.concurrency && crossing || within(lane)
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.range + self.whole
    }

    const fn waiting(&self, lane: Lane) -> &VecDeque<Waiting> {
        match lane {
            Lane::Range => &self.waiting_range,
            Lane::Whole => &self.waiting_whole,
        }
    }

    const fn free(&self, lane: Lane, policy: &Policy) -> bool {
        let within = match lane {
            Lane::Range => true,
            Lane::Whole => !policy.fair_recovery || self.whole < policy.snapshot_concurrency,
        };
        within && self.in_flight() < policy.concurrency
    }

    fn may_ask(&self, target: TargetId, policy: &Policy) -> bool {
        !policy.fair_recovery || !self.asked.contains(&target)
    }

    fn use_up(&mut self, lane: Lane, target: TargetId, policy: &Policy) {
        match lane {
            Lane::Range => self.range += 1,
            Lane::Whole => self.whole += 1,
        }
        if policy.fair_recovery {
            self.asked.insert(target);
        }
    }
}
