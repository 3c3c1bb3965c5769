//! One rank's recovery: when it is asked for, queued, sent, timed out and tried again.

use super::command::Command;
use super::follow::Base;
use super::input::{Payload, QueryFailure};
use super::notice::{Notice, RecoveryEnd};
use super::shared::Context;
use super::slot::Slot;
use super::timers::{Timer, TimerKind};
use super::trust::TrustReason;
use crate::id::{EventId, QueryId};
use crate::time::{Micros, Timestamp};

/// Why a source is asked.
///
/// | purpose | asked from | live runs meanwhile | attempts | given up |
/// |---|---|---|---|---|
/// | `Initial` | its oldest | wait | all | partial, repaired later |
/// | `Gap` | the cursor | wait | all | continue across the hole as partial, repaired later (B5, B33) |
/// | `Verify` | the cursor | wait | all | reset, restart as partial (B6) |
/// | `Probe` | up to 15 messages before the cursor | flow | one | asked again later |
/// | `Repair` | its oldest | wait | one | asked again later |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The first recovery of an activation or life.
    Initial,
    /// Messages are missing.
    Gap,
    /// The transport was interrupted, or ids fell back: is it still the same life (B7)?
    Verify,
    /// A quiet source may have lost its tail (B3).
    Probe,
    /// An earlier recovery failed (B5).
    Repair,
}

