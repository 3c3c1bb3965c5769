//! A fence: the target refused something, or a reset is owed (§5.8, S8, B1).

use super::super::input::Payload;
use super::super::notice::DiscardReason;
use super::super::shared::Context;
use super::super::timers::{Timer, TimerKind};
use super::super::trust::TrustReason;
use super::{Content, Item, Slot};

/// Why a rank is fenced, and when it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) struct Fence {
    pub(in crate::router) reason: TrustReason,
    /// `None` once it is due, and in profiles that wait for membership.
    timer: Option<Timer>,
}

impl<P: Payload> Slot<P> {
    /// Nothing passes before a reset has completed. The next reconciliation brings it; with B1 one
    /// comes by itself.
    pub(super) fn fence(&mut self, reason: TrustReason, cx: &mut Context<'_, P>) {
        self.lift_fence(cx);
        self.quiesce(DiscardReason::Fenced, cx);
        self.content = Content::Dirty;
        let policy = &cx.shared.policy;
        let timer = if policy.self_heal && !cx.shared.shut {
            let wait = policy.heal_base.doubled(self.heal_tries).min(policy.heal_max);
            self.heal_tries = self.heal_tries.saturating_add(1).min(32);
            let at = cx.now.after(cx.shared.jitter.around(wait));
            Some(cx.shared.timers.set(at, cx.slot, TimerKind::Heal))
        } else {
            None
        };
        self.fence = Some(Fence { reason, timer });
    }

    /// Forgets the fence and its timer.
    pub(super) fn lift_fence(&mut self, cx: &mut Context<'_, P>) {
        if let Some(mut fence) = self.fence.take() {
            cx.shared.timers.cancel(&mut fence.timer);
        }
    }

    /// The heal timer fired: the rank is reconciled as if a snapshot had come.
    pub(in crate::router) fn heal_timer(&mut self, cx: &mut Context<'_, P>) {
        if let Some(fence) = &mut self.fence {
            fence.timer = None;
            self.accept(Item::Reconcile, cx);
        }
    }

    /// Events were accepted, or another source begins: the next fence begins with the shortest wait
    /// again. A reset that succeeds is not enough: what follows it may be refused every time.
    pub(super) const fn healed(&mut self) {
        self.heal_tries = 0;
    }
}
