//! Membership snapshots: the whole of what is expected, and what changed since the one before.

use crate::id::{
    BootId, EventId, Generation, PublisherId, Rank, RankKey, SnapshotId, TargetId, WorkerId,
};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How a source's stream is numbered and how it can be recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// Numbers single events; answers a range, a snapshot, or that the range is too new.
    #[default]
    Agent,
    /// An engine's own stream: numbers whole messages and answers what its replay ring still has. It
    /// says nowhere which life it is in (B7).
    Engine,
}

/// One incarnation that publishes for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The incarnation.
    pub publisher: PublisherId,
    /// Its recovery target; `None` = live-only.
    pub target: Option<TargetId>,
    /// How its stream is numbered and recovered.
    pub kind: SourceKind,
    /// The id its stream begins with in every life: 1 for agents and Mooncake's master, 0 for
    /// engines.
    pub first_id: EventId,
    /// The process it was advertised by, where that is known (B17).
    pub boot: Option<BootId>,
}

/// What membership says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankStatus {
    /// Expected, but nobody publishes for it.
    Missing,
    /// More than one incarnation, or contradictory descriptions: nothing may be believed.
    Ambiguous,
    /// Exactly one source.
    Active(Source),
}

/// One rank of a membership snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberRank {
    /// Which rank.
    pub key: RankKey,
    /// Its lifecycle generation.
    pub generation: Generation,
    /// Its status.
    pub status: RankStatus,
    /// Whether exactly this source in this generation may be active: its transport is up (§5.4).
    /// Can only suppress; it means nothing for a rank without a source.
    pub ready: bool,
}

/// Two entries of a snapshot name the same rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "membership snapshot names rank {key} twice; give each (worker, rank) one entry, ambiguous if \
     sources contradict each other"
)]
pub struct DuplicateRank {
    /// The rank named twice.
    pub key: RankKey,
}

/// A whole membership snapshot: a rank that is not listed is no longer expected.
///
/// It may name itself, its predecessor and the ranks that changed in between; a consumer that has
/// applied the predecessor looks at those only, any other compares the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Membership {
    ranks: BTreeMap<RankKey, MemberRank>,
    suspect: bool,
    id: Option<SnapshotId>,
    predecessor: Option<SnapshotId>,
    changed: Vec<RankKey>,
}

impl Membership {
    /// Makes a snapshot without a name from entries in any order.
    ///
    /// # Errors
    /// [`DuplicateRank`] when two entries name one rank.
    pub fn new(mut ranks: Vec<MemberRank>) -> Result<Self, DuplicateRank> {
        ranks.sort_by_key(|rank| rank.key);
        for (rank, next) in ranks.iter().zip(ranks.iter().skip(1)) {
            if rank.key == next.key {
                return Err(DuplicateRank { key: rank.key });
            }
        }
        let ranks = ranks.into_iter().map(|rank| (rank.key, rank)).collect();
        Ok(Self { ranks, ..Self::default() })
    }

    /// Makes a snapshot as it was once fed: with its doubt, its name, and the predecessor it names
    /// with the ranks that differ from it.
    ///
    /// # Errors
    /// [`DuplicateRank`] when two entries name one rank.
    pub fn restored(
        ranks: Vec<MemberRank>,
        suspect: bool,
        id: Option<SnapshotId>,
        since: Option<(SnapshotId, Vec<RankKey>)>,
    ) -> Result<Self, DuplicateRank> {
        let (predecessor, changed) = match since {
            Some((predecessor, changed)) => (Some(predecessor), changed),
            None => (None, Vec::new()),
        };
        Ok(Self { suspect, id, predecessor, changed, ..Self::new(ranks)? })
    }

    /// Begins the next snapshot: what the guard sets and removes is its difference to this one. An
    /// unnamed snapshot gets its first name.
    pub fn begin_next(&mut self) -> NextMembership<'_> {
        self.predecessor = self.id;
        self.id = Some(SnapshotId(self.id.map_or(1, |id| id.0.saturating_add(1))));
        self.changed.clear();
        NextMembership { whole: self }
    }

    /// Whether discovery is in doubt.
    pub const fn suspect(&self) -> bool {
        self.suspect
    }

    /// One rank.
    pub fn get(&self, key: RankKey) -> Option<&MemberRank> {
        self.ranks.get(&key)
    }

    /// The entries, ascending by rank.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = &MemberRank> {
        self.ranks.values()
    }

    /// The entries of one worker, ascending by rank.
    pub fn ranks_of(&self, worker: WorkerId) -> impl Iterator<Item = &MemberRank> {
        let first = RankKey { worker, rank: Rank(u32::MIN) };
        let last = RankKey { worker, rank: Rank(u32::MAX) };
        self.ranks.range(first..=last).map(|(_, rank)| rank)
    }

    /// Number of expected ranks.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether no rank is expected.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Its name.
    pub const fn id(&self) -> Option<SnapshotId> {
        self.id
    }

    /// The snapshot it follows, and the ranks that differ from it, in no particular order, repeats
    /// possible. `None` when it follows none.
    pub fn since(&self) -> Option<(SnapshotId, &[RankKey])> {
        self.predecessor.map(|predecessor| (predecessor, self.changed.as_slice()))
    }
}

/// Changes a snapshot into its successor.
#[derive(Debug)]
pub struct NextMembership<'a> {
    whole: &'a mut Membership,
}

impl NextMembership<'_> {
    /// Sets one rank; an equal entry changes nothing.
    pub fn set(&mut self, rank: MemberRank) {
        if self.whole.ranks.insert(rank.key, rank) != Some(rank) {
            self.changed(rank.key);
        }
    }

    /// Says that a rank is no longer expected.
    pub fn remove(&mut self, key: RankKey) {
        if self.whole.ranks.remove(&key).is_some() {
            self.changed(key);
        }
    }

    /// Says whether discovery is in doubt: what is listed is the last known membership (B8).
    pub const fn set_suspect(&mut self, suspect: bool) {
        self.whole.suspect = suspect;
    }

    /// A difference larger than the whole is not worth naming.
    fn changed(&mut self, key: RankKey) {
        if self.whole.changed.len() <= self.whole.ranks.len() {
            self.whole.changed.push(key);
        } else {
            self.whole.predecessor = None;
        }
    }
}
