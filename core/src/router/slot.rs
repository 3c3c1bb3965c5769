//! One rank's slot: what membership wants of it, what its target is doing, and the one place that
//! decides what happens next ([`Slot::advance`]).
//!
//! Inputs only record facts; `advance` then works the slot off up to its next wait, in this order:
//!
//! | # | condition | what happens |
//! |---|---|---|
//! | 1 | a command is incomplete | wait for its completion (§4 rule 3) |
//! | 2 | fenced | wait for the heal timer (B1) |
//! | 3 | membership wants something else | reset, then apply it; nothing to reset: apply at once |
//! | 4 | a restart is owed | reset, then start over as the restart says |
//! | 5 | no source | idle |
//! | 6 | an answer waits | work it off (`reply.rs`) |
//! | 7 | live runs wait | admit, ask, or hold (`live.rs`) |

mod fence;
mod restart;
mod transport;
mod trust;

use super::anchors::Anchors;
use super::command::{Command, ResetReason};
use super::follow::{Base, Follow};
use super::input::{Completion, Flaw, Payload, RankStatus, Run, Runs, Source};
use super::live::Drained;
use super::notice::DiscardReason;
use super::pending::Pending;
use super::shared::Context;
use super::trust::{Trust, TrustReason};
use crate::id::{Epoch, EventId, Generation, OpId, PublisherId, RankKey};
use alloc::vec::Vec;
use fence::Fence;
pub(super) use restart::Then;

/// What membership says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Desired {
    pub(super) generation: Generation,
    pub(super) status: RankStatus,
}

impl Desired {
    pub(super) const fn publisher(self) -> Option<PublisherId> {
        match self.status {
            RankStatus::Active(source) => Some(source.publisher),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        }
    }
}

/// The rank's one incomplete command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Busy<P> {
    Idle,
    Admitting { op: OpId, last: EventId, base: Option<Base> },
    Replacing { op: OpId, last: EventId, base: Base },
    Resetting { op: OpId, then: Then<P> },
}

/// What is known of the target's content for this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    /// Nothing: an earlier router may have left something (B35).
    Unknown,
    /// Something may be there.
    Dirty,
    /// Empty since a completed reset.
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot<P> {
    pub(super) key: RankKey,
    /// `None`: no longer expected.
    pub(super) desired: Option<Desired>,
    /// What has been carried out; `None` while a change is under way.
    pub(super) applied: Option<Desired>,
    epoch: Epoch,
    /// The source that is followed; `None` while a change of membership is being carried out.
    pub(super) active: Option<Source>,
    pub(super) busy: Busy<P>,
    pub(super) content: Content,
    pub(super) fence: Option<Fence>,
    heal_tries: u32,
    pub(super) restart: Option<(ResetReason, Then<P>)>,
    pub(super) follow: Follow<P>,
    told: (Trust, Option<TrustReason>),
}

impl<P: Payload> Slot<P> {
    pub(super) fn new(key: RankKey, desired: Desired, cx: &Context<'_, P>) -> Self {
        Self {
            key,
            desired: Some(desired),
            applied: None,
            epoch: Epoch(desired.generation.0),
            active: None,
            busy: Busy::Idle,
            content: Content::Unknown,
            fence: None,
            heal_tries: 0,
            restart: None,
            follow: Follow::fresh(cx.now),
            told: (Trust::Missing, Some(TrustReason::NoSource)),
        }
    }

    /// Whether the rank left and nothing is left to do for it.
    pub(super) fn is_gone(&self) -> bool {
        self.desired.is_none()
            && self.content != Content::Dirty
            && matches!(self.busy, Busy::Idle)
            && self.fence.is_none()
    }

    /// Membership wants something else of the rank (or `None`: that it goes).
    pub(super) fn want(&mut self, desired: Option<Desired>, cx: &mut Context<'_, P>) {
        if self.desired == desired {
            return;
        }
        let publisher = desired.and_then(Desired::publisher);
        let same_publisher = publisher == self.desired.and_then(Desired::publisher);
        self.desired = desired;
        if let Some(desired) = desired {
            self.epoch = Epoch(desired.generation.0);
        }
        self.applied = None;
        self.active = None;
        self.restart = None;
        self.quiesce(DiscardReason::Fenced, cx);
        if !same_publisher {
            self.follow.doubt = None;
        }
        self.lift_fence(cx);
    }

