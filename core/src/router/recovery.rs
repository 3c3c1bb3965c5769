//! One rank's recovery: when it is asked for, queued, sent, timed out and tried again (§7).

use super::command::Command;
use super::input::{Payload, QueryFailure};
use super::notice::{Notice, RecoveryEnd};
use super::permits::Lane;
use super::purpose::Purpose;
use super::shared::Context;
use super::slot::{Answer, Item, Slot};
use super::timers::{Timer, TimerKind};
use crate::id::{BootId, EventId, QueryId, TargetId};
use crate::membership::SourceKind;
use crate::time::{Micros, Timestamp};

/// From where a source is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum From {
    /// Its whole state, or all that it still has.
    Whole,
    /// Exactly this id.
    Id(EventId),
    /// What follows the cursor, as the source's kind and the proof of its life want it.
    Cursor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Wanted, but not launched: a reset, or its turn among the rank's work, comes first.
    Owed,
    /// Jitter or backoff: the timer starts the next attempt.
    Waiting(Timer),
    /// For a permit.
    Queued { ticket: u64, lane: Lane },
    /// Sent. The timer is the attempt's deadline, or the end of its slice (B9).
    InFlight { query: QueryId, lane: Lane, target: TargetId, timer: Timer },
    /// Answered, or out of attempts; the answer waits for its turn.
    Answered { query: QueryId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recovery {
    pub(super) purpose: Purpose,
    pub(super) from: From,
    pub(super) stage: Stage,
    /// Attempts that failed so far.
    pub(super) failed: u32,
    /// Of these, how many the source refused in words (B33).
    pub(super) refused: u32,
    /// Answers that broke the rules (B10).
    pub(super) violations: u32,
    /// How often an attempt gave way (B9).
    pub(super) yielded: u32,
    pub(super) began_at: Timestamp,
    /// When the last attempt was sent.
    pub(super) sent_at: Timestamp,
    /// The id the last attempt asked from; `None` is the whole.
    pub(super) asked: Option<EventId>,
    /// The cursor when the last attempt was sent.
    pub(super) head: Option<EventId>,
    /// The incarnation that was asked (B17).
    pub(super) boot: Option<BootId>,
}

/// How often a source that says "no" in words is asked again within one recovery (B33): a permanent
/// error stays one.
const REFUSED_ATTEMPTS: u32 = 2;

impl<P: Payload> Slot<P> {
    /// Whether the followed source can be asked at all.
    pub(super) fn can_ask(&self) -> bool {
        !self.follow.replay_blind && self.recoverable()
    }

    /// Marks a recovery as wanted; [`Slot::launch`] starts it. A running one ends.
    pub(super) fn owe_recovery(&mut self, purpose: Purpose, from: From, cx: &mut Context<'_, P>) {
        self.cancel_recovery(cx);
        self.follow.keep_recovery(Recovery {
            purpose,
            from,
            stage: Stage::Owed,
            failed: 0,
            refused: 0,
            violations: 0,
            yielded: 0,
            began_at: cx.now,
            sent_at: cx.now,
            asked: None,
            head: None,
            boot: None,
        });
    }

    /// Launches the recovery that is owed: with jitter when it asks for the whole.
    pub(super) fn launch(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery() else { return };
        let delay = match recovery.from {
            From::Whole => cx.shared.jitter.below(cx.shared.policy.jitter_max),
            From::Id(_) | From::Cursor => Micros(0),
        };
        self.launch_after(delay, cx);
    }

    pub(super) fn launch_after(&mut self, delay: Micros, cx: &mut Context<'_, P>) {
        let Some(mut recovery) = self.follow.recovery() else { return };
        if cx.shared.shut {
            // Nothing is asked any more; what waits behind it waits until the rank is emptied.
            return;
        }
        if self.is_outdated() {
            self.follow.take_recovery();
            return;
        }
        if delay.0 == 0 {
            self.queue_for_permit(recovery, cx);
        } else {
            let at = cx.now.after(delay);
            recovery.stage = Stage::Waiting(cx.shared.timers.set(at, cx.slot, TimerKind::Recovery));
            self.follow.keep_recovery(recovery);
        }
    }

    /// Starts a recovery at once; one that is not in the background stays if it runs already.
    pub(super) fn start_recovery(&mut self, purpose: Purpose, from: From, cx: &mut Context<'_, P>) {
        if self.follow.purpose().is_some_and(|running| !running.is_background()) {
            return;
        }
        self.owe_recovery(purpose, from, cx);
        self.launch(cx);
    }

    fn lane_of(&self, recovery: &Recovery) -> Lane {
        match (recovery.from, self.follow.cursor) {
            (From::Whole, _) | (From::Cursor, None) => Lane::Whole,
            (From::Id(_), _) | (From::Cursor, Some(_)) => Lane::Range,
        }
    }

    fn queue_for_permit(&mut self, mut recovery: Recovery, cx: &mut Context<'_, P>) {
        let Some(target) = self.target() else {
            self.follow.take_recovery();
            return;
        };
        let lane = self.lane_of(&recovery);
        if cx.shared.permits.take(lane, target, &cx.shared.policy) {
            self.send(recovery, lane, target, cx);
        } else {
            let ticket = cx.shared.permits.wait(lane, cx.slot, target);
            recovery.stage = Stage::Queued { ticket, lane };
            self.follow.keep_recovery(recovery);
        }
    }

    /// A permit came free and this slot waited longest for it.
    pub(super) fn permit_granted(&mut self, cx: &mut Context<'_, P>) {
        let (Some(recovery), Some(target)) = (self.follow.recovery(), self.target()) else {
            return;
        };
        match recovery.stage {
            Stage::Queued { lane, .. } => self.send(recovery, lane, target, cx),
            Stage::Owed | Stage::Waiting(_) | Stage::InFlight { .. } | Stage::Answered { .. } => {}
        }
    }

    /// Sends one attempt; a permit is held.
    fn send(
        &mut self,
        mut recovery: Recovery,
        lane: Lane,
        target: TargetId,
        cx: &mut Context<'_, P>,
    ) {
        let Some(binding) = self.binding else { return };
        let start = match recovery.from {
            From::Whole => None,
            From::Id(id) => Some(id),
            From::Cursor => self.start_at_cursor(recovery.purpose, binding.source.kind, cx),
        };
        let query = cx.shared.fresh_query(cx.slot);
        recovery.asked = start;
        recovery.head = self.follow.cursor;
        recovery.boot = self.boot;
        recovery.sent_at = cx.now;
        let timer = set_attempt_timer(&recovery, cx);
        recovery.stage = Stage::InFlight { query, lane, target, timer };
        self.follow.keep_recovery(recovery);
        cx.shared.stats.queries += 1;
        cx.fx.command(Command::Query {
            query,
            rank: self.key,
            publisher: binding.source.publisher,
            target,
            start,
        });
    }

    /// An engine is asked with one message of overlap: only a message that is already known proves
    /// the life (B7). A probe takes all that are remembered: the only way to find a life that went
    /// on unnoticed at exactly the next id.
    fn start_at_cursor(
        &self,
        purpose: Purpose,
        kind: SourceKind,
        cx: &Context<'_, P>,
    ) -> Option<EventId> {
        let cursor = self.follow.cursor?;
        match (kind, cx.shared.policy.verify_life) {
            (SourceKind::Engine, true) if purpose == Purpose::Probe => {
                Some(self.follow.anchors.reach(cursor))
            }
            (SourceKind::Engine, true) => Some(cursor),
            (SourceKind::Engine, false) | (SourceKind::Agent, _) => {
                Some(super::next_id(cursor).unwrap_or(cursor))
            }
        }
    }

    /// The current stage's timer fired.
    pub(super) fn recovery_timer(&mut self, cx: &mut Context<'_, P>) {
        self.next_stage(cx);
        self.pump(cx);
    }

    fn next_stage(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery() else { return };
        match recovery.stage {
            Stage::Waiting(_) => self.queue_for_permit(recovery, cx),
            Stage::InFlight { query, lane, target, .. } => {
                if cx.now < recovery.sent_at.after(cx.shared.policy.attempt_timeout) {
                    self.end_of_slice(recovery, query, lane, target, cx);
                    return;
                }
                self.take_back(query, lane, target, cx);
                self.attempt_failed(query, None, cx);
            }
            Stage::Owed | Stage::Queued { .. } | Stage::Answered { .. } => {}
        }
    }

    /// An attempt that has had its slice gives way if somebody could use its permit (B9): it queues
    /// again, with twice the time.
    fn end_of_slice(
        &mut self,
        mut recovery: Recovery,
        query: QueryId,
        lane: Lane,
        target: TargetId,
        cx: &mut Context<'_, P>,
    ) {
        if !cx.shared.permits.contended(lane, target, &cx.shared.policy) {
            let timer = set_attempt_timer(&recovery, cx);
            recovery.stage = Stage::InFlight { query, lane, target, timer };
            self.follow.keep_recovery(recovery);
            return;
        }
        self.take_back(query, lane, target, cx);
        recovery.yielded = recovery.yielded.saturating_add(1);
        if self.is_over_budget(&recovery, cx) {
            self.follow.keep_recovery(recovery);
            self.exhausted(query, cx);
            return;
        }
        let ticket = cx.shared.permits.wait(lane, cx.slot, target);
        recovery.stage = Stage::Queued { ticket, lane };
        self.follow.keep_recovery(recovery);
    }

    fn take_back(&self, query: QueryId, lane: Lane, target: TargetId, cx: &mut Context<'_, P>) {
        cx.shared.permits.release(lane, target);
        cx.fx.command(Command::Cancel { query });
    }

    fn is_over_budget(&self, recovery: &Recovery, cx: &Context<'_, P>) -> bool {
        let policy = &cx.shared.policy;
        policy.fair_recovery && cx.now.since(recovery.began_at) >= policy.recovery_budget
    }

    /// Takes the in-flight stage of `query` apart; false when that query no longer counts (S4).
    pub(super) fn answered(&mut self, query: QueryId, cx: &mut Context<'_, P>) -> bool {
        let Some(recovery) = self.follow.recovery_mut() else { return false };
        match recovery.stage {
            Stage::InFlight { query: sent, lane, target, timer } if sent == query => {
                cx.shared.timers.cancel(&mut Some(timer));
                cx.shared.permits.release(lane, target);
                recovery.stage = Stage::Answered { query };
                true
            }
            Stage::InFlight { .. }
            | Stage::Owed
            | Stage::Waiting(_)
            | Stage::Queued { .. }
            | Stage::Answered { .. } => false,
        }
    }

    /// The recovery whose answer is being worked off, if it still counts.
    pub(super) fn answered_recovery(&self) -> Option<Recovery> {
        self.follow.recovery().filter(|recovery| match recovery.stage {
            Stage::Answered { .. } => true,
            Stage::Owed | Stage::Waiting(_) | Stage::Queued { .. } | Stage::InFlight { .. } => {
                false
            }
        })
    }

    /// A query failed at the source or on the way.
    pub(super) fn query_failed(
        &mut self,
        query: QueryId,
        failure: QueryFailure,
        cx: &mut Context<'_, P>,
    ) {
        if let Some(recovery) = self.follow.recovery_mut()
            && failure == QueryFailure::Refused
        {
            recovery.refused += 1;
        }
        self.attempt_failed(query, Some(failure), cx);
    }

    /// An attempt brought nothing usable and holds nothing any more: wait and try again, or give up.
    pub(super) fn attempt_failed(
        &mut self,
        query: QueryId,
        failure: Option<QueryFailure>,
        cx: &mut Context<'_, P>,
    ) {
        let Some(mut recovery) = self.follow.recovery() else { return };
        recovery.failed += 1;
        self.follow.keep_recovery(recovery);
        cx.fx.notice(Notice::QueryFailed { rank: self.key, attempt: recovery.failed, failure });
        let policy = &cx.shared.policy;
        let attempts = if recovery.purpose.is_background() { 1 } else { policy.attempts };
        let permanent = policy.keep_on_failure && recovery.refused >= REFUSED_ATTEMPTS;
        if recovery.failed >= attempts || permanent || self.is_over_budget(&recovery, cx) {
            self.exhausted(query, cx);
            return;
        }
        let wait = policy.backoff_base.doubled(recovery.failed - 1);
        self.retry_after(wait, cx);
    }

    fn exhausted(&mut self, query: QueryId, cx: &mut Context<'_, P>) {
        if let Some(recovery) = self.follow.recovery_mut() {
            recovery.stage = Stage::Answered { query };
        }
        self.enqueue(Item::Answer { query, answer: Answer::Exhausted }, cx);
    }

    /// An attempt brought part of what was asked: go on from there, the failures forgotten. The life
    /// is established by then, so what is left is a gap.
    pub(super) fn attempt_progressed(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery_mut() else { return };
        recovery.purpose = match recovery.purpose {
            Purpose::Initial
            | Purpose::Gap
            | Purpose::Fault
            | Purpose::Verify
            | Purpose::Repair
            | Purpose::Probation => Purpose::Gap,
            Purpose::Probe => Purpose::Probe,
        };
        recovery.from = From::Cursor;
        recovery.failed = 0;
        self.retry_after(cx.shared.policy.backoff_base, cx);
    }

    fn retry_after(&mut self, wait: Micros, cx: &mut Context<'_, P>) {
        let wait =
            if cx.shared.policy.fair_recovery { cx.shared.jitter.around(wait) } else { wait };
        self.launch_after(wait, cx);
    }

    /// Ends the recovery, however it ended.
    pub(super) fn finish_recovery(&mut self, end: RecoveryEnd, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery() else { return };
        self.release_recovery(cx);
        if recovery.purpose == Purpose::Probe && end == RecoveryEnd::Healed {
            cx.shared.stats.probes += 1;
        } else {
            cx.shared.stats.recovery(end);
            cx.fx.notice(Notice::Recovered { rank: self.key, end });
        }
        if recovery.from == From::Whole || cx.shared.policy.no_dark_state {
            self.tell_initial(cx);
        }
        self.arm_probe(cx);
    }

    /// Stops the recovery, if any: its answer no longer counts.
    pub(super) fn cancel_recovery(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery() else { return };
        match recovery.stage {
            Stage::InFlight { query, .. } => cx.fx.command(Command::Cancel { query }),
            // Another one takes over what has not begun.
            Stage::Owed => {
                self.follow.take_recovery();
                return;
            }
            Stage::Waiting(_) | Stage::Queued { .. } | Stage::Answered { .. } => {}
        }
        self.release_recovery(cx);
        cx.shared.stats.recovery(RecoveryEnd::Superseded);
        if recovery.purpose == Purpose::Initial && cx.shared.policy.no_dark_state {
            self.tell_initial(cx);
        }
    }

    /// Gives back whatever the recovery holds: timer, permit or place in the queue.
    fn release_recovery(&mut self, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.take_recovery() else { return };
        match recovery.stage {
            Stage::Waiting(timer) => cx.shared.timers.cancel(&mut Some(timer)),
            Stage::Queued { ticket, .. } => cx.shared.permits.forget(ticket),
            Stage::InFlight { query: _, lane, target, timer } => {
                cx.shared.timers.cancel(&mut Some(timer));
                cx.shared.permits.release(lane, target);
            }
            Stage::Owed | Stage::Answered { .. } => {}
        }
    }

    /// Tells that a first recovery has ended: once an activation (B35), or once each launch that
    /// asked for the whole (§6.11).
    pub(super) fn tell_initial(&mut self, cx: &mut Context<'_, P>) {
        let told = core::mem::replace(&mut self.follow.initial_told, true);
        if !told || !cx.shared.policy.no_dark_state {
            cx.fx.notice(Notice::InitialRecoveryComplete { rank: self.key });
        }
    }
}

/// Sets the timer of an attempt: its deadline, or the end of its slice if that comes first (B9).
fn set_attempt_timer<P>(recovery: &Recovery, cx: &mut Context<'_, P>) -> Timer {
    let policy = &cx.shared.policy;
    let deadline = recovery.sent_at.after(policy.attempt_timeout);
    let slice = cx.now.after(policy.attempt_slice.doubled(recovery.yielded));
    let at = if policy.fair_recovery { deadline.min(slice) } else { deadline };
    cx.shared.timers.set(at, cx.slot, TimerKind::Recovery)
}
