//! What is there: listings and counts, for digests, audits, status pages and tests.

use super::Index;
use super::rank::{Entry, Position, Rank};
use crate::event::{ResidencyDomain, Tier};
use crate::id::{BlockHash, RankKey, SequenceHash};
use alloc::vec::Vec;

/// A block that is resident in one tier, group and residency domain of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResidentBlock {
    /// The engine's hash.
    pub hash: BlockHash,
    /// Where its data is.
    pub tier: Tier,
    /// KV-cache group; 0 also for events that name none.
    pub group: u32,
    /// Whose life it follows.
    pub domain: ResidencyDomain,
    /// Copies announced and not removed; 1 where duplicates are read as a set.
    pub copies: u32,
}

/// Size of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Domains not closed, or closed with ranks left.
    pub domains: usize,
    /// Ranks.
    pub ranks: usize,
    /// Positions, of all domains.
    pub nodes: usize,
    /// Resident block hashes, summed over the ranks.
    pub entries: u64,
    /// Removed block hashes whose position is kept for what is below them.
    pub remembered: u64,
    /// Blocks that wait for their parent's position.
    pub held_aside: usize,
    /// Salts in use, summed over the domains.
    pub salts: usize,
    /// Bytes reserved by all of it, to within the allocator's and the tables' rounding.
    pub bytes: usize,
}

impl Index {
    /// Whether `hash` is resident on `rank`, in any tier, group and residency domain.
    pub fn resident(&self, rank: RankKey, hash: BlockHash) -> bool {
        self.entry(rank, hash).is_some_and(Entry::is_resident)
    }

    /// Where `hash` is resident on `rank`, ascending by tier, group and residency domain.
    pub fn slots(&self, rank: RankKey, hash: BlockHash) -> Vec<ResidentBlock> {
        let mut slots = Vec::new();
        if let Some(rank) = self.rank(rank)
            && let Some(entry) = rank.get(hash)
        {
            slots.extend(resident(rank, entry));
        }
        slots.sort_unstable();
        slots
    }

    /// The sequence hash of the place where `rank` holds `hash`; `None` when it is not resident or
    /// has no position.
    pub fn position(&self, rank: RankKey, hash: BlockHash) -> Option<SequenceHash> {
        let entry = self.entry(rank, hash).filter(|entry| entry.is_resident())?;
        match entry.position {
            Position::At(node) => Some(self.nodes.get(node).seq),
            Position::Unplaced | Position::Held(_) | Position::Ambiguous(_) => None,
        }
    }

    /// Everything that is resident on `rank`, ascending by hash, tier, group and residency domain;
    /// empty for a rank that is not there.
    pub fn blocks(&self, rank: RankKey) -> Vec<ResidentBlock> {
        let mut blocks = Vec::new();
        if let Some(rank) = self.rank(rank) {
            blocks.reserve_exact(rank.entries.len());
            blocks.extend(rank.entries.iter().flat_map(|entry| resident(rank, entry)));
        }
        blocks.sort_unstable();
        blocks
    }

    /// Resident block hashes of `rank` per tier, in the order of [`Tier::ALL`]. A hash in several
    /// groups of a tier counts once.
    pub fn counts(&self, rank: RankKey) -> [u64; 4] {
        self.rank(rank).map_or([0; 4], |rank| rank.tally.blocks)
    }

    /// The size of the index. Linear in ranks, domains and positions.
    pub fn stats(&self) -> IndexStats {
        let mut stats = IndexStats {
            nodes: self.nodes.len(),
            bytes: self.nodes.bytes(),
            ..IndexStats::default()
        };
        for rank in self.ranks.iter().flatten() {
            stats.ranks += 1;
            stats.entries += rank.entries.len() as u64 - rank.tally.remembered;
            stats.remembered += rank.tally.remembered;
            stats.held_aside += rank.held.len();
            stats.bytes += size_of::<Rank>() + rank.held.bytes() + rank.entries.bytes();
        }
        for domain in self.domains.iter() {
            stats.domains += 1;
            stats.salts += domain.salts.len();
            stats.bytes += domain.salts.bytes();
            stats.bytes += domain.nodes.capacity() * (size_of::<u32>() + 1);
        }
        stats
    }

    fn entry(&self, rank: RankKey, hash: BlockHash) -> Option<&Entry> {
        self.rank(rank)?.get(hash)
    }
}

fn resident<'a>(rank: &'a Rank, entry: &'a Entry) -> impl Iterator<Item = ResidentBlock> + 'a {
    entry.slots.iter().map(|slot| {
        let (tier, group) = rank.lanes.describe(slot.lane);
        ResidentBlock { hash: entry.hash, tier, group, domain: slot.domain, copies: slot.copies }
    })
}
