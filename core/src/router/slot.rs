//! One rank's slot: what membership wants of it, what its target is doing, and the one place that
//! decides what happens next ([`Slot::advance`]).
//!
//! Inputs only record facts; `advance` then works the slot off up to its next wait, in this order:
//!
//! | # | condition | what happens |
//! |---|---|---|
//! | 1 | a command is incomplete | wait for its completion (§4 rule 3) |
//! | 2 | fenced | wait for the heal timer (B1) |
//! | 3 | membership wants something else | reset, then apply it; nothing to reset: apply at once |
//! | 4 | a restart is owed | reset, then start over as the restart says |
//! | 5 | no source | idle |
//! | 6 | an answer waits | work it off (`reply.rs`) |
//! | 7 | live runs wait | admit, ask, or hold (`live.rs`) |

use super::anchors::Anchors;
use super::command::{Command, ResetReason};
use super::follow::{Base, Doubt, Follow};
use super::input::{Completion, Flaw, Payload, RankStatus, Run, Runs, Source, TransportChange};
use super::live::Drained;
use super::notice::{DiscardReason, Notice, RecoveryEnd};
use super::pending::Pending;
use super::recovery::Purpose;
use super::shared::Context;
use super::timers::{Timer, TimerKind};
use super::trust::{Trust, TrustReason};
use crate::id::{Epoch, EventId, Generation, OpId, PublisherId, RankKey};
use crate::time::Micros;
use alloc::vec::Vec;

/// What membership says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Desired {
    pub(super) generation: Generation,
    pub(super) status: RankStatus,
}

impl Desired {
    pub(super) const fn publisher(self) -> Option<PublisherId> {
        match self.status {
            RankStatus::Active(source) => Some(source.publisher),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        }
    }
}

/// What starts once a reset has completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then<P> {
    /// What membership wants by then.
    Apply,
    /// The same source, from nothing: its own history is asked for.
    Fresh,
    /// The same source in a life that begins with this run.
    NewLife(Run<P>),
    /// The same source from these runs on; with `repair`, better is looked for in the background.
    Rebase { runs: Vec<Run<P>>, base: Base, repair: bool },
}

/// The rank's one incomplete command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Busy<P> {
    Idle,
    Admitting { op: OpId, last: EventId, base: Option<Base> },
    Replacing { op: OpId, last: EventId, base: Base },
    Resetting { op: OpId, then: Then<P> },
}

/// What is known of the target's content for this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    /// Nothing: an earlier router may have left something (B35).
    Unknown,
    /// Something may be there.
    Dirty,
    /// Empty since a completed reset.
    Empty,
}

/// Why a rank is fenced, and when it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fence {
    pub(super) reason: TrustReason,
    timer: Timer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot<P> {
    pub(super) key: RankKey,
    /// `None`: no longer expected.
    pub(super) desired: Option<Desired>,
    /// What has been carried out; `None` while a change is under way.
    pub(super) applied: Option<Desired>,
    epoch: Epoch,
    /// The source that is followed; `None` while a change of membership is being carried out.
    pub(super) active: Option<Source>,
    pub(super) busy: Busy<P>,
    pub(super) content: Content,
    pub(super) fence: Option<Fence>,
    heal_tries: u32,
    pub(super) restart: Option<(ResetReason, Then<P>)>,
    pub(super) follow: Follow<P>,
    told: (Trust, Option<TrustReason>),
}

impl<P: Payload> Slot<P> {
    pub(super) fn new(key: RankKey, desired: Desired, cx: &Context<'_, P>) -> Self {
        Self {
            key,
            desired: Some(desired),
            applied: None,
            epoch: Epoch(desired.generation.0),
            active: None,
            busy: Busy::Idle,
            content: Content::Unknown,
            fence: None,
            heal_tries: 0,
            restart: None,
            follow: Follow::fresh(cx.now),
            told: (Trust::Missing, Some(TrustReason::NoSource)),
        }
    }

    /// Whether the rank left and nothing is left to do for it.
    pub(super) fn is_gone(&self) -> bool {
        self.desired.is_none()
            && self.content != Content::Dirty
            && matches!(self.busy, Busy::Idle)
            && self.fence.is_none()
    }

