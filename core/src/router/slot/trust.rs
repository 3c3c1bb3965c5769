//! What a query may believe of a rank.

use super::super::follow::Base;
use super::super::input::Payload;
use super::super::notice::Notice;
use super::super::purpose::Purpose;
use super::super::shared::Context;
use super::super::trust::{Trust, TrustReason};
use super::{Slot, Step, Wanted};
use crate::membership::RankStatus;

impl<P: Payload> Slot<P> {
    /// What a query may believe of the rank, and why it is not exact. `wanted`: what the newest
    /// snapshot says of it; `suspect`: discovery is in doubt (B8).
    pub(in crate::router) fn trust(
        &self,
        wanted: Option<Wanted>,
        suspect: bool,
    ) -> (Trust, Option<TrustReason>) {
        if let Some(fence) = self.fence {
            return (Trust::Fenced, Some(fence.reason));
        }
        match &self.step {
            Step::Resetting { .. } => return (Trust::Fenced, Some(TrustReason::Resetting)),
            Step::Idle | Step::Admitting { .. } | Step::Replacing { .. } => {}
        }
        match wanted.map(|wanted| wanted.status) {
            Some(RankStatus::Ambiguous) => return (Trust::Ambiguous, Some(TrustReason::Ambiguous)),
            None | Some(RankStatus::Missing) => {
                return (Trust::Missing, Some(TrustReason::NoSource));
            }
            Some(RankStatus::Active(_)) => {}
        }
        if self.outdated {
            return (Trust::Fenced, Some(TrustReason::Resetting));
        }
        if self.is_distrusted() {
            return (Trust::Fenced, Some(TrustReason::Rejected));
        }
        let selected = wanted.and_then(Wanted::selected).map(|source| source.publisher);
        let followed = self.binding.map(|binding| binding.source.publisher);
        if followed.is_none() || followed != selected {
            return (Trust::Missing, Some(TrustReason::NoSource));
        }
        let stream = self.stream_trust();
        if suspect && stream.0 > Trust::Suspect {
            return (Trust::Suspect, Some(TrustReason::Discovery));
        }
        stream
    }

    fn stream_trust(&self) -> (Trust, Option<TrustReason>) {
        if self.is_lost() {
            return (Trust::Suspect, Some(TrustReason::TransportLost));
        }
        if self.follow.unverified || self.follow.purpose() == Some(Purpose::Verify) {
            return (Trust::Suspect, Some(TrustReason::Unverified));
        }
        match self.follow.base {
            Base::Establishing if self.recoverable() => {
                (Trust::Partial, Some(TrustReason::InitialRecovery))
            }
            Base::Establishing => (Trust::Partial, Some(TrustReason::HistoryUnknown)),
            Base::Incomplete(reason) => (Trust::Partial, Some(reason)),
            Base::Known if self.is_catching_up() => (Trust::CatchingUp, Some(TrustReason::Gap)),
            Base::Known => (Trust::Exact, None),
        }
    }

    /// Whether events are known to exist that are not on their way to the target.
    fn is_catching_up(&self) -> bool {
        match self.follow.purpose() {
            Some(
                Purpose::Initial
                | Purpose::Gap
                | Purpose::Fault
                | Purpose::Verify
                | Purpose::Probation,
            ) => true,
            Some(Purpose::Probe | Purpose::Repair) | None => {
                self.follow.newest > self.follow.cursor && !self.is_admitting_newest()
            }
        }
    }

    fn is_admitting_newest(&self) -> bool {
        match &self.step {
            Step::Admitting { last, .. } => self.follow.newest <= Some(*last),
            Step::Idle | Step::Replacing { .. } | Step::Resetting { .. } => false,
        }
    }

    pub(in crate::router) fn tell_trust(&mut self, cx: &mut Context<'_, P>) {
        let now = self.trust(*cx.wanted, cx.shared.suspect);
        if now != self.told {
            let from = self.told.0;
            self.told = now;
            cx.fx.notice(Notice::Trust { rank: self.key, from, to: now.0, reason: now.1 });
        }
    }
}