    /// Stops everything that runs beside the rank's command.
    fn quiesce(&mut self, reason: DiscardReason, cx: &mut Context<'_, P>) {
        self.cancel_recovery(cx);
        cx.shared.timers.cancel(&mut self.follow.probe);
        cx.shared.timers.cancel(&mut self.follow.repair);
        self.follow.reply = None;
        let dropped = self.follow.pending.clear();
        cx.shared.stats.discard(reason, dropped);
    }

    /// Works the slot off up to its next wait; see the table above.
    pub(super) fn advance(&mut self, cx: &mut Context<'_, P>) {
        loop {
            if !matches!(self.busy, Busy::Idle) || self.fence.is_some() {
                break;
            }
            if self.applied.is_none() {
                let anything_to_reset = match self.content {
                    Content::Unknown => self.wants_source(),
                    Content::Dirty => true,
                    Content::Empty => false,
                };
                if anything_to_reset {
                    self.begin_reset(ResetReason::Lifecycle, Then::Apply, cx);
                    break;
                }
                let Some(desired) = self.desired else { break };
                self.apply(desired, cx);
                continue;
            }
            if let Some((reason, then)) = self.restart.take() {
                self.begin_reset(reason, then, cx);
                break;
            }
            let Some(source) = self.active else { break };
            if let Some(reply) = self.follow.reply.take() {
                self.take_reply(source, reply, cx);
                continue;
            }
            match self.drain(source, cx) {
                Drained::Again => {}
                Drained::Waits => break,
            }
        }
        self.tell_trust(cx);
    }

    fn wants_source(&self) -> bool {
        matches!(self.desired, Some(Desired { status: RankStatus::Active(_), .. }))
    }

    /// Carries out what membership wants; the target is empty, or the rank has no source.
    fn apply(&mut self, desired: Desired, cx: &mut Context<'_, P>) {
        self.applied = Some(desired);
        self.heal_tries = 0;
        self.start_over(cx);
        self.follow.replay_blind = false;
        self.follow.replay_mute = false;
        self.active = match desired.status {
            RankStatus::Active(source) => Some(source),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        };
        if self.active.is_some() && self.follow.doubt.is_none() {
            self.begin_following(cx);
        }
    }

    /// First steps of a life whose beginning has not been seen.
    fn begin_following(&mut self, cx: &mut Context<'_, P>) {
        if self.can_ask() {
            self.start_initial(cx);
        } else {
            self.tell_initial(cx);
            self.repair_if_blind(cx);
        }
        self.arm_probe(cx);
    }

    /// A command of this rank has ended.
    pub(super) fn completed(&mut self, done: Completion, cx: &mut Context<'_, P>) {
        let running = match &self.busy {
            Busy::Idle => return,
            Busy::Admitting { op, .. }
            | Busy::Replacing { op, .. }
            | Busy::Resetting { op, .. } => *op,
        };
        if running != done.op {
            return;
        }
        let ended = core::mem::replace(&mut self.busy, Busy::Idle);
        if !done.ok {
            cx.shared.stats.target_faults += 1;
            self.fence(TrustReason::TargetFault, cx);
            return;
        }
        match ended {
            Busy::Idle => {}
            Busy::Admitting { last, base, .. } => {
                if self.fence.is_none() {
                    self.heal_tries = 0;
                }
                self.follow.cursor = Some(last);
                if let Some(base) = base {
                    self.follow.base = base;
                }
                self.flawed(done.flaw);
            }
            Busy::Replacing { last, base, .. } => {
                self.follow.cursor = Some(last);
                self.follow.base = base;
                self.flawed(done.flaw);
            }
            Busy::Resetting { then, .. } => {
                self.content = Content::Empty;
                // A restart that was owed meanwhile needs no second reset.
                let then = self.restart.take().map_or(then, |(_, newer)| newer);
                self.after_reset(then, cx);
            }
        }
        self.heal_if_due(cx);
    }

