//! Beginnings: of an activation, of a new life, and of what is left after a hole.

use super::super::anchors::Anchors;
use super::super::command::{Command, Scope};
use super::super::follow::Base;
use super::super::input::{Clears, Payload, Run, Runs};
use super::super::notice::{DiscardReason, Notice, RecoveryEnd, ResetCause};
use super::super::purpose::Purpose;
use super::super::recovery::From;
use super::super::shared::Context;
use super::super::trust::TrustReason;
use super::{Commit, Content, Slot, Step, Then};
use crate::id::EventId;
use alloc::vec::Vec;

impl<P: Payload> Slot<P> {
    /// First steps of a source, or of a life whose beginning has not been seen.
    pub(super) fn begin_following(&mut self, cx: &mut Context<'_, P>) {
        if self.can_ask() {
            let purpose = if self.is_on_trial() { Purpose::Probation } else { Purpose::Initial };
            self.start_recovery(purpose, From::Whole, cx);
        } else if cx.shared.policy.no_dark_state {
            self.tell_initial(cx);
            self.repair_if_blind(cx);
        }
        self.arm_probe(cx);
    }

    /// The source is in another life: everything goes, and that life's own history is followed; with
    /// `ask` it is asked for first.
    pub(in crate::router) fn new_life(&mut self, ask: bool, cx: &mut Context<'_, P>) {
        cx.shared.stats.new_lives += 1;
        cx.fx.notice(Notice::NewLife { rank: self.key, cursor: self.follow.cursor });
        self.quiesce(DiscardReason::OldLife, cx);
        self.follow.unverified = false;
        self.follow.anchors = Anchors::default();
        self.begin_reset(
            ResetCause::NewLife,
            self.epoch(),
            Scope::All,
            Then::Begin { ask: ask || self.follow.replay_mute },
            cx,
        );
    }

    pub(super) fn begin_life(&mut self, ask: bool, cx: &mut Context<'_, P>) {
        self.start_fresh(cx);
        if self.is_lost() {
            return;
        }
        if ask || self.is_on_trial() {
            self.begin_following(cx);
        } else {
            if cx.shared.policy.no_dark_state {
                self.tell_initial(cx);
            }
            self.arm_probe(cx);
        }
    }

    /// The state can never be made whole: empties the rank and goes on from `runs`.
    pub(in crate::router) fn restart_from(
        &mut self,
        runs: Vec<Run<P>>,
        base: Base,
        repair: bool,
        cx: &mut Context<'_, P>,
    ) {
        self.follow.unverified = false;
        let then = Then::Rebase { runs, base, repair };
        self.begin_reset(ResetCause::Hole, self.epoch(), Scope::All, then, cx);
    }

    /// The rank is empty; what waits belongs to the life that goes on.
    pub(super) fn rebase(
        &mut self,
        runs: Vec<Run<P>>,
        base: Base,
        repair: bool,
        cx: &mut Context<'_, P>,
    ) {
        let waiting = core::mem::take(&mut self.follow.pending);
        let (newest, told) = (self.follow.newest, self.follow.initial_told);
        self.start_fresh(cx);
        self.follow.pending = waiting;
        self.follow.newest = newest;
        self.follow.initial_told = told;
        // What is still to be handed over proves nothing yet.
        self.follow.base = if runs.is_empty() { base } else { Base::Establishing };
        if cx.shared.policy.no_dark_state {
            self.tell_initial(cx);
        }
        self.arm_probe(cx);
        if repair {
            self.arm_repair(cx);
        } else {
            self.repair_if_blind(cx);
        }
        self.send_admit(Runs::from_vec(runs), Some(base), None, cx);
    }

    /// The source could not show its state (reference profile): the rank, empty, goes on behind
    /// `last`.
    pub(super) fn go_on(&mut self, last: EventId, cx: &mut Context<'_, P>) {
        let commit = Commit {
            cursor: Some(last),
            base: Some(Base::Incomplete(TrustReason::HistoryUnknown)),
            end: RecoveryEnd::Failed,
            unfinished: false,
            level: false,
        };
        self.finish_with(Vec::new(), commit, cx);
    }

    /// Hands runs to the target. An empty hand is no command: a commit is done at once.
    pub(in crate::router) fn send_admit(
        &mut self,
        runs: Runs<P>,
        base: Option<Base>,
        commit: Option<Commit>,
        cx: &mut Context<'_, P>,
    ) {
        let Some(last) = runs.last().map(Run::last) else {
            if let Some(commit) = commit {
                self.commit(commit, cx);
            }
            return;
        };
        let (ids, base) = self.remember(&runs, base);
        self.content = Content::Dirty;
        self.follow.barren_rounds = 0;
        self.follow.escalated = false;
        cx.shared.stats.admitted += ids;
        let op = cx.shared.fresh_op(cx.slot);
        let epoch = self.epoch();
        cx.fx.command(Command::Admit { op, rank: self.key, epoch, runs });
        self.step = Step::Admitting { op, last, base, commit };
    }

    /// Whether the target holds nothing of the rank.
    pub(in crate::router) fn is_empty(&self) -> bool {
        self.content == Content::Empty
    }

    /// Whether the target may hold something of the rank that the router has put there.
    pub(in crate::router) fn is_dirty(&self) -> bool {
        self.content == Content::Dirty
    }

    /// Swaps the target's state for these runs.
    pub(in crate::router) fn send_replace(
        &mut self,
        runs: Vec<Run<P>>,
        last: EventId,
        commit: Commit,
        cx: &mut Context<'_, P>,
    ) {
        // The state that they stood for goes as a whole.
        self.follow.anchors = Anchors::default();
        let (ids, base) = self.remember(&runs, commit.base);
        cx.shared.stats.admitted += ids;
        self.content = Content::Dirty;
        let op = cx.shared.fresh_op(cx.slot);
        let (rank, epoch, scope) = (self.key, self.epoch(), Scope::All);
        cx.fx.command(Command::Replace { op, rank, epoch, scope, runs, last });
        self.step = Step::Replacing { op, commit: Commit { base, ..commit } };
    }

    /// Keeps the digests of runs that leave; returns how many ids they cover, and what they make of
    /// the base: a clear of everything makes it known, unless ids are skipped behind it.
    fn remember(&mut self, runs: &[Run<P>], mut base: Option<Base>) -> (u64, Option<Base>) {
        let (mut ids, mut cleared) = (0, None);
        let first_id = self.binding.map(|binding| binding.source.first_id);
        for run in runs {
            ids += u64::from(run.len.get());
            if run.clears == Clears::Everything {
                base = Some(Base::Known);
                // Whoever published what lies below it, the state no longer depends on it.
                self.follow.anchors.forget_recent();
            }
            let known = base.unwrap_or(self.follow.base) == Base::Known;
            let follows = run.clears == Clears::Everything || cleared == Some(Some(run.first));
            let hole = cleared.is_some() && !follows;
            if known && (hole || run.damaged) {
                let reason = if hole { TrustReason::Hole } else { TrustReason::Damaged };
                base = Some(Base::Incomplete(reason));
            }
            if cleared.is_some() || run.clears == Clears::Everything {
                cleared = Some(super::super::next_id(run.last()));
            }
            self.follow.anchors.remember(run.first, run.digest, Some(run.first) == first_id);
        }
        (ids, base)
    }
}
