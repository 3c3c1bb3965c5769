//! The router: routes each input to its rank and shares ids, timers and permits between ranks.

use super::command::{Command, Effects};
use super::follow::Reply;
use super::input::{
    Completion, LiveBatch, Membership, Origin, Payload, RecoveryOutcome, RecoveryResponse,
    TransportChange,
};
use super::notice::{DiscardReason, Notice, Stats};
use super::policy::{Policy, PolicyError};
use super::recovery::Purpose;
use super::shared::{Context, Shared};
use super::slot::{Desired, Slot};
use super::timers::{SlotId, TimerKind};
use super::trust::{Trust, TrustReason};
use crate::id::{EventId, OpId, PublisherId, QueryId, RankKey};
use crate::time::Timestamp;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A lookup-only map: it is never iterated, so its order cannot reach an output.
type Lookup<K> = HashMap<K, SlotId, FxBuildHasher>;

/// What the machine knows of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankView {
    /// The rank.
    pub key: RankKey,
    /// What a query may believe of it.
    pub trust: Trust,
    /// Why it is not exact.
    pub reason: Option<TrustReason>,
    /// Last id the target has accepted.
    pub cursor: Option<EventId>,
    /// When it was last known to be level with its source.
    pub level_at: Option<Timestamp>,
    /// The source that is followed.
    pub publisher: Option<PublisherId>,
    /// The recovery in progress.
    pub recovering: Option<Purpose>,
    /// Events that wait.
    pub pending_events: u64,
    /// Bytes that wait.
    pub pending_bytes: usize,
    /// How far the highest id that is known to exist lies above the cursor.
    pub lag: u64,
}

/// The router machine. See the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Router<P> {
    shared: Shared,
    slots: Vec<Option<Slot<P>>>,
    free: Vec<SlotId>,
    by_key: BTreeMap<RankKey, SlotId>,
    by_publisher: Lookup<PublisherId>,
    by_query: Lookup<QueryId>,
    by_op: Lookup<OpId>,
    now: Timestamp,
    shut: bool,
}

impl<P: Hash> Hash for Router<P> {
    /// The lookup maps are left out: each entry follows from the slots.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shared.hash(state);
        self.slots.hash(state);
        self.free.hash(state);
        self.by_key.hash(state);
        self.now.hash(state);
        self.shut.hash(state);
    }
}

impl<P: Payload> Router<P> {
    /// Makes a machine that follows nothing yet.
    ///
    /// # Errors
    /// [`PolicyError`] when a limit is zero that must not be.
    pub fn new(policy: Policy) -> Result<Self, PolicyError> {
        Ok(Self {
            shared: Shared::new(policy.validated()?),
            slots: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            by_publisher: HashMap::with_hasher(FxBuildHasher),
            by_query: HashMap::with_hasher(FxBuildHasher),
            by_op: HashMap::with_hasher(FxBuildHasher),
            now: Timestamp::ZERO,
            shut: false,
        })
    }

    /// The whole membership, as it is now. An equal snapshot has no effect.
    ///
    /// May emit, per changed rank, a cancel, a reset and a query.
    pub fn handle_membership(
        &mut self,
        membership: &Membership,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        if self.enter(now) {
            return;
        }
        let gone: Vec<RankKey> = self
            .by_key
            .keys()
            .filter(|key| membership.ranks().binary_search_by_key(key, |rank| &rank.key).is_err())
            .copied()
            .collect();
        for key in gone {
            self.want(key, None, fx);
        }
        for rank in membership.ranks() {
            let desired = Desired { generation: rank.generation, status: rank.status };
            self.want(rank.key, Some(desired), fx);
        }
        self.settle(fx);
    }

