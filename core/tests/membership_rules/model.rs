//! A naive model of the coordinator: it computes everything from whole lists, each time, by the words
//! of the rules. It knows no limits.

use kvmirror_core::id::{PublisherId, Rank, RankKey, WorkerId};
use kvmirror_core::membership::health::Mismatch;
use kvmirror_core::membership::{
    Advertisement, EndpointName, MembershipInput, MembershipPolicy, Publishing, Resolution, Source,
    Update, Withdrawal, WorkerExpectation,
};
use kvmirror_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Status {
    Missing,
    Active(Source),
    Mapping(Vec<EndpointName>),
    Conflict(PublisherId),
    Many(Vec<PublisherId>),
}

impl Status {
    fn is_active(&self) -> bool {
        matches!(self, Self::Active(_))
    }
}

#[derive(Clone, Debug)]
struct Record {
    rank: RankKey,
    source: Source,
    conflicting: bool,
    claims: Vec<RankKey>,
}

#[derive(Clone, Debug, Default)]
struct List {
    records: Vec<Record>,
    quarantined: BTreeSet<PublisherId>,
}

#[derive(Debug)]
pub(crate) struct Track {
    key: RankKey,
    generation: u64,
    ever_active: bool,
    previous: Option<Status>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) suspect: bool,
    pub(crate) resolution: Resolution,
    pub(crate) ranks: Vec<(RankKey, u64, Status)>,
    pub(crate) workers: Vec<WorkerExpectation>,
}

pub(crate) struct Model {
    policy: MembershipPolicy,
    workers: BTreeMap<WorkerId, WorkerExpectation>,
    known: List,
    listing: Option<List>,
    pub(crate) until: Option<Timestamp>,
    ended: bool,
    pub(crate) tracks: Vec<Track>,
    floor: u64,
    previous: Option<Resolution>,
    pub(crate) shown: Shown,
}

pub(crate) fn serving() -> EndpointName {
    EndpointName::new("serving")
}

fn ranks_of(worker: &WorkerExpectation) -> Vec<RankKey> {
    (0..u64::from(worker.ranks))
        .filter_map(|offset| u32::try_from(u64::from(worker.first_rank.0) + offset).ok())
        .map(|rank| RankKey { worker: worker.worker, rank: Rank(rank) })
        .collect()
}

impl List {
    fn advertise(&mut self, policy: &MembershipPolicy, rank: RankKey, source: Source) {
        let publisher = source.publisher;
        let Some(known) = self.records.iter_mut().find(|r| r.source.publisher == publisher) else {
            let conflicting = self.quarantined.contains(&publisher);
            self.records.push(Record { rank, source, conflicting, claims: Vec::new() });
            return;
        };
        if known.rank == rank && known.source == source {
            return;
        }
        let mut other_boot = known.source;
        other_boot.boot = source.boot;
        let reboot = known.rank == rank && other_boot == source && source.boot.is_some();
        if policy.check_boot && reboot {
            known.source = source;
            return;
        }
        known.conflicting = true;
        if policy.quarantine && known.rank != rank && !known.claims.contains(&rank) {
            known.claims.push(rank);
        }
    }

    fn withdraw(&mut self, publisher: PublisherId) {
        self.quarantined.remove(&publisher);
        self.records.retain(|record| record.source.publisher != publisher);
    }

    fn invalidate(&mut self, policy: &MembershipPolicy, publisher: PublisherId) {
        match self.records.iter_mut().find(|record| record.source.publisher == publisher) {
            Some(record) => record.conflicting = true,
            None if policy.quarantine => {
                self.quarantined.insert(publisher);
            }
            None => {}
        }
    }

    fn status(&self, key: RankKey) -> Status {
        let conflicts = self.records.iter().filter(|record| {
            record.conflicting && (record.rank == key || record.claims.contains(&key))
        });
        if let Some(publisher) = conflicts.map(|record| record.source.publisher).min() {
            return Status::Conflict(publisher);
        }
        let mut sources: Vec<Source> =
            self.records.iter().filter(|r| r.rank == key).map(|r| r.source).collect();
        sources.sort_by_key(|source| source.publisher);
        match sources.as_slice() {
            [] => Status::Missing,
            [one] => Status::Active(*one),
            many => Status::Many(many.iter().map(|source| source.publisher).collect()),
        }
    }
}

impl Model {
    pub(crate) fn new(policy: MembershipPolicy) -> Self {
        let shown = Shown {
            suspect: false,
            resolution: Resolution::Resolved(serving()),
            ranks: Vec::new(),
            workers: Vec::new(),
        };
        Self {
            policy,
            workers: BTreeMap::new(),
            known: List::default(),
            listing: None,
            until: None,
            ended: false,
            tracks: Vec::new(),
            floor: 0,
            previous: None,
            shown,
        }
    }

    fn resolution(&self) -> Resolution {
        let names: BTreeSet<EndpointName> = self
            .workers
            .values()
            .map(|worker| worker.endpoint.clone().unwrap_or_else(serving))
            .collect();
        let names: Vec<EndpointName> = names.into_iter().collect();
        match names.as_slice() {
            [] => Resolution::Resolved(serving()),
            [one] => Resolution::Resolved(one.clone()),
            _ => Resolution::Ambiguous(names),
        }
    }

    fn list(&mut self) -> &mut List {
        self.listing.as_mut().unwrap_or(&mut self.known)
    }

