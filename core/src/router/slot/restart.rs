//! Restarts: a reset, and what begins once it has completed.

use super::super::anchors::Anchors;
use super::super::command::{Command, ResetReason};
use super::super::follow::{Base, Doubt, Follow};
use super::super::input::{Payload, Run, Runs};
use super::super::notice::{DiscardReason, Notice};
use super::super::shared::Context;
use super::super::trust::TrustReason;
use super::{Busy, Slot};
use alloc::vec::Vec;

/// What starts once a reset has completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) enum Then<P> {
    /// What membership wants by then.
    Apply,
    /// The same source, from nothing: its own history is asked for.
    Fresh,
    /// The same source in a life that begins with this run.
    NewLife(Run<P>),
    /// The same source from these runs on; with `repair`, better is looked for in the background.
    Rebase { runs: Vec<Run<P>>, base: Base, repair: bool },
}

impl<P: Payload> Slot<P> {
    /// Owes a reset: the rank accepts nothing before it has completed. What arrives meanwhile is
    /// held for the life that the restart begins.
    pub(in crate::router) fn owe_restart(
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
    pub(in crate::router) fn coming(&self) -> Option<&Then<P>> {
        match (&self.restart, &self.busy) {
            (Some((_, then)), _) | (None, Busy::Resetting { then, .. }) => Some(then),
            (None, Busy::Idle | Busy::Admitting { .. } | Busy::Replacing { .. }) => None,
        }
    }

    pub(super) fn begin_reset(
        &mut self,
        reason: ResetReason,
        then: Then<P>,
        cx: &mut Context<'_, P>,
    ) {
        let op = cx.shared.fresh_op();
        cx.shared.stats.resets += 1;
        cx.fx.notice(Notice::Reset { rank: self.key, reason });
        cx.fx.command(Command::Reset { op, rank: self.key, epoch: self.epoch, reason });
        self.busy = Busy::Resetting { op, then };
    }

    pub(super) fn after_reset(&mut self, then: Then<P>, cx: &mut Context<'_, P>) {
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
                } else {
                    self.repair_if_blind(cx);
                }
                if runs.is_empty() {
                    self.follow.base = base;
                }
                self.admit(Runs::from_vec(runs), Some(base), cx);
            }
        }
    }

    /// Forgets the life that was followed; a connection that is down stays down, and so does what
    /// was learned of the replay behind it.
    pub(super) fn start_over(&mut self, cx: &mut Context<'_, P>) {
        let lost = self.follow.doubt == Some(Doubt::Lost);
        let (replay_blind, replay_mute) = (self.follow.replay_blind, self.follow.replay_mute);
        self.cancel_recovery(cx);
        cx.shared.timers.cancel(&mut self.follow.probe);
        cx.shared.timers.cancel(&mut self.follow.repair);
        let waiting = core::mem::take(&mut self.follow.pending);
        self.follow = Follow::fresh(cx.now);
        self.follow.doubt = lost.then_some(Doubt::Lost);
        (self.follow.replay_blind, self.follow.replay_mute) = (replay_blind, replay_mute);
        self.follow.newest = waiting.last();
        self.follow.pending = waiting;
    }

    /// A restart from runs of before the interruption is no longer safe: they may be an earlier
    /// life's. The source's own history is asked for instead.
    pub(super) fn restart_afresh(&mut self, cx: &mut Context<'_, P>) {
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

    /// The source's life could not be established: what it left is not inherited (B6).
    pub(in crate::router) fn restart_unverified(&mut self, cx: &mut Context<'_, P>) {
        self.settle_doubt();
        let runs = self.take_contiguous();
        let base = Base::Incomplete(TrustReason::HistoryUnknown);
        self.owe_restart(ResetReason::Hole, Then::Rebase { runs, base, repair: true }, cx);
    }

    /// The life is established, or will be from its beginning; a connection that went down since
    /// stays in doubt.
    pub(in crate::router) fn settle_doubt(&mut self) {
        if self.follow.doubt == Some(Doubt::Unverified) {
            self.follow.doubt = None;
        }
    }
}
