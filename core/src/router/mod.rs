//! The follower: one machine that keeps every rank's target in step with its source.
//!
//! [`Router`] takes membership snapshots, live batches, answers to its queries, completions of its
//! commands and changes of transport, and writes commands into a caller-owned [`Effects`]. It owns
//! no clock: every handler takes `now`, and [`Router::next_deadline`] says when
//! [`Router::handle_timeout`] has something to do.
//!
//! It follows raw engines: message sequences, a replay ring as recovery target, no
//! identity on the wire. What a life is, and how it is proved, is told in `live.rs` and `reply.rs`.
//!
//! # What a raw stream cannot show
//!
//! A restart that no transport notices (behind a proxy, say), whose first delivered message carries
//! exactly the id after the cursor, looks like the stream going on. Nothing in the message tells it
//! from that, unless the target reports an orphan (B37), so the rank stays exact until more is seen.
//! Two things end it: any message, live or replayed, that differs from the one known under its id
//! (the last 16 and the first are remembered); and the probe of a quiet engine (B3), which asks from
//! the oldest message remembered since the last clear. An engine that published 16 messages or more
//! since such a restart without a pause is found by neither.

mod anchors;
mod answer;
mod background;
mod catch_up;
mod command;
mod follow;
mod input;
mod jitter;
mod live;
mod machine;
mod notice;
mod pending;
mod permits;
mod policy;
mod publishers;
mod purpose;
mod recovery;
mod shared;
mod slab;
mod slot;
mod slot_id;
mod timers;
mod trust;
mod view;

pub use command::{Command, Disposition, Effects, Reply, ResetReason, Scope};
pub use input::{
    Clears, Completion, Flaw, Input, LiveBatch, Origin, Payload, QueryFailure, RecoveryOutcome,
    RecoveryResponse, Run, Runs, SourceRejection, TargetFault, TransportChange, Watermark,
};
pub use machine::Router;
pub use notice::{DiscardReason, Notice, RecoveryEnd, ResetCause, Stats};
pub use policy::{GapPolicy, Policy, PolicyError};
pub use purpose::Purpose;
pub use trust::{Trust, TrustReason};
pub use view::RankView;

use crate::id::EventId;

/// The id after `id`; `None` at the end of the id space.
fn next_id(id: EventId) -> Option<EventId> {
    id.0.checked_add(1).map(EventId)
}