    /// Membership wants something else of the rank (or `None`: that it goes).
    pub(super) fn want(&mut self, desired: Option<Desired>, cx: &mut Context<'_, P>) {
        if self.desired == desired {
            return;
        }
        let publisher = desired.and_then(Desired::publisher);
        let same_publisher = publisher == self.desired.and_then(Desired::publisher);
        self.desired = desired;
        if let Some(desired) = desired {
            self.epoch = Epoch(desired.generation.0);
        }
        self.applied = None;
        self.active = None;
        self.restart = None;
        self.quiesce(DiscardReason::Fenced, cx);
        if !same_publisher {
            self.follow.doubt = None;
        }
        if let Some(fence) = self.fence.take() {
            cx.shared.timers.cancel(&mut Some(fence.timer));
        }
    }

    /// Stops everything that runs beside the rank's command.
    fn quiesce(&mut self, reason: DiscardReason, cx: &mut Context<'_, P>) {
        self.cancel_recovery(cx);
        cx.shared.timers.cancel(&mut self.follow.probe);
        cx.shared.timers.cancel(&mut self.follow.repair);
        self.follow.reply = None;
        let dropped = self.follow.pending.clear();
        cx.shared.stats.discard(reason, dropped);
    }

    /// Works the slot off up to its next wait; see the table above.
    pub(super) fn advance(&mut self, cx: &mut Context<'_, P>) {
        loop {
            if !matches!(self.busy, Busy::Idle) || self.fence.is_some() {
                break;
            }
            if self.applied.is_none() {
                let anything_to_reset = match self.content {
                    Content::Unknown => self.wants_source(),
                    Content::Dirty => true,
                    Content::Empty => false,
                };
                if anything_to_reset {
                    self.begin_reset(ResetReason::Lifecycle, Then::Apply, cx);
                    break;
                }
                let Some(desired) = self.desired else { break };
                self.apply(desired, cx);
                continue;
            }
            if let Some((reason, then)) = self.restart.take() {
                self.begin_reset(reason, then, cx);
                break;
            }
            let Some(source) = self.active else { break };
            if let Some(reply) = self.follow.reply.take() {
                self.take_reply(source, reply, cx);
                continue;
            }
            match self.drain(source, cx) {
                Drained::Again => {}
                Drained::Waits => break,
            }
        }
        self.tell_trust(cx);
    }

    fn wants_source(&self) -> bool {
        matches!(self.desired, Some(Desired { status: RankStatus::Active(_), .. }))
    }

    /// Carries out what membership wants; the target is empty, or the rank has no source.
    fn apply(&mut self, desired: Desired, cx: &mut Context<'_, P>) {
        self.applied = Some(desired);
        self.heal_tries = 0;
        self.start_over(cx);
        self.active = match desired.status {
            RankStatus::Active(source) => Some(source),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        };
        if self.active.is_some() && self.follow.doubt.is_none() {
            self.begin_following(cx);
        }
    }

    /// First steps of a life whose beginning has not been seen.
    fn begin_following(&mut self, cx: &mut Context<'_, P>) {
        if self.can_ask() {
            self.start_initial(cx);
        } else {
            self.tell_initial(cx);
        }
        self.arm_probe(cx);
    }

    /// Owes a reset: the rank accepts nothing before it has completed. What arrives meanwhile is
    /// held for the life that the restart begins.
    pub(super) fn owe_restart(
        &mut self,
        reason: ResetReason,
        then: Then<P>,
        cx: &mut Context<'_, P>,
    ) {
        if reason == ResetReason::NewLife {
            cx.shared.stats.new_lives += 1;
            cx.fx.notice(Notice::NewLife { rank: self.key, cursor: self.follow.cursor });
        }
        match &then {
            Then::Apply | Then::Fresh | Then::NewLife(_) => {
                self.quiesce(DiscardReason::OldLife, cx);
                self.follow.anchors = Anchors::default();
                if let Then::NewLife(run) = &then {
                    self.follow.anchors.remember(run.first, run.digest, true);
                }
            }
            // What waits belongs to the life that goes on.
            Then::Rebase { .. } => self.cancel_recovery(cx),
        }
        self.follow.fallen = None;
        self.restart = Some((reason, then));
    }

    /// The restart that is owed or under way.
    pub(super) fn coming(&self) -> Option<&Then<P>> {
        match (&self.restart, &self.busy) {
            (Some((_, then)), _) | (None, Busy::Resetting { then, .. }) => Some(then),
            (None, Busy::Idle | Busy::Admitting { .. } | Busy::Replacing { .. }) => None,
        }
    }

    fn begin_reset(&mut self, reason: ResetReason, then: Then<P>, cx: &mut Context<'_, P>) {
        let op = cx.shared.fresh_op();
        cx.shared.stats.resets += 1;
        cx.fx.notice(Notice::Reset { rank: self.key, reason });
        cx.fx.command(Command::Reset { op, rank: self.key, epoch: self.epoch, reason });
        self.busy = Busy::Resetting { op, then };
    }

