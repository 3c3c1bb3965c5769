//! A rank's incomplete command, and what its completion leads to.
//!
//! | command | ok | refused |
//! |---|---|---|
//! | admit | the cursor moves; a recovery's commit | fence |
//! | replace | the state is the answer's; then what waited behind it | fence |
//! | reset for a membership change | accept, activate or forget | fence, retried |
//! | reset before a query | the query | fence |
//! | reset before a new beginning | the new beginning | fence |
//! | reset of a corrupt source | fence, or probation (B35) | fence |
//! | reset after a fault, a rejection, a lost transport | the reply | fence, and the reply |

use super::super::command::{Disposition, Reply, Scope};
use super::super::follow::Base;
use super::super::input::{Completion, Flaw, Payload, Run};
use super::super::notice::{Notice, RecoveryEnd};
use super::super::shared::Context;
use super::super::trust::TrustReason;
use super::{Content, Slot, Wanted};
use crate::id::{EventId, Generation, OpId, PublisherId};
use alloc::vec::Vec;

/// What a recovery leaves behind once its events have been accepted (group commit, §6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) struct Commit {
    pub(in crate::router) cursor: Option<EventId>,
    /// What the answer says of the base; `None`: nothing.
    pub(in crate::router) base: Option<Base>,
    pub(in crate::router) end: RecoveryEnd,
    /// The answer was cut off: the recovery goes on from what it brought.
    pub(in crate::router) unfinished: bool,
    /// The answer says how things were when it was asked.
    pub(in crate::router) level: bool,
}

/// A rank's incomplete command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) enum Step<P> {
    Idle,
    /// Live events, or with a commit those of a recovery.
    Admitting {
        op: OpId,
        last: EventId,
        base: Option<Base>,
        commit: Option<Commit>,
    },
    Replacing {
        op: OpId,
        commit: Commit,
    },
    Resetting {
        op: OpId,
        scope: Scope,
        then: Then<P>,
    },
}

/// What begins once a reset has completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) enum Then<P> {
    /// What a snapshot wants.
    Apply(Wanted),
    /// The rank is forgotten.
    Remove,
    /// The recovery that is owed is launched (6.3/8).
    Launch,
    /// The same source from what waits next, whatever its id (6.3/9).
    Resume { base: Base },
    /// The same source, from nothing; its own history is asked for first, or not.
    Begin { ask: bool },
    /// The same source from these runs on; with `repair`, better is looked for in the background.
    Rebase { runs: Vec<Run<P>>, base: Base, repair: bool },
    /// The source cannot show its state; it goes on behind this id.
    GoOn { last: EventId },
    /// The source is not believed any more.
    Distrust,
    /// A live-only rank starts over after a fault, and the fault is answered.
    AnswerFault,
    /// The rejected source stays out, and the rejection is answered.
    AnswerRejection { generation: Generation },
    /// The rank waits for its transport, and the interruption is answered.
    AnswerInterruption { publisher: PublisherId },
    /// A rejected source's leftovers are gone.
    Clean,
}

impl<P: Payload> Slot<P> {
    /// A command of this rank has ended. Unknown and already ended ops are ignored.
    pub(in crate::router) fn completed(&mut self, done: Completion, cx: &mut Context<'_, P>) {
        let running = match &self.step {
            Step::Idle => return,
            Step::Admitting { op, .. }
            | Step::Replacing { op, .. }
            | Step::Resetting { op, .. } => *op,
        };
        if running != done.op {
            return;
        }
        if let (Step::Admitting { last, base: None, commit: None, .. }, true, None) =
            (&self.step, done.ok, done.flaw)
            && self.follow.newest.is_none()
            && !self.has_items()
        {
            // The live path: the cursor moves, and nothing else waits or changes.
            self.follow.cursor = Some(*last);
            self.healed();
            self.step = Step::Idle;
            return;
        }
        let step = core::mem::replace(&mut self.step, Step::Idle);
        if done.ok {
            self.took_effect(step, done.flaw, cx);
        } else {
            cx.shared.stats.target_faults += 1;
            cx.fx.notice(Notice::Refused { rank: self.key });
            self.was_refused(step, cx);
        }
        self.pump(cx);
    }

