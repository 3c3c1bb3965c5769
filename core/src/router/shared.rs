//! What all ranks of one router share: ids, lookups, timers, permits, counters, the generator.

use super::command::Effects;
use super::jitter::Jitter;
use super::notice::Stats;
use super::permits::Permits;
use super::policy::Policy;
use super::timers::{SlotId, Timers};
use crate::id::{OpId, PublisherId, QueryId};
use crate::time::Timestamp;
use core::hash::{Hash, Hasher};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A lookup-only map: it is never iterated, so its order cannot reach an output. It follows from
/// the slots, so it adds nothing to a hash of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lookup<K: Eq + Hash>(HashMap<K, SlotId, FxBuildHasher>);

impl<K: Eq + Hash> Default for Lookup<K> {
    fn default() -> Self {
        Self(HashMap::with_hasher(FxBuildHasher))
    }
}

impl<K: Eq + Hash> Hash for Lookup<K> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<K: Copy + Eq + Hash> Lookup<K> {
    pub(super) fn get(&self, key: K) -> Option<SlotId> {
        self.0.get(&key).copied()
    }

    pub(super) fn insert(&mut self, key: K, slot: SlotId) {
        self.0.insert(key, slot);
    }

    /// Forgets `key` if it still means `slot`.
    pub(super) fn remove(&mut self, key: K, slot: SlotId) {
        if self.get(key) == Some(slot) {
            self.0.remove(&key);
        }
    }
}

/// Bits of an op that name its slot: a router holds fewer than 2²⁴ slots.
const SLOT_BITS: u32 = 24;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shared {
    pub(super) policy: Policy,
    pub(super) jitter: Jitter,
    pub(super) timers: Timers,
    pub(super) permits: Permits,
    pub(super) stats: Stats,
    /// Who follows a publisher.
    pub(super) followed: Lookup<PublisherId>,
    /// Whom the newest snapshot gives a publisher to, followed already or not.
    pub(super) selected: Lookup<PublisherId>,
    /// Whose query is in flight.
    pub(super) queries: Lookup<QueryId>,
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
            followed: Lookup::default(),
            selected: Lookup::default(),
            queries: Lookup::default(),
            waiting_bytes: 0,
            suspect: false,
            shut: false,
            next_op: 1,
            next_query: 1,
        }
    }

    /// A fresh op of `slot`. After 2⁴⁰ ops the numbers come round again; a rank has one incomplete
    /// op at a time, so only a completion that late could be mistaken.
    pub(super) const fn fresh_op(&mut self, slot: SlotId) -> OpId {
        let op = OpId((self.next_op << SLOT_BITS) | slot.0 as u64);
        self.next_op += 1;
        op
    }

    /// The slot that an op was made for.
    pub(super) const fn slot_of(op: OpId) -> SlotId {
        let slot = (op.0 & ((1 << SLOT_BITS) - 1)) as u32;
        SlotId(slot)
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
    /// Bytes that wait on other ranks (B13).
    pub(super) others_bytes: usize,
}
