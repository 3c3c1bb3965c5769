//! What is known of one life of one source: cursor, base, doubt, and what waits.

use super::anchors::Anchors;
use super::input::{Payload, Run};
use super::pending::Pending;
use super::recovery::{Purpose, Recovery};
use super::timers::Timer;
use super::trust::TrustReason;
use crate::id::EventId;
use crate::time::Timestamp;
use alloc::vec::Vec;

/// Whether the mirror's history reaches back to a point where the state was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// Not told yet: the first recovery is still out, or nothing has been seen.
    Establishing,
    /// The source's first message, an all-clear, or a verified replay from the beginning.
    Known,
    /// Declared incomplete, and why.
    Incomplete(TrustReason),
}

/// A discontinuity that is not yet resolved (B7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Doubt {
    /// The connection is down.
    Lost,
    /// It is back; the life is being established.
    Unverified,
}

/// An answer that waits for the rank's incomplete command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reply<P> {
    pub(super) runs: Vec<Run<P>>,
    pub(super) complete: bool,
}

/// The state of one life. A new life, an activation or a fault starts it afresh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Follow<P> {
    /// Last id the target has accepted.
    pub(super) cursor: Option<EventId>,
    pub(super) base: Base,
    pub(super) doubt: Option<Doubt>,
    pub(super) pending: Pending<P>,
    /// Highest id known to exist in this life, held or not.
    pub(super) newest: Option<EventId>,
    pub(super) anchors: Anchors,
    /// Last id that fell back, and how many of them came in a row.
    pub(super) fallen: Option<(EventId, u32)>,
    pub(super) recovery: Option<Recovery>,
    pub(super) reply: Option<Reply<P>>,
    /// Completed answers in a row that brought nothing of a known hole (B18).
    pub(super) barren_rounds: u32,
    /// The replay answered "nothing" about messages that exist: until the transport comes back or a
    /// new life begins, it is asked only by a background repair, which finds out if it has recovered.
    pub(super) replay_blind: bool,
    /// The replay answered "nothing" about messages that had come over a connection that was never
    /// interrupted: another "nothing" does not prove that nothing was published.
    pub(super) replay_mute: bool,
    /// When the rank was last known to be level with its source.
    pub(super) level_at: Option<Timestamp>,
    pub(super) last_live: Timestamp,
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
            doubt: None,
            pending: Pending::default(),
            newest: None,
            anchors: Anchors::default(),
            fallen: None,
            recovery: None,
            reply: None,
            barren_rounds: 0,
            replay_blind: false,
            replay_mute: false,
            level_at: None,
            last_live: now,
            probe: None,
            probe_step: 0,
            repair: None,
            repair_step: 0,
            initial_told: false,
        }
    }

    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.recovery.as_ref().map(|recovery| recovery.purpose)
    }

    /// Whether live runs must wait for something other than the rank's own command.
    pub(super) fn holding(&self) -> bool {
        self.doubt.is_some()
            || match self.purpose() {
                Some(Purpose::Initial | Purpose::Gap | Purpose::Verify | Purpose::Repair) => true,
                Some(Purpose::Probe) | None => false,
            }
    }

    /// Whether messages are known to exist that have neither been admitted nor are held.
    pub(super) fn behind(&self) -> bool {
        self.pending.is_empty() && self.newest > self.cursor
    }

    pub(super) fn saw(&mut self, id: EventId) {
        self.newest = self.newest.max(Some(id));
    }
}
