//! What all ranks of one router share: ids, timers, permits, counters, the generator.

use super::command::Effects;
use super::jitter::Jitter;
use super::notice::Stats;
use super::policy::Policy;
use super::timers::{SlotId, Timers};
use crate::id::{OpId, QueryId};
use crate::time::Timestamp;
use alloc::collections::VecDeque;

/// Query permits: at most `concurrency` in flight, first come first served (S5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Permits {
    in_flight: u32,
    waiting: VecDeque<(SlotId, u64)>,
    ticket: u64,
}

impl Permits {
    /// Takes a permit if one is free and nobody waits for it already.
    pub(super) fn take(&mut self, limit: u32) -> bool {
        if self.in_flight >= limit || !self.waiting.is_empty() {
            return false;
        }
        self.in_flight += 1;
        true
    }

    /// Queues for a permit; the ticket tells this wait from earlier ones of the same slot.
    pub(super) fn wait(&mut self, slot: SlotId) -> u64 {
        self.ticket += 1;
        self.waiting.push_back((slot, self.ticket));
        self.ticket
    }

    pub(super) const fn release(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Takes back a wait.
    pub(super) fn forget(&mut self, ticket: u64) {
        self.waiting.retain(|(_, waiting)| *waiting != ticket);
    }

    /// Hands a free permit to whoever waits longest.
    pub(super) fn grant(&mut self, limit: u32) -> Option<SlotId> {
        if self.in_flight >= limit {
            return None;
        }
        let (slot, _) = self.waiting.pop_front()?;
        self.in_flight += 1;
        Some(slot)
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shared {
    pub(super) policy: Policy,
    pub(super) jitter: Jitter,
    pub(super) timers: Timers,
    pub(super) permits: Permits,
    pub(super) stats: Stats,
    next_op: u64,
    next_query: u64,
}

impl Shared {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            jitter: Jitter::new(policy.seed),
            timers: Timers::default(),
            permits: Permits::default(),
            stats: Stats::default(),
            next_op: 1,
            next_query: 1,
        }
    }

    pub(super) const fn fresh_op(&mut self) -> OpId {
        let op = OpId(self.next_op);
        self.next_op += 1;
        op
    }

    pub(super) const fn fresh_query(&mut self) -> QueryId {
        let query = QueryId(self.next_query);
        self.next_query += 1;
        query
    }
}

/// One call's view of the shared state, for one slot.
#[derive(Debug)]
pub(super) struct Context<'a, P> {
    pub(super) shared: &'a mut Shared,
    pub(super) fx: &'a mut Effects<P>,
    pub(super) now: Timestamp,
    pub(super) slot: SlotId,
}
