//! What all ranks of one router share: ids, publishers, timers, permits, counters, the generator.

use super::command::Effects;
use super::jitter::Jitter;
use super::notice::Stats;
use super::permits::Permits;
use super::policy::Policy;
use super::publishers::Publishers;
use super::slot::Wanted;
use super::slot_id::SlotId;
use super::timers::Timers;
use crate::id::{OpId, QueryId};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shared {
    pub(super) policy: Policy,
    pub(super) jitter: Jitter,
    pub(super) timers: Timers,
    pub(super) permits: Permits,
    pub(super) stats: Stats,
    pub(super) publishers: Publishers,
    /// Bytes that wait over all ranks (B13).
    pub(super) waiting_bytes: usize,
    /// Membership is the last known one (B8).
    pub(super) suspect: bool,
    /// The machine has been shut down: nothing is asked any more.
    pub(super) shut: bool,
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
            publishers: Publishers::default(),
            waiting_bytes: 0,
            suspect: false,
            shut: false,
            next_op: 1,
            next_query: 1,
        }
    }

    /// A fresh op of `slot`. A rank has one incomplete op at a time.
    pub(super) const fn fresh_op(&mut self, slot: SlotId) -> OpId {
        let op = OpId(slot.number(self.next_op));
        self.next_op += 1;
        op
    }

    /// A fresh query of `slot`. A rank has one query in flight at a time.
    pub(super) const fn fresh_query(&mut self, slot: SlotId) -> QueryId {
        let query = QueryId(slot.number(self.next_query));
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
    /// The newest snapshot's word on the rank; `None`: no longer expected.
    pub(super) wanted: &'a mut Option<Wanted>,
    /// Bytes that wait on other ranks (B13).
    pub(super) others_bytes: usize,
}