    /// A command of this rank has ended.
    pub(super) fn completed(&mut self, done: Completion, cx: &mut Context<'_, P>) {
        let running = match &self.busy {
            Busy::Idle => return,
            Busy::Admitting { op, .. }
            | Busy::Replacing { op, .. }
            | Busy::Resetting { op, .. } => *op,
        };
        if running != done.op {
            return;
        }
        let ended = core::mem::replace(&mut self.busy, Busy::Idle);
        if !done.ok {
            cx.shared.stats.target_faults += 1;
            self.fence(TrustReason::TargetFault, cx);
            return;
        }
        match ended {
            Busy::Idle => {}
            Busy::Admitting { last, base, .. } => {
                self.heal_tries = 0;
                self.follow.cursor = Some(last);
                if let Some(base) = base {
                    self.follow.base = base;
                }
                self.flawed(done.flaw);
            }
            Busy::Replacing { last, base, .. } => {
                self.follow.cursor = Some(last);
                self.follow.base = base;
                self.flawed(done.flaw);
            }
            Busy::Resetting { then, .. } => {
                self.content = Content::Empty;
                // A restart that was owed meanwhile needs no second reset.
                let then = self.restart.take().map_or(then, |(_, newer)| newer);
                self.after_reset(then, cx);
            }
        }
    }

    /// What the target noticed makes a known history incomplete.
    fn flawed(&mut self, flaw: Option<Flaw>) {
        let reason = match flaw {
            None => return,
            Some(Flaw::Capacity) => TrustReason::Capacity,
            Some(Flaw::Orphan) => TrustReason::Orphan,
        };
        if self.follow.base == Base::Known {
            self.follow.base = Base::Incomplete(reason);
        }
    }

    fn after_reset(&mut self, then: Then<P>, cx: &mut Context<'_, P>) {
        if self.applied.is_none() {
            // This was membership's reset, or it moved on: `advance` applies what it wants by now.
            return;
        }
        match then {
            Then::Apply | Then::Fresh => {
                self.start_over(cx);
                if self.follow.doubt.is_none() {
                    self.begin_following(cx);
                }
            }
            Then::NewLife(run) => {
                let first = self.active.is_some_and(|source| source.first_id == run.first);
                self.start_over(cx);
                self.follow.saw(run.last());
                self.follow.pending.insert(run);
                if first {
                    self.tell_initial(cx);
                    self.arm_probe(cx);
                } else {
                    self.begin_following(cx);
                }
            }
            Then::Rebase { runs, base, repair } => {
                let newest = self.follow.newest;
                self.start_over(cx);
                self.follow.newest = newest;
                self.tell_initial(cx);
                self.arm_probe(cx);
                if repair {
                    self.arm_repair(cx);
                }
                if runs.is_empty() {
                    self.follow.base = base;
                }
                self.admit(Runs::from_vec(runs), Some(base), cx);
            }
        }
    }

    /// Forgets the life that was followed; a connection that is down stays down.
    fn start_over(&mut self, cx: &mut Context<'_, P>) {
        let lost = self.follow.doubt == Some(Doubt::Lost);
        self.cancel_recovery(cx);
        cx.shared.timers.cancel(&mut self.follow.probe);
        cx.shared.timers.cancel(&mut self.follow.repair);
        let waiting = core::mem::take(&mut self.follow.pending);
        self.follow = Follow::fresh(cx.now);
        self.follow.doubt = lost.then_some(Doubt::Lost);
        self.follow.newest = waiting.last();
        self.follow.pending = waiting;
    }

    /// The target refused something, or must not be given more: nothing passes before a reset
    /// (S8), which is tried again by itself (B1).
    pub(super) fn fence(&mut self, reason: TrustReason, cx: &mut Context<'_, P>) {
        self.quiesce(DiscardReason::Fenced, cx);
        self.content = Content::Dirty;
        self.restart = None;
        let policy = &cx.shared.policy;
        let wait = policy.heal_base.doubled(self.heal_tries).min(policy.heal_max);
        self.heal_tries = self.heal_tries.saturating_add(1).min(32);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        let timer = cx.shared.timers.set(at, cx.slot, TimerKind::Heal);
        self.fence = Some(Fence { reason, timer });
    }

    /// The heal timer fired.
    pub(super) fn heal_timer(&mut self, cx: &mut Context<'_, P>) {
        if self.fence.take().is_some() && self.applied.is_some() {
            self.begin_reset(ResetReason::Fault, Then::Fresh, cx);
        }
    }

