//! What is wrong with a worker's sources, told once (§4.3).

use super::requirement::Requirement;
use crate::id::{Rank, WorkerId};
use crate::membership::{Publishing, RankStatus, View};
use crate::time::{Micros, Timestamp};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How long a source may take to appear before its absence is told.
const JOIN_GRACE: Micros = Micros::from_secs(30);

/// What is told of a worker's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceHealthCode {
    /// The worker says that it does not publish.
    PublisherDisabled,
    /// Ranks have had no source for longer than the join grace.
    NotObserved,
    /// Ranks have contradictory sources.
    Ambiguous,
    /// What was told before is over.
    Recovered,
}

impl SourceHealthCode {
    /// Every code, in order.
    pub const ALL: [Self; 4] =
        [Self::PublisherDisabled, Self::NotObserved, Self::Ambiguous, Self::Recovered];

    /// The stable code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublisherDisabled => "kv_event_publisher_disabled",
            Self::NotObserved => "kv_event_source_not_observed",
            Self::Ambiguous => "kv_event_source_ambiguous",
            Self::Recovered => "kv_event_source_recovered",
        }
    }

    /// Whether it is a warning; otherwise it is information.
    pub const fn is_warning(self) -> bool {
        match self {
            Self::PublisherDisabled | Self::NotObserved | Self::Ambiguous => true,
            Self::Recovered => false,
        }
    }
}

/// One diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceDiagnostic {
    /// The worker.
    pub worker: WorkerId,
    /// What is told.
    pub code: SourceHealthCode,
    /// Its ranks concerned, ascending; of a recovery, those the warning named.
    pub ranks: Vec<Rank>,
    /// How long it has been so; of a recovery, how long it lasted.
    pub waited: Micros,
}

/// The workers to look at.
#[derive(Clone, Copy, Debug)]
pub enum ChangedWorkers<'a> {
    /// All: after views were missed.
    All,
    /// These: [`crate::membership::Coordinator::changed_workers`] of the one view since the last.
    Some(&'a [WorkerId]),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Memory {
    Waiting { since: Timestamp },
    Warned { code: SourceHealthCode, since: Timestamp, ranks: Vec<Rank> },
}

/// What a worker's view says, by the rows of the table.
enum Finding {
    /// Rows 1 and, unless something was told, 5.
    Nothing,
    /// Rows 2 and 3.
    Immediate(SourceHealthCode, Vec<Rank>),
    /// Row 4.
    Missing(Vec<Rank>),
    /// Row 5.
    Healthy,
}

/// Remembers per worker what has been told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceHealth {
    required: bool,
    workers: BTreeMap<WorkerId, Memory>,
    /// The waiting workers by when they began to wait.
    waiting: BTreeSet<(Timestamp, WorkerId)>,
}

