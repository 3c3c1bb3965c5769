//! What the handle asks of the run loop.

use super::per_rank::RankCounts;
use crate::backend::{BackendError, Query, QueryAnswer, WorkerInfo};
use crate::registry::{Registered, Registration, Unregistered, Unregistration, WorkerFilter};
use kvmirror_core::id::{EventId, RankKey};
use kvmirror_core::index::ResidentBlock;
use kvmirror_core::router::{Purpose, Trust, TrustReason};
use tokio::sync::oneshot;

/// One followed rank and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankRow {
    /// The rank.
    pub key: RankKey,
    /// The instance's name.
    pub instance: String,
    /// Trust at `cursor`.
    pub trust: Trust,
    /// Why it is not exact.
    pub reason: Option<TrustReason>,
    /// Last sequence applied.
    pub cursor: Option<EventId>,
    /// Messages known to exist beyond it.
    pub lag: u64,
    /// Milliseconds since it was last known to be level with its source.
    pub age_ms: Option<u64>,
    /// Resident blocks of all tiers.
    pub blocks: u64,
    /// The recovery in progress.
    pub recovering: Option<Purpose>,
    /// Gaps noticed, recoveries that healed, new lives.
    pub counts: RankCounts,
}

#[derive(Debug)]
pub(super) enum Call {
    Register(Box<Registration>, oneshot::Sender<Result<Registered, BackendError>>),
    Unregister(Unregistration, oneshot::Sender<Result<Unregistered, BackendError>>),
    Query(Query, oneshot::Sender<QueryAnswer>),
    Workers(WorkerFilter, oneshot::Sender<Vec<WorkerInfo>>),
    Metrics(oneshot::Sender<String>),
    Ranks(oneshot::Sender<Vec<RankRow>>),
    Blocks(RankKey, oneshot::Sender<Vec<ResidentBlock>>),
    Stop(oneshot::Sender<()>),
}
