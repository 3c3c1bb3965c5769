//! The advertisements that discovery lists at the resolved endpoint (§3.3).

use super::policy::MembershipPolicy;
use super::snapshot::Source;
use super::stats::MembershipStats;
use super::status::{Cause, RankState};
use crate::id::{PublisherId, RankKey};
use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::RangeInclusive;
use smallvec::SmallVec;

/// Further ranks that one publisher may close by claiming them (W-V3). A publisher has one rank;
/// more than this is noise.
const CLAIMS_MAX: usize = 16;

/// Ranks whose status an input may have changed.
pub(super) type Touched = SmallVec<[RankKey; 2]>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    rank: RankKey,
    conflicting: bool,
    /// Other ranks the publisher claims.
    claims: SmallVec<[RankKey; 1]>,
}

/// Indexed per publisher and per rank: no operation looks at another rank's records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Store {
    records: BTreeMap<PublisherId, Record>,
    by_rank: BTreeMap<(RankKey, PublisherId), Source>,
    conflicts: BTreeSet<(RankKey, PublisherId)>,
    /// Ranks with a record that were refused another one.
    crowded: BTreeSet<RankKey>,
    /// Unknown publishers of malformed records.
    quarantined: BTreeSet<PublisherId>,
}

const fn span(rank: RankKey) -> RangeInclusive<(RankKey, PublisherId)> {
    (rank, PublisherId(u64::MIN))..=(rank, PublisherId(u64::MAX))
}

impl Store {
    /// §3.4 rows 2 to 6.
    pub(super) fn state(&self, rank: RankKey) -> RankState {
        if let Some((_, publisher)) = self.conflicts.range(span(rank)).next() {
            return RankState::Ambiguous(Cause::ConflictingDescriptor(*publisher));
        }
        let mut records = self.by_rank.range(span(rank));
        match (records.next(), records.next()) {
            (None, _) => RankState::Missing,
            (Some((_, source)), None) if !self.crowded.contains(&rank) => {
                RankState::Active(*source)
            }
            (Some(_), None | Some(_)) => {
                let publishers = self.by_rank.range(span(rank)).map(|((_, id), _)| *id);
                RankState::Ambiguous(Cause::Incarnations(publishers.collect()))
            }
        }
    }

    pub(super) fn advertise(
        &mut self,
        rank: RankKey,
        source: Source,
        policy: &MembershipPolicy,
        stats: &mut MembershipStats,
    ) -> Touched {
        let publisher = source.publisher;
        let Some(record) = self.records.get_mut(&publisher) else {
            return self.insert(rank, source, policy, stats);
        };
        let known = self.by_rank.get(&(record.rank, publisher)).copied();
        if record.rank == rank && known == Some(source) {
            return Touched::new();
        }
        let reboot = source.boot.is_some()
            && known.map(|known| Source { boot: source.boot, ..known }) == Some(source);
        if policy.check_boot && reboot && record.rank == rank {
            stats.reboots += 1;
            self.by_rank.insert((rank, publisher), source);
            return SmallVec::from_slice(&[rank]);
        }
        stats.conflicts += 1;
        record.conflicting = true;
        self.conflicts.insert((record.rank, publisher));
        let mut touched = SmallVec::from_slice(&[record.rank]);
        let claimed = record.rank == rank || record.claims.contains(&rank);
        if policy.quarantine && !claimed {
            if record.claims.len() < CLAIMS_MAX {
                record.claims.push(rank);
                self.conflicts.insert((rank, publisher));
                touched.push(rank);
            } else {
                stats.advertisements_over_limit += 1;
            }
        }
        touched
    }

    fn insert(
        &mut self,
        rank: RankKey,
        source: Source,
        policy: &MembershipPolicy,
        stats: &mut MembershipStats,
    ) -> Touched {
        let publisher = source.publisher;
        let here = self.by_rank.range(span(rank)).count();
        if self.records.len() >= policy.advertisements_max
            || here >= policy.advertisements_per_rank_max
        {
            stats.advertisements_over_limit += 1;
            if here > 0 && self.crowded.insert(rank) {
                return SmallVec::from_slice(&[rank]);
            }
            return Touched::new();
        }
        let conflicting = self.quarantined.contains(&publisher);
        if conflicting {
            stats.conflicts += 1;
            self.conflicts.insert((rank, publisher));
        }
        self.records.insert(publisher, Record { rank, conflicting, claims: SmallVec::new() });
        self.by_rank.insert((rank, publisher), source);
        SmallVec::from_slice(&[rank])
    }

    pub(super) fn withdraw(
        &mut self,
        publisher: PublisherId,
        stats: &mut MembershipStats,
    ) -> Touched {
        let quarantined = self.quarantined.remove(&publisher);
        let Some(Record { rank, claims, .. }) = self.records.remove(&publisher) else {
            if !quarantined {
                stats.unknown_withdrawals += 1;
            }
            return Touched::new();
        };
        let mut touched = Touched::from_slice(&claims);
        touched.push(rank);
        for rank in &touched {
            self.conflicts.remove(&(*rank, publisher));
        }
        self.by_rank.remove(&(rank, publisher));
        if self.by_rank.range(span(rank)).next().is_none() {
            self.crowded.remove(&rank);
        }
        touched
    }

    pub(super) fn invalidate(
        &mut self,
        publisher: PublisherId,
        policy: &MembershipPolicy,
        stats: &mut MembershipStats,
    ) -> Touched {
        if let Some(record) = self.records.get_mut(&publisher) {
            stats.conflicts += 1;
            record.conflicting = true;
            self.conflicts.insert((record.rank, publisher));
            return SmallVec::from_slice(&[record.rank]);
        }
        let room = policy.quarantine && self.quarantined.len() < policy.quarantine_max;
        if room {
            if self.quarantined.insert(publisher) {
                stats.quarantined += 1;
            }
        } else {
            stats.invalid_ignored += 1;
        }
        Touched::new()
    }

    /// Every rank that a record or a claim names, in no particular order, repeats possible.
    pub(super) fn ranks(&self) -> impl Iterator<Item = RankKey> {
        let claimed = self.conflicts.iter().map(|(rank, _)| *rank);
        self.by_rank.keys().map(|(rank, _)| *rank).chain(claimed)
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }
}