    /// What the target noticed makes a known history incomplete.
    fn flawed(&mut self, flaw: Option<Flaw>) {
        let reason = match flaw {
            None => return,
            Some(Flaw::Capacity) => TrustReason::Capacity,
            Some(Flaw::Orphan) => TrustReason::Orphan,
        };
        if self.follow.base == Base::Known {
            self.follow.base = Base::Incomplete(reason);
        }
    }

    /// Hands runs to the target; they are contiguous with what it has, or `base` says otherwise.
    pub(super) fn admit(&mut self, runs: Runs<P>, base: Option<Base>, cx: &mut Context<'_, P>) {
        let Some(last) = runs.last().map(Run::last) else { return };
        let (ids, base) = self.remember(&runs, base);
        self.follow.saw(last);
        self.follow.barren_rounds = 0;
        self.content = Content::Dirty;
        cx.shared.stats.admitted += ids;
        let op = cx.shared.fresh_op();
        cx.fx.command(Command::Admit { op, rank: self.key, epoch: self.epoch, runs });
        self.busy = Busy::Admitting { op, last, base };
    }

    /// Swaps the target's state for these runs (B11).
    pub(super) fn replace(&mut self, runs: Vec<Run<P>>, base: Base, cx: &mut Context<'_, P>) {
        let Some(last) = runs.last().map(Run::last) else { return };
        // The state that they stood for goes as a whole.
        self.follow.anchors = Anchors::default();
        let (ids, turned) = self.remember(&runs, Some(base));
        let base = turned.unwrap_or(base);
        cx.shared.stats.admitted += ids;
        self.follow.saw(last);
        self.content = Content::Dirty;
        let op = cx.shared.fresh_op();
        cx.fx.command(Command::Replace { op, rank: self.key, epoch: self.epoch, runs, last });
        self.busy = Busy::Replacing { op, last, base };
    }

    /// Keeps the digests of runs that leave; returns how many ids they cover, and what they make of
    /// the base.
    fn remember(&mut self, runs: &[Run<P>], mut base: Option<Base>) -> (u64, Option<Base>) {
        let mut ids = 0;
        let first_id = self.active.map(|source| source.first_id);
        for run in runs {
            ids += u64::from(run.len.get());
            if run.clear {
                base = Some(Base::Known);
                // Whoever published what lies below it, the state no longer depends on it.
                self.follow.anchors.forget_recent();
            }
            let known = base.unwrap_or(self.follow.base) == Base::Known;
            if run.damaged && known {
                base = Some(Base::Incomplete(TrustReason::Damaged));
            }
            self.follow.anchors.remember(run.first, run.digest, Some(run.first) == first_id);
        }
        (ids, base)
    }

    pub(super) fn recoverable(&self) -> bool {
        self.active.is_some_and(|source| source.target.is_some())
    }

    /// Last id handed to the target, accepted or not; with a restart to come, the last id that it
    /// will hand over.
    pub(super) fn head(&self) -> Option<EventId> {
        match self.coming() {
            Some(Then::Apply | Then::Fresh) => return None,
            Some(Then::NewLife(run)) => return Some(run.last()),
            Some(Then::Rebase { runs, .. }) => return runs.last().map(Run::last),
            None => {}
        }
        match &self.busy {
            Busy::Admitting { last, .. } | Busy::Replacing { last, .. } => Some(*last),
            Busy::Idle | Busy::Resetting { .. } => self.follow.cursor,
        }
    }

    /// The longest contiguous beginning of what waits.
    pub(super) fn take_contiguous(&mut self) -> Vec<Run<P>> {
        contiguous(&mut self.follow.pending)
    }
}

fn contiguous<P: Payload>(pending: &mut Pending<P>) -> Vec<Run<P>> {
    let mut runs = Vec::new();
    let mut last = None;
    while let Some(front) = pending.front() {
        let fits = last.is_none_or(|last: EventId| last.0.checked_add(1) == Some(front.first.0));
        if !fits {
            break;
        }
        last = Some(front.last());
        runs.extend(pending.pop_front());
    }
    runs
}
