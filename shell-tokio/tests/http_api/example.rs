//! A backend that holds the running example of the API's description: block size 4; instance 7,
//! rank 0 holds blocks 0 and 1 on GPU, 2 on CPU, 3 on disk; rank 1 holds block 0 on GPU.

use core::num::NonZeroU32;
use kvmirror_core::id::Rank;
use kvmirror_core::router::{Trust, TrustReason};
use kvmirror_tokio::answer::{RankState, answer, workers};
use kvmirror_tokio::backend::{
    Backend, BackendError, ListenerState, ListenerStatus, Prompt, Query, QueryAnswer, WorkerInfo,
};
use kvmirror_tokio::metrics::{Snapshot, render};
use kvmirror_tokio::registry::{
    InstanceName, RankFacts, Registered, Registration, Registry, RegistryLimits, Unregistered,
    Unregistration, WorkerFilter,
};
use kvmirror_tokio::transport::Endpoint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Local hashes of the blocks of tokens 0…15, as clients send them.
pub(crate) const LOCALS: [u64; 4] = [
    9_143_094_415_614_847_814,
    (-6_322_652_565_496_669_421_i64).cast_unsigned(),
    1_088_361_764_653_601_668,
    (-2_421_763_097_180_574_668_i64).cast_unsigned(),
];
/// Rolling hashes of the same blocks.
pub(crate) const SEQUENCES: [u64; 4] = [
    9_143_094_415_614_847_814,
    9_510_318_385_840_434_533,
    16_998_148_715_716_822_651,
    16_790_386_768_269_814_709,
];
/// The engine's own hashes of rank 0's blocks.
pub(crate) const ENGINE: [u64; 4] = [101, 102, 103, u64::MAX];

pub(crate) struct Example {
    registry: Mutex<Registry>,
    /// The last query, as the backend saw it.
    last: Mutex<Option<Query>>,
    /// Trust of rank 1; rank 0 is exact.
    second_rank: (Trust, TrustReason),
    pub(crate) stopping: AtomicBool,
    /// When set, every call fails with it.
    failure: Option<BackendError>,
}

impl Example {
    /// Nothing registered.
    pub(crate) fn empty() -> Self {
        Self::limited(RegistryLimits::default())
    }

    pub(crate) fn limited(limits: RegistryLimits) -> Self {
        let mut next = 0;
        let generator = move || {
            next += 1;
            next
        };
        Self {
            registry: Mutex::new(Registry::new(limits, generator)),
            last: Mutex::new(None),
            second_rank: (Trust::Partial, TrustReason::HistoryUnknown),
            stopping: AtomicBool::new(false),
            failure: None,
        }
    }

    /// Ranks 0 and 1 of instance 7 are registered.
    pub(crate) fn running() -> Self {
        let example = Self::empty();
        for (rank, port) in [(0, 15_557), (1, 15_558)] {
            let endpoint = format!("tcp://127.0.0.1:{port}");
            let endpoint = Endpoint::parse(&endpoint, None).unwrap();
            let size = NonZeroU32::new(4).unwrap();
            let registration = Registration::new(InstanceName::integer(7), endpoint, "m", size);
            example.registry().register(Registration { rank: Rank(rank), ..registration }).unwrap();
        }
        example
    }

    pub(crate) fn second_rank(self, trust: Trust, reason: TrustReason) -> Self {
        Self { second_rank: (trust, reason), ..self }
    }

    pub(crate) fn failing(self, failure: BackendError) -> Self {
        Self { failure: Some(failure), ..self }
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap()
    }

    /// The last query that reached the backend.
    pub(crate) fn seen(&self) -> Query {
        self.last.lock().unwrap().clone().expect("no query has arrived")
    }

    fn check(&self) -> Result<(), BackendError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn state(&self, facts: &RankFacts, prompt: &Prompt) -> RankState {
        let blocks = matching_blocks(prompt);
        let holds = facts.registration.instance.as_str() == "7";
        let (exact, partial) = (Trust::Exact, self.second_rank);
        match facts.registration.rank.0 {
            _ if !holds => state(exact, TrustReason::NoSource, None, None, [0; 4]),
            0 => {
                let walk = [blocks.min(2), u32::from(blocks > 2), u32::from(blocks > 3), 0];
                state(exact, TrustReason::NoSource, Some(41), Some(120), walk)
            }
            _ => state(partial.0, partial.1, Some(12), Some(80), [blocks.min(1), 0, 0, 0]),
        }
    }
}

fn state(
    trust: Trust,
    reason: TrustReason,
    cursor: Option<u64>,
    age_ms: Option<u64>,
    matched: [u32; 4],
) -> RankState {
    RankState { trust, reason: Some(reason), cursor, age_ms, matched: Some(matched) }
}

/// How many leading blocks of the prompt are the example's.
fn matching_blocks(prompt: &Prompt) -> u32 {
    fn common(asked: impl Iterator<Item = u64>, held: &[u64]) -> u32 {
        let count = asked.zip(held).take_while(|(asked, held)| asked == *held).count();
        u32::try_from(count).unwrap()
    }
    match prompt {
        Prompt::Tokens { ids, lora, salt } if lora.is_empty() && salt.is_empty() => {
            let tokens: Vec<u64> = (0..16).collect();
            common(ids.iter().map(|id| u64::from(*id)), &tokens) / 4
        }
        Prompt::Tokens { .. } => 0,
        Prompt::Local(hashes) => common(hashes.iter().map(|hash| hash.0), &LOCALS),
        Prompt::Sequence(hashes) => common(hashes.iter().map(|hash| hash.0), &SEQUENCES),
        Prompt::Engine(hashes) => common(hashes.iter().map(|hash| hash.0), &ENGINE),
    }
}

impl Backend for Example {
    async fn register(&self, registration: Registration) -> Result<Registered, BackendError> {
        self.check()?;
        Ok(self.registry().register(registration)?)
    }

    async fn unregister(&self, wish: Unregistration) -> Result<Unregistered, BackendError> {
        self.check()?;
        Ok(self.registry().unregister(&wish)?)
    }

    async fn query(&self, query: Query) -> Result<QueryAnswer, BackendError> {
        self.check()?;
        let rows = answer(&self.registry(), &query, |facts| self.state(facts, &query.prompt));
        *self.last.lock().unwrap() = Some(query);
        Ok(rows)
    }

    async fn workers(&self, filter: WorkerFilter) -> Result<Vec<WorkerInfo>, BackendError> {
        self.check()?;
        let nothing = Prompt::Local(Vec::new());
        Ok(workers(&self.registry(), &filter, |facts| {
            let state = self.state(facts, &nothing);
            ListenerState {
                status: ListenerStatus::Active,
                last_error: None,
                trust: state.trust,
                reason: state.reason,
                cursor: state.cursor,
                age_ms: state.age_ms,
            }
        }))
    }

    async fn metrics(&self) -> String {
        render(&Snapshot::default())
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
