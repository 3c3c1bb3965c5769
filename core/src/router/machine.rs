//! The router: routes each input to its rank and shares ids, timers and permits between ranks.

use super::command::{Disposition, Effects, Reply};
use super::input::{
    Completion, Input, LiveBatch, Origin, Payload, RecoveryResponse, SourceRejection, TargetFault,
    TransportChange, Watermark,
};
use super::notice::{DiscardReason, Notice, Stats};
use super::policy::{Policy, PolicyError};
use super::shared::{Context, Shared};
use super::slab::Slab;
use super::slot::{Item, Slot, Wanted};
use super::slot_id::SlotId;
use super::timers::TimerKind;
use super::view::RankView;
use crate::id::{Generation, PublisherId, RankKey, SnapshotId};
use crate::membership::Membership;
use crate::time::Timestamp;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The router machine. See the module documentation.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Router<P> {
    shared: Shared,
    slots: Slab<P>,
    /// Ranks on which a snapshot that says the same again would have an effect.
    unsettled: BTreeSet<RankKey>,
    /// Generations of ranks that have left (§5.7); none with B14.
    tombstones: BTreeMap<RankKey, Generation>,
    applied: Option<SnapshotId>,
    now: Timestamp,
}

impl<P: Payload> Router<P> {
    /// Makes a machine that follows nothing yet.
    ///
    /// # Errors
    /// [`PolicyError`] when a limit is zero that must not be.
    pub fn new(policy: Policy) -> Result<Self, PolicyError> {
        Ok(Self {
            shared: Shared::new(policy.validated()?),
            slots: Slab::default(),
            unsettled: BTreeSet::new(),
            tombstones: BTreeMap::new(),
            applied: None,
            now: Timestamp::ZERO,
        })
    }

    /// Any input, by its own handler. Time never runs backwards: an earlier `now` counts as the
    /// latest one seen. Deadlines that have passed fire first, each at its own time.
    pub fn handle(&mut self, input: Input<P>, now: Timestamp, fx: &mut Effects<P>) {
        match input {
            Input::Membership(membership) => self.handle_membership(&membership, now, fx),
            Input::MembershipEnded => self.handle_membership_ended(now, fx),
            Input::Live(batch) => self.handle_live(batch, now, fx),
            Input::Watermark(watermark) => self.handle_watermark(watermark, now, fx),
            Input::Recovery(response) => self.handle_recovery(response, now, fx),
            Input::Completion(done) => self.handle_completion(done, now, fx),
            Input::Transport(publisher, change) => {
                self.handle_transport(publisher, change, now, fx);
            }
            Input::TargetFault(fault) => self.handle_target_fault(fault, now, fx),
            Input::SourceRejection(rejection) => self.handle_source_rejection(rejection, now, fx),
            Input::Timeout => self.handle_timeout(now, fx),
            Input::Shutdown => self.handle_shutdown(now, fx),
        }
    }

    /// The whole membership, as it is now. Ranks that are no longer expected come first, then the
    /// others, ascending.
    ///
    /// A snapshot that names the one applied last as its predecessor costs as much as it changes; any
    /// other is compared as a whole. A rank with something owed is reconciled in any case.
    ///
    /// May emit, per rank, a cancel, a reset and a query.
    pub fn handle_membership(
        &mut self,
        membership: &Membership,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        if self.enter(now, fx) {
            return;
        }
        self.set_suspect(membership.suspect(), fx);
        let mut keys = match membership.since() {
            Some((predecessor, changed)) if Some(predecessor) == self.applied => changed.to_vec(),
            Some(_) | None => self.differing(membership),
        };
        keys.extend(&self.unsettled);
        keys.sort();
        keys.dedup();
        self.applied = membership.id();
        let mut listed = Vec::with_capacity(keys.len());
        for key in keys {
            match membership.get(key) {
                Some(rank) => listed.push(rank),
                None => self.want(key, None, fx),
            }
        }
        for rank in listed {
            self.want(rank.key, Some(Wanted::of(rank)), fx);
        }
    }

    /// The membership input has ended: what it last said is kept, and in doubt (B35).
    pub fn handle_membership_ended(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        if !self.enter(now, fx) {
            self.set_suspect(true, fx);
        }
    }

