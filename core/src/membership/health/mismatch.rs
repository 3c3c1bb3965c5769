//! The mismatch gauge: how many ranks lack a source they should have (§4.2).

use super::requirement::Requirement;
use crate::id::RankKey;
use crate::membership::{Publishing, RankStatus};
use alloc::collections::BTreeSet;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MismatchScope {
    /// Somebody without needs of their own.
    Generic,
    /// A router with these needs.
    Router(Requirement),
}

/// Numbers of ranks that lack something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mismatch {
    /// Expected ranks.
    pub expected: usize,
    /// Of these: missing, ambiguous, or live-only though recovery is expected.
    pub bad: usize,
    /// Of these: bad, or their worker says that it does not publish.
    pub unmet: usize,
}

impl MismatchScope {
    /// The gauge while the sources are followed.
    pub const fn gauge(self, mismatch: Mismatch) -> usize {
        match self {
            Self::Generic | Self::Router(Requirement::Unknown) => mismatch.bad,
            Self::Router(Requirement::NotRequired) => 0,
            Self::Router(Requirement::CacheAwareRouting | Requirement::ConditionalDecodeCache) => {
                mismatch.unmet
            }
        }
    }

    /// The gauge after subscribing has failed: no rank has what it should.
    pub const fn gauge_unsubscribed(self, mismatch: Mismatch) -> usize {
        match self {
            Self::Router(Requirement::NotRequired) => 0,
            Self::Generic
            | Self::Router(
                Requirement::Unknown
                | Requirement::CacheAwareRouting
                | Requirement::ConditionalDecodeCache,
            ) => mismatch.expected,
        }
    }
}

/// The gauge after a shutdown: a cancellation takes it to 0, anything else leaves its last value.
pub const fn mismatch_after_shutdown(last: usize, cancelled: bool) -> usize {
    if cancelled { 0 } else { last }
}

/// The ranks behind the numbers, kept up to date rank by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::membership) struct MismatchSets {
    bad: BTreeSet<RankKey>,
    unmet: BTreeSet<RankKey>,
}

impl MismatchSets {
    pub(in crate::membership) fn set(
        &mut self,
        rank: RankKey,
        status: RankStatus,
        publishing: Publishing,
        recovery_expected: bool,
    ) {
        let bad = match status {
            RankStatus::Missing | RankStatus::Ambiguous => true,
            RankStatus::Active(source) => source.target.is_none() && recovery_expected,
        };
        put(&mut self.bad, rank, bad);
        put(&mut self.unmet, rank, bad || publishing == Publishing::Disabled);
    }

    pub(in crate::membership) fn remove(&mut self, rank: RankKey) {
        self.bad.remove(&rank);
        self.unmet.remove(&rank);
    }

    pub(in crate::membership) fn count(&self, expected: usize) -> Mismatch {
        Mismatch { expected, bad: self.bad.len(), unmet: self.unmet.len() }
    }
}

fn put(set: &mut BTreeSet<RankKey>, rank: RankKey, member: bool) {
    if member {
        set.insert(rank);
    } else {
        set.remove(&rank);
    }
}
