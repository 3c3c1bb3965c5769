//! What has been read of one source.

use crate::event::{EventBatch, EventKind};
use crate::index::Applied;
use core::ops::AddAssign;

/// Counters of one source since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceCounts {
    /// Live messages handed in.
    pub live_messages: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Messages that came as answers to queries.
    pub replayed_messages: u64,
    /// Their bytes.
    pub replayed_bytes: u64,
    /// Messages that could not be read at all; they count as an id without content.
    pub unreadable: u64,
    /// Messages whose content could not be read whole, unreadable ones included.
    pub damaged: u64,
    /// Messages that name another rank than the one registered.
    pub foreign: u64,
    /// Messages applied to the index.
    pub applied_messages: u64,
    /// Store events applied.
    pub stored_events: u64,
    /// Remove events applied.
    pub removed_events: u64,
    /// Clear events applied.
    pub cleared_events: u64,
    /// Events counted instead of applied; [`Applied::skipped`] says why.
    pub skipped_events: u64,
    /// What became of the blocks.
    pub applied: Applied,
}

impl SourceCounts {
    /// Counts a message that has been applied.
    pub(super) fn apply(&mut self, batch: &EventBatch, applied: Applied) {
        self.applied_messages += 1;
        for record in &batch.records {
            let counter = match (record.skip, record.kind) {
                (Some(_), _) | (None, EventKind::Unreadable) => &mut self.skipped_events,
                (None, EventKind::Stored) => &mut self.stored_events,
                (None, EventKind::Removed) => &mut self.removed_events,
                (None, EventKind::Cleared) => &mut self.cleared_events,
            };
            *counter += 1;
        }
        self.applied += applied;
    }
}

impl AddAssign for SourceCounts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            live_messages,
            live_bytes,
            replayed_messages,
            replayed_bytes,
            unreadable,
            damaged,
            foreign,
            applied_messages,
            stored_events,
            removed_events,
            cleared_events,
            skipped_events,
            applied,
        } = other;
        self.live_messages += live_messages;
        self.live_bytes += live_bytes;
        self.replayed_messages += replayed_messages;
        self.replayed_bytes += replayed_bytes;
        self.unreadable += unreadable;
        self.damaged += damaged;
        self.foreign += foreign;
        self.applied_messages += applied_messages;
        self.stored_events += stored_events;
        self.removed_events += removed_events;
        self.cleared_events += cleared_events;
        self.skipped_events += skipped_events;
        self.applied += applied;
    }
}
