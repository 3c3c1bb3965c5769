//! The run loop: one task that owns the mirror and the registry, and a handle to it.
//!
//! Everything that changes the mirror goes through one queue per kind: calls of the handle, answers
//! of replays, events of the sources. The loop takes them in that order, a bounded number per turn,
//! carries out what the mirror asks for and sleeps until its next deadline. Queries are answered
//! between messages, by the same task, so an answer is never torn.

mod call;
mod log;
mod per_rank;
mod prompt;
mod run;
mod sources;
mod view;

pub use call::RankRow;

use crate::backend::{Backend, BackendError, Query, QueryAnswer, WorkerInfo};
use crate::record::{RecordError, RecordOptions, Recording};
use crate::registry::{
    Registered, Registration, RegistryLimits, Unregistered, Unregistration, WorkerFilter,
};
use crate::replay::ReplayLimits;
use crate::transport::{SubscribeOptions, Transport};
use call::Call;
use kvmirror_core::id::RankKey;
use kvmirror_core::index::ResidentBlock;
use kvmirror_core::mirror::{Mirror, MirrorOptions, RecordingTooLate};
use kvmirror_core::router::PolicyError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Calls that may wait for the loop; beyond, a caller is told that it is busy.
const CALLS_WAITING: usize = 1_024;

/// How a follower behaves.
#[derive(Clone, Debug, Default)]
pub struct FollowerOptions {
    /// Of the mirror.
    pub mirror: MirrorOptions,
    /// Of the registry.
    pub registry: RegistryLimits,
    /// Of every subscription; the topic is the registration's.
    pub subscribe: SubscribeOptions,
    /// Of every replay.
    pub replay: ReplayLimits,
    /// Messages that all readers together may be ahead of the loop.
    pub ingress_messages: IngressMessages,
    /// Where to record what the machine is fed and what it wants, if at all.
    pub record: Option<RecordOptions>,
}

/// Why a follower cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowerError {
    /// A limit is zero that must not be.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The recording's file cannot be made.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The machine has been fed already.
    #[error(transparent)]
    RecordingTooLate(#[from] RecordingTooLate),
}

/// Room of the queue between the readers and the loop; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressMessages(pub usize);

impl Default for IngressMessages {
    fn default() -> Self {
        Self(8_192)
    }
}

/// A handle to a running follower; clones share it. The follower ends with [`Follower::stop`].
#[derive(Clone, Debug)]
pub struct Follower {
    calls: mpsc::Sender<Call>,
    stopping: Arc<AtomicBool>,
}

impl Follower {
    /// Starts the run loop. Must be called within a tokio runtime.
    ///
    /// `random` supplies the randomness of publisher ids and the seed of the jitter.
    ///
    /// # Errors
    /// [`FollowerError`]; nothing has been started then.
    pub fn start<T: Transport>(
        transport: T,
        mut options: FollowerOptions,
        mut random: impl FnMut() -> u64 + Send + Sync + 'static,
    ) -> Result<(Self, JoinHandle<()>), FollowerError> {
        options.mirror.policy.seed = random();
        let mut mirror = Mirror::new(options.mirror)?;
        let recording = match &options.record {
            Some(record) => {
                mirror.record("serve", record.payloads)?;
                Some(Recording::start(record)?)
            }
            None => None,
        };
        let (calls, called) = mpsc::channel(CALLS_WAITING);
        let follower = Self { calls, stopping: Arc::default() };
        let running = run::Running::new(transport, options, mirror, recording, random);
        Ok((follower, tokio::spawn(running.run(called))))
    }

    /// Every followed rank with its state, ascending.
    ///
    /// # Errors
    /// [`BackendError::Busy`] and [`BackendError::Stopping`].
    pub async fn ranks(&self) -> Result<Vec<RankRow>, BackendError> {
        self.call(Call::Ranks).await
    }

    /// What one rank holds, sorted; `None` when it is not followed. The cursor belongs to it.
    ///
    /// # Errors
    /// [`BackendError::Busy`] and [`BackendError::Stopping`].
    pub async fn blocks(&self, rank: RankKey) -> Result<Vec<ResidentBlock>, BackendError> {
        self.call(|answer| Call::Blocks(rank, answer)).await
    }

    /// Stops following and waits until every source is closed.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        let (answer, stopped) = oneshot::channel();
        if self.calls.send(Call::Stop(answer)).await.is_ok() {
            // The loop answers by dropping the sender at the latest.
            drop(stopped.await);
        }
    }

    async fn call<A>(
        &self,
        make: impl FnOnce(oneshot::Sender<A>) -> Call,
    ) -> Result<A, BackendError> {
        use mpsc::error::TrySendError;
        if self.stopping.load(Ordering::Relaxed) {
            return Err(BackendError::Stopping);
        }
        let (answer, answered) = oneshot::channel();
        self.calls.try_send(make(answer)).map_err(|error| match error {
            TrySendError::Full(_) => BackendError::Busy,
            TrySendError::Closed(_) => BackendError::Stopping,
        })?;
        answered.await.map_err(|_| BackendError::Stopping)
    }
}

impl Backend for Follower {
    async fn register(&self, registration: Registration) -> Result<Registered, BackendError> {
        self.call(|answer| Call::Register(Box::new(registration), answer)).await?
    }

    async fn unregister(&self, wish: Unregistration) -> Result<Unregistered, BackendError> {
        self.call(|answer| Call::Unregister(wish, answer)).await?
    }

    async fn query(&self, query: Query) -> Result<QueryAnswer, BackendError> {
        self.call(|answer| Call::Query(query, answer)).await
    }

    async fn workers(&self, filter: WorkerFilter) -> Result<Vec<WorkerInfo>, BackendError> {
        self.call(|answer| Call::Workers(filter, answer)).await
    }

    async fn metrics(&self) -> String {
        self.call(Call::Metrics).await.unwrap_or_default()
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) || self.calls.is_closed()
    }
}
