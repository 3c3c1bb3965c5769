//! What a rank does by itself while nothing happens: probes of quiet sources (B3) and repairs of
//! incomplete ranks (B5).

use super::follow::Base;
use super::input::Payload;
use super::purpose::Purpose;
use super::recovery::From;
use super::shared::Context;
use super::slot::{Slot, Step};
use super::timers::TimerKind;

impl<P: Payload> Slot<P> {
    /// Sets the timer of the next tail probe, if the source can be probed.
    pub(super) fn arm_probe(&mut self, cx: &mut Context<'_, P>) {
        cx.shared.timers.cancel(&mut self.follow.probe);
        let policy = &cx.shared.policy;
        if !policy.check_tail || !self.can_ask() || self.is_lost() {
            return;
        }
        let wait = policy.probe_first.doubled(self.follow.probe_step).min(policy.probe_max);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        self.follow.probe = Some(cx.shared.timers.set(at, cx.slot, TimerKind::Probe));
    }

    /// The probe timer fired: ask if it has been quiet, else wait on.
    pub(super) fn probe_timer(&mut self, cx: &mut Context<'_, P>) {
        self.follow.probe = None;
        let quiet = cx.now.since(self.follow.heard_at);
        let wanted = cx.shared.policy.probe_first;
        if quiet.0 < wanted.0 - wanted.0 / 4 || !self.is_only_following() {
            self.follow.probe_step = 0;
            self.arm_probe(cx);
            return;
        }
        self.follow.probe_step = self.follow.probe_step.saturating_add(1).min(32);
        self.start_recovery(Purpose::Probe, From::Cursor, cx);
    }

    /// The source has been heard of: the next probe is as far away as the first.
    pub(super) fn heard(&mut self, cx: &mut Context<'_, P>) {
        self.follow.heard_at = cx.now;
        if self.follow.probe_step > 0 {
            self.follow.probe_step = 0;
            self.arm_probe(cx);
        }
    }

    /// Sees to it that a background repair is on its way; one that is already is not put off.
    pub(super) fn arm_repair(&mut self, cx: &mut Context<'_, P>) {
        let policy = &cx.shared.policy;
        if !policy.repair || !self.recoverable() || self.follow.repair.is_some() {
            return;
        }
        let wait = policy.repair_base.doubled(self.follow.repair_step).min(policy.repair_max);
        let at = cx.now.after(cx.shared.jitter.around(wait));
        self.follow.repair = Some(cx.shared.timers.set(at, cx.slot, TimerKind::Repair));
    }

    /// A replay that had nothing is tried again now and then.
    pub(super) fn repair_if_blind(&mut self, cx: &mut Context<'_, P>) {
        if self.follow.replay_blind {
            self.arm_repair(cx);
        }
    }

    /// A rank that lacks something is looked after in the background.
    pub(super) fn repair_if_incomplete(&mut self, cx: &mut Context<'_, P>) {
        match self.follow.base {
            Base::Incomplete(_) => self.arm_repair(cx),
            Base::Known | Base::Establishing => {}
        }
    }

    /// An agent can show its whole state at any time: as long as the rank lacks something, however
    /// that came to be known, a repair is on its way (B5).
    pub(super) fn repair_from_agent(&mut self, cx: &mut Context<'_, P>) {
        let idle = !self.follow.is_recovering() && self.fence.is_none() && !cx.shared.shut;
        if idle && self.follows_agent() {
            self.repair_if_incomplete(cx);
        }
    }

    /// The repair timer fired.
    pub(super) fn repair_timer(&mut self, cx: &mut Context<'_, P>) {
        self.follow.repair = None;
        if self.is_only_following() {
            self.follow.repair_step = self.follow.repair_step.saturating_add(1).min(32);
            self.start_recovery(Purpose::Repair, From::Whole, cx);
        } else {
            self.arm_repair(cx);
        }
    }

    /// Whether nothing else than live events is being dealt with.
    fn is_only_following(&self) -> bool {
        !self.follow.is_recovering()
            && !self.follow.unverified
            && !self.is_lost()
            && self.fence.is_none()
            && self.binding.is_some()
            && match self.step {
                Step::Idle | Step::Admitting { .. } => true,
                Step::Replacing { .. } | Step::Resetting { .. } => false,
            }
    }
}
