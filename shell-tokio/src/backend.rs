//! The seam between the HTTP surface and whoever follows the ranks.

use crate::registry::{
    EngineKind, InstanceName, Registered, Registration, RegistryError, Unregistered,
    Unregistration, WorkerFilter,
};
use core::future::Future;
use core::num::NonZeroU32;
use kvmirror_core::id::{BlockHash, LocalHash, Rank, SequenceHash, WorkerId};
use kvmirror_core::router::{Trust, TrustReason};
use thiserror::Error;

/// What the HTTP surface needs of the process behind it. Tests implement it with a fake.
///
/// Every method must answer within the time a client would wait; the HTTP surface sets no deadline
/// of its own. A call that arrives while the process stops gives [`BackendError::Stopping`].
pub trait Backend: Send + Sync + 'static {
    /// Starts to follow a rank. Success means "accepted and being followed", not "connected"; a
    /// repeat of equal facts succeeds without effect.
    fn register(
        &self,
        registration: Registration,
    ) -> impl Future<Output = Result<Registered, BackendError>> + Send;

    /// Stops following, and has forgotten the blocks of the ranks when it returns.
    fn unregister(
        &self,
        wish: Unregistration,
    ) -> impl Future<Output = Result<Unregistered, BackendError>> + Send;

    /// Matches a prompt.
    fn query(&self, query: Query)
    -> impl Future<Output = Result<QueryAnswer, BackendError>> + Send;

    /// Lists workers.
    fn workers(
        &self,
        filter: WorkerFilter,
    ) -> impl Future<Output = Result<Vec<WorkerInfo>, BackendError>> + Send;

    /// Prometheus text of everything but the HTTP surface's own counters.
    fn metrics(&self) -> impl Future<Output = String> + Send;

    /// Whether the process is stopping: POST calls are then refused before they are read.
    fn stopping(&self) -> bool;
}

/// Why a backend did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The registry refused.
    #[error(transparent)]
    Refused(#[from] RegistryError),
    /// A bounded queue is full; the call can be repeated later.
    #[error("too many calls are waiting")]
    Busy,
    /// The process is stopping.
    #[error("the process is stopping")]
    Stopping,
    /// A fault of ours. The text is for the log, not for the client.
    #[error("{0}")]
    Internal(String),
}

/// What a query asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Tokens, to be hashed once per matching domain with the domain's own options (LH-1 to LH-6).
    Tokens {
        /// The tokens; a negative token of the request keeps its 32 bits.
        ids: Vec<u32>,
        /// Adapter; empty = base model.
        lora: String,
        /// The request's own salt; empty = none.
        salt: String,
    },
    /// One local hash per block, not chained.
    Local(Vec<LocalHash>),
    /// One rolling hash per block.
    Sequence(Vec<SequenceHash>),
    /// The engine's own hashes; `Query::instance` is set. They have no positions: the walk checks
    /// residency element by element.
    Engine(Vec<BlockHash>),
}

/// A query, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Exact model.
    pub model: String,
    /// Exact tenant.
    pub tenant: String,
    /// Selects domains when given.
    pub block_size: Option<NonZeroU32>,
    /// Additional salt: selects domains when given.
    pub salt: Option<String>,
    /// Selects one instance when given; an unknown one gives no rows.
    pub instance: Option<InstanceName>,
    /// Ranks below it do not answer.
    pub min_trust: Trust,
    /// What is asked.
    pub prompt: Prompt,
}

/// The raw answer to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryAnswer {
    /// Whether the model and tenant have any registration.
    pub known: bool,
    /// One entry per selected instance, whether it matched or not. A query selects one tenant and
    /// an instance has one domain within it, so a name appears once.
    pub instances: Vec<InstanceAnswer>,
}

/// The rows of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceAnswer {
    /// Its name as registered.
    pub name: InstanceName,
    /// Tokens per block of its domain.
    pub block_size: NonZeroU32,
    /// Every registered rank.
    pub ranks: Vec<RankAnswer>,
}

/// What one rank says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankAnswer {
    /// The rank.
    pub rank: Rank,
    /// Trust at `cursor`.
    pub trust: Trust,
    /// Why the trust is not `exact`.
    pub reason: Option<TrustReason>,
    /// Last event id or message sequence the rows contain; `None` before the first.
    pub cursor: Option<u64>,
    /// Milliseconds since the rank was last known to be level with its source.
    pub age_ms: Option<u64>,
    /// Blocks the walk took per tier (device, host, disk, external), not cumulative. `None` when
    /// the rank does not answer.
    pub matched: Option<[u32; 4]>,
}

/// One instance, for `GET /workers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// Its name as registered.
    pub name: InstanceName,
    /// Its number.
    pub worker: WorkerId,
    /// The engine hint of its first rank.
    pub kind: EngineKind,
    /// Model.
    pub model: String,
    /// Tenant.
    pub tenant: String,
    /// Additional salt; empty = none.
    pub salt: String,
    /// Tokens per block.
    pub block_size: NonZeroU32,
    /// Its ranks.
    pub listeners: Vec<ListenerInfo>,
}

/// One followed rank, for `GET /workers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerInfo {
    /// The rank.
    pub rank: Rank,
    /// Live address.
    pub endpoint: String,
    /// Replay address.
    pub replay_endpoint: Option<String>,
    /// How it does.
    pub state: ListenerState,
}

/// How following one rank goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// In the words of the de-facto API.
    pub status: ListenerStatus,
    /// The last error, while it matters.
    pub last_error: Option<String>,
    /// Trust at `cursor`.
    pub trust: Trust,
    /// Why it is not `exact`.
    pub reason: Option<TrustReason>,
    /// As in [`RankAnswer::cursor`].
    pub cursor: Option<u64>,
    /// As in [`RankAnswer::age_ms`].
    pub age_ms: Option<u64>,
}

/// Status of a listener. The order is the one a worker's status is taken by: the first that any of
/// its listeners has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerStatus {
    /// It cannot be followed.
    Failed,
    /// Registered and being tried; it has not been connected yet.
    Pending,
    /// It was connected at least once; the connection may be down at the moment.
    Active,
    /// Stopped on purpose.
    Paused,
}

impl ListenerStatus {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}
