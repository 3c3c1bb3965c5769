//! What an answer means (§6.6). An answer waits for its turn among the rank's work; it counts only
//! while the recovery it answers still waits for it.
//!
//! | answer | reference | hardened |
//! |---|---|---|
//! | of another rank | reset, fenced | reset, probation (S6, B35) |
//! | of another boot | – | another life (B17) |
//! | events | admitted as they are | checked (B10), see `agent.rs` and `engine.rs` |
//! | snapshot | replaces, whatever it reflects | replaces; below the cursor: asked again (B34) |
//! | snapshot failed | reset, goes on behind it | a failed attempt (B33) |
//! | too new | degraded | level, or another life (B7) |
//! | invalid range | degraded | a failed attempt (B33) |
//! | none in all attempts | degraded | by purpose, see [`Slot::give_up`] |

mod agent;
mod commit;
mod engine;

use super::command::Scope;
use super::follow::Base;
use super::input::{Clears, Origin, Payload, QueryFailure, RecoveryOutcome, RecoveryResponse, Run};
use super::notice::{RecoveryEnd, ResetCause};
use super::recovery::{Recovery, Stage};
use super::shared::Context;
use super::slot::{Answer, Commit, Item, Slot, Then};
use super::trust::TrustReason;
use crate::id::{EventId, QueryId};
use crate::membership::{Source, SourceKind};
use alloc::vec::Vec;

/// What an answer leads to.
#[derive(Debug)]
enum Verdict<P> {
    /// Its events are handed over, then what waited behind them.
    Admit(Vec<Run<P>>, Commit),
    /// It is the rank's whole state.
    Replace(Vec<Run<P>>, EventId, Commit),
    /// The state cannot be made whole: the rank restarts from these.
    Restart(Vec<Run<P>>, Base),
    /// The source cannot show its state (reference).
    GoOn(EventId),
    /// It is of no use (reference).
    Degraded,
    /// Live events overtook it: the source is plainly there.
    Overtaken,
    /// The source is in another life.
    NewLife,
    /// A failed attempt.
    Failed,
    /// An attempt that broke the rules (B10).
    Violation,
}

impl<P: Payload> Slot<P> {
    /// The answer to a query in flight has come.
    pub(super) fn respond(&mut self, response: RecoveryResponse<P>, cx: &mut Context<'_, P>) {
        let RecoveryResponse { query, origin, boot, outcome } = response;
        if !self.answered(query, cx) {
            cx.shared.stats.stale_replies += 1;
            return;
        }
        // What has been learned since it was asked counts as well.
        let known = self.follow.recovery().and_then(|recovery| recovery.boot).or(self.boot);
        let other_boot = cx.shared.policy.check_boot
            && matches!((known, boot), (Some(known), Some(boot)) if known != boot);
        let answer = match (outcome, origin) {
            _ if other_boot => Answer::OtherBoot,
            // A refusal in other words (B33).
            (RecoveryOutcome::InvalidRange, _) if cx.shared.policy.keep_on_failure => {
                self.query_failed(query, QueryFailure::Refused, cx);
                self.pump(cx);
                return;
            }
            (RecoveryOutcome::Failed(failure), _) => {
                self.query_failed(query, failure, cx);
                self.pump(cx);
                return;
            }
            (_, Origin::Foreign) => Answer::Foreign,
            (outcome, Origin::Own) => Answer::Outcome(outcome),
        };
        if !other_boot {
            self.boot = self.boot.or(boot);
        }
        self.accept(Item::Answer { query, answer }, cx);
    }

    /// Works an answer off.
    pub(super) fn take_answer(
        &mut self,
        query: QueryId,
        answer: Answer<P>,
        cx: &mut Context<'_, P>,
    ) {
        let waiting =
            self.answered_recovery().filter(|recovery| recovery.stage == Stage::Answered { query });
        let (Some(recovery), Some(binding)) = (waiting, self.binding) else {
            cx.shared.stats.stale_replies += 1;
            return;
        };
        let outcome = match answer {
            Answer::Exhausted => return self.give_up(recovery.purpose, cx),
            Answer::Foreign => return self.convict(cx),
            Answer::OtherBoot => {
                self.finish_recovery(RecoveryEnd::NewLife, cx);
                return self.other_boot(None, cx);
            }
            Answer::Outcome(outcome) => outcome,
        };
        let verdict = self.judge_outcome(binding.source, &recovery, outcome, cx);
        self.carry_out(query, verdict, cx);
    }

    fn judge_outcome(
        &mut self,
        source: Source,
        recovery: &Recovery,
        outcome: RecoveryOutcome<P>,
        cx: &mut Context<'_, P>,
    ) -> Verdict<P> {
        let policy = &cx.shared.policy;
        match outcome {
            RecoveryOutcome::Events { runs, last, complete } => {
                match (source.kind, policy.verify_life, policy.check_replies) {
                    (SourceKind::Engine, true, _) => {
                        self.judge_replay(source, recovery, runs, complete)
                    }
                    (SourceKind::Engine, false, true) | (SourceKind::Agent, _, true) => {
                        self.judge_range(source, recovery, runs, last, complete, cx)
                    }
                    (SourceKind::Engine, false, false) | (SourceKind::Agent, _, false) => {
                        self.judge_unchecked(source, recovery, runs, last)
                    }
                }
            }
            RecoveryOutcome::Snapshot { runs, last } => {
                if policy.optional_cursor && self.follow.cursor > Some(last) {
                    return Verdict::Failed;
                }
                Verdict::Replace(runs, last, Commit::whole(last, Base::Known))
            }
            RecoveryOutcome::SnapshotFailed { .. } if policy.keep_on_failure => Verdict::Failed,
            RecoveryOutcome::SnapshotFailed { last } => Verdict::GoOn(last),
            RecoveryOutcome::TooNew { newest } if policy.verify_life => {
                self.judge_too_new(newest, recovery)
            }
            RecoveryOutcome::TooNew { .. } | RecoveryOutcome::InvalidRange => Verdict::Degraded,
            RecoveryOutcome::Failed(_) => Verdict::Failed,
        }
    }