    /// Hands runs to the target; they are contiguous with what it has, or `base` says otherwise.
    pub(super) fn admit(&mut self, runs: Runs<P>, base: Option<Base>, cx: &mut Context<'_, P>) {
        let Some(last) = runs.last().map(Run::last) else { return };
        let mut base = base;
        let mut ids = 0;
        let first_id = self.active.map(|source| source.first_id);
        for run in &runs {
            ids += u64::from(run.len.get());
            if run.clear {
                base = Some(Base::Known);
            }
            let known = base.unwrap_or(self.follow.base) == Base::Known;
            if run.damaged && known {
                base = Some(Base::Incomplete(TrustReason::Damaged));
            }
            self.follow.anchors.remember(run.first, run.digest, Some(run.first) == first_id);
        }
        self.follow.saw(last);
        self.follow.barren_rounds = 0;
        self.content = Content::Dirty;
        cx.shared.stats.admitted += ids;
        let op = cx.shared.fresh_op();
        cx.fx.command(Command::Admit { op, rank: self.key, epoch: self.epoch, runs });
        self.busy = Busy::Admitting { op, last, base };
    }

    /// Swaps the target's state for these runs (B11).
    pub(super) fn replace(&mut self, runs: Vec<Run<P>>, base: Base, cx: &mut Context<'_, P>) {
        let Some(last) = runs.last().map(Run::last) else { return };
        let first_id = self.active.map(|source| source.first_id);
        for run in &runs {
            self.follow.anchors.remember(run.first, run.digest, Some(run.first) == first_id);
        }
        self.follow.saw(last);
        self.content = Content::Dirty;
        let op = cx.shared.fresh_op();
        cx.fx.command(Command::Replace { op, rank: self.key, epoch: self.epoch, runs, last });
        self.busy = Busy::Replacing { op, last, base };
    }

    /// The way to the source changed.
    ///
    /// | change | can be asked | effect |
    /// |---|---|---|
    /// | lost | yes | in doubt; what waits goes, nothing is admitted |
    /// | lost | no | reset: nobody can say what was missed (B6) |
    /// | back | yes, followed so far | verify from the cursor (B7) |
    /// | back | yes, nothing followed | ask from the beginning |
    /// | back | no | the next message decides |
    /// | back, a restart to come | – | its own history is asked for afterwards |
    pub(super) fn transport(&mut self, change: TransportChange, cx: &mut Context<'_, P>) {
        match change {
            TransportChange::Lost => {
                self.follow.doubt = Some(Doubt::Lost);
                // What waits may turn out to be an ended life's; if not, verifying fetches it anew.
                self.cancel_recovery(cx);
                cx.shared.timers.cancel(&mut self.follow.probe);
                let dropped = self.follow.pending.clear();
                cx.shared.stats.discard(DiscardReason::OldLife, dropped);
                self.follow.newest = None;
                self.restart_afresh(cx);
                if self.coming().is_none() && !self.recoverable() && self.content == Content::Dirty
                {
                    self.owe_restart(ResetReason::Hole, Then::Fresh, cx);
                }
            }
            TransportChange::Back => self.transport_back(cx),
        }
    }

    fn transport_back(&mut self, cx: &mut Context<'_, P>) {
        self.follow.replay_blind = false;
        self.follow.last_live = cx.now;
        self.follow.doubt = None;
        if self.fence.is_some() || self.active.is_none() {
            return;
        }
        if self.coming().is_some() {
            self.restart_afresh(cx);
        } else if !self.recoverable() {
            // Nothing is inherited from before: see `lost`.
        } else if self.head().is_none() {
            self.cancel_recovery(cx);
            self.follow.base = Base::Establishing;
            self.begin_following(cx);
        } else {
            self.follow.doubt = Some(Doubt::Unverified);
            self.cancel_recovery(cx);
            self.start_recovery(Purpose::Verify, Micros(0), cx);
        }
    }

    /// A restart from runs of before the interruption is no longer safe: they may be an earlier
    /// life's. The source's own history is asked for instead.
    fn restart_afresh(&mut self, cx: &mut Context<'_, P>) {
        let then = match (&mut self.restart, &mut self.busy) {
            (Some((_, then)), _) | (None, Busy::Resetting { then, .. }) => then,
            (None, Busy::Idle | Busy::Admitting { .. } | Busy::Replacing { .. }) => return,
        };
        match then {
            Then::Apply | Then::Fresh => {}
            Then::NewLife(_) | Then::Rebase { .. } => *then = Then::Fresh,
        }
        self.quiesce(DiscardReason::OldLife, cx);
        self.follow.anchors = Anchors::default();
    }

