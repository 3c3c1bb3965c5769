//! What an interrupted, and a mended, way to the source does to a rank (B6, B7).

use super::super::command::ResetReason;
use super::super::follow::{Base, Doubt};
use super::super::input::{Payload, TransportChange};
use super::super::notice::DiscardReason;
use super::super::recovery::Purpose;
use super::super::shared::Context;
use super::{Content, Slot, Then};
use crate::time::Micros;

impl<P: Payload> Slot<P> {
    /// The way to the source changed.
    ///
    /// | change | can be asked | effect |
    /// |---|---|---|
    /// | lost | yes | in doubt; what waits goes, nothing is admitted |
    /// | lost | no | reset: nobody can say what was missed (B6) |
    /// | back | yes, followed so far | verify from the cursor (B7) |
    /// | back | yes, nothing followed | ask from the beginning |
    /// | back | no | the next message decides; reset first if the loss was not told |
    /// | back, a restart to come | – | its own history is asked for afterwards |
    pub(in crate::router) fn transport(
        &mut self,
        change: TransportChange,
        cx: &mut Context<'_, P>,
    ) {
        match change {
            TransportChange::Lost => {
                self.follow.doubt = Some(Doubt::Lost);
                // What waits may turn out to be an ended life's; if not, verifying fetches it anew.
                self.cancel_recovery(cx);
                cx.shared.timers.cancel(&mut self.follow.probe);
                let dropped = self.follow.pending.clear();
                cx.shared.stats.discard(DiscardReason::OldLife, dropped);
                self.follow.newest = None;
                self.restart_afresh(cx);
                if self.coming().is_none() && !self.recoverable() && self.content == Content::Dirty
                {
                    self.owe_restart(ResetReason::Hole, Then::Fresh, cx);
                }
            }
            TransportChange::Back => self.transport_back(cx),
        }
    }

    fn transport_back(&mut self, cx: &mut Context<'_, P>) {
        self.follow.replay_blind = false;
        self.follow.replay_mute = false;
        self.follow.last_live = cx.now;
        let told_lost = self.follow.doubt == Some(Doubt::Lost);
        self.follow.doubt = None;
        // A connection that is down brings nothing: what waits is an earlier connection's.
        let dropped = self.follow.pending.clear();
        cx.shared.stats.discard(DiscardReason::OldLife, dropped);
        self.follow.newest = None;
        if self.fence.is_some() || self.active.is_none() {
            return;
        }
        if self.coming().is_some() {
            self.restart_afresh(cx);
        } else if !self.recoverable() {
            // Nothing is inherited from before; `lost` has seen to it, if it was told.
            if !told_lost && self.content == Content::Dirty {
                self.owe_restart(ResetReason::Hole, Then::Fresh, cx);
            }
        } else if self.head().is_none() {
            self.cancel_recovery(cx);
            self.follow.base = Base::Establishing;
            self.begin_following(cx);
        } else {
            self.follow.doubt = Some(Doubt::Unverified);
            self.cancel_recovery(cx);
            self.start_recovery(Purpose::Verify, Micros(0), cx);
        }
    }
}
