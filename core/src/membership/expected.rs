//! What the serving configuration expects: workers, their ranks, and where they publish (§3.1, §3.2).

use super::endpoint::{EndpointName, Resolution};
use super::input::WorkerExpectation;
use super::stats::MembershipStats;
use crate::id::{Rank, RankKey, WorkerId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    expectation: WorkerExpectation,
    /// How many of its ranks are expected: all that have a number and fit under the limit.
    shown: u32,
}

/// What an input may have changed.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// Ranks to look at again; repeats possible.
    pub(super) ranks: Vec<RankKey>,
    /// Workers whose configuration changed; repeats possible.
    pub(super) workers: Vec<WorkerId>,
    /// The set of named endpoints changed, at least on the way.
    endpoints: bool,
}

impl Dirty {
    /// Ranks whose advertisements changed.
    pub(super) fn of_ranks(ranks: impl IntoIterator<Item = RankKey>) -> Self {
        Self { ranks: ranks.into_iter().collect(), ..Self::default() }
    }
}

/// The expectations, indexed per worker; every lookup is logarithmic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expected {
    serving: EndpointName,
    workers_max: usize,
    ranks_max: usize,
    workers: BTreeMap<WorkerId, Worker>,
    /// How many workers name each endpoint.
    endpoints: BTreeMap<EndpointName, usize>,
    /// Workers that did not get all their ranks.
    short: BTreeSet<WorkerId>,
    total: usize,
    resolution: Resolution,
}

/// How many ranks have a number (M4).
fn numbered(expectation: &WorkerExpectation) -> u32 {
    let room = (1_u64 << 32) - u64::from(expectation.first_rank.0);
    u32::try_from(room).map_or(expectation.ranks, |room| room.min(expectation.ranks))
}

impl Worker {
    fn ranks(&self) -> impl Iterator<Item = RankKey> + use<> {
        let WorkerExpectation { worker, first_rank, .. } = self.expectation;
        (0..self.shown).filter_map(move |offset| {
            Some(RankKey { worker, rank: Rank(first_rank.0.checked_add(offset)?) })
        })
    }
}

impl Expected {
    pub(super) fn new(serving: EndpointName, workers_max: usize, ranks_max: usize) -> Self {
        Self {
            resolution: Resolution::Resolved(serving.clone()),
            serving,
            workers_max,
            ranks_max,
            workers: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            short: BTreeSet::new(),
            total: 0,
        }
    }

    pub(super) const fn serving(&self) -> &EndpointName {
        &self.serving
    }

    pub(super) const fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// Whether `endpoint` is the resolved one.
    pub(super) fn resolves_to(&self, endpoint: Option<&EndpointName>) -> bool {
        self.resolution.endpoint() == Some(endpoint.unwrap_or(&self.serving))
    }

