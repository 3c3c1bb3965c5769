//! What a query may believe of a rank.

use super::super::follow::{Base, Doubt};
use super::super::input::{Payload, RankStatus};
use super::super::notice::Notice;
use super::super::recovery::Purpose;
use super::super::shared::Context;
use super::super::trust::{Trust, TrustReason};
use super::{Busy, Slot};

impl<P: Payload> Slot<P> {
    /// What a query may believe of the rank, and why it is not exact.
    pub(in crate::router) fn trust(&self) -> (Trust, Option<TrustReason>) {
        if let Some(fence) = self.fence {
            return (Trust::Fenced, Some(fence.reason));
        }
        if matches!(self.busy, Busy::Resetting { .. }) || self.restart.is_some() {
            return (Trust::Fenced, Some(TrustReason::Resetting));
        }
        match self.applied.map(|applied| applied.status) {
            None | Some(RankStatus::Missing) => (Trust::Missing, Some(TrustReason::NoSource)),
            Some(RankStatus::Ambiguous) => (Trust::Ambiguous, Some(TrustReason::Ambiguous)),
            Some(RankStatus::Active(_)) => self.stream_trust(),
        }
    }

    fn stream_trust(&self) -> (Trust, Option<TrustReason>) {
        match self.follow.doubt {
            Some(Doubt::Lost) => return (Trust::Suspect, Some(TrustReason::TransportLost)),
            Some(Doubt::Unverified) => return (Trust::Suspect, Some(TrustReason::Unverified)),
            None => {}
        }
        if self.follow.purpose() == Some(Purpose::Verify) {
            return (Trust::Suspect, Some(TrustReason::Unverified));
        }
        match self.follow.base {
            Base::Establishing if self.recoverable() => {
                (Trust::Partial, Some(TrustReason::InitialRecovery))
            }
            Base::Establishing => (Trust::Partial, Some(TrustReason::HistoryUnknown)),
            Base::Incomplete(reason) => (Trust::Partial, Some(reason)),
            Base::Known if self.follow.purpose() == Some(Purpose::Gap) || self.is_behind() => {
                (Trust::CatchingUp, Some(TrustReason::Gap))
            }
            Base::Known => (Trust::Exact, None),
        }
    }

    /// Whether messages are known to exist that are neither handed over nor held. What has been
    /// handed over is on its way: the cursor says how far it got.
    fn is_behind(&self) -> bool {
        self.follow.pending.is_empty() && self.follow.newest > self.head()
    }

    pub(in crate::router) fn tell_trust(&mut self, cx: &mut Context<'_, P>) {
        let now = self.trust();
        if now != self.told {
            let from = self.told.0;
            self.told = now;
            cx.fx.notice(Notice::Trust { rank: self.key, from, to: now.0, reason: now.1 });
        }
    }
}
