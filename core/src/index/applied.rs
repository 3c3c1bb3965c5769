//! What became of the events of one call.

use crate::event::{Placement, SkipReason};
use core::ops::AddAssign;

/// Counts of what one [`apply`](super::Index::apply) or [`replace`](super::Index::replace) did.
///
/// Every block of a store is counted exactly once in `stored + duplicates + capacity +
/// over_groups`, every block of a remove exactly once in `removed + unknown_removed`, every skipped
/// event exactly once in `skipped`. The other fields say more of the same blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Blocks that became resident in the tier, group and residency domain of their event.
    pub stored: u64,
    /// Stored blocks that were resident there already: one more copy, or nothing (P30).
    pub duplicates: u64,
    /// Blocks not stored because the index is at [`IndexLimits::entries`](super::IndexLimits).
    pub capacity: u64,
    /// Blocks not stored because the rank has used 64 (tier, group) pairs already, and kinds not
    /// learned because it has named 256 groups.
    pub over_groups: u64,
    /// Removed blocks that were resident, whether or not another copy stays.
    pub removed: u64,
    /// Removed blocks that were not resident there; harmless.
    pub unknown_removed: u64,
    /// Resident (block, tier, group, residency domain) combinations that a clear took away.
    pub cleared: u64,
    /// Events that were counted instead of applied, by reason, in the order of [`SkipReason::ALL`].
    pub skipped: [u64; SkipReason::ALL.len()],
    /// Stored blocks whose event gives no position, by reason, in the order of
    /// [`Placement::UNPLACED`].
    pub unplaced: [u64; Placement::UNPLACED.len()],
    /// Store events whose parent is resident in no tier and no group of the rank (B37).
    pub orphans: u64,
    /// Those of `orphans` whose parent's position is still known, so that their blocks have theirs.
    pub remembered_parents: u64,
    /// Index of the first event counted in `orphans`, among the records of the batch; after a
    /// [`replace`](super::Index::replace), among the records of all its batches.
    pub first_orphan: Option<u64>,
    /// Stored blocks that were put aside until their parent has a position.
    pub held_aside: u64,
    /// Stored blocks that would have been put aside, had there been room.
    pub not_held: u64,
    /// Blocks put aside earlier, or in this call, that got their position.
    pub adopted: u64,
    /// Blocks put aside that can have no position any more: their parent turned out to be salted
    /// and their tokens are gone.
    pub unsalted: u64,
    /// Stored blocks whose event has a longer salt than allowed, and so no position.
    pub long_salts: u64,
    /// Blocks without position because what was claimed contradicts what is known (B23).
    pub conflicts: u64,
}

impl Applied {
    /// How many events were skipped for `reason`.
    pub const fn skipped_for(&self, reason: SkipReason) -> u64 {
        self.skipped[skip_index(reason)]
    }

    /// How many stored blocks have no position by their event's `placement`; 0 for
    /// [`Placement::Positioned`].
    pub const fn unplaced_for(&self, placement: Placement) -> u64 {
        match unplaced_index(placement) {
            Some(index) => self.unplaced[index],
            None => 0,
        }
    }

    /// Counts one skipped event.
    pub(super) fn skip(&mut self, reason: SkipReason) {
        self.skipped[skip_index(reason)] += 1;
    }

    /// Counts `blocks` without position for `placement`.
    pub(super) fn unplace(&mut self, placement: Placement, blocks: u64) {
        if let Some(index) = unplaced_index(placement) {
            self.unplaced[index] += blocks;
        }
    }
}

impl AddAssign for Applied {
    fn add_assign(&mut self, other: Self) {
        let Self {
            stored,
            duplicates,
            capacity,
            over_groups,
            removed,
            unknown_removed,
            cleared,
            skipped,
            unplaced,
            orphans,
            remembered_parents,
            first_orphan,
            held_aside,
            not_held,
            adopted,
            unsalted,
            long_salts,
            conflicts,
        } = other;
        self.stored += stored;
        self.duplicates += duplicates;
        self.capacity += capacity;
        self.over_groups += over_groups;
        self.removed += removed;
        self.unknown_removed += unknown_removed;
        self.cleared += cleared;
        self.skipped.iter_mut().zip(skipped).for_each(|(sum, n)| *sum += n);
        self.unplaced.iter_mut().zip(unplaced).for_each(|(sum, n)| *sum += n);
        self.orphans += orphans;
        self.remembered_parents += remembered_parents;
        self.first_orphan = self.first_orphan.or(first_orphan);
        self.held_aside += held_aside;
        self.not_held += not_held;
        self.adopted += adopted;
        self.unsalted += unsalted;
        self.long_salts += long_salts;
        self.conflicts += conflicts;
    }
}

/// Position of `reason` in [`SkipReason::ALL`].
const fn skip_index(reason: SkipReason) -> usize {
    match reason {
        SkipReason::UnknownEvent => 0,
        SkipReason::Malformed => 1,
        SkipReason::IgnoredEvent => 2,
        SkipReason::NonLocalLocality => 3,
        SkipReason::UnknownMedium => 4,
        SkipReason::UnknownOwnership => 5,
        SkipReason::CacheOwnerTier => 6,
        SkipReason::OverLimit => 7,
    }
}

/// Position of `placement` in [`Placement::UNPLACED`].
const fn unplaced_index(placement: Placement) -> Option<usize> {
    match placement {
        Placement::Positioned => None,
        Placement::TokenLess => Some(0),
        Placement::BlockSizeMismatch => Some(1),
        Placement::TokenCountMismatch => Some(2),
        Placement::RepeatedHash => Some(3),
        Placement::EagleMismatch => Some(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_follow_the_public_lists() {
        for (index, reason) in SkipReason::ALL.into_iter().enumerate() {
            assert_eq!(skip_index(reason), index);
        }
        for (index, placement) in Placement::UNPLACED.into_iter().enumerate() {
            assert_eq!(unplaced_index(placement), Some(index));
        }
        assert_eq!(unplaced_index(Placement::Positioned), None);
    }
}