impl SourceHealth {
    /// Makes one that has told nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// When the earliest grace ends; call [`Self::handle_view`] then, with no changed worker.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(since, _)| since.after(JOIN_GRACE))
    }

    /// Looks at a view, and appends what is to be told, ascending by worker. Costs time in the
    /// workers that changed or whose grace is over.
    ///
    /// If the router needs no source everything is forgotten.
    pub fn handle_view(
        &mut self,
        view: View<'_>,
        changed: ChangedWorkers<'_>,
        requirement: Requirement,
        now: Timestamp,
        out: &mut Vec<SourceDiagnostic>,
    ) {
        let required = requirement.requires_source();
        let newly = required && !self.required;
        self.required = required;
        if !required {
            self.workers.clear();
            self.waiting.clear();
            return;
        }
        let mut due: BTreeSet<WorkerId> = self
            .waiting
            .iter()
            .take_while(|(since, _)| since.after(JOIN_GRACE) <= now)
            .map(|(_, worker)| *worker)
            .collect();
        match changed {
            ChangedWorkers::Some(workers) if !newly => due.extend(workers),
            ChangedWorkers::All | ChangedWorkers::Some(_) => {
                due.extend(view.workers().map(|known| known.worker));
                due.extend(self.workers.keys());
            }
        }
        for worker in due {
            match find(view, worker) {
                Finding::Nothing => self.forget(worker),
                Finding::Immediate(code, ranks) => self.tell(worker, code, ranks, now, out),
                Finding::Missing(ranks) => self.wait(worker, ranks, now, out),
                Finding::Healthy => self.recover(worker, now, out),
            }
        }
    }

    fn set(&mut self, worker: WorkerId, memory: Option<Memory>) {
        if let Some(Memory::Waiting { since }) = self.workers.remove(&worker) {
            self.waiting.remove(&(since, worker));
        }
        let Some(memory) = memory else { return };
        if let Memory::Waiting { since } = memory {
            self.waiting.insert((since, worker));
        }
        self.workers.insert(worker, memory);
    }

    fn forget(&mut self, worker: WorkerId) {
        self.set(worker, None);
    }

    fn tell(
        &mut self,
        worker: WorkerId,
        code: SourceHealthCode,
        ranks: Vec<Rank>,
        now: Timestamp,
        out: &mut Vec<SourceDiagnostic>,
    ) {
        match self.workers.get(&worker) {
            Some(Memory::Warned { code: told, .. }) if *told == code => {}
            None | Some(Memory::Waiting { .. } | Memory::Warned { .. }) => {
                let memory = Memory::Warned { code, since: now, ranks: ranks.clone() };
                self.set(worker, Some(memory));
                out.push(SourceDiagnostic { worker, code, ranks, waited: Micros(0) });
            }
        }
    }

    fn wait(
        &mut self,
        worker: WorkerId,
        ranks: Vec<Rank>,
        now: Timestamp,
        out: &mut Vec<SourceDiagnostic>,
    ) {
        let code = SourceHealthCode::NotObserved;
        match self.workers.get(&worker) {
            Some(Memory::Warned { code: told, .. }) if *told == code => {}
            Some(Memory::Waiting { since }) => {
                let since = *since;
                if since.after(JOIN_GRACE) > now {
                    return;
                }
                self.set(worker, Some(Memory::Warned { code, since, ranks: ranks.clone() }));
                out.push(SourceDiagnostic { worker, code, ranks, waited: now.since(since) });
            }
            None | Some(Memory::Warned { .. }) => {
                self.set(worker, Some(Memory::Waiting { since: now }));
            }
        }
    }

    fn recover(&mut self, worker: WorkerId, now: Timestamp, out: &mut Vec<SourceDiagnostic>) {
        if let Some(Memory::Warned { since, ranks, .. }) = self.workers.get(&worker) {
            let (ranks, waited) = (ranks.clone(), now.since(*since));
            let code = SourceHealthCode::Recovered;
            out.push(SourceDiagnostic { worker, code, ranks, waited });
        }
        self.forget(worker);
    }
}

/// The rows of the table, in their order. A worker that is not expected is forgotten.
fn find(view: View<'_>, worker: WorkerId) -> Finding {
    let ranks = |wanted: fn(RankStatus) -> bool| -> Vec<Rank> {
        view.membership()
            .ranks_of(worker)
            .filter(|member| wanted(member.status))
            .map(|member| member.key.rank)
            .collect()
    };
    match view.publishing(worker) {
        None | Some(Publishing::Undeclared) => return Finding::Nothing,
        Some(Publishing::Disabled) => {
            return Finding::Immediate(SourceHealthCode::PublisherDisabled, ranks(|_| true));
        }
        Some(Publishing::Enabled) => {}
    }
    let ambiguous = ranks(|status| status == RankStatus::Ambiguous);
    if !ambiguous.is_empty() {
        return Finding::Immediate(SourceHealthCode::Ambiguous, ambiguous);
    }
    let missing = ranks(|status| status == RankStatus::Missing);
    if missing.is_empty() { Finding::Healthy } else { Finding::Missing(missing) }
}
