//! What a decoder must know of a source, and its limits.

use alloc::string::String;
use core::num::NonZeroU32;

/// The registered facts that decide how a source's events are read (rule B19).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceIdentity {
    /// Tokens per block. `None` (offline tools): every store's own block size is taken as right.
    pub block_size: Option<NonZeroU32>,
    /// Whether tokens come as pairs. `None` (offline tools): either form is taken as right.
    pub eagle: Option<bool>,
    /// LoRA name for stores that name no adapter; empty = base model.
    pub default_lora: String,
    /// Placeholder token of images, for `wire.md` §7.1.
    pub image_token_id: Option<u32>,
    /// Placeholder token of videos, for `wire.md` §7.1.
    pub video_token_id: Option<u32>,
}

/// Caps on what one message may hold; all are checked before anything is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a payload.
    pub payload_bytes: usize,
    /// Events of a message.
    pub events: u32,
    /// Block hashes of a message.
    pub hashes: u32,
    /// Tokens of a message.
    pub tokens: u32,
    /// Nesting of msgpack values that are stepped over.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload_bytes: 8 << 20, events: 65_536, hashes: 262_144, tokens: 4 << 20, depth: 64 }
    }
}