    fn recoverable(&self) -> bool {
        self.active.is_some_and(|source| source.target.is_some())
    }

    /// The source's life could not be established: what it left is not inherited (B6).
    pub(super) fn restart_unverified(&mut self, cx: &mut Context<'_, P>) {
        self.settle_doubt();
        let runs = self.take_contiguous();
        let base = Base::Incomplete(TrustReason::HistoryUnknown);
        self.owe_restart(ResetReason::Hole, Then::Rebase { runs, base, repair: true }, cx);
    }

    /// The life is established, or will be from its beginning; a connection that went down since
    /// stays in doubt.
    pub(super) fn settle_doubt(&mut self) {
        if self.follow.doubt == Some(Doubt::Unverified) {
            self.follow.doubt = None;
        }
    }

    /// Last id handed to the target, accepted or not; with a restart to come, the last id that it
    /// will hand over.
    pub(super) fn head(&self) -> Option<EventId> {
        match self.coming() {
            Some(Then::Apply | Then::Fresh) => return None,
            Some(Then::NewLife(run)) => return Some(run.last()),
            Some(Then::Rebase { runs, .. }) => return runs.last().map(Run::last),
            None => {}
        }
        match &self.busy {
            Busy::Admitting { last, .. } | Busy::Replacing { last, .. } => Some(*last),
            Busy::Idle | Busy::Resetting { .. } => self.follow.cursor,
        }
    }

    /// The longest contiguous beginning of what waits.
    pub(super) fn take_contiguous(&mut self) -> Vec<Run<P>> {
        contiguous(&mut self.follow.pending)
    }

    /// What a query may believe of the rank, and why it is not exact.
    pub(super) fn trust(&self) -> (Trust, Option<TrustReason>) {
        if let Some(fence) = self.fence {
            return (Trust::Fenced, Some(fence.reason));
        }
        if matches!(self.busy, Busy::Resetting { .. }) || self.restart.is_some() {
            return (Trust::Fenced, Some(TrustReason::Resetting));
        }
        match self.applied.map(|applied| applied.status) {
            None | Some(RankStatus::Missing) => (Trust::Missing, Some(TrustReason::NoSource)),
            Some(RankStatus::Ambiguous) => (Trust::Ambiguous, Some(TrustReason::Ambiguous)),
            Some(RankStatus::Active(_)) => self.stream_trust(),
        }
    }

    fn stream_trust(&self) -> (Trust, Option<TrustReason>) {
        match self.follow.doubt {
            Some(Doubt::Lost) => return (Trust::Suspect, Some(TrustReason::TransportLost)),
            Some(Doubt::Unverified) => return (Trust::Suspect, Some(TrustReason::Unverified)),
            None => {}
        }
        if self.follow.purpose() == Some(Purpose::Verify) {
            return (Trust::Suspect, Some(TrustReason::Unverified));
        }
        match self.follow.base {
            Base::Establishing if self.recoverable() => {
                (Trust::Partial, Some(TrustReason::InitialRecovery))
            }
            Base::Establishing => (Trust::Partial, Some(TrustReason::HistoryUnknown)),
            Base::Incomplete(reason) => (Trust::Partial, Some(reason)),
            Base::Known if self.follow.purpose() == Some(Purpose::Gap) || self.follow.behind() => {
                (Trust::CatchingUp, Some(TrustReason::Gap))
            }
            Base::Known => (Trust::Exact, None),
        }
    }

    pub(super) fn tell_trust(&mut self, cx: &mut Context<'_, P>) {
        let now = self.trust();
        if now != self.told {
            let from = self.told.0;
            self.told = now;
            cx.fx.notice(Notice::Trust { rank: self.key, from, to: now.0, reason: now.1 });
        }
    }

    /// A recovery reply named another rank: fenced, then its own history (S6).
    pub(super) fn foreign_reply(&mut self, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::Failed, cx);
        self.fence(TrustReason::ForeignReply, cx);
    }
}

fn contiguous<P: Payload>(pending: &mut Pending<P>) -> Vec<Run<P>> {
    let mut runs = Vec::new();
    let mut last = None;
    while let Some(front) = pending.front() {
        let fits = last.is_none_or(|last: EventId| last.0.checked_add(1) == Some(front.first.0));
        if !fits {
            break;
        }
        last = Some(front.last());
        runs.extend(pending.pop_front());
    }
    runs
}