    /// From an agent: nothing follows the cursor, or its ids have fallen back. The cursor has moved on
    /// if live events were accepted meanwhile; it never moves back.
    fn judge_too_new(&mut self, newest: Option<EventId>, recovery: &Recovery) -> Verdict<P> {
        let (head, cursor) = (recovery.head, self.follow.cursor);
        if recovery.asked.is_none() || newest > head {
            return Verdict::Violation;
        }
        if newest < head {
            return Verdict::NewLife;
        }
        if head != cursor {
            return Verdict::Overtaken;
        }
        let level = self.follow.newest <= cursor;
        if !level {
            // What has been seen above it is nowhere to be had (B18).
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
        }
        Verdict::Admit(Vec::new(), Commit { cursor, level, ..Commit::healed() })
    }

    fn carry_out(&mut self, query: QueryId, verdict: Verdict<P>, cx: &mut Context<'_, P>) {
        match verdict {
            Verdict::Admit(runs, commit) => self.finish_with(runs, commit, cx),
            Verdict::Replace(runs, last, commit) => self.send_replace(runs, last, commit, cx),
            Verdict::Restart(runs, base) => {
                self.finish_recovery(RecoveryEnd::Restarted, cx);
                self.restart_from(runs, base, false, cx);
            }
            Verdict::GoOn(last) => {
                let then = Then::GoOn { last };
                self.begin_reset(ResetCause::SnapshotFailed, self.epoch(), Scope::All, then, cx);
            }
            Verdict::Degraded => self.degrade(TrustReason::Hole, cx),
            Verdict::Overtaken => self.finish_recovery(RecoveryEnd::Healed, cx),
            Verdict::NewLife => {
                self.finish_recovery(RecoveryEnd::NewLife, cx);
                self.new_life(true, cx);
            }
            Verdict::Failed => self.attempt_failed(query, None, cx),
            Verdict::Violation => {
                let violations = self.follow.recovery_mut().map_or(0, |recovery| {
                    recovery.violations += 1;
                    recovery.violations
                });
                if violations > 1 && cx.shared.policy.check_replies {
                    self.convict(cx);
                } else {
                    self.attempt_failed(query, None, cx);
                }
            }
        }
    }

    /// The reference takes an answer's events as they come; the cursor never falls (W-V1).
    fn judge_unchecked(
        &self,
        source: Source,
        recovery: &Recovery,
        runs: Vec<Run<P>>,
        last: Option<EventId>,
    ) -> Verdict<P> {
        let reached = last.unwrap_or_default();
        let cursor = self.follow.cursor.unwrap_or_default().max(reached);
        let whole = recovery.asked.is_none();
        let expected = self.follow.cursor.and_then(super::next_id);
        let known = match runs.first() {
            _ if !is_contiguous(&runs) => Some(Base::Incomplete(TrustReason::Hole)),
            Some(first) if whole && first.first == source.first_id => Some(Base::Known),
            Some(_) if whole => Some(Base::Incomplete(TrustReason::HistoryUnknown)),
            Some(first) if Some(first.first) != expected => {
                Some(Base::Incomplete(TrustReason::Hole))
            }
            Some(_) | None => None,
        };
        let commit = Commit { cursor: Some(cursor), base: known, ..Commit::healed() };
        Verdict::Admit(runs, commit)
    }
}

fn is_ascending<P: Payload>(runs: &[Run<P>]) -> bool {
    runs.windows(2).all(|pair| match pair {
        [a, b] => a.last() < b.first,
        _ => true,
    })
}

fn is_contiguous<P: Payload>(runs: &[Run<P>]) -> bool {
    runs.windows(2).all(|pair| match pair {
        [a, b] => super::next_id(a.last()) == Some(b.first),
        _ => true,
    })
}

/// From the stream's first id the history is known; else from the last clear, if there is one.
fn from_known_point<P: Payload>(source: Source, runs: Vec<Run<P>>) -> (Vec<Run<P>>, Base) {
    match runs.first() {
        Some(first) if first.first == source.first_id => (runs, Base::Known),
        Some(_) | None => from_last_clear(runs),
    }
}

fn from_last_clear<P: Payload>(mut runs: Vec<Run<P>>) -> (Vec<Run<P>>, Base) {
    match runs.iter().rposition(|run| run.clears == Clears::Everything) {
        Some(at) => (runs.split_off(at), Base::Known),
        None => (runs, Base::Incomplete(TrustReason::HistoryUnknown)),
    }
}

const fn end_of(base: Base) -> RecoveryEnd {
    match base {
        Base::Known => RecoveryEnd::Healed,
        Base::Incomplete(_) | Base::Establishing => RecoveryEnd::Restarted,
    }
}
