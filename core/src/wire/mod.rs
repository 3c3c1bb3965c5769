//! Engine formats to events.
//!
//! [`Decoder`] reads the payload of a live or replayed message into an
//! [`EventBatch`](crate::event::EventBatch); [`frames`] takes messages apart; [`rehash`] hashes a
//! store again under another salt. Everything is read by position from the slice, without copies,
//! recursion or generic deserialization.
//!
//! # Where it differs from the reference decoder on purpose
//!
//! | What | Reference | Here |
//! |---|---|---|
//! | one unreadable event | refuses the batch | one record with a reason (B22) |
//! | batch of 2 or 4 elements, or a map | refused | read (P19) |
//! | negative rank | 4,294,967,295 | the batch is refused (P20) |
//! | byte-string hash | refused | its last 64 bits (B23); text is read as a number |
//! | bytes where a list of hashes belongs; numbers as locality | read | malformed |
//! | tail of fewer than four elements | told by type | by position where the types fit, so that `[nil, kind, window]` keeps its window |
//! | metadata map without `cache_salt` | refused | no salt |
//! | text as adapter id | refused | mixed into the seed like a number |
//! | bare text in the first block's extra keys | no salt | the salt, unless it is the LoRA name (B19) |
//! | extra keys of unknown kind, bytes included | refused or ignored | mixed into the seed (B19) |
//! | `[identifier, offset]` that is not zero-padded | ignored | an object, by LH-7 (B19) |
//! | empty list of explicit objects | wins over extra keys | same as none |
//! | too few, too many or repeated blocks | shortened or dropped | resident by hash, not positioned |

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
