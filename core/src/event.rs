//! The event model: what one decoded transport message says, flat and reusable.
//!
//! A [`EventBatch`] holds the events of one message as fixed-size [`EventRecord`]s with index
//! ranges into shared lists, so that a reader task fills one buffer again and again without
//! allocating. Strings and raw values stay in the message's payload; a record holds their byte
//! spans. Wherever a batch goes, its payload goes with it ([`EventView`]).

use crate::id::{BlockHash, LocalHash, Rank};
use alloc::vec::Vec;

/// Where a block's data is kept (`wire.md` §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Accelerator memory.
    Device,
    /// Host memory.
    Host,
    /// Local disk.
    Disk,
    /// A store outside the machine.
    External,
}

impl Tier {
    /// All tiers in walk order.
    pub const ALL: [Self; 4] = [Self::Device, Self::Host, Self::Disk, Self::External];

    /// The stable lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Disk => "disk",
            Self::External => "external",
        }
    }

    /// Position in [`Tier::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Device => 0,
            Self::Host => 1,
            Self::Disk => 2,
            Self::External => 3,
        }
    }
}

/// Whose life a block's residency follows (`system.md` §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResidencyDomain {
    /// The block dies with the engine.
    #[default]
    Worker,
    /// The block lives in a store that outlives the engine.
    CacheOwner,
}

impl ResidencyDomain {
    /// The stable lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::CacheOwner => "cache_owner",
        }
    }
}

/// What kind of attention a KV-cache group serves (`wire.md` §3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecKind {
    /// Full, MLA or sink-full attention: decides the match.
    MainAttention,
    /// Any other known kind: resident, never lengthens a match.
    Other,
    /// A kind this version does not know: treated like [`SpecKind::Other`], counted apart.
    Unknown,
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Blocks were stored.
    Stored,
    /// Blocks were removed.
    Removed,
    /// Everything of the event's residency domain was removed.
    Cleared,
    /// Nothing that could be read; see [`EventRecord::skip`].
    Unreadable,
}

/// Why an event is counted instead of applied (rule B22: its neighbours are applied).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// The event's tag is none that is known.
    UnknownEvent,
    /// A field has the wrong type, is out of range or is missing.
    Malformed,
    /// The producer's own "ignore me" event (PF-3).
    IgnoredEvent,
    /// The locality is remote or unknown (PF-4).
    NonLocalLocality,
    /// The medium is none that is known (PF-5).
    UnknownMedium,
    /// The ownership is none that is known (PF-2).
    UnknownOwnership,
    /// A cache owner's store or remove on a tier that no cache owner has (AD table of
    /// `local-index.md` §2).
    CacheOwnerTier,
    /// More block hashes or tokens than [`crate::wire::Limits`] allows in one message.
    OverLimit,
}

impl SkipReason {
    /// Every reason, in order: for metrics that list them all.
    pub const ALL: [Self; 8] = [
        Self::UnknownEvent,
        Self::Malformed,
        Self::IgnoredEvent,
        Self::NonLocalLocality,
        Self::UnknownMedium,
        Self::UnknownOwnership,
        Self::CacheOwnerTier,
        Self::OverLimit,
    ];

    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownEvent => "unknown_event",
            Self::Malformed => "malformed",
            Self::IgnoredEvent => "ignored_event",
            Self::NonLocalLocality => "non_local_locality",
            Self::UnknownMedium => "unknown_medium",
            Self::UnknownOwnership => "unknown_ownership",
            Self::CacheOwnerTier => "cache_owner_tier",
            Self::OverLimit => "over_limit",
        }
    }
}

/// Whether a store's blocks can get a position, by what the event itself says.
///
/// A store without position is resident and removable by hash; it is never matched by tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// One local hash per block hash is in the batch.
    Positioned,
    /// No tokens at all (an offload placeholder).
    TokenLess,
    /// Block size differs from the source's configured one.
    BlockSizeMismatch,
    /// Tokens are not exactly block hashes × block size (sparse, short or surplus).
    TokenCountMismatch,
    /// A hash appears twice among the event's hashes and parent (CV-4).
    RepeatedHash,
    /// Token pairs from a source registered without `eagle`, or the reverse.
    EagleMismatch,
}

impl Placement {
    /// Every reason a store can lack a position, in order.
    pub const UNPLACED: [Self; 5] = [
        Self::TokenLess,
        Self::BlockSizeMismatch,
        Self::TokenCountMismatch,
        Self::RepeatedHash,
        Self::EagleMismatch,
    ];

    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Positioned => "positioned",
            Self::TokenLess => "token_less",
            Self::BlockSizeMismatch => "block_size_mismatch",
            Self::TokenCountMismatch => "token_count_mismatch",
            Self::RepeatedHash => "repeated_hash",
            Self::EagleMismatch => "eagle_mismatch",
        }
    }
}

/// A range of positions: in one of the batch's lists, or of bytes in the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First position.
    pub start: u32,
    /// Number of positions.
    pub len: u32,
}

impl Span {
    /// Nothing.
    pub const EMPTY: Self = Self { start: 0, len: 0 };

