//! The view: a membership snapshot, and what it does not say (§3.5).

use super::coordinator::Coordinator;
use super::endpoint::{EndpointName, Resolution};
use super::health::Mismatch;
use super::input::{Publishing, WorkerExpectation};
use super::snapshot::Membership;
use super::status::{Ambiguity, Cause, RankState};
use crate::id::{RankKey, WorkerId};

/// The coordinator's current view. Every getter is at most logarithmic unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    coordinator: &'a Coordinator,
}

impl<'a> View<'a> {
    pub(super) const fn new(coordinator: &'a Coordinator) -> Self {
        Self { coordinator }
    }

    /// The serving endpoint.
    pub const fn serving_endpoint(self) -> &'a EndpointName {
        self.coordinator.expected.serving()
    }

    /// Where cache events are published.
    pub const fn resolution(self) -> &'a Resolution {
        self.coordinator.expected.resolution()
    }

    /// The ranks, with status and generation.
    pub const fn membership(self) -> &'a Membership {
        &self.coordinator.membership
    }

    /// Why a rank is ambiguous; `None` if it is not.
    pub fn ambiguity(self, rank: RankKey) -> Option<Ambiguity<'a>> {
        match self.coordinator.tracker.state(rank)? {
            RankState::Missing | RankState::Active(_) => None,
            RankState::Ambiguous(cause) => Some(match cause {
                Cause::EndpointMapping => Ambiguity::EndpointMapping(match self.resolution() {
                    Resolution::Ambiguous(endpoints) => endpoints,
                    Resolution::Resolved(_) => &[],
                }),
                Cause::ConflictingDescriptor(publisher) => {
                    Ambiguity::ConflictingDescriptor(*publisher)
                }
                Cause::Incarnations(publishers) => Ambiguity::Incarnations(publishers),
            }),
        }
    }

    /// The expected workers, ascending.
    pub fn workers(self) -> impl Iterator<Item = &'a WorkerExpectation> {
        self.coordinator.expected.workers()
    }

    /// Whether a worker publishes, by its own words; `None` if it is not expected.
    pub fn publishing(self, worker: WorkerId) -> Option<Publishing> {
        self.coordinator.expected.worker(worker).map(|known| known.publishing)
    }

    /// Whether a rank should be recoverable; false if it is not expected.
    pub fn recovery_expected(self, rank: RankKey) -> bool {
        self.coordinator.expected.contains(rank)
            && self
                .coordinator
                .expected
                .worker(rank.worker)
                .is_some_and(|known| known.recovery_expected)
    }

    /// How many ranks lack a source they should have.
    pub fn mismatch(self) -> Mismatch {
        self.coordinator.mismatch.count(self.membership().len())
    }

    /// Whether a serving configuration asks for no new bindings: it resolves to the same endpoint
    /// and expects the same ranks (M7). Nothing else in it matters. Takes time in its length.
    pub fn same_binding_inputs(self, workers: &[WorkerExpectation]) -> bool {
        self.coordinator.expected.same_inputs(workers)
    }
}