    fn is_here(&self, endpoint: Option<&EndpointName>) -> bool {
        self.resolution() == Resolution::Resolved(endpoint.cloned().unwrap_or_else(serving))
    }

    pub(crate) fn step(&mut self, input: &MembershipInput, now: Timestamp) -> Update {
        if self.ended {
            return Update::Unchanged;
        }
        let before = self.resolution();
        let hardened = self.policy.suspect_discovery;
        match input {
            MembershipInput::Expectations(workers) => {
                self.workers = workers.iter().map(|w| (w.worker, w.clone())).collect();
            }
            MembershipInput::Expected(worker) => {
                self.workers.insert(worker.worker, worker.clone());
            }
            MembershipInput::Unexpected(worker) => {
                self.workers.remove(worker);
            }
            MembershipInput::Advertisement(Advertisement { rank, endpoint, source }) => {
                if self.is_here(endpoint.as_ref()) {
                    let policy = self.policy;
                    self.list().advertise(&policy, *rank, *source);
                }
            }
            MembershipInput::Withdrawal(Withdrawal { publisher, endpoint }) => {
                if self.is_here(endpoint.as_ref()) {
                    self.list().withdraw(*publisher);
                }
            }
            MembershipInput::Invalid(publisher) => {
                let policy = self.policy;
                self.list().invalidate(&policy, *publisher);
            }
            MembershipInput::Lost if hardened => {
                if self.listing.replace(List::default()).is_none() {
                    self.until = Some(now.after(self.policy.suspect_grace));
                }
            }
            MembershipInput::Lost => self.known = List::default(),
            MembershipInput::Ended if hardened => {
                self.listing = Some(List::default());
                self.until = None;
            }
            MembershipInput::Ended => {
                self.ended = true;
                return Update::Unchanged;
            }
            MembershipInput::Listed => self.adopt(),
            MembershipInput::Timeout => {
                if self.until.is_none_or(|until| now < until) {
                    return Update::Unchanged;
                }
                self.adopt();
            }
        }
        if self.resolution() != before {
            self.known = List::default();
            let ended = self.listing.is_some() && self.until.is_none();
            self.listing = ended.then(List::default);
            self.until = None;
        }
        self.show()
    }

    fn adopt(&mut self) {
        if let Some(listing) = self.listing.take() {
            self.known = listing;
        }
        self.until = None;
    }

    /// §3.4, §3.6 G1 to G5 and B14, over everything there is.
    fn show(&mut self) -> Update {
        let resolution = self.resolution();
        let remapped = self.previous.as_ref().is_some_and(|previous| *previous != resolution);
        self.previous = Some(resolution.clone());
        let expected: Vec<RankKey> = self.workers.values().flat_map(ranks_of).collect();
        let mut ranks = Vec::new();
        for key in &expected {
            let status = match &resolution {
                Resolution::Ambiguous(names) => Status::Mapping(names.clone()),
                Resolution::Resolved(_) => self.known.status(*key),
            };
            if !self.tracks.iter().any(|track| track.key == *key) {
                let generation = self.floor;
                self.tracks.push(Track {
                    key: *key,
                    generation,
                    ever_active: false,
                    previous: None,
                });
            }
            let track = self.tracks.iter_mut().find(|track| track.key == *key).expect("pushed");
            let reset = match (&track.previous, &status) {
                (None, _) => track.ever_active,
                (Some(Status::Missing), Status::Missing) => false,
                (Some(Status::Missing), Status::Active(_)) => track.ever_active,
                (Some(Status::Missing), _) => true,
                (Some(before), now) => before != now,
            };
            track.generation += u64::from(remapped || reset);
            track.ever_active |= status.is_active();
            track.previous = Some(status.clone());
            ranks.push((*key, track.generation, status));
        }
        for track in self.tracks.iter_mut().filter(|track| !expected.contains(&track.key)) {
            if track.previous.take().is_some() && track.ever_active {
                track.generation += 1;
            }
        }
        if self.policy.forget_idle {
            let gone = self.tracks.iter().filter(|track| track.previous.is_none());
            self.floor = gone.map(|track| track.generation).fold(self.floor, u64::max);
            self.tracks.retain(|track| track.previous.is_some());
        }
        let workers = self.workers.values().cloned().collect();
        let shown = Shown { suspect: self.listing.is_some(), resolution, ranks, workers };
        let last = std::mem::replace(&mut self.shown, shown);
        let outward = |s: &Shown| (s.suspect, s.resolution.name(), s.ranks.clone());
        if outward(&last) != outward(&self.shown) {
            Update::Snapshot
        } else if last != self.shown {
            Update::View
        } else {
            Update::Unchanged
        }
    }

    pub(crate) fn mismatch(&self) -> Mismatch {
        let mut count = Mismatch { expected: self.shown.ranks.len(), ..Mismatch::default() };
        for (key, _, status) in &self.shown.ranks {
            let worker = &self.workers[&key.worker];
            let bad = match status {
                Status::Active(source) => source.target.is_none() && worker.recovery_expected,
                Status::Missing | Status::Mapping(_) | Status::Conflict(_) | Status::Many(_) => {
                    true
                }
            };
            count.bad += usize::from(bad);
            count.unmet += usize::from(bad || worker.publishing == Publishing::Disabled);
        }
        count
    }
}
