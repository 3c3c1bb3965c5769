//! The coordinator: one function per input.

use super::endpoint::EndpointName;
use super::expected::{Dirty, Expected};
use super::generation::Tracker;
use super::health::MismatchSets;
use super::input::{Advertisement, MembershipInput, Withdrawal, WorkerExpectation};
use super::policy::{MembershipPolicy, MembershipPolicyError};
use super::snapshot::Membership;
use super::stats::MembershipStats;
use super::store::{Store, Touched};
use super::view::View;
use crate::id::{PublisherId, WorkerId};
use crate::time::Timestamp;
use alloc::vec::Vec;
use core::mem;

/// What an input has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use = "a new snapshot must reach its consumers"]
pub enum Update {
    /// Nothing that anybody sees.
    Unchanged,
    /// Only what the view says beside the snapshot: configuration, or which endpoints are named.
    View,
    /// The membership snapshot, and perhaps the view.
    Snapshot,
}

/// Whether discovery is current.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Discovery {
    /// It is.
    Current,
    /// It failed (B8). What it lists afresh is collected beside the last known advertisements.
    Suspect {
        listing: Store,
        /// When the last known ones are dropped. `None` = the whole input ended (B35): never.
        until: Option<Timestamp>,
    },
    /// The input ended and nobody is told (M14, reference profile).
    Ended,
}

/// Turns serving expectations and advertised sources into membership snapshots with lifecycle
/// generations (§3).
///
/// One coordinator serves one serving endpoint. It owns its current snapshot and changes it in place;
/// an input costs time in what it changes, not in what is known, except that a new list of
/// expectations is read as a whole, and that another endpoint concerns every rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    pub(super) policy: MembershipPolicy,
    pub(super) expected: Expected,
    pub(super) known: Store,
    pub(super) discovery: Discovery,
    pub(super) tracker: Tracker,
    pub(super) membership: Membership,
    pub(super) mismatch: MismatchSets,
    /// Workers that the last change concerned, ascending.
    pub(super) changed_workers: Vec<WorkerId>,
    /// Whether the tracker has seen a view, and thereby a resolution.
    pub(super) begun: bool,
    pub(super) stats: MembershipStats,
}

impl Coordinator {
    /// Makes a coordinator that expects nothing yet.
    ///
    /// # Errors
    /// [`MembershipPolicyError`] when a limit is zero.
    pub fn new(
        serving: EndpointName,
        policy: MembershipPolicy,
    ) -> Result<Self, MembershipPolicyError> {
        let policy = policy.validated()?;
        Ok(Self {
            expected: Expected::new(serving, policy.workers_max, policy.ranks_max),
            policy,
            known: Store::default(),
            discovery: Discovery::Current,
            tracker: Tracker::default(),
            membership: Membership::default(),
            mismatch: MismatchSets::default(),
            changed_workers: Vec::new(),
            begun: false,
            stats: MembershipStats::default(),
        })
    }

    /// Feeds any input; the same as calling its handler.
    pub fn handle(&mut self, input: MembershipInput, now: Timestamp) -> Update {
        match input {
            MembershipInput::Expectations(workers) => self.handle_expectations(workers),
            MembershipInput::Expected(expectation) => self.handle_expected(expectation),
            MembershipInput::Unexpected(worker) => self.handle_unexpected(worker),
            MembershipInput::Advertisement(advertisement) => {
                self.handle_advertisement(advertisement)
            }
            MembershipInput::Withdrawal(withdrawal) => self.handle_withdrawal(&withdrawal),
            MembershipInput::Invalid(publisher) => self.handle_invalid(publisher),
            MembershipInput::Lost => self.handle_lost(now),
            MembershipInput::Listed => self.handle_listed(),
            MembershipInput::Ended => self.handle_ended(),
            MembershipInput::Timeout => self.handle_timeout(now),
        }
    }

