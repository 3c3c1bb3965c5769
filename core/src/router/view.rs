//! What the machine knows of one rank, for status, metrics and answers (B16).

use super::input::Payload;
use super::purpose::Purpose;
use super::slot::{Slot, Wanted};
use super::trust::{Trust, TrustReason};
use crate::id::{EventId, PublisherId, RankKey};
use crate::time::Timestamp;

/// What the machine knows of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankView {
    /// The rank.
    pub key: RankKey,
    /// What a query may believe of it.
    pub trust: Trust,
    /// Why it is not exact.
    pub reason: Option<TrustReason>,
    /// Last id the target has accepted.
    pub cursor: Option<EventId>,
    /// When it was last known to be level with its source.
    pub level_at: Option<Timestamp>,
    /// The source that is followed.
    pub publisher: Option<PublisherId>,
    /// The recovery in progress.
    pub recovering: Option<Purpose>,
    /// Events that wait.
    pub pending_events: u64,
    /// Bytes that wait.
    pub pending_bytes: usize,
    /// How far the highest id that is known to exist lies above the cursor.
    pub lag: u64,
}

impl RankView {
    pub(super) fn of<P: Payload>(slot: &Slot<P>, wanted: Option<Wanted>, suspect: bool) -> Self {
        let (trust, reason) = slot.trust(wanted, suspect);
        let follow = &slot.follow;
        let reached = follow.cursor.map_or(0, |cursor| cursor.0);
        let (pending_events, pending_bytes) = slot.waiting();
        Self {
            key: slot.key,
            trust,
            reason,
            cursor: follow.cursor,
            level_at: follow.level_at,
            publisher: slot.binding.map(|binding| binding.source.publisher),
            recovering: follow.purpose(),
            pending_events,
            pending_bytes,
            lag: follow.newest.map_or(0, |newest| newest.0.saturating_sub(reached)),
        }
    }
}
