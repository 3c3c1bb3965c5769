//! Engine formats to events.
//!
//! [`Decoder`] reads the payload of a live or replayed message into an
//! [`EventBatch`](crate::event::EventBatch); [`frames`] takes messages apart; [`rehash`] hashes a
//! store again under another salt. Everything is read by position from the slice, without copies,
//! recursion or generic deserialization.

mod batch;
mod cursor;
mod draft;
mod enums;
mod error;
mod extra_keys;
pub mod frames;
mod hashes;
mod layout_array;
mod layout_map;
mod local;
mod mm_infos;
mod reader;
mod rehash;
mod scratch;
mod skip;
mod source;
mod stored;
mod tail;
#[cfg(test)]
mod tests;
mod tokens;

pub use batch::Decoder;
pub use error::DecodeError;
pub use rehash::rehash;
pub use source::{Limits, SourceIdentity};
