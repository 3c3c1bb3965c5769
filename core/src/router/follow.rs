//! What is known of one life of one source: cursor, base, doubt, and what waits.

use super::anchors::Anchors;
use super::input::Payload;
use super::pending::Pending;
use super::purpose::Purpose;
use super::recovery::Recovery;
use super::timers::Timer;
use super::trust::TrustReason;
use crate::id::EventId;
use crate::time::Timestamp;
use alloc::boxed::Box;
use core::num::NonZeroU32;

/// Whether the mirror's history reaches back to a point where the state was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// Not told yet: the first recovery is still out, or nothing has been seen.
    Establishing,
    /// The source's first event, a clear of everything, a snapshot, or a verified replay from the
    /// beginning.
    Known,
    /// Declared incomplete, and why.
    Incomplete(TrustReason),
}

/// The state of one life. A new life, an activation or a fault starts it afresh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Follow<P> {
    /// Last id the target has accepted.
    pub(super) cursor: Option<EventId>,
    pub(super) base: Base,
    /// The connection is back, or something else is odd; the life is being established (B7).
    pub(super) unverified: bool,
    pub(super) pending: Pending<P>,
    /// Highest id known to exist above the cursor, held or not (`max_seen` of the rules).
    pub(super) newest: Option<EventId>,
    pub(super) anchors: Anchors,
    /// Last id that fell back, and how many of them came in a row.
    pub(super) fallen: Option<(EventId, NonZeroU32)>,
    /// Boxed: most ranks have none.
    recovery: Option<Box<Recovery>>,
    /// Answers in a row that brought nothing of a known hole (B18).
    pub(super) barren_rounds: u32,
    /// Nobody could fill a hole, so the whole state has been asked for instead (B18).
    pub(super) escalated: bool,
    /// The replay answered "nothing" about messages that exist: until the transport comes back or a
    /// new life begins, it is asked only by a background repair, which finds out if it has recovered.
    pub(super) replay_blind: bool,
    /// The replay answered "nothing" about messages that had come over a connection that was never
    /// interrupted: another "nothing" does not prove that nothing was published.
    pub(super) replay_mute: bool,
    /// When the rank was last known to be level with its source.
    pub(super) level_at: Option<Timestamp>,
    /// When the source was last heard of.
    pub(super) heard_at: Timestamp,
    pub(super) probe: Option<Timer>,
    pub(super) probe_step: u32,
    pub(super) repair: Option<Timer>,
    pub(super) repair_step: u32,
    pub(super) initial_told: bool,
}

impl<P: Payload> Follow<P> {
    pub(super) fn fresh(now: Timestamp) -> Self {
        Self {
            cursor: None,
            base: Base::Establishing,
            unverified: false,
            pending: Pending::default(),
            newest: None,
            anchors: Anchors::default(),
            fallen: None,
            recovery: None,
            barren_rounds: 0,
            escalated: false,
            replay_blind: false,
            replay_mute: false,
            level_at: None,
            heard_at: now,
            probe: None,
            probe_step: 0,
            repair: None,
            repair_step: 0,
            initial_told: false,
        }
    }

    pub(super) fn recovery(&self) -> Option<Recovery> {
        self.recovery.as_deref().copied()
    }

    pub(super) fn recovery_mut(&mut self) -> Option<&mut Recovery> {
        self.recovery.as_deref_mut()
    }

    /// Begins a recovery, or goes on with the one that runs.
    pub(super) fn keep_recovery(&mut self, recovery: Recovery) {
        match &mut self.recovery {
            Some(place) => **place = recovery,
            None => self.recovery = Some(Box::new(recovery)),
        }
    }

    pub(super) fn take_recovery(&mut self) -> Option<Recovery> {
        self.recovery.take().map(|recovery| *recovery)
    }

    pub(super) const fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.recovery.as_deref().map(|recovery| recovery.purpose)
    }

    /// Whether live runs must wait for a recovery (`recovery_inflight` of the rules) or a proof.
    pub(super) fn is_holding(&self) -> bool {
        self.unverified || self.purpose().is_some_and(Purpose::holds)
    }

    /// Whether events are known to exist that have neither been admitted nor are held.
    pub(super) fn is_behind(&self) -> bool {
        self.pending.is_empty() && self.newest > self.cursor
    }

    pub(super) fn saw(&mut self, id: EventId) {
        self.newest = self.newest.max(Some(id));
    }

    /// Forgets the highest id seen once it has been reached.
    pub(super) fn reached(&mut self, id: EventId) {
        if self.newest <= Some(id) {
            self.newest = None;
        }
    }
}
