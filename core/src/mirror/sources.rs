//! The sources a mirror follows: their facts, whether their transport is up, their counters.

use super::MirrorError;
use super::counts::SourceCounts;
use super::message::Reading;
use crate::id::{EventId, Generation, PublisherId, RankKey, TargetId};
use crate::index::{DomainId, Duplicates};
use crate::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use crate::router::Origin;
use crate::wire::SourceIdentity;
use alloc::collections::BTreeMap;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// What a host must say of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// The rank it publishes for.
    pub rank: RankKey,
    /// Fresh for every source that is added, kept over its reconnects.
    pub publisher: PublisherId,
    /// Its index domain (B19).
    pub domain: DomainId,
    /// What decides how its events are read.
    pub identity: SourceIdentity,
    /// How its repeated stores are read.
    pub duplicates: Duplicates,
    /// Where its messages can be asked for again; `None` = live-only.
    pub target: Option<TargetId>,
    /// The sequence every life begins with.
    pub first_id: EventId,
}

impl SourceFacts {
    /// A live-only source of a raw engine with everything else at its default.
    pub fn live_only(rank: RankKey, publisher: PublisherId, domain: DomainId) -> Self {
        Self {
            rank,
            publisher,
            domain,
            identity: SourceIdentity::default(),
            duplicates: Duplicates::default(),
            target: None,
            first_id: EventId(0),
        }
    }
}

/// Whether a transport came up for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connected {
    First,
    Again,
}

#[derive(Clone, Debug)]
pub(super) struct FollowedSource {
    pub(super) facts: SourceFacts,
    pub(super) counts: SourceCounts,
    connected: bool,
}

impl FollowedSource {
    pub(super) fn note(&mut self, reading: &Reading) {
        self.counts.unreadable += u64::from(reading.error.is_some());
        self.counts.damaged += u64::from(reading.run.damaged);
        self.counts.foreign += u64::from(reading.origin == Origin::Foreign);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    by_rank: BTreeMap<RankKey, FollowedSource>,
    /// Lookup only, never iterated.
    by_publisher: HashMap<PublisherId, RankKey, FxBuildHasher>,
    membership: Membership,
}

impl Sources {
    pub(super) fn check(&self, facts: &SourceFacts) -> Result<(), MirrorError> {
        if self.by_rank.contains_key(&facts.rank) {
            return Err(MirrorError::RankTaken { rank: facts.rank });
        }
        if self.by_publisher.contains_key(&facts.publisher) {
            return Err(MirrorError::PublisherTaken { publisher: facts.publisher });
        }
        Ok(())
    }

    pub(super) fn add(&mut self, facts: SourceFacts) {
        self.by_publisher.insert(facts.publisher, facts.rank);
        let counts = SourceCounts::default();
        self.membership.begin_next().set(member(&facts, false));
        self.by_rank.insert(facts.rank, FollowedSource { facts, counts, connected: false });
    }

    pub(super) fn remove(&mut self, rank: RankKey) -> Result<(), MirrorError> {
        let source = self.by_rank.remove(&rank).ok_or(MirrorError::UnknownRank { rank })?;
        self.by_publisher.remove(&source.facts.publisher);
        self.membership.begin_next().remove(rank);
        Ok(())
    }

    /// Marks the source's transport as connected; `None` for an unknown publisher.
    pub(super) fn connected(&mut self, publisher: PublisherId) -> Option<Connected> {
        let source = self.of(publisher)?;
        if core::mem::replace(&mut source.connected, true) {
            return Some(Connected::Again);
        }
        let ready = member(&source.facts, true);
        self.membership.begin_next().set(ready);
        Some(Connected::First)
    }

    pub(super) fn of(&mut self, publisher: PublisherId) -> Option<&mut FollowedSource> {
        let rank = self.by_publisher.get(&publisher)?;
        self.by_rank.get_mut(rank)
    }

    pub(super) fn at(&mut self, rank: RankKey) -> Option<&mut FollowedSource> {
        self.by_rank.get_mut(&rank)
    }

    pub(super) fn get(&self, rank: RankKey) -> Option<&FollowedSource> {
        self.by_rank.get(&rank)
    }

    /// The membership as the router machine wants it.
    pub(super) const fn membership(&self) -> &Membership {
        &self.membership
    }
}

/// A source whose transport never came up is not ready and does not count (S5). Every source has a
/// fresh publisher id, which is change enough: no generation moves.
const fn member(facts: &SourceFacts, ready: bool) -> MemberRank {
    let source = Source {
        publisher: facts.publisher,
        target: facts.target,
        kind: SourceKind::Engine,
        first_id: facts.first_id,
        boot: None,
    };
    let status = RankStatus::Active(source);
    MemberRank { key: facts.rank, generation: Generation(0), status, ready }
}
