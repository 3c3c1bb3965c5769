//! The trace format (`docs/trace-format.md`): replaying, comparing and recording what a machine did.

mod bindings;
mod compare;
mod config;
mod error;
mod event;
mod expected;
mod feed;
mod header;
mod input;
mod lanes;
mod machine;
mod machines;
mod membership;
mod note;
mod number;
mod output;
mod payload;
mod ranks;
mod recorder;
mod replay;
mod router;
mod subset;
mod targets;
#[cfg(test)]
mod tests;
mod text;

pub use error::{Mismatch, ReplayFailure, TraceError};
pub use event::{Opaque, OpaqueClear, TraceDomain, TraceEvent, What};
pub use payload::{EventPayload, clears, cut, origin};
pub use recorder::{Content, Recorder, Traced};
pub use replay::{MAX_FIRED, MAX_LINE, Mode, Replay, replay};