    /// One transport message of a source.
    ///
    /// May emit an admit; or, when it is not simply next, a cancel, a reset or a query.
    pub fn handle_live(&mut self, batch: LiveBatch<P>, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now) {
            return;
        }
        self.shared.stats.live_messages += 1;
        let Some(&id) = self.by_publisher.get(&batch.publisher) else {
            self.discard(batch.publisher, DiscardReason::InactivePublisher, fx);
            return;
        };
        match batch.origin {
            Origin::Own => {}
            Origin::Foreign => {
                self.discard(batch.publisher, DiscardReason::Foreign, fx);
                return;
            }
        }
        self.with(id, fx, |slot, cx| {
            let Some(source) = slot.active else {
                cx.shared.stats.discard(DiscardReason::Fenced, 1);
                return;
            };
            for run in batch.runs {
                slot.live(source, run, cx);
            }
        });
        self.settle(fx);
    }

    /// The answer to a query, or that there will be none.
    ///
    /// May emit an admit, a replace, a reset, a cancel or a query.
    pub fn handle_recovery(
        &mut self,
        response: RecoveryResponse<P>,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        if self.enter(now) {
            return;
        }
        let Some(id) = self.by_query.remove(&response.query) else {
            self.shared.stats.stale_replies += 1;
            return;
        };
        self.with(id, fx, |slot, cx| {
            let (runs, complete) = match response.outcome {
                RecoveryOutcome::Failed(failure) => {
                    slot.query_failed(response.query, failure, cx);
                    return;
                }
                RecoveryOutcome::Events { runs, complete } => (runs, complete),
            };
            if !slot.answered(response.query, cx) {
                cx.shared.stats.stale_replies += 1;
                return;
            }
            match response.origin {
                Origin::Foreign => slot.foreign_reply(cx),
                Origin::Own => slot.follow.reply = Some(Reply { runs, complete }),
            }
        });
        self.settle(fx);
    }

    /// A command has ended. Unknown and already ended ops are ignored.
    ///
    /// May emit whatever waited for it.
    pub fn handle_completion(&mut self, done: Completion, now: Timestamp, fx: &mut Effects<P>) {
        self.enter(now);
        let Some(id) = self.by_op.remove(&done.op) else { return };
        self.with(id, fx, |slot, cx| slot.completed(done, cx));
        self.settle(fx);
    }

    /// The way to a source changed. A publisher that is active for no rank is ignored.
    pub fn handle_transport(
        &mut self,
        publisher: PublisherId,
        change: TransportChange,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        if self.enter(now) {
            return;
        }
        let Some(&id) = self.by_publisher.get(&publisher) else { return };
        self.with(id, fx, |slot, cx| slot.transport(change, cx));
        self.settle(fx);
    }

    /// Time has passed. Early calls do nothing; late ones fire every due timer in order.
    pub fn handle_timeout(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now) {
            return;
        }
        let mark = self.shared.timers.mark();
        while let Some((id, kind)) = self.shared.timers.pop_due(self.now, mark) {
            self.with(id, fx, |slot, cx| match kind {
                TimerKind::Recovery => slot.recovery_timer(cx),
                TimerKind::Heal => slot.heal_timer(cx),
                TimerKind::Probe => slot.probe_timer(cx),
                TimerKind::Repair => slot.repair_timer(cx),
            });
            self.settle(fx);
        }
    }

    /// Empties every rank and ends: afterwards no input has an effect but completions.
    pub fn handle_shutdown(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now) {
            return;
        }
        let keys: Vec<RankKey> = self.by_key.keys().copied().collect();
        for key in keys {
            self.want(key, None, fx);
        }
        self.settle(fx);
        self.shut = true;
    }

    /// The time at which [`Router::handle_timeout`] has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.shut { None } else { self.shared.timers.next() }
    }

    /// One rank, if it is expected or not yet emptied.
    pub fn rank(&self, key: RankKey) -> Option<RankView> {
        self.by_key.get(&key).and_then(|id| self.slot(*id)).map(view)
    }

    /// All ranks, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = RankView> + '_ {
        self.by_key.values().filter_map(|id| self.slot(*id)).map(view)
    }

    /// Counters since the machine was made.
    pub const fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Queries in flight; never above the policy's concurrency (S5).
    pub const fn queries_in_flight(&self) -> u32 {
        self.shared.permits.in_flight()
    }

    /// Timers set; none is left once every rank is gone.
    pub fn timers(&self) -> usize {
        self.shared.timers.len()
    }

    /// Takes the time in; true when the machine is shut. Time never runs backwards.
    fn enter(&mut self, now: Timestamp) -> bool {
        self.now = self.now.max(now);
        self.shut
    }

    fn slot(&self, id: SlotId) -> Option<&Slot<P>> {
        self.slots.get(id.0 as usize).and_then(Option::as_ref)
    }

    fn discard(&mut self, publisher: PublisherId, reason: DiscardReason, fx: &mut Effects<P>) {
        self.shared.stats.discard(reason, 1);
        fx.notice(Notice::Discarded { publisher, reason, messages: 1 });
    }

    /// Tells a rank what membership wants of it; makes the slot of a new rank.
    fn want(&mut self, key: RankKey, desired: Option<Desired>, fx: &mut Effects<P>) {
        let known = self.by_key.get(&key).copied();
        let id = match (known, desired) {
            (Some(id), _) => id,
            (None, Some(desired)) => self.make_slot(key, desired, fx),
            (None, None) => return,
        };
        let before = self.slot(id).and_then(|slot| slot.desired);
        if known.is_some() && before == desired {
            return;
        }
        if let Some(publisher) = before.and_then(Desired::publisher)
            && self.by_publisher.get(&publisher) == Some(&id)
        {
            self.by_publisher.remove(&publisher);
        }
        if let Some(publisher) = desired.and_then(Desired::publisher) {
            self.by_publisher.insert(publisher, id);
        }
        self.with(id, fx, |slot, cx| slot.want(desired, cx));
    }

    fn make_slot(&mut self, key: RankKey, desired: Desired, fx: &mut Effects<P>) -> SlotId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            SlotId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        let cx = Context { shared: &mut self.shared, fx, now: self.now, slot: id };
        let slot = Slot::new(key, desired, &cx);
        if let Some(place) = self.slots.get_mut(id.0 as usize) {
            *place = Some(slot);
        }
        self.by_key.insert(key, id);
        id
    }

    /// Runs one step of a slot, then works the slot off and keeps the lookups true.
    fn with(
        &mut self,
        id: SlotId,
        fx: &mut Effects<P>,
        step: impl FnOnce(&mut Slot<P>, &mut Context<'_, P>),
    ) {
        let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) else { return };
        let emitted = fx.commands().len();
        let mut cx = Context { shared: &mut self.shared, fx, now: self.now, slot: id };
        step(slot, &mut cx);
        slot.advance(&mut cx);
        let gone = slot.is_gone().then_some(slot.key);
        for command in fx.commands().get(emitted..).unwrap_or_default() {
            match command {
                Command::Admit { op, .. }
                | Command::Replace { op, .. }
                | Command::Reset { op, .. } => {
                    self.by_op.insert(*op, id);
                }
                Command::Query { query, .. } => {
                    self.by_query.insert(*query, id);
                }
                Command::Cancel { query } => {
                    self.by_query.remove(query);
                }
            }
        }
        if let Some(key) = gone {
            self.by_key.remove(&key);
            if let Some(place) = self.slots.get_mut(id.0 as usize) {
                *place = None;
            }
            self.free.push(id);
        }
    }

    /// Hands out permits that came free, to whoever waited longest.
    fn settle(&mut self, fx: &mut Effects<P>) {
        while let Some(id) = self.shared.permits.grant(self.shared.policy.concurrency) {
            self.with(id, fx, |slot, cx| {
                if !slot.permit_granted(cx) {
                    cx.shared.permits.release();
                }
            });
        }
    }
}

fn view<P: Payload>(slot: &Slot<P>) -> RankView {
    let (trust, reason) = slot.trust();
    let follow = &slot.follow;
    let reached = follow.cursor.map_or(0, |cursor| cursor.0);
    RankView {
        key: slot.key,
        trust,
        reason,
        cursor: follow.cursor,
        level_at: follow.level_at,
        publisher: slot.active.map(|source| source.publisher),
        recovering: follow.purpose(),
        pending_events: follow.pending.events(),
        pending_bytes: follow.pending.bytes(),
        lag: follow.newest.map_or(0, |newest| newest.0.saturating_sub(reached)),
    }
}
