//! A fence: the target refused something, or an answer cannot be trusted (S6, S8, B1).

use super::super::command::ResetReason;
use super::super::input::Payload;
use super::super::notice::{DiscardReason, RecoveryEnd};
use super::super::shared::Context;
use super::super::timers::{Timer, TimerKind};
use super::super::trust::TrustReason;
use super::{Busy, Content, Slot, Then};

/// Why a rank is fenced, and when it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) struct Fence {
    pub(in crate::router) reason: TrustReason,
    /// `None`: due, but a command is still incomplete.
    timer: Option<Timer>,
}

impl<P: Payload> Slot<P> {
    /// The target refused something, or must not be given more: nothing passes before a reset
    /// (S8), which is tried again by itself (B1).
    pub(super) fn fence(&mut self, reason: TrustReason, cx: &mut Context<'_, P>) {
        self.lift_fence(cx);
        self.quiesce(DiscardReason::Fenced, cx);
        self.content = Content::Dirty;
        self.restart = None;
        let policy = &cx.shared.policy;
        let wait = policy.heal_base.doubled(self.heal_tries).min(policy.heal_max);
        self.heal_tries = self.heal_tries.saturating_add(1).min(32);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        let timer = Some(cx.shared.timers.set(at, cx.slot, TimerKind::Heal));
        self.fence = Some(Fence { reason, timer });
    }

    /// Forgets the fence and its timer.
    pub(super) fn lift_fence(&mut self, cx: &mut Context<'_, P>) {
        if let Some(mut fence) = self.fence.take() {
            cx.shared.timers.cancel(&mut fence.timer);
        }
    }

    /// The heal timer fired.
    pub(in crate::router) fn heal_timer(&mut self, cx: &mut Context<'_, P>) {
        if let Some(fence) = &mut self.fence {
            fence.timer = None;
            self.heal_if_due(cx);
        }
    }

    /// Retries the reset of a fence whose time has come, once no command is incomplete (S3).
    pub(super) fn heal_if_due(&mut self, cx: &mut Context<'_, P>) {
        let due = matches!(self.fence, Some(Fence { timer: None, .. }));
        if !due || !matches!(self.busy, Busy::Idle) {
            return;
        }
        self.fence = None;
        if self.applied.is_some() {
            self.restart = None;
            self.begin_reset(ResetReason::Fault, Then::Fresh, cx);
        }
    }

    /// A recovery reply named another rank: fenced, then its own history (S6).
    pub(in crate::router) fn foreign_reply(&mut self, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::Failed, cx);
        self.fence(TrustReason::ForeignReply, cx);
    }
}
