//! What the loop says of its ranks: answers, rows, metrics.

use super::call::RankRow;
use super::log;
use super::run::Running;
use crate::answer::{self, RankState};
use crate::backend::{ListenerState, ListenerStatus, Query, QueryAnswer, WorkerInfo};
use crate::metrics::Snapshot;
use crate::registry::WorkerFilter;
use crate::transport::Transport;
use kvmirror_core::id::RankKey;
use kvmirror_core::router::{DiscardReason, RecoveryEnd, Trust};

impl<T: Transport> Running<T> {
    pub(super) fn query(&mut self, query: &Query) -> QueryAnswer {
        self.queries += 1;
        let domains = &self.domains;
        let index = self.mirror.index();
        let found =
            self.matcher.matches(&self.registry, index, query, |id| domains.get(&id).copied());
        answer::answer(&self.registry, query, |facts| {
            let state = self.state(facts.key());
            RankState {
                trust: state.trust,
                reason: state.reason,
                cursor: state.cursor,
                age_ms: state.age_ms,
                matched: Some(found.get(&facts.key()).copied().unwrap_or_default()),
            }
        })
    }

    pub(super) fn workers(&self, filter: &WorkerFilter) -> Vec<WorkerInfo> {
        answer::workers(&self.registry, filter, |facts| self.state(facts.key()))
    }

    fn state(&self, rank: RankKey) -> ListenerState {
        let followed = self.ranks.get(rank);
        let row = self.row(rank);
        ListenerState {
            status: match followed {
                None => ListenerStatus::Failed,
                Some(followed) if followed.connected => ListenerStatus::Active,
                Some(_) => ListenerStatus::Pending,
            },
            last_error: self.last_error(rank),
            trust: row.trust,
            reason: row.reason,
            cursor: row.cursor.map(|cursor| cursor.0),
            age_ms: row.age_ms,
        }
    }

    /// The gravest thing that is wrong with a rank at the moment.
    fn last_error(&self, rank: RankKey) -> Option<String> {
        let followed = self.ranks.get(rank)?;
        let ways = followed.down.clone().or_else(|| followed.mute.clone());
        ways.or_else(|| self.has_other_block_size(rank).then(|| log::BLOCK_SIZE.to_owned()))
    }

    pub(super) fn rows(&self) -> Vec<RankRow> {
        self.registry.ranks().map(|facts| self.row(facts.key())).collect()
    }

    fn row(&self, key: RankKey) -> RankRow {
        let view = self.mirror.rank(key);
        let now = self.now();
        let instance = self.registry.rank(key).map(|facts| &facts.registration.instance);
        RankRow {
            key,
            instance: instance.map(|name| name.as_str().to_owned()).unwrap_or_default(),
            trust: view.map_or(Trust::Missing, |view| view.trust),
            reason: view.and_then(|view| view.reason),
            cursor: view.and_then(|view| view.cursor),
            lag: view.map_or(0, |view| view.lag),
            age_ms: view.and_then(|view| view.level_at).map(|at| now.since(at).as_millis()),
            blocks: self.mirror.index().counts(key).iter().sum(),
            recovering: view.and_then(|view| view.recovering),
            counts: self.ranks.get(key).map(|followed| followed.counts).unwrap_or_default(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let stats = self.mirror.stats();
        let mut counts = self.retired;
        let mut snapshot = Snapshot { queries: self.queries, ..Snapshot::default() };
        let mut overflow = self.retired_overflow;
        for view in self.mirror.ranks() {
            snapshot.count_rank(view.trust);
            if let Some(of_rank) = self.mirror.counts(view.key) {
                counts += *of_rank;
            }
            let blocks = self.mirror.index().counts(view.key);
            snapshot.blocks.iter_mut().zip(blocks).for_each(|(sum, blocks)| *sum += blocks);
        }
        for followed in self.ranks.all() {
            overflow += followed.task.counters().overflow();
        }
        snapshot.messages = counts.live_messages;
        snapshot.stored = counts.stored_events;
        snapshot.removed = counts.removed_events;
        snapshot.cleared = counts.cleared_events;
        snapshot.unreadable = counts.unreadable;
        snapshot.skipped = counts.applied.skipped;
        snapshot.unplaced = counts.applied.unplaced;
        snapshot.orphans = counts.applied.orphans;
        snapshot.gaps = stats.gaps;
        snapshot.new_lives = stats.new_lives;
        snapshot.ingress_overflow = overflow;
        snapshot.recoveries =
            RecoveryEnd::ALL.into_iter().map(|end| (end.name(), stats.recoveries(end))).collect();
        snapshot.discarded = DiscardReason::ALL
            .into_iter()
            .map(|reason| (reason.name(), stats.discarded(reason)))
            .collect();
        snapshot
    }
}
