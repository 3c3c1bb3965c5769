//! What the way to a source tells: interruptions (B6, B7), lost messages (B12), signs of life (B3)
//! and other incarnations (B17).
//!
//! An interruption, in the reference: unbound and emptied; the next snapshot binds again. With B7:
//!
//! | change | can be asked | effect |
//! |---|---|---|
//! | lost | yes | in doubt; what waits goes, nothing is admitted |
//! | lost | no | reset: nobody can say what was missed (B6) |
//! | back | yes, followed so far | verify from the cursor |
//! | back | yes, nothing followed | ask from the beginning |
//! | back | no | the next event decides; reset first if the loss was not told |

use super::super::command::{Reply, Scope};
use super::super::follow::Base;
use super::super::input::{LiveBatch, Payload, Runs, Watermark};
use super::super::notice::{DiscardReason, Notice, ResetCause};
use super::super::purpose::Purpose;
use super::super::recovery::From;
use super::super::shared::Context;
use super::super::trust::TrustReason;
use super::{Content, Instance, Item, Slot, Then, Wanted};
use crate::id::{BootId, EventId, PublisherId};

impl<P: Payload> Slot<P> {
    /// A batch of the followed source has arrived.
    pub(in crate::router) fn live(&mut self, batch: LiveBatch<P>, cx: &mut Context<'_, P>) {
        let Some(binding) = self.binding else { return };
        if let Some(seq) = batch.seq {
            self.track_seq(seq, binding.instance, cx);
        }
        if !self.is_at_rest() {
            if !batch.runs.is_empty() {
                self.accept(Item::Live { instance: binding.instance, runs: batch.runs }, cx);
            }
        } else if self.is_simply_next(binding.instance, &batch.runs) {
            // Nothing but the cursor will have changed, and that only once it is accepted.
            self.follow.level_at = Some(cx.now);
            self.heard(cx);
            self.send_admit(batch.runs, None, None, cx);
        } else {
            self.take_live(binding.instance, batch.runs, cx);
            self.pump(cx);
        }
    }

    /// The transport's own numbers: one that is skipped is a lost message, whatever it held (B12).
    fn track_seq(&mut self, seq: u64, instance: Instance, cx: &mut Context<'_, P>) {
        let expected = self.next_seq.replace(seq.saturating_add(1));
        let Some(expected) = expected.filter(|expected| seq > *expected) else { return };
        cx.shared.stats.transport_gaps += 1;
        cx.fx.notice(Notice::TransportGap { rank: self.key, expected, got: seq });
        if cx.shared.policy.check_transport {
            self.accept(Item::TransportGap { instance }, cx);
        }
    }

    /// A message was lost: what it held is established before anything else counts.
    pub(super) fn transport_gap(&mut self, instance: Instance, cx: &mut Context<'_, P>) {
        if !self.is_current(instance) || self.fence.is_some() || self.is_lost() {
            return;
        }
        if !self.can_ask() {
            if self.follow.base == Base::Known {
                self.follow.base = Base::Incomplete(TrustReason::Hole);
            }
        } else if self.follow.cursor.is_some() {
            self.start_recovery(Purpose::Verify, From::Cursor, cx);
        }
    }

    /// A sign of life of the followed source has arrived.
    pub(in crate::router) fn signed(&mut self, sign: Watermark, cx: &mut Context<'_, P>) {
        let Some(binding) = self.binding else { return };
        let item = Item::Watermark { instance: binding.instance, last: sign.last, boot: sign.boot };
        self.accept(item, cx);
    }

    /// Works a sign of life off (B3): more than is known is a gap, less is another life.
    pub(super) fn watermark(
        &mut self,
        instance: Instance,
        last: Option<EventId>,
        boot: Option<BootId>,
        cx: &mut Context<'_, P>,
    ) {
        if !self.is_current(instance) || self.fence.is_some() || self.is_lost() {
            return;
        }
        self.heard(cx);
        if let Some(boot) = boot {
            if self.is_other_boot(boot, cx) {
                self.other_boot(Some(boot), cx);
                return;
            }
            self.boot = Some(boot);
        }
        if !cx.shared.policy.check_tail {
            return;
        }
        if self.follow.is_holding() {
            if let Some(last) = last.filter(|last| Some(*last) > self.follow.cursor) {
                self.follow.saw(last);
            }
            return;
        }
        match (last, self.follow.cursor) {
            (last, cursor) if last == cursor => self.follow.level_at = Some(cx.now),
            (Some(last), cursor) if Some(last) > cursor => self.follow.saw(last),
            (Some(_) | None, _) if cx.shared.policy.verify_life => self.new_life(true, cx),
            (Some(_) | None, _) => {}
        }
    }

