//! Everything that can happen to the coordinator.

use super::endpoint::EndpointName;
use super::snapshot::Source;
use crate::id::{PublisherId, Rank, RankKey, WorkerId};
use alloc::vec::Vec;

/// Whether a worker publishes cache events, by its own words (M5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Publishing {
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
    /// It does not say.
    #[default]
    Undeclared,
}

/// One serving worker, by its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerExpectation {
    /// The worker.
    pub worker: WorkerId,
    /// Its first global data-parallel rank.
    pub first_rank: Rank,
    /// How many ranks it has, `first_rank` onwards. Numbers beyond 32 bits are left out (M4).
    pub ranks: u32,
    /// Whether it says that it publishes.
    pub publishing: Publishing,
    /// Whether its ranks should be recoverable (M5).
    pub recovery_expected: bool,
    /// Where its cache events are published; `None` = at the serving endpoint (M1).
    pub endpoint: Option<EndpointName>,
}

/// An event source, as discovery lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Advertisement {
    /// The rank it publishes for.
    pub rank: RankKey,
    /// Where it publishes; `None` = at the serving endpoint.
    pub endpoint: Option<EndpointName>,
    /// The incarnation.
    pub source: Source,
}

/// An event source that discovery no longer lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Withdrawal {
    /// The incarnation.
    pub publisher: PublisherId,
    /// Where it published; `None` = at the serving endpoint.
    pub endpoint: Option<EndpointName>,
}

/// Every input in one type, for recording, replaying and exploring. The coordinator has one handler
/// for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MembershipInput {
    /// See [`super::Coordinator::handle_expectations`].
    Expectations(Vec<WorkerExpectation>),
    /// See [`super::Coordinator::handle_expected`].
    Expected(WorkerExpectation),
    /// See [`super::Coordinator::handle_unexpected`].
    Unexpected(WorkerId),
    /// See [`super::Coordinator::handle_advertisement`].
    Advertisement(Advertisement),
    /// See [`super::Coordinator::handle_withdrawal`].
    Withdrawal(Withdrawal),
    /// See [`super::Coordinator::handle_invalid`].
    Invalid(PublisherId),
    /// See [`super::Coordinator::handle_lost`].
    Lost,
    /// See [`super::Coordinator::handle_listed`].
    Listed,
    /// See [`super::Coordinator::handle_ended`].
    Ended,
    /// See [`super::Coordinator::handle_timeout`].
    Timeout,
}