    pub(super) fn worker(&self, worker: WorkerId) -> Option<&WorkerExpectation> {
        self.workers.get(&worker).map(|known| &known.expectation)
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &WorkerExpectation> {
        self.workers.values().map(|known| &known.expectation)
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = RankKey> {
        self.workers.values().flat_map(Worker::ranks)
    }

    pub(super) fn contains(&self, rank: RankKey) -> bool {
        self.workers.get(&rank.worker).is_some_and(|known| {
            let first = known.expectation.first_rank.0;
            rank.rank.0.checked_sub(first).is_some_and(|offset| offset < known.shown)
        })
    }

    /// Replaces all expectations. A worker that is named twice counts as its last entry says.
    pub(super) fn replace(
        &mut self,
        workers: Vec<WorkerExpectation>,
        stats: &mut MembershipStats,
        dirty: &mut Dirty,
    ) {
        let named = workers.len();
        let workers: BTreeMap<_, _> =
            workers.into_iter().map(|expectation| (expectation.worker, expectation)).collect();
        stats.workers_repeated += (named - workers.len()) as u64;
        let gone: Vec<WorkerId> =
            self.workers.keys().filter(|id| !workers.contains_key(id)).copied().collect();
        for worker in gone {
            self.remove(worker, dirty);
        }
        for expectation in workers.into_values() {
            self.set(expectation, stats, dirty);
        }
    }

    pub(super) fn set(
        &mut self,
        expectation: WorkerExpectation,
        stats: &mut MembershipStats,
        dirty: &mut Dirty,
    ) {
        let worker = expectation.worker;
        match self.worker(worker) {
            Some(known) if *known == expectation => return,
            None if self.workers.len() >= self.workers_max => {
                stats.workers_over_limit += 1;
                return;
            }
            Some(_) | None => {}
        }
        self.remove(worker, dirty);
        let wanted = numbered(&expectation);
        stats.ranks_beyond_u32 += u64::from(expectation.ranks - wanted);
        let endpoint = expectation.endpoint.as_ref().unwrap_or(&self.serving).clone();
        let naming = self.endpoints.entry(endpoint).or_default();
        *naming += 1;
        dirty.endpoints |= *naming == 1;
        self.workers.insert(worker, Worker { expectation, shown: 0 });
        let left_out = self.grow(worker, dirty);
        stats.ranks_over_limit += u64::from(left_out);
        dirty.workers.push(worker);
    }

    pub(super) fn remove(&mut self, worker: WorkerId, dirty: &mut Dirty) {
        let Some(known) = self.workers.remove(&worker) else { return };
        dirty.ranks.extend(known.ranks());
        dirty.workers.push(worker);
        self.total -= known.shown as usize;
        self.short.remove(&worker);
        let endpoint = known.expectation.endpoint.as_ref().unwrap_or(&self.serving);
        if let Some(naming) = self.endpoints.get_mut(endpoint) {
            *naming -= 1;
            if *naming == 0 {
                self.endpoints.remove(endpoint);
                dirty.endpoints = true;
            }
        }
    }

    /// Gives a worker as many of its ranks as there is room for; returns how many it lacks.
    fn grow(&mut self, worker: WorkerId, dirty: &mut Dirty) -> u32 {
        let Some(known) = self.workers.get_mut(&worker) else { return 0 };
        let wanted = numbered(&known.expectation);
        let lacking = wanted - known.shown;
        let room = self.ranks_max.saturating_sub(self.total);
        let more = u32::try_from(room).map_or(lacking, |room| room.min(lacking));
        if more > 0 {
            known.shown += more;
            self.total += more as usize;
            dirty.ranks.extend(known.ranks());
        }
        if more < lacking {
            self.short.insert(worker);
        } else {
            self.short.remove(&worker);
        }
        lacking - more
    }

    /// Closes a change: room that became free is given away, and the endpoint resolved again.
    /// Returns whether the resolution is another one.
    pub(super) fn settle(&mut self, dirty: &mut Dirty) -> bool {
        while self.total < self.ranks_max {
            let Some(worker) = self.short.first().copied() else { break };
            self.grow(worker, dirty);
        }
        if !dirty.endpoints {
            return false;
        }
        let mut names = self.endpoints.keys();
        let resolution = match (names.next(), names.next()) {
            (None, _) => Resolution::Resolved(self.serving.clone()),
            (Some(only), None) => Resolution::Resolved(only.clone()),
            (Some(_), Some(_)) => Resolution::Ambiguous(self.endpoints.keys().cloned().collect()),
        };
        let changed = resolution != self.resolution;
        self.resolution = resolution;
        changed
    }

    /// M7: whether these configurations give the same resolution and the same ranks.
    pub(super) fn same_inputs(&self, workers: &[WorkerExpectation]) -> bool {
        let mut other = Self::new(self.serving.clone(), self.workers_max, self.ranks_max);
        let mut dirty = Dirty::default();
        other.replace(workers.to_vec(), &mut MembershipStats::default(), &mut dirty);
        other.settle(&mut dirty);
        other.resolution == self.resolution && other.ranks().eq(self.ranks())
    }
}
