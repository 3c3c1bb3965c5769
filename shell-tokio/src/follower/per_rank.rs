//! What the loop keeps of each rank beside the mirror: its source's task and a few counters.

use crate::source::SourceHandle;
use kvmirror_core::id::{PublisherId, RankKey};
use kvmirror_core::router::{Notice, RecoveryEnd};
use std::collections::BTreeMap;

/// What happened to a rank since it is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankCounts {
    /// Gaps noticed.
    pub gaps: u64,
    /// Recoveries that ended level with the source.
    pub healed: u64,
    /// New lives of its source.
    pub new_lives: u64,
}

/// The way to one rank's source.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) publisher: PublisherId,
    pub(super) task: SourceHandle,
    /// The transport came up at least once.
    pub(super) connected: bool,
    /// Why the transport is down.
    pub(super) down: Option<String>,
    /// Why the last question to the replay socket brought nothing.
    pub(super) mute: Option<String>,
    /// The log has been told that the engine's block size is another one.
    pub(super) warned_of_block_size: bool,
    pub(super) counts: RankCounts,
}

/// The followed ranks.
#[derive(Debug, Default)]
pub(super) struct PerRank {
    ranks: BTreeMap<RankKey, Followed>,
    publishers: BTreeMap<PublisherId, RankKey>,
}

impl PerRank {
    pub(super) fn add(&mut self, rank: RankKey, publisher: PublisherId, task: SourceHandle) {
        self.publishers.insert(publisher, rank);
        let counts = RankCounts::default();
        let followed = Followed {
            publisher,
            task,
            connected: false,
            down: None,
            mute: None,
            warned_of_block_size: false,
            counts,
        };
        self.ranks.insert(rank, followed);
    }

    pub(super) fn remove(&mut self, rank: RankKey) -> Option<Followed> {
        let followed = self.ranks.remove(&rank)?;
        self.publishers.remove(&followed.publisher);
        Some(followed)
    }

    pub(super) fn get_mut(&mut self, rank: RankKey) -> Option<&mut Followed> {
        self.ranks.get_mut(&rank)
    }

    pub(super) fn get(&self, rank: RankKey) -> Option<&Followed> {
        self.ranks.get(&rank)
    }

    pub(super) fn of(&mut self, publisher: PublisherId) -> Option<&mut Followed> {
        self.publishers.get(&publisher).and_then(|rank| self.ranks.get_mut(rank))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Followed> {
        self.ranks.values()
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Followed> + use<> {
        self.publishers.clear();
        std::mem::take(&mut self.ranks).into_values()
    }

    /// Counts what a notice tells of a rank.
    pub(super) fn note(&mut self, notice: &Notice) {
        let (rank, count): (_, fn(&mut RankCounts) -> &mut u64) =
            if let Notice::Gap { rank, .. } = notice {
                (rank, |counts| &mut counts.gaps)
            } else if let Notice::Recovered { rank, end: RecoveryEnd::Healed } = notice {
                (rank, |counts| &mut counts.healed)
            } else if let Notice::NewLife { rank, .. } = notice {
                (rank, |counts| &mut counts.new_lives)
            } else {
                return;
            };
        if let Some(followed) = self.ranks.get_mut(rank) {
            *count(&mut followed.counts) += 1;
        }
    }
}