impl Purpose {
    /// The stable snake_case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Gap => "gap",
            Self::Verify => "verify",
            Self::Probe => "probe",
            Self::Repair => "repair",
        }
    }

    /// Whether a recovery of this purpose gives way to one that the stream itself asks for.
    const fn yields(self) -> bool {
        match self {
            Self::Probe | Self::Repair => true,
            Self::Initial | Self::Gap | Self::Verify => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Jitter or backoff: the timer starts the next attempt.
    Waiting(Timer),
    /// For a permit.
    Queued { ticket: u64 },
    /// Sent; the timer is the attempt's deadline.
    InFlight { query: QueryId, timer: Timer },
    /// Answered; the reply waits in [`Follow::reply`].
    Answered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recovery {
    pub(super) purpose: Purpose,
    pub(super) stage: Stage,
    /// Attempts that failed so far.
    pub(super) failed: u32,
    /// When the last attempt was sent.
    pub(super) sent_at: Timestamp,
    /// The id the last attempt asked from; `None` is the source's oldest.
    pub(super) asked: Option<EventId>,
    /// Last id handed to the target when the last attempt was sent.
    pub(super) head: Option<EventId>,
}

impl<P: Payload> Slot<P> {
    /// Whether the active source can be asked at all.
    pub(super) fn can_ask(&self) -> bool {
        !self.follow.replay_blind && self.active.is_some_and(|source| source.target.is_some())
    }

    /// Starts a recovery after `delay`; one of a weaker purpose gives way, a stronger one stays.
    pub(super) fn start_recovery(
        &mut self,
        purpose: Purpose,
        delay: Micros,
        cx: &mut Context<'_, P>,
    ) {
        if self.follow.purpose().is_some_and(|running| !running.yields()) {
            return;
        }
        self.cancel_recovery(cx);
        let at = cx.now.after(delay);
        let timer = cx.shared.timers.set(at, cx.slot, TimerKind::Recovery);
        let stage = Stage::Waiting(timer);
        self.follow.recovery =
            Some(Recovery { purpose, stage, failed: 0, sent_at: cx.now, asked: None, head: None });
        if delay.0 == 0 {
            self.recovery_timer(cx);
        }
    }

    /// The first recovery of a life, spread by jitter.
    pub(super) fn start_initial(&mut self, cx: &mut Context<'_, P>) {
        if self.can_ask() {
            let delay = cx.shared.jitter.below(cx.shared.policy.jitter_max);
            self.start_recovery(Purpose::Initial, delay, cx);
        }
    }

    /// The current stage's timer fired.
    pub(super) fn recovery_timer(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = &mut self.follow.recovery else { return };
        match recovery.stage {
            Stage::Waiting(timer) => {
                cx.shared.timers.cancel(&mut Some(timer));
                if cx.shared.permits.take(cx.shared.policy.concurrency) {
                    self.send(cx);
                } else {
                    recovery.stage = Stage::Queued { ticket: cx.shared.permits.wait(cx.slot) };
                }
            }
            Stage::InFlight { query, .. } => {
                cx.fx.command(Command::Cancel { query });
                self.attempt_failed(cx);
            }
            Stage::Queued { .. } | Stage::Answered => {}
        }
    }

    /// A permit came free and this slot waited longest. Returns whether it was used.
    pub(super) fn permit_granted(&mut self, cx: &mut Context<'_, P>) -> bool {
        match self.follow.recovery.as_ref().map(|recovery| recovery.stage) {
            Some(Stage::Queued { .. }) => {
                self.send(cx);
                true
            }
            Some(Stage::Waiting(_) | Stage::InFlight { .. } | Stage::Answered) | None => false,
        }
    }

    /// Sends one attempt; a permit is held.
    fn send(&mut self, cx: &mut Context<'_, P>) {
        let head = self.head();
        let target = self.active.and_then(|source| source.target.map(|target| (source, target)));
        let (Some(recovery), Some((source, target))) = (&mut self.follow.recovery, target) else {
            cx.shared.permits.release();
            return;
        };
        // One message of overlap: only a message that is already known proves the life (B7). A probe
        // takes all that are remembered: the only way to find a life that went on unnoticed at
        // exactly the next id.
        let start = match recovery.purpose {
            Purpose::Initial | Purpose::Repair => None,
            Purpose::Gap | Purpose::Verify => head,
            Purpose::Probe => head.map(|head| self.follow.anchors.reach(head)),
        };
        recovery.asked = start;
        recovery.head = head;
        let query = cx.shared.fresh_query();
        let deadline = cx.now.after(cx.shared.policy.attempt_timeout);
        let timer = cx.shared.timers.set(deadline, cx.slot, TimerKind::Recovery);
        recovery.stage = Stage::InFlight { query, timer };
        recovery.sent_at = cx.now;
        cx.shared.stats.queries += 1;
        cx.fx.command(Command::Query {
            query,
            rank: self.key,
            publisher: source.publisher,
            target,
            start,
        });
    }

    /// Takes the in-flight stage of `query` apart; false when that query no longer counts (S4).
    pub(super) fn answered(&mut self, query: QueryId, cx: &mut Context<'_, P>) -> bool {
        let Some(recovery) = &mut self.follow.recovery else { return false };
        match recovery.stage {
            Stage::InFlight { query: sent, timer } if sent == query => {
                cx.shared.timers.cancel(&mut Some(timer));
                cx.shared.permits.release();
                recovery.stage = Stage::Answered;
                true
            }
            Stage::InFlight { .. } | Stage::Waiting(_) | Stage::Queued { .. } | Stage::Answered => {
                false
            }
        }
    }

    /// An attempt brought nothing usable: wait and try again, or give up.
    pub(super) fn attempt_failed(&mut self, cx: &mut Context<'_, P>) {
        let Some(mut recovery) = self.follow.recovery else { return };
        self.release(recovery, cx);
        recovery.stage = Stage::Answered;
        recovery.failed += 1;
        self.follow.recovery = Some(recovery);
        let attempts = if recovery.purpose.yields() { 1 } else { cx.shared.policy.attempts };
        if recovery.failed >= attempts {
            self.give_up(recovery.purpose, cx);
            return;
        }
        let wait = cx.shared.policy.backoff_base.doubled(recovery.failed - 1);
        self.retry_after(recovery, wait, cx);
    }

    /// An attempt brought part of what was asked: go on from there, the failures forgotten. The life
    /// is established by then, so what is left is a gap.
    pub(super) fn attempt_progressed(&mut self, cx: &mut Context<'_, P>) {
        let Some(mut recovery) = self.follow.recovery else { return };
        recovery.purpose = match recovery.purpose {
            Purpose::Initial | Purpose::Repair | Purpose::Gap | Purpose::Verify => Purpose::Gap,
            Purpose::Probe => Purpose::Probe,
        };
        recovery.failed = 0;
        let wait = cx.shared.policy.backoff_base;
        self.retry_after(recovery, wait, cx);
    }

    /// The life is established, whatever else is missing: a verification goes on as a gap.
    pub(super) fn verified(&mut self) {
        if let Some(recovery) = &mut self.follow.recovery
            && recovery.purpose == Purpose::Verify
        {
            recovery.purpose = Purpose::Gap;
        }
    }

    fn retry_after(&mut self, mut recovery: Recovery, wait: Micros, cx: &mut Context<'_, P>) {
        let at = cx.now.after(cx.shared.jitter.around(wait));
        recovery.stage = Stage::Waiting(cx.shared.timers.set(at, cx.slot, TimerKind::Recovery));
        self.follow.recovery = Some(recovery);
    }

    /// Ends the recovery, however it ended.
    pub(super) fn finish_recovery(&mut self, end: RecoveryEnd, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery.take() else { return };
        self.release(recovery, cx);
        if recovery.purpose == Purpose::Probe && end == RecoveryEnd::Healed {
            cx.shared.stats.probes += 1;
        } else {
            cx.shared.stats.recovery(end);
            cx.fx.notice(Notice::Recovered { rank: self.key, end });
        }
        self.tell_initial(cx);
        self.arm_probe(cx);
    }

    /// Stops the recovery, if any: its answer no longer counts.
    pub(super) fn cancel_recovery(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery.take() else { return };
        if let Stage::InFlight { query, .. } = recovery.stage {
            cx.fx.command(Command::Cancel { query });
        }
        self.release(recovery, cx);
        self.follow.reply = None;
        cx.shared.stats.recovery(RecoveryEnd::Superseded);
        if recovery.purpose == Purpose::Initial {
            self.tell_initial(cx);
        }
    }

    /// Gives back whatever the stage holds: timer, permit or place in the queue.
    fn release(&self, recovery: Recovery, cx: &mut Context<'_, P>) {
        match recovery.stage {
            Stage::Waiting(timer) => cx.shared.timers.cancel(&mut Some(timer)),
            Stage::Queued { ticket } => cx.shared.permits.forget(ticket),
            Stage::InFlight { timer, .. } => {
                cx.shared.timers.cancel(&mut Some(timer));
                cx.shared.permits.release();
            }
            Stage::Answered => {}
        }
    }

    /// Tells once per activation that the first recovery has ended (B35).
    pub(super) fn tell_initial(&mut self, cx: &mut Context<'_, P>) {
        if !core::mem::replace(&mut self.follow.initial_told, true) {
            cx.fx.notice(Notice::InitialRecoveryComplete { rank: self.key });
        }
    }

    fn give_up(&mut self, purpose: Purpose, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::Failed, cx);
        match purpose {
            Purpose::Initial => {
                self.follow.base = Base::Incomplete(TrustReason::HistoryUnknown);
                self.arm_repair(cx);
            }
            Purpose::Gap => {
                self.follow.base = Base::Incomplete(TrustReason::Hole);
                self.arm_repair(cx);
                self.cross_hole(cx);
            }
            Purpose::Verify => self.restart_unverified(cx),
            Purpose::Probe => {}
            Purpose::Repair => self.arm_repair(cx),
        }
    }

    /// Sets the timer of the next tail probe, if the source can be probed.
    pub(super) fn arm_probe(&mut self, cx: &mut Context<'_, P>) {
        cx.shared.timers.cancel(&mut self.follow.probe);
        if !self.can_ask() {
            return;
        }
        let policy = &cx.shared.policy;
        let wait = policy.probe_first.doubled(self.follow.probe_step).min(policy.probe_max);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        self.follow.probe = Some(cx.shared.timers.set(at, cx.slot, TimerKind::Probe));
    }

    /// The probe timer fired: ask if it has been quiet, else wait on.
    pub(super) fn probe_timer(&mut self, cx: &mut Context<'_, P>) {
        self.follow.probe = None;
        let quiet = cx.now.since(self.follow.last_live);
        let idle = self.is_following();
        let wanted = cx.shared.policy.probe_first;
        if quiet.0 < wanted.0 - wanted.0 / 4 || !idle {
            self.follow.probe_step = 0;
            self.arm_probe(cx);
            return;
        }
        self.follow.probe_step = self.follow.probe_step.saturating_add(1).min(32);
        self.start_recovery(Purpose::Probe, Micros(0), cx);
    }

    /// Whether nothing else than live messages is being dealt with.
    fn is_following(&self) -> bool {
        self.follow.recovery.is_none()
            && self.follow.doubt.is_none()
            && self.fence.is_none()
            && self.coming().is_none()
    }

    /// Sets the timer of the next background repair (B5).
    pub(super) fn arm_repair(&mut self, cx: &mut Context<'_, P>) {
        cx.shared.timers.cancel(&mut self.follow.repair);
        let policy = &cx.shared.policy;
        let wait = policy.repair_base.doubled(self.follow.repair_step).min(policy.repair_max);
        self.follow.repair_step = self.follow.repair_step.saturating_add(1).min(32);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        self.follow.repair = Some(cx.shared.timers.set(at, cx.slot, TimerKind::Repair));
    }

    /// A replay that had nothing is tried again now and then.
    pub(super) fn repair_if_blind(&mut self, cx: &mut Context<'_, P>) {
        if self.follow.replay_blind {
            self.arm_repair(cx);
        }
    }

    /// The repair timer fired.
    pub(super) fn repair_timer(&mut self, cx: &mut Context<'_, P>) {
        self.follow.repair = None;
        if !self.recoverable() || !self.is_following() {
            self.arm_repair(cx);
            return;
        }
        self.start_recovery(Purpose::Repair, Micros(0), cx);
    }

    /// A query failed at the source or on the way.
    pub(super) fn query_failed(
        &mut self,
        query: QueryId,
        failure: QueryFailure,
        cx: &mut Context<'_, P>,
    ) {
        if !self.answered(query, cx) {
            cx.shared.stats.stale_replies += 1;
            return;
        }
        match failure {
            QueryFailure::Transport | QueryFailure::Refused | QueryFailure::Unreadable => {
                self.attempt_failed(cx);
            }
        }
    }
}