    fn took_effect(&mut self, step: Step<P>, flaw: Option<Flaw>, cx: &mut Context<'_, P>) {
        match step {
            Step::Idle => {}
            Step::Admitting { last, base, commit, .. } => {
                self.healed();
                match commit {
                    None => {
                        self.follow.cursor = Some(last);
                        self.follow.base = base.unwrap_or(self.follow.base);
                        self.follow.reached(last);
                    }
                    Some(commit) => self.commit(Commit { base, ..commit }, cx),
                }
                self.flawed(flaw, cx);
            }
            Step::Replacing { commit, .. } => {
                self.follow.base = commit.base.unwrap_or(self.follow.base);
                self.flawed(flaw, cx);
                self.after_replace(commit, cx);
            }
            Step::Resetting { scope, then, .. } => {
                self.content = match scope {
                    Scope::All => Content::Empty,
                    Scope::Worker => Content::Dirty,
                };
                self.after_reset(then, cx);
            }
        }
    }

    fn after_reset(&mut self, then: Then<P>, cx: &mut Context<'_, P>) {
        match then {
            Then::Apply(wanted) => self.apply(wanted, cx),
            Then::Remove => self.removed(cx),
            // The reconciliation that waits finds the rank empty.
            Then::Launch
            | Then::Resume { .. }
            | Then::Begin { .. }
            | Then::Rebase { .. }
            | Then::GoOn { .. }
                if self.outdated => {}
            Then::Launch => {
                self.follow.base = Base::Establishing;
                self.launch(cx);
            }
            Then::Resume { base } => {
                self.follow.cursor = None;
                self.follow.base = base;
            }
            Then::Begin { ask } => self.begin_life(ask, cx),
            Then::Rebase { runs, base, repair } => self.rebase(runs, base, repair, cx),
            Then::GoOn { last } => self.go_on(last, cx),
            Then::Distrust => self.distrust(cx),
            Then::AnswerFault => {
                self.start_fresh(cx);
                self.begin_following(cx);
                self.answer_fault(Disposition::ResetLiveOnly, cx);
            }
            Then::AnswerRejection { generation } => self.rejected(generation, cx),
            Then::AnswerInterruption { publisher } => {
                self.start_fresh(cx);
                cx.fx.reply(Reply::TransportLost { publisher, fenced: true });
            }
            Then::Clean => self.lift_fence(cx),
        }
    }

    fn was_refused(&mut self, step: Step<P>, cx: &mut Context<'_, P>) {
        let then = match step {
            Step::Idle => return,
            Step::Admitting { commit: None, .. } => {
                self.fence(TrustReason::TargetFault, cx);
                return;
            }
            Step::Admitting { commit: Some(_), .. } | Step::Replacing { .. } => {
                if self.answered_recovery().is_some() {
                    self.finish_recovery(RecoveryEnd::Failed, cx);
                }
                self.fence(TrustReason::TargetFault, cx);
                return;
            }
            Step::Resetting { then, .. } => then,
        };
        if matches!(then, Then::GoOn { .. }) {
            // The recovery has been answered: it ends here, and its end is told (§6.11).
            self.finish_recovery(RecoveryEnd::Failed, cx);
        }
        self.fence(TrustReason::TargetFault, cx);
        match then {
            Then::Apply(_)
            | Then::Remove
            | Then::Launch
            | Then::Resume { .. }
            | Then::Begin { .. }
            | Then::Rebase { .. }
            | Then::GoOn { .. }
            | Then::Clean => {}
            Then::Distrust => self.distrust(cx),
            Then::AnswerFault => self.answer_fault(Disposition::Fenced, cx),
            Then::AnswerRejection { generation } => self.rejected(generation, cx),
            Then::AnswerInterruption { publisher } => {
                self.start_fresh(cx);
                cx.fx.reply(Reply::TransportLost { publisher, fenced: true });
            }
        }
    }

    pub(super) fn answer_fault(&self, disposition: Disposition, cx: &mut Context<'_, P>) {
        cx.fx.reply(Reply::Fault { rank: self.key, disposition });
    }

    /// What the target noticed makes a known history incomplete.
    fn flawed(&mut self, flaw: Option<Flaw>, cx: &mut Context<'_, P>) {
        let reason = match flaw {
            None => return,
            Some(Flaw::Capacity) => TrustReason::Capacity,
            Some(Flaw::Orphan) if cx.shared.policy.heed_orphans => TrustReason::Orphan,
            Some(Flaw::Orphan) => return,
        };
        if self.follow.base == Base::Known {
            self.follow.base = Base::Incomplete(reason);
            self.arm_repair(cx);
        }
    }
}