    /// Whether a boot identity contradicts the one that is followed (B17).
    pub(in crate::router) fn is_other_boot(&self, boot: BootId, cx: &Context<'_, P>) -> bool {
        cx.shared.policy.check_boot && self.boot.is_some_and(|known| known != boot)
    }

    /// Another incarnation speaks for the source: nothing of the one before is inherited.
    pub(in crate::router) fn other_boot(&mut self, boot: Option<BootId>, cx: &mut Context<'_, P>) {
        self.boot = boot;
        self.new_life(true, cx);
    }

    /// An interruption has been told. What is known of the source is in doubt at once; what it does to
    /// the rank has its turn.
    pub(in crate::router) fn tell_interrupted(
        &mut self,
        publisher: PublisherId,
        cx: &mut Context<'_, P>,
    ) {
        if cx.shared.policy.verify_life && self.is_source(publisher, cx) {
            self.lost = Some(publisher);
        }
        self.accept(Item::Interrupted { publisher, connection: self.connection }, cx);
    }

    /// Whether a publisher is followed here, or would be.
    fn is_source(&self, publisher: PublisherId, cx: &Context<'_, P>) -> bool {
        let followed = self.binding.map(|binding| binding.source.publisher);
        let selected = cx.wanted.and_then(Wanted::selected).map(|source| source.publisher);
        followed == Some(publisher) || selected == Some(publisher)
    }

    /// Delivery was interrupted.
    pub(super) fn interrupted(
        &mut self,
        publisher: PublisherId,
        connection: u32,
        cx: &mut Context<'_, P>,
    ) {
        let verify = cx.shared.policy.verify_life;
        let followed = self.binding.filter(|binding| binding.source.publisher == publisher);
        if verify && connection == self.connection && self.is_source(publisher, cx) {
            self.lost = Some(publisher);
        }
        let Some(binding) = followed else {
            cx.fx.reply(Reply::TransportLost { publisher, fenced: false });
            return;
        };
        let then = Then::AnswerInterruption { publisher };
        if !verify {
            self.deactivate(cx);
            self.begin_reset(ResetCause::Transport, binding.epoch, Scope::All, then, cx);
            return;
        }
        // What waits may turn out to be an ended life's; if not, verifying fetches it anew.
        self.quiesce(DiscardReason::OldLife, cx);
        self.follow.unverified = false;
        let unknowable = !self.recoverable() && self.content == Content::Dirty;
        if unknowable && cx.shared.policy.reset_on_change && self.fence.is_none() {
            self.begin_reset(ResetCause::Transport, binding.epoch, Scope::All, then, cx);
        } else {
            cx.fx.reply(Reply::TransportLost { publisher, fenced: true });
        }
    }

    /// Delivery goes on; whether from the same life is not known.
    pub(super) fn back(&mut self, publisher: PublisherId, cx: &mut Context<'_, P>) {
        let told_lost = self.lost == Some(publisher);
        if told_lost {
            self.lost = None;
        }
        let followed = self.binding.filter(|binding| binding.source.publisher == publisher);
        let Some(binding) = followed else { return };
        self.next_seq = None;
        if self.fence.is_some() || !cx.shared.policy.verify_life {
            return;
        }
        self.quiesce(DiscardReason::OldLife, cx);
        self.follow.replay_blind = false;
        self.follow.replay_mute = false;
        self.follow.heard_at = cx.now;
        if !self.recoverable() {
            // Nothing is inherited from before; the loss has seen to it, if it was told.
            if !told_lost && self.content == Content::Dirty && cx.shared.policy.reset_on_change {
                let then = Then::Begin { ask: false };
                self.begin_reset(ResetCause::Transport, binding.epoch, Scope::All, then, cx);
            }
        } else if self.follow.cursor.is_none() {
            self.follow.base = Base::Establishing;
            self.begin_following(cx);
        } else {
            self.follow.unverified = true;
            self.start_recovery(Purpose::Verify, From::Cursor, cx);
            self.repair_if_incomplete(cx);
        }
    }

    /// Whether any event may be handed over or held at the moment.
    pub(in crate::router) fn may_take(&self, instance: Instance) -> bool {
        self.is_current(instance) && self.fence.is_none() && !self.outdated && !self.is_lost()
    }

    /// Counts a batch that nobody may take.
    pub(in crate::router) fn discard_batch(
        &self,
        instance: Instance,
        runs: &Runs<P>,
        cx: &mut Context<'_, P>,
    ) {
        let reason = if self.is_current(instance) && self.fence.is_some() {
            DiscardReason::Fenced
        } else {
            DiscardReason::OldLife
        };
        cx.shared.stats.discard(reason, runs.len() as u64);
    }
}