    /// The whole serving configuration: a worker that is not listed is no longer expected. Also
    /// while discovery is in doubt this takes effect at once.
    ///
    /// Another resolved endpoint forgets all advertisements, since the new endpoint's are listed
    /// afresh, and moves every rank's generation (M13, G1).
    pub fn handle_expectations(&mut self, workers: Vec<WorkerExpectation>) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        let mut dirty = Dirty::default();
        self.expected.replace(workers, &mut self.stats, &mut dirty);
        self.publish(dirty)
    }

    /// One worker's configuration, new or changed; the others stay as they are.
    pub fn handle_expected(&mut self, expectation: WorkerExpectation) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        let mut dirty = Dirty::default();
        self.expected.set(expectation, &mut self.stats, &mut dirty);
        self.publish(dirty)
    }

    /// One worker is no longer expected; the others stay as they are.
    pub fn handle_unexpected(&mut self, worker: WorkerId) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        let mut dirty = Dirty::default();
        self.expected.remove(worker, &mut dirty);
        self.publish(dirty)
    }

    /// Discovery lists a source. Ignored unless it is at the resolved endpoint (§3.3).
    pub fn handle_advertisement(&mut self, advertisement: Advertisement) -> Update {
        let Advertisement { rank, endpoint, source } = advertisement;
        self.record(endpoint.as_ref(), |store, policy, stats| {
            store.advertise(rank, source, policy, stats)
        })
    }

    /// Discovery no longer lists a source. Only this incarnation goes, with its contradictions.
    pub fn handle_withdrawal(&mut self, withdrawal: &Withdrawal) -> Update {
        self.record(withdrawal.endpoint.as_ref(), |store, _, stats| {
            store.withdraw(withdrawal.publisher, stats)
        })
    }

    /// Discovery lists a record that cannot be read, or that contradicts itself, under a publisher's
    /// name. It closes the rank that the publisher serves until it is withdrawn.
    pub fn handle_invalid(&mut self, publisher: PublisherId) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        self.note(|store, policy, stats| store.invalidate(publisher, policy, stats))
    }

    /// The discovery stream failed or ended; another one will list afresh.
    ///
    /// Reference: every advertisement is forgotten. Otherwise (B8) the last known membership stays,
    /// marked as suspect, for the grace period; what comes from now on belongs to the new list. A
    /// further failure meanwhile begins the list anew and does not lengthen the grace.
    pub fn handle_lost(&mut self, now: Timestamp) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        self.stats.losses += 1;
        if !self.policy.suspect_discovery {
            let dirty = Dirty::of_ranks(self.known.ranks());
            self.known = Store::default();
            return self.publish(dirty);
        }
        match &mut self.discovery {
            Discovery::Current => {
                let until = Some(now.after(self.policy.suspect_grace));
                self.discovery = Discovery::Suspect { listing: Store::default(), until };
            }
            Discovery::Suspect { listing, .. } => *listing = Store::default(),
            Discovery::Ended => {}
        }
        self.publish(Dirty::default())
    }

    /// The new discovery stream has listed everything there was when it began: the difference to the
    /// last known membership takes effect, and the suspicion ends. Without one, no effect.
    pub fn handle_listed(&mut self) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        match mem::replace(&mut self.discovery, Discovery::Current) {
            Discovery::Suspect { listing, .. } => {
                self.stats.resynchronised += 1;
                self.adopt(listing)
            }
            Discovery::Current | Discovery::Ended => self.publish(Dirty::default()),
        }
    }

    /// The membership input as a whole has ended (M14).
    ///
    /// Reference: the last snapshot stays, nobody is told, later inputs have no effect. Otherwise
    /// (B35) it is suspect, without a time limit, until a new stream has been listed completely; what
    /// comes from now on is taken for that stream's.
    pub fn handle_ended(&mut self) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        if !self.policy.suspect_discovery {
            self.discovery = Discovery::Ended;
            return Update::Unchanged;
        }
        self.discovery = Discovery::Suspect { listing: Store::default(), until: None };
        self.publish(Dirty::default())
    }

    /// Time has passed: a suspicion whose grace is over ends, and what the new list does not contain
    /// is dropped. Early calls have no effect.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Update {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return Update::Unchanged;
        }
        match mem::replace(&mut self.discovery, Discovery::Current) {
            Discovery::Suspect { listing, .. } => {
                self.stats.suspicions_expired += 1;
                self.adopt(listing)
            }
            Discovery::Current | Discovery::Ended => Update::Unchanged,
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub const fn next_deadline(&self) -> Option<Timestamp> {
        match &self.discovery {
            Discovery::Suspect { until, .. } => *until,
            Discovery::Current | Discovery::Ended => None,
        }
    }

    /// The current snapshot.
    pub const fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The current view: the snapshot, and what it does not say.
    pub const fn view(&self) -> View<'_> {
        View::new(self)
    }

    /// The workers that the last [`Update::View`] or [`Update::Snapshot`] concerned, ascending; those
    /// that left among them.
    pub fn changed_workers(&self) -> &[WorkerId] {
        &self.changed_workers
    }

    /// Its counters.
    pub const fn stats(&self) -> &MembershipStats {
        &self.stats
    }

    /// Advertisements kept, the new list of a suspect discovery included.
    pub fn advertisements(&self) -> usize {
        let listing = match &self.discovery {
            Discovery::Suspect { listing, .. } => listing.len(),
            Discovery::Current | Discovery::Ended => 0,
        };
        self.known.len() + listing
    }

    /// Ranks whose generation is kept, expected or not.
    pub fn tracked_ranks(&self) -> usize {
        self.tracker.len()
    }

    /// Whether the input has ended and nothing has an effect any more.
    const fn ignores(&mut self) -> bool {
        match self.discovery {
            Discovery::Ended => {
                self.stats.after_end += 1;
                true
            }
            Discovery::Current | Discovery::Suspect { .. } => false,
        }
    }

    /// Works on a record that names an endpoint.
    fn record(
        &mut self,
        endpoint: Option<&EndpointName>,
        work: impl FnOnce(&mut Store, &MembershipPolicy, &mut MembershipStats) -> Touched,
    ) -> Update {
        if self.ignores() {
            return Update::Unchanged;
        }
        if !self.expected.resolves_to(endpoint) {
            self.stats.other_endpoint += 1;
            return self.publish(Dirty::default());
        }
        self.note(work)
    }

    /// Works on the advertisements that discovery lists at present; while it is in doubt the last
    /// known ones stay as they are.
    fn note(
        &mut self,
        work: impl FnOnce(&mut Store, &MembershipPolicy, &mut MembershipStats) -> Touched,
    ) -> Update {
        let dirty = match &mut self.discovery {
            Discovery::Suspect { listing, .. } => {
                work(listing, &self.policy, &mut self.stats);
                Dirty::default()
            }
            Discovery::Current | Discovery::Ended => {
                Dirty::of_ranks(work(&mut self.known, &self.policy, &mut self.stats))
            }
        };
        self.publish(dirty)
    }

    /// Takes the new list for what is known.
    fn adopt(&mut self, listing: Store) -> Update {
        let dirty = Dirty::of_ranks(self.known.ranks().chain(listing.ranks()));
        self.known = listing;
        self.publish(dirty)
    }
}
