//! How a recovery ends: its events, then what waited behind them, then one commit (§6.6–§6.10).

use super::super::follow::Base;
use super::super::input::{Payload, Run, Runs};
use super::super::notice::{DiscardReason, RecoveryEnd};
use super::super::purpose::Purpose;
use super::super::recovery::{From, Stage};
use super::super::shared::Context;
use super::super::slot::{Commit, Instance, Item, Slot};
use super::super::trust::TrustReason;
use crate::id::EventId;
use crate::membership::SourceKind;
use alloc::vec::Vec;

impl Commit {
    /// A recovery that leaves the rank level with its source.
    pub(super) const fn healed() -> Self {
        Self { cursor: None, base: None, end: RecoveryEnd::Healed, unfinished: false, level: true }
    }

    /// A recovery that brought a whole state.
    pub(super) const fn whole(last: EventId, base: Base) -> Self {
        Self { cursor: Some(last), base: Some(base), ..Self::healed() }
    }
}

impl<P: Payload> Slot<P> {
    /// Hands a recovery's events over, and with them what waits right behind.
    pub(in crate::router) fn finish_with(
        &mut self,
        recovered: Vec<Run<P>>,
        mut commit: Commit,
        cx: &mut Context<'_, P>,
    ) {
        let contradicts = |run: &Run<P>| self.follow.pending.contradicts(run);
        if cx.shared.policy.verify_life && recovered.iter().any(contradicts) {
            // Which of the two is the later one cannot be told from here.
            self.finish_recovery(RecoveryEnd::NewLife, cx);
            self.new_life(true, cx);
            return;
        }
        let mut runs = recovered;
        if let Some(cursor) = commit.cursor {
            let (drained, superfluous) = self.follow.pending.take_contiguous(Some(cursor));
            cx.shared.stats.discard(DiscardReason::Duplicate, superfluous);
            commit.cursor = drained.last().map(Run::last).or(commit.cursor);
            runs.extend(drained);
        }
        self.send_admit(Runs::from_vec(runs), commit.base, Some(commit), cx);
    }

    /// The state has been swapped: what waited behind it follows.
    pub(in crate::router) fn after_replace(&mut self, commit: Commit, cx: &mut Context<'_, P>) {
        if commit.cursor > self.follow.cursor {
            self.follow.barren_rounds = 0;
            self.follow.escalated = false;
        } else if cx.shared.policy.bounded_rounds && self.follow.newest > commit.cursor {
            // A whole state that does not reach what has been seen fills no hole either (B18).
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
        }
        self.follow.cursor = commit.cursor;
        if self.is_outdated() {
            return;
        }
        self.finish_with(Vec::new(), Commit { base: None, ..commit }, cx);
    }

    /// Everything a recovery brought has been accepted.
    pub(in crate::router) fn commit(&mut self, commit: Commit, cx: &mut Context<'_, P>) {
        self.follow.cursor = commit.cursor;
        self.follow.base = commit.base.unwrap_or(self.follow.base);
        self.follow.unverified = false;
        if let Some(cursor) = commit.cursor {
            self.follow.reached(cursor);
        }
        // It may have been superseded while its events were being handed over.
        let Some(recovery) = self.answered_recovery() else { return };
        if commit.level {
            self.follow.level_at = Some(recovery.sent_at);
        }
        if commit.unfinished {
            self.attempt_progressed(cx);
            return;
        }
        if self.is_on_trial() {
            self.acquit();
            self.repair_if_incomplete(cx);
        }
        let more = !self.follow.pending.is_empty() || self.follow.newest > self.follow.cursor;
        if more && !cx.shared.policy.bounded_rounds {
            self.owe_follow_up(cx);
        } else {
            self.finish_recovery(commit.end, cx);
        }
    }

    /// A hole is left: it is asked for again behind what waits for the rank (§6.10).
    fn owe_follow_up(&mut self, cx: &mut Context<'_, P>) {
        let (Some(binding), Some(cursor)) = (self.binding, self.follow.cursor) else { return };
        if let Some(recovery) = self.follow.recovery_mut() {
            recovery.stage = Stage::Owed;
            if recovery.from == From::Whole {
                self.tell_initial(cx);
            }
        }
        let start = super::super::next_id(cursor).unwrap_or(cursor);
        self.enqueue(Item::FollowUp { instance: binding.instance, start }, cx);
    }

    /// The follow-up's turn: skipped if the rank has been bound again, or recovers no more.
    pub(in crate::router) fn follow_up(
        &mut self,
        instance: Instance,
        start: EventId,
        cx: &mut Context<'_, P>,
    ) {
        let Some(binding) = self.binding.filter(|binding| binding.instance == instance) else {
            return;
        };
        if !self.follow.is_recovering() {
            return;
        }
        let overlaps = binding.source.kind == SourceKind::Engine && cx.shared.policy.verify_life;
        let from = if overlaps { From::Cursor } else { From::Id(start) };
        self.owe_recovery(Purpose::Gap, from, cx);
        self.launch(cx);
    }

    /// Goes on across every hole with what waits (§6.9). The state stays: a failed answer is no answer
    /// (B33); the rank is partial from here on, and repaired later (B5).
    pub(super) fn degrade(&mut self, reason: TrustReason, cx: &mut Context<'_, P>) {
        let floor = match self.follow.cursor {
            None if !cx.shared.policy.optional_cursor => Some(EventId(0)),
            cursor => cursor,
        };
        let (runs, superfluous) = self.follow.pending.take_above(floor);
        cx.shared.stats.discard(DiscardReason::Duplicate, superfluous);
        let mut last = self.follow.cursor;
        for run in &runs {
            let expected = last.map_or(Some(run.first), super::super::next_id);
            self.note_skipped(expected, run.first, cx);
            last = Some(run.last());
        }
        self.follow.newest = None;
        let commit = Commit {
            cursor: last,
            base: Some(Base::Incomplete(reason)),
            end: RecoveryEnd::Failed,
            unfinished: false,
            level: false,
        };
        self.arm_repair(cx);
        self.send_admit(Runs::from_vec(runs), commit.base, Some(commit), cx);
    }

    /// All attempts have failed.
    pub(super) fn give_up(&mut self, purpose: Purpose, cx: &mut Context<'_, P>) {
        match purpose {
            Purpose::Verify => self.restart_unverified(cx),
            Purpose::Initial | Purpose::Gap | Purpose::Fault if self.follow.unverified => {
                self.restart_unverified(cx);
            }
            Purpose::Initial => self.degrade(TrustReason::HistoryUnknown, cx),
            Purpose::Gap => self.degrade(TrustReason::Hole, cx),
            Purpose::Fault => self.degrade(TrustReason::TargetFault, cx),
            Purpose::Probe => self.finish_recovery(RecoveryEnd::Failed, cx),
            Purpose::Repair => {
                self.finish_recovery(RecoveryEnd::Failed, cx);
                self.arm_repair(cx);
            }
            Purpose::Probation => self.fail_probation(cx),
        }
    }

    /// The source's life could not be established: what it left is not inherited (B6).
    fn restart_unverified(&mut self, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::Failed, cx);
        let (runs, superfluous) = self.follow.pending.take_contiguous(None);
        cx.shared.stats.discard(DiscardReason::Duplicate, superfluous);
        let base = Base::Incomplete(TrustReason::HistoryUnknown);
        self.restart_from(runs, base, true, cx);
    }
}
