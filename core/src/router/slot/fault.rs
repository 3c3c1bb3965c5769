//! Faults that the target reports, and sources that it rejects (§5.10).
//!
//! | fault on | effect | reply |
//! |---|---|---|
//! | no active binding, or another epoch | none | stale |
//! | a barrier that failed, or a fenced rank | none | fenced |
//! | a recoverable rank | its state is fetched again; no reset | recovering |
//! | a live-only rank | reset, then it starts over | reset_live_only, or fenced if refused |

use super::super::command::{Disposition, Scope};
use super::super::follow::Base;
use super::super::input::Payload;
use super::super::notice::ResetCause;
use super::super::purpose::Purpose;
use super::super::recovery::From;
use super::super::shared::Context;
use super::super::trust::TrustReason;
use super::{Slot, Then};
use crate::id::{Epoch, Generation};

impl<P: Payload> Slot<P> {
    pub(super) fn fault(&mut self, epoch: Epoch, barrier_failed: bool, cx: &mut Context<'_, P>) {
        let current = self.binding.is_some_and(|binding| binding.epoch == epoch);
        let disposition = if !current {
            Disposition::Stale
        } else if barrier_failed || self.fence.is_some() {
            Disposition::Fenced
        } else if self.recoverable() {
            self.follow.base = Base::Incomplete(TrustReason::TargetFault);
            self.owe_recovery(Purpose::Fault, From::Whole, cx);
            if !self.is_lost() {
                self.launch(cx);
            }
            Disposition::Recovering
        } else {
            self.begin_reset(ResetCause::Fault, epoch, Scope::All, Then::AnswerFault, cx);
            return;
        };
        self.answer_fault(disposition, cx);
    }

    pub(super) fn reject(&mut self, epoch: Epoch, cx: &mut Context<'_, P>) {
        let Some(binding) = self.binding.filter(|binding| binding.epoch == epoch) else {
            self.answer_fault(Disposition::Stale, cx);
            return;
        };
        self.deactivate(cx);
        let then = Then::AnswerRejection { generation: Generation(binding.epoch.0) };
        self.begin_reset(ResetCause::Fault, epoch, Scope::All, then, cx);
    }

    /// The clean-up after a rejection has ended, well or not.
    pub(super) fn rejected(&mut self, generation: Generation, cx: &mut Context<'_, P>) {
        self.start_fresh(cx);
        self.cool_down(generation, cx);
        self.answer_fault(Disposition::Fenced, cx);
    }
}