    /// Whether the span covers nothing.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The covered part of `list`; empty when the span does not fit it.
    pub fn of<T>(self, list: &[T]) -> &[T] {
        let start = self.start as usize;
        list.get(start..start.saturating_add(self.len as usize)).unwrap_or_default()
    }
}

/// One event of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// What it does.
    pub kind: EventKind,
    /// Set when the event is counted instead of applied.
    pub skip: Option<SkipReason>,
    /// For a store: whether its blocks can be positioned.
    pub placement: Placement,
    /// Where the blocks are.
    pub tier: Tier,
    /// Whose life they follow.
    pub domain: ResidencyDomain,
    /// KV-cache group, as the payload says it; absent is group 0 as a key.
    pub group: Option<u32>,
    /// What the group is, when the event says so.
    pub spec: Option<SpecKind>,
    /// The sliding window of the group, in tokens.
    pub sliding_window: Option<u32>,
    /// For a store: the engine's hash of the block before the first one.
    pub parent: Option<BlockHash>,
    /// Into [`EventBatch::hashes`].
    pub hashes: Span,
    /// Into [`EventBatch::locals`]; as long as `hashes` when positioned, else empty.
    pub locals: Span,
    /// Tokens the event carries (an n-pair bigram list carries n + 1).
    pub token_count: u32,
    /// Tokens per block, as the payload says it.
    pub block_size: u32,
    /// Whether the tokens came as pairs (EG-2).
    pub eagle: bool,
    /// The raw msgpack array of the tokens in the payload.
    pub tokens: Span,
    /// The raw msgpack value of the extra keys in the payload.
    pub extra_keys: Span,
    /// The raw msgpack value of explicit multimodal objects in the payload; empty when there are none.
    pub mm_infos: Span,
    /// The raw msgpack value of an adapter id in the payload; empty when the event names no adapter
    /// by id. Counts only where no LoRA name is known (rule B19).
    pub lora_id: Span,
    /// UTF-8 LoRA name in the payload; empty = base model.
    pub lora: Span,
    /// UTF-8 salt in the payload; empty = none named by this event.
    pub salt: Span,
    /// UTF-8 session id in the payload.
    pub session: Span,
}

impl EventRecord {
    /// A record of `kind` with every other field at its neutral value.
    pub const fn new(kind: EventKind) -> Self {
        Self {
            kind,
            skip: None,
            placement: Placement::TokenLess,
            tier: Tier::Device,
            domain: ResidencyDomain::Worker,
            group: None,
            spec: None,
            sliding_window: None,
            parent: None,
            hashes: Span::EMPTY,
            locals: Span::EMPTY,
            token_count: 0,
            block_size: 0,
            eagle: false,
            tokens: Span::EMPTY,
            extra_keys: Span::EMPTY,
            mm_infos: Span::EMPTY,
            lora_id: Span::EMPTY,
            lora: Span::EMPTY,
            salt: Span::EMPTY,
            session: Span::EMPTY,
        }
    }
}

/// What the payload says of its data-parallel rank (P20 of the field reports).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchRank {
    /// No third element, or nil: the source's registered rank.
    #[default]
    Absent,
    /// A rank number.
    Named(Rank),
}

/// The events of one message, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventBatch {
    /// Producer's time in seconds; informative only.
    pub ts: f64,
    /// The rank the payload names.
    pub rank: BatchRank,
    /// Set when broken framing ended the message early: the records are what came before it, and
    /// the message counts as damaged (B22).
    pub cut: bool,
    /// The events.
    pub records: Vec<EventRecord>,
    /// All block hashes.
    pub hashes: Vec<BlockHash>,
    /// All local hashes.
    pub locals: Vec<LocalHash>,
}

impl EventBatch {
    /// Empties the batch and keeps its buffers.
    pub fn clear(&mut self) {
        self.ts = 0.0;
        self.rank = BatchRank::Absent;
        self.cut = false;
        self.records.clear();
        self.hashes.clear();
        self.locals.clear();
    }

    /// Whether the message contains a clear of the worker's whole state: what precedes it in the
    /// message no longer matters (`system.md` §4 rule 4, B32).
    pub fn has_full_clear(&self) -> bool {
        self.records.iter().any(|record| {
            record.kind == EventKind::Cleared
                && record.skip.is_none()
                && record.domain == ResidencyDomain::Worker
        })
    }
}

/// A batch beside the payload its spans point into.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    /// The message's payload; empty for events that never had one (traces, tests).
    pub payload: &'a [u8],
    /// Its events.
    pub batch: &'a EventBatch,
}

impl<'a> EventView<'a> {
    /// The block hashes of `record`.
    pub fn hashes(&self, record: &EventRecord) -> &'a [BlockHash] {
        record.hashes.of(&self.batch.hashes)
    }

    /// The local hashes of `record`.
    pub fn locals(&self, record: &EventRecord) -> &'a [LocalHash] {
        record.locals.of(&self.batch.locals)
    }

    /// The bytes of `span` in the payload.
    pub fn bytes(&self, span: Span) -> &'a [u8] {
        span.of(self.payload)
    }

    /// The text of `span`; `None` when the span is empty or not UTF-8.
    pub fn text(&self, span: Span) -> Option<&'a str> {
        if span.is_empty() {
            return None;
        }
        core::str::from_utf8(self.bytes(span)).ok()
    }
}
