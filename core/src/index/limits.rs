//! What a host chooses: bounds of the index, and how a source's duplicates are read.

use crate::event::ResidencyDomain;

/// Bounds of an [`Index`](super::Index). Every bound has a counted, documented behaviour when it is
/// reached; nothing is lost silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// Blocks of one rank that may wait for their parent to get a position (B37). A block beyond
    /// it is resident and removable but stays without position, counted as
    /// [`Applied::not_held`](super::Applied::not_held). Default 65,536.
    pub held_aside_blocks: u32,
    /// Block entries of all ranks together, those that are only remembered included. At the cap a
    /// store that needs a new entry is not applied, counted as
    /// [`Applied::capacity`](super::Applied::capacity): the mirror of that rank is then incomplete
    /// until it is reset. `None` (the default) and anything above it mean 2³² − 2.
    ///
    /// While a rank is replaced its old entries do not count, so that a rank can always be replaced
    /// by one of the same size; memory may then exceed the cap by that much.
    pub entries: Option<u32>,
    /// Bytes of one salt. A store with a longer one is resident without position, counted as
    /// [`Applied::long_salts`](super::Applied::long_salts). Default 4,096.
    pub salt_bytes: u32,
}

impl IndexLimits {
    /// What the entries of all ranks may never exceed.
    pub(super) const HARD_CAP: u64 = 0xFFFF_FFFE;

    /// The cap on entries as a number: within [`Self::HARD_CAP`], so that node numbers, of which
    /// there are never more than entries, fit 32 bits.
    pub(super) fn entry_cap(&self) -> u64 {
        self.entries.map_or(Self::HARD_CAP, u64::from).min(Self::HARD_CAP)
    }
}

impl Default for IndexLimits {
    fn default() -> Self {
        Self { held_aside_blocks: 65_536, entries: None, salt_bytes: 4_096 }
    }
}

/// How a source's repeated announcements of a block are read (P30): declared per source dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Every store adds a copy and every remove takes one; the block is there while any copy is.
    #[default]
    Counted,
    /// A store adds the block, a remove deletes it, however often it was stored.
    Set,
}

impl Duplicates {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Set => "set",
        }
    }

    /// Reads the exact name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Counted, Self::Set].into_iter().find(|policy| policy.name() == name)
    }
}

/// What a [`reset`](super::Index::reset) empties (B32, S10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetScope {
    /// The whole rank, and what it has learned of its groups.
    All,
    /// Blocks that die with the engine, and what was learned of its groups.
    Worker,
    /// Blocks of the cache owner.
    CacheOwner,
}

impl ResetScope {
    /// The residency domains that are emptied.
    pub(super) const fn domains(self) -> &'static [ResidencyDomain] {
        match self {
            Self::All => &[ResidencyDomain::Worker, ResidencyDomain::CacheOwner],
            Self::Worker => &[ResidencyDomain::Worker],
            Self::CacheOwner => &[ResidencyDomain::CacheOwner],
        }
    }
}