    /// One transport message of a source.
    ///
    /// May emit an admit; or, when it is not simply next, a cancel, a reset or a query.
    pub fn handle_live(&mut self, batch: LiveBatch<P>, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now, fx) {
            return;
        }
        self.shared.stats.live_messages += 1;
        let Some(id) = self.shared.publishers.follower(batch.publisher) else {
            self.discard(batch.publisher, DiscardReason::InactivePublisher, fx);
            return;
        };
        match batch.origin {
            Origin::Own => self.with(id, fx, |slot, cx| slot.live(batch, cx)),
            Origin::Foreign => self.discard(batch.publisher, DiscardReason::Foreign, fx),
        }
    }

    /// A source's sign of life (B3, B17). That of a publisher nobody follows is counted.
    ///
    /// May emit a query, or a cancel and a reset.
    pub fn handle_watermark(&mut self, sign: Watermark, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now, fx) {
            return;
        }
        match self.shared.publishers.follower(sign.publisher) {
            Some(id) => self.with(id, fx, |slot, cx| slot.signed(sign, cx)),
            None => self.discard(sign.publisher, DiscardReason::InactivePublisher, fx),
        }
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
        if self.enter(now, fx) {
            return;
        }
        match SlotId::of(response.query.0).filter(|id| self.slots.holds(*id)) {
            Some(id) => self.with(id, fx, |slot, cx| slot.respond(response, cx)),
            None => self.shared.stats.stale_replies += 1,
        }
    }

    /// A command has ended. Unknown and already ended ops are ignored.
    ///
    /// May emit whatever waited for it.
    pub fn handle_completion(&mut self, done: Completion, now: Timestamp, fx: &mut Effects<P>) {
        self.enter(now, fx);
        if let Some(id) = SlotId::of(done.op.0) {
            self.with(id, fx, |slot, cx| slot.completed(done, cx));
        }
    }

    /// The way to a source changed. A loss is answered by a [`Reply`]; the return of a publisher that
    /// nobody follows is ignored.
    ///
    /// May emit a cancel, a reset or a query.
    pub fn handle_transport(
        &mut self,
        publisher: PublisherId,
        change: TransportChange,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        if self.enter(now, fx) {
            return;
        }
        let followed = self.shared.publishers.follower(publisher);
        let id = followed.or_else(|| self.shared.publishers.selector(publisher));
        match (id, change) {
            (Some(id), TransportChange::Lost) => {
                self.with(id, fx, |slot, cx| slot.tell_interrupted(publisher, cx));
            }
            (Some(id), TransportChange::Back) => {
                self.with(id, fx, |slot, cx| slot.accept(Item::Back { publisher }, cx));
            }
            (None, TransportChange::Lost) => {
                fx.reply(Reply::TransportLost { publisher, fenced: false });
            }
            (None, TransportChange::Back) => {}
        }
    }

    /// The target reports that it may not hold what it should. Answered by a [`Reply`].
    ///
    /// May emit a cancel and a query, or a reset.
    pub fn handle_target_fault(&mut self, fault: TargetFault, now: Timestamp, fx: &mut Effects<P>) {
        let TargetFault { rank, epoch, barrier_failed } = fault;
        self.handle_fault(rank, Item::Fault { epoch, barrier_failed }, now, fx);
    }

    /// The target calls a source's events impossible. Answered by a [`Reply`].
    ///
    /// May emit a cancel and a reset.
    pub fn handle_source_rejection(
        &mut self,
        rejection: SourceRejection,
        now: Timestamp,
        fx: &mut Effects<P>,
    ) {
        let SourceRejection { rank, epoch } = rejection;
        self.handle_fault(rank, Item::Reject { epoch }, now, fx);
    }

    fn handle_fault(&mut self, rank: RankKey, item: Item<P>, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now, fx) {
            return;
        }
        match self.slots.find(rank) {
            Some(id) => self.with(id, fx, |slot, cx| slot.accept(item, cx)),
            None => fx.reply(Reply::Fault { rank, disposition: Disposition::Stale }),
        }
    }

    /// Time has passed. Early calls do nothing; late ones fire every due deadline in order, each at
    /// its own time.
    pub fn handle_timeout(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        self.enter(now, fx);
    }

    /// Empties every rank and ends: afterwards no input has an effect but completions.
    pub fn handle_shutdown(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        if self.enter(now, fx) {
            return;
        }
        self.shared.shut = true;
        let ids: Vec<SlotId> = self.slots.ids().collect();
        for id in ids {
            self.with(id, fx, |slot, cx| slot.accept(Item::Remove, cx));
        }
    }

    /// The time at which [`Router::handle_timeout`] has something to do.
    pub const fn next_deadline(&self) -> Option<Timestamp> {
        if self.shared.shut { None } else { self.shared.timers.next() }
    }

    /// One rank, if it is expected or not yet emptied.
    pub fn rank(&self, key: RankKey) -> Option<RankView> {
        self.slots.find(key).and_then(|id| self.view(id))
    }

    /// All ranks, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = RankView> + '_ {
        self.slots.ids().filter_map(|id| self.view(id))
    }

    /// Counters since the machine was made.
    pub const fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// The policy it was made with.
    pub const fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Queries in flight; never above the policy's concurrency (S5).
    pub const fn queries_in_flight(&self) -> u32 {
        self.shared.permits.in_flight()
    }

    /// Timers set; none is left once every rank is gone.
    pub fn timers(&self) -> usize {
        self.shared.timers.len()
    }

    /// Generations kept of ranks that have left; none in the hardened profile (B14).
    pub fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Takes the time in and fires what is due; true when the machine is shut.
    #[inline]
    fn enter(&mut self, now: Timestamp, fx: &mut Effects<P>) -> bool {
        if self.shared.shut {
            return true;
        }
        if self.shared.timers.is_due(now) {
            self.fire(now, fx);
        }
        self.now = self.now.max(now);
        false
    }

    fn fire(&mut self, now: Timestamp, fx: &mut Effects<P>) {
        while let Some(due) = self.shared.timers.pop_due(now) {
            self.now = self.now.max(due.at);
            self.with(due.slot, fx, |slot, cx| match due.kind {
                TimerKind::Recovery => slot.recovery_timer(cx),
                TimerKind::Heal => slot.heal_timer(cx),
                TimerKind::CoolDown => slot.cool_down_timer(cx),
                TimerKind::Probe => slot.probe_timer(cx),
                TimerKind::Repair => slot.repair_timer(cx),
            });
        }
    }

    fn view(&self, id: SlotId) -> Option<RankView> {
        let (slot, wanted) = self.slots.get(id)?;
        Some(RankView::of(slot, wanted, self.shared.suspect))
    }

    fn discard(&mut self, publisher: PublisherId, reason: DiscardReason, fx: &mut Effects<P>) {
        self.shared.stats.discard(reason, 1);
        fx.notice(Notice::Discarded { publisher, reason, messages: 1 });
    }

    fn set_suspect(&mut self, suspect: bool, fx: &mut Effects<P>) {
        if core::mem::replace(&mut self.shared.suspect, suspect) == suspect {
            return;
        }
        let ids: Vec<SlotId> = self.slots.ids().collect();
        for id in ids {
            self.with(id, fx, |slot, cx| slot.tell_trust(cx));
        }
    }

    /// Ranks of which this snapshot says something else than the last one, ascending.
    fn differing(&self, membership: &Membership) -> Vec<RankKey> {
        let mut keys = Vec::new();
        let mut known = self.slots.wanted().peekable();
        for rank in membership.ranks() {
            while let Some((key, _)) = known.next_if(|(key, _)| *key < rank.key) {
                keys.push(key);
            }
            let said = known.next_if(|(key, _)| *key == rank.key);
            if said != Some((rank.key, Some(Wanted::of(rank)))) {
                keys.push(rank.key);
            }
        }
        keys.extend(known.map(|(key, _)| key));
        keys
    }

    /// Tells a rank what membership wants of it; makes the slot of a new rank.
    fn want(&mut self, key: RankKey, wanted: Option<Wanted>, fx: &mut Effects<P>) {
        let id = match (self.slots.find(key), wanted) {
            (Some(id), _) => Some(id),
            (None, Some(_)) => self.make_slot(key),
            (None, None) => None,
        };
        if let Some(id) = id {
            self.with(id, fx, |slot, cx| slot.want(wanted, cx));
        }
    }

    /// A new rank's slot, unless there are too many.
    fn make_slot(&mut self, key: RankKey) -> Option<SlotId> {
        let Some(id) = self.slots.vacancy() else {
            self.shared.stats.ranks_over_limit += 1;
            return None;
        };
        let stored = self.tombstones.remove(&key);
        self.slots.insert(key, id, Slot::new(key, stored, self.now));
        Some(id)
    }

    /// Runs one step of a slot, keeps the books, and hands out the permits that came free.
    fn with(
        &mut self,
        id: SlotId,
        fx: &mut Effects<P>,
        step: impl FnOnce(&mut Slot<P>, &mut Context<'_, P>),
    ) {
        self.one_step(id, fx, step);
        while !self.shared.permits.is_calm()
            && !self.shared.shut
            && let Some(id) = self.shared.permits.grant(&self.shared.policy)
        {
            self.one_step(id, fx, |slot, cx| slot.permit_granted(cx));
        }
    }

    fn one_step(
        &mut self,
        id: SlotId,
        fx: &mut Effects<P>,
        step: impl FnOnce(&mut Slot<P>, &mut Context<'_, P>),
    ) {
        let Some((slot, wanted)) = self.slots.get_mut(id) else { return };
        let before = slot.waiting().1;
        let others_bytes = self.shared.waiting_bytes.saturating_sub(before);
        let (shared, now) = (&mut self.shared, self.now);
        let mut cx = Context { shared, fx, now, slot: id, wanted, others_bytes };
        step(slot, &mut cx);
        let after = slot.waiting().1;
        if before != after {
            self.shared.waiting_bytes = others_bytes.saturating_add(after);
        }
        let plain = slot.is_plainly_followed();
        if plain && !slot.unsettled {
            return;
        }
        let (key, gone, tombstone) = (slot.key, slot.is_gone(), slot.tombstone());
        let owes = !plain && !gone && slot.owes_reconciliation(*wanted);
        if core::mem::replace(&mut slot.unsettled, owes) != owes {
            if owes {
                self.unsettled.insert(key);
            } else {
                self.unsettled.remove(&key);
            }
        }
        if gone {
            self.slots.remove(key);
            self.tombstones.extend(tombstone.map(|generation| (key, generation)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EventId, TargetId};
    use crate::membership::{MemberRank, RankStatus, Source, SourceKind};
    use crate::router::{Command, Completion};
    use alloc::vec;
    use core::ops::Range;

    #[derive(Clone)]
    struct Nothing;

    impl Payload for Nothing {
        fn len(&self) -> u32 {
            1
        }
        fn bytes(&self) -> usize {
            0
        }
        fn slice(&self, _: Range<u32>) -> Self {
            Self
        }
    }

    fn member(ready: bool) -> MemberRank {
        let source = Source {
            publisher: PublisherId(5),
            target: Some(TargetId(5)),
            kind: SourceKind::Agent,
            first_id: EventId(1),
            boot: None,
        };
        let (generation, status) = (Generation(0), RankStatus::Active(source));
        MemberRank { key: RankKey::new(1, 0), generation, status, ready }
    }

    fn complete(router: &mut Router<Nothing>, fx: &mut Effects<Nothing>, ok: bool) {
        let ops: Vec<_> = fx
            .drain_commands()
            .filter_map(|command| match command {
                Command::Reset { op, .. } => Some(op),
                Command::Admit { .. }
                | Command::Replace { .. }
                | Command::Query { .. }
                | Command::Cancel { .. } => None,
            })
            .collect();
        for op in ops {
            router.handle_completion(Completion { op, ok, flaw: None }, Timestamp(0), fx);
        }
    }

    #[test]
    fn only_ranks_that_owe_something_are_looked_at_again() {
        let (mut router, mut fx) = (Router::new(Policy::default()).unwrap(), Effects::new());
        let membership = Membership::new(vec![member(true)]).unwrap();
        router.handle_membership(&membership, Timestamp(0), &mut fx);
        assert_eq!(router.unsettled.len(), 1, "its reset is under way");
        complete(&mut router, &mut fx, false);
        assert_eq!(router.unsettled.len(), 1, "it is fenced");
        router.handle_membership(&membership, Timestamp(0), &mut fx);
        complete(&mut router, &mut fx, true);
        assert!(router.unsettled.is_empty(), "it is followed");
        router.handle_membership(&Membership::default(), Timestamp(0), &mut fx);
        complete(&mut router, &mut fx, true);
        assert!(router.unsettled.is_empty() && router.rank(RankKey::new(1, 0)).is_none());
    }
}
