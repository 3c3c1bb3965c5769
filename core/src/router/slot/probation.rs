//! Sources that are not believed any more, and their way back (B15, B35).
//!
//! In the reference a rejected source stays out until its generation changes. On probation it cools
//! down, twice as long after each further rejection, and is then asked for its whole state; only if
//! that holds together is it followed again, behind it. A live-only source has nothing to show: it
//! starts over, empty and `partial`.

use super::super::command::Scope;
use super::super::input::Payload;
use super::super::notice::{RecoveryEnd, ResetCause};
use super::super::shared::Context;
use super::super::timers::{Timer, TimerKind};
use super::super::trust::TrustReason;
use super::{Item, Slot, Then};
use crate::id::Generation;
use alloc::boxed::Box;

/// How a source stands that was rejected in this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Out until its generation changes (reference profile).
    Out,
    /// Out until the timer fires; without one it has cooled down, and waits for its turn.
    CoolingDown(Option<Timer>),
    /// It has been asked to show its state.
    OnTrial,
    /// It is followed again.
    Acquitted,
}

/// A generation whose source has been rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::router) struct Rejected {
    generation: Generation,
    strikes: u32,
    standing: Standing,
}

impl<P: Payload> Slot<P> {
    /// Whether the source of this generation is to be left alone (X of §5.5).
    pub(super) fn is_rejected(&self, generation: Generation) -> bool {
        self.rejected.as_deref().is_some_and(|rejected| {
            rejected.generation == generation
                && match rejected.standing {
                    Standing::Out | Standing::CoolingDown(_) => true,
                    Standing::OnTrial | Standing::Acquitted => false,
                }
        })
    }

    /// Whether what the rank's source says is not believed.
    pub(super) fn is_distrusted(&self) -> bool {
        self.rejected.as_deref().is_some_and(|rejected| match rejected.standing {
            Standing::Out | Standing::CoolingDown(_) | Standing::OnTrial => true,
            Standing::Acquitted => false,
        })
    }

    /// Whether the source has been asked to show its state.
    pub(in crate::router) fn is_on_trial(&self) -> bool {
        self.rejected.as_deref().is_some_and(|rejected| rejected.standing == Standing::OnTrial)
    }

    /// The source stays out: until its generation changes, or until it has cooled down.
    pub(super) fn cool_down(&mut self, generation: Generation, cx: &mut Context<'_, P>) {
        let strikes = match &self.rejected {
            Some(rejected) if rejected.generation == generation => rejected.strikes,
            Some(_) | None => 0,
        };
        self.forgive(cx);
        let policy = &cx.shared.policy;
        let standing = if policy.probation && !cx.shared.shut {
            let wait = policy.cool_down_base.doubled(strikes).min(policy.cool_down_max);
            let at = cx.now.after(cx.shared.jitter.around(wait));
            let timer = cx.shared.timers.set(at, cx.slot, TimerKind::CoolDown);
            Standing::CoolingDown(Some(timer))
        } else {
            Standing::Out
        };
        let strikes = strikes.saturating_add(1).min(32);
        self.rejected = Some(Box::new(Rejected { generation, strikes, standing }));
    }

    /// Forgets that the source was ever rejected.
    pub(super) fn forgive(&mut self, cx: &mut Context<'_, P>) {
        match self.rejected.take().map(|rejected| rejected.standing) {
            Some(Standing::CoolingDown(mut timer)) => cx.shared.timers.cancel(&mut timer),
            Some(Standing::Out | Standing::OnTrial | Standing::Acquitted) | None => {}
        }
    }

    /// The source has cooled down.
    pub(super) fn begin_probation(&mut self, cx: &mut Context<'_, P>) {
        let (Some(rejected), Some(wanted)) = (self.rejected.as_deref().copied(), *cx.wanted) else {
            return;
        };
        // A later rejection has a cool-down of its own.
        let due = matches!(rejected.standing, Standing::CoolingDown(None));
        if !due || !self.is_rejected(wanted.generation) {
            return;
        }
        if self.fence.is_some() {
            // The clean-up reset is still refused: it is retried by itself (B1), and so is this. It is
            // not the source that was rejected again.
            let strikes = rejected.strikes.saturating_sub(1);
            self.rejected = Some(Box::new(Rejected { strikes, ..rejected }));
            self.cool_down(rejected.generation, cx);
            return;
        }
        let standing = match wanted.selected() {
            Some(source) if source.target.is_none() => Standing::Acquitted,
            Some(_) | None => Standing::OnTrial,
        };
        self.rejected = Some(Box::new(Rejected { standing, ..rejected }));
        // Whatever was learned of its replay, it must show its state now.
        self.follow.replay_blind = false;
        if let Some(source) = wanted.selected() {
            self.activate(source, rejected.generation, cx);
        }
    }

    /// What the source has shown holds together: it is followed again. A further rejection in the same
    /// generation counts as a repeated one.
    pub(in crate::router) fn acquit(&mut self) {
        if let Some(rejected) = &mut self.rejected {
            rejected.standing = Standing::Acquitted;
        }
    }

    /// A source's answers contradict themselves or are another rank's: everything that came from it
    /// goes.
    pub(in crate::router) fn convict(&mut self, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::Corrupt, cx);
        let then = Then::Distrust;
        self.begin_reset(ResetCause::Corrupt, self.epoch(), Scope::All, then, cx);
    }

    /// The corrupt source's leftovers are gone, or could not be removed.
    pub(super) fn distrust(&mut self, cx: &mut Context<'_, P>) {
        let policy = &cx.shared.policy;
        if policy.probation && policy.no_dark_state {
            let generation = Generation(self.epoch().0);
            self.deactivate(cx);
            self.start_fresh(cx);
            self.cool_down(generation, cx);
        } else {
            self.fence(TrustReason::ForeignReply, cx);
        }
    }

    /// The cool-down timer fired.
    pub(in crate::router) fn cool_down_timer(&mut self, cx: &mut Context<'_, P>) {
        if let Some(Rejected { standing: Standing::CoolingDown(timer), .. }) =
            self.rejected.as_deref_mut()
        {
            *timer = None;
        }
        self.accept(Item::Probation, cx);
    }

    /// A source on probation had nothing good to show.
    pub(in crate::router) fn fail_probation(&mut self, cx: &mut Context<'_, P>) {
        let generation = Generation(self.epoch().0);
        self.finish_recovery(RecoveryEnd::Failed, cx);
        self.deactivate(cx);
        self.start_fresh(cx);
        self.cool_down(generation, cx);
    }
}
