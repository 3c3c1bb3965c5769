//! The loop itself.

use super::FollowerOptions;
use super::call::{Call, RankRow};
use super::per_rank::PerRank;
use super::prompt::Matcher;
use crate::answer::{self, RankState};
use crate::backend::{BackendError, ListenerState, ListenerStatus, Query, QueryAnswer, WorkerInfo};
use crate::metrics::{self, Snapshot};
use crate::registry::{
    self, DomainEvent, RankFacts, Registered, Registration, Registry, Unregistered, Unregistration,
    WorkerFilter,
};
use crate::replay::{ReplayEnd, ReplayOutcome, replay};
use crate::source::{SourceConfig, SourceEvent, SourceInput, spawn_source};
use crate::transport::Transport;
use kvmirror_core::id::{EventId, PublisherId, QueryId, RankKey, TargetId};
use kvmirror_core::index::DomainId;
use kvmirror_core::mirror::{AnswerEnd, Mirror, Received, Request, SourceCounts, SourceFacts};
use kvmirror_core::router::{DiscardReason, Notice, QueryFailure, RecoveryEnd};
use kvmirror_core::time::Timestamp;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Source events worked off in one turn, before calls and answers are looked at again.
const EVENTS_PER_TURN: usize = 256;

/// A replay that has ended.
type Answer = (QueryId, PublisherId, ReplayOutcome);

pub(super) struct Running<T> {
    transport: T,
    options: FollowerOptions,
    mirror: Mirror,
    registry: Registry,
    domains: BTreeMap<registry::DomainId, DomainId>,
    ranks: PerRank,
    /// Counters of sources that are gone: what a metric has counted it never forgets.
    retired: SourceCounts,
    retired_overflow: u64,
    queries: u64,
    matcher: Matcher,
    events: mpsc::Sender<SourceInput>,
    events_in: mpsc::Receiver<SourceInput>,
    replays: JoinSet<Answer>,
    asked: BTreeMap<QueryId, AbortHandle>,
    origin: Instant,
}

/// What woke the loop.
enum Turn {
    Call(Option<Call>),
    Answer(Option<Result<Answer, tokio::task::JoinError>>),
    Event(Option<SourceInput>),
    Deadline,
}

impl<T: Transport> Running<T> {
    pub(super) fn new(
        transport: T,
        options: FollowerOptions,
        mirror: Mirror,
        random: impl FnMut() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let (events, events_in) = mpsc::channel(options.ingress_messages.0.max(1));
        Self {
            transport,
            registry: Registry::new(options.registry, random),
            options,
            mirror,
            domains: BTreeMap::new(),
            ranks: PerRank::default(),
            retired: SourceCounts::default(),
            retired_overflow: 0,
            queries: 0,
            matcher: Matcher::default(),
            events,
            events_in,
            replays: JoinSet::new(),
            asked: BTreeMap::new(),
            origin: Instant::now(),
        }
    }

    /// Runs until it is told to stop, or every handle is gone.
    pub(super) async fn run(mut self, mut calls: mpsc::Receiver<Call>) {
        let stopped = loop {
            let deadline = self.mirror.next_deadline().map(|at| self.instant(at));
            let sleep = tokio::time::sleep_until(deadline.unwrap_or_else(far_away).into());
            let turn = tokio::select! {
                biased;
                call = calls.recv() => Turn::Call(call),
                Some(answer) = self.replays.join_next() => Turn::Answer(Some(answer)),
                event = self.events_in.recv() => Turn::Event(event),
                () = sleep, if deadline.is_some() => Turn::Deadline,
            };
            match turn {
                Turn::Call(None) => break None,
                Turn::Call(Some(Call::Stop(answer))) => break Some(answer),
                Turn::Call(Some(call)) => self.answer_call(call),
                Turn::Answer(answer) => self.replay_ended(answer),
                Turn::Event(event) => self.take_events(event),
                Turn::Deadline => self.mirror.timeout(self.now()),
            }
            self.carry_out();
        };
        self.replays.shutdown().await;
        for followed in self.ranks.take_all() {
            followed.task.stop().await;
        }
        if let Some(stopped) = stopped {
            // Whoever asked may have gone meanwhile.
            let _ = stopped.send(());
        }
    }

    fn now(&self) -> Timestamp {
        self.timestamp(Instant::now())
    }

    fn timestamp(&self, at: Instant) -> Timestamp {
        let elapsed = at.saturating_duration_since(self.origin).as_micros();
        Timestamp(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    fn instant(&self, at: Timestamp) -> Instant {
        self.origin.checked_add(Duration::from_micros(at.0)).unwrap_or_else(far_away)
    }

    fn answer_call(&mut self, call: Call) {
        // A caller that has gone away does not want its answer any more: sends may fail.
        match call {
            Call::Register(registration, answer) => {
                let _ = answer.send(self.register(*registration));
            }
            Call::Unregister(wish, answer) => {
                let _ = answer.send(self.unregister(&wish));
            }
            Call::Query(query, answer) => {
                let _ = answer.send(self.query(&query));
            }
            Call::Workers(filter, answer) => {
                let _ = answer.send(self.workers(&filter));
            }
            Call::Metrics(answer) => {
                let _ = answer.send(metrics::render(&self.snapshot()));
            }
            Call::Ranks(answer) => {
                let _ = answer.send(self.rows());
            }
            Call::Blocks(rank, answer) => {
                let _ = answer.send(self.mirror.index().blocks(rank));
            }
            Call::Stop(_) => {}
        }
    }

    fn register(&mut self, registration: Registration) -> Result<Registered, BackendError> {
        let endpoint = registration.endpoint.clone();
        let registered = self.registry.register(registration)?;
        if !registered.new {
            return Ok(registered);
        }
        if let Some(DomainEvent::Opened(id, _)) = &registered.opened {
            let domain = self.mirror.open_domain();
            self.domains.insert(*id, domain);
        }
        let rank = RankKey { worker: registered.worker, rank: registered.rank };
        let facts = self.registry.rank(rank).map(|facts| self.source_facts(facts));
        let facts = facts.flatten().ok_or_else(|| internal("a registered rank has its domain"))?;
        let publisher = facts.publisher;
        let recoverable = facts.target.is_some();
        self.mirror.add_source(facts, self.now()).map_err(internal)?;
        let mut subscribe = self.options.subscribe.clone();
        if let Some(facts) = self.registry.rank(rank) {
            subscribe.topic.clone_from(&facts.registration.topic);
        }
        if !recoverable {
            // Building a quiet socket anew would be a discontinuity that nothing can bridge.
            subscribe.silence = None;
        }
        let config = SourceConfig { source: publisher.0, endpoint, subscribe };
        let task = spawn_source(&self.transport, config, self.events.clone());
        self.ranks.add(rank, publisher, task);
        tracing::info!(%rank, %publisher, "following");
        Ok(registered)
    }

    fn source_facts(&self, facts: &RankFacts) -> Option<SourceFacts> {
        let registration = &facts.registration;
        Some(SourceFacts {
            rank: facts.key(),
            publisher: facts.publisher,
            domain: *self.domains.get(&facts.domain)?,
            identity: registration.identity(),
            duplicates: registration.duplicates,
            target: registration.replay_endpoint.as_ref().map(|_| TargetId(facts.publisher.0)),
            first_id: EventId(0),
        })
    }

    fn unregister(&mut self, wish: &Unregistration) -> Result<Unregistered, BackendError> {
        let gone = self.registry.unregister(wish)?;
        for facts in &gone.removed {
            let rank = facts.key();
            if let Some(counts) = self.mirror.counts(rank) {
                self.retired += *counts;
            }
            if let Some(followed) = self.ranks.remove(rank) {
                self.retired_overflow += followed.task.counters().overflow();
            }
            self.mirror.remove_source(rank, self.now()).map_err(internal)?;
            tracing::info!(%rank, publisher = %facts.publisher, "no longer following");
        }
        if let Some(DomainEvent::Closed(id)) = &gone.closed
            && let Some(domain) = self.domains.remove(id)
        {
            self.mirror.close_domain(domain).map_err(internal)?;
        }
        Ok(gone)
    }

    fn query(&mut self, query: &Query) -> QueryAnswer {
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

    fn workers(&self, filter: &WorkerFilter) -> Vec<WorkerInfo> {
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
            last_error: followed.and_then(|followed| followed.down.clone()),
            trust: row.trust,
            reason: row.reason,
            cursor: row.cursor.map(|cursor| cursor.0),
            age_ms: row.age_ms,
        }
    }

    fn rows(&self) -> Vec<RankRow> {
        self.registry.ranks().map(|facts| self.row(facts.key())).collect()
    }

    fn row(&self, key: RankKey) -> RankRow {
        let view = self.mirror.rank(key);
        let now = self.now();
        let instance = self.registry.rank(key).map(|facts| &facts.registration.instance);
        RankRow {
            key,
            instance: instance.map(|name| name.as_str().to_owned()).unwrap_or_default(),
            trust: view.map_or(kvmirror_core::router::Trust::Missing, |view| view.trust),
            reason: view.and_then(|view| view.reason),
            cursor: view.and_then(|view| view.cursor),
            lag: view.map_or(0, |view| view.lag),
            age_ms: view.and_then(|view| view.level_at).map(|at| now.since(at).as_millis()),
            blocks: self.mirror.index().counts(key).iter().sum(),
            recovering: view.and_then(|view| view.recovering),
            counts: self.ranks.get(key).map(|followed| followed.counts).unwrap_or_default(),
        }
    }

    fn take_events(&mut self, first: Option<SourceInput>) {
        let mut next = first;
        for _ in 0..EVENTS_PER_TURN {
            let Some(input) = next else { break };
            self.take_event(input);
            next = self.events_in.try_recv().ok();
        }
        if let Some(input) = next {
            self.take_event(input);
        }
    }

    fn take_event(&mut self, input: SourceInput) {
        let publisher = PublisherId(input.source);
        // An unregistered source may have left events behind.
        let Some(followed) = self.ranks.of(publisher) else { return };
        match input.event {
            SourceEvent::Up => {
                followed.connected = true;
                followed.down = None;
                self.mirror.transport_up(publisher, self.now());
            }
            SourceEvent::Down { reason } => {
                followed.down = Some(down_text(&reason));
                tracing::info!(%publisher, reason = reason.code(), "source down");
                self.mirror.transport_down(publisher, self.now());
            }
            SourceEvent::Message { seq, payload, received } => {
                let at = self.timestamp(received);
                match self.mirror.message(publisher, seq, &payload, at) {
                    Received::Read | Received::UnknownPublisher => {}
                    Received::Foreign => tracing::debug!(%publisher, %seq, "foreign message"),
                    Received::Unreadable(error) => {
                        tracing::debug!(%publisher, %seq, %error, "unreadable message");
                    }
                }
            }
            SourceEvent::BadFrames { what } => {
                tracing::debug!(%publisher, error = %what, "message without usable frames");
            }
        }
        self.carry_out();
    }

    fn replay_ended(&mut self, ended: Option<Result<Answer, tokio::task::JoinError>>) {
        let (query, publisher, outcome) = match ended {
            Some(Ok(answer)) => answer,
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(%error, "a replay task panicked");
                return;
            }
            // Cancelled: the mirror does not want it.
            Some(Err(_)) | None => return,
        };
        self.asked.remove(&query);
        let end = answer_end(&outcome);
        tracing::debug!(%publisher, %query, messages = outcome.messages.len(), end = ?outcome.end, "replay ended");
        let messages = outcome.messages.iter().map(|(seq, bytes)| (EventId(*seq), bytes.as_ref()));
        self.mirror.answer(query, publisher, messages, end, self.now());
    }

    /// Does what the mirror asks for, and tells the log what it noticed.
    fn carry_out(&mut self) {
        let requests: Vec<Request> = self.mirror.drain_requests().collect();
        for request in requests {
            match request {
                Request::Ask { query, rank, publisher, start, .. } => {
                    self.ask(query, rank, publisher, start);
                }
                Request::Cancel { query } => {
                    if let Some(task) = self.asked.remove(&query) {
                        task.abort();
                    }
                }
            }
        }
        for notice in self.mirror.drain_notices() {
            self.ranks.note(&notice);
            log(&notice);
        }
    }

    fn ask(
        &mut self,
        query: QueryId,
        rank: RankKey,
        publisher: PublisherId,
        start: Option<EventId>,
    ) {
        let endpoint =
            self.registry.rank(rank).and_then(|facts| facts.registration.replay_endpoint.clone());
        let transport = self.transport.clone();
        let limits = self.options.replay;
        let task = self.replays.spawn(async move {
            let start = start.map_or(0, |start| start.0);
            let outcome = match endpoint {
                Some(endpoint) => replay(&transport, &endpoint, start, limits).await,
                None => ReplayOutcome { messages: Vec::new(), strays: 0, end: ReplayEnd::Idle },
            };
            (query, publisher, outcome)
        });
        self.asked.insert(query, task);
    }

    fn snapshot(&self) -> Snapshot {
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

fn internal(error: impl ToString) -> BackendError {
    BackendError::Internal(error.to_string())
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

fn down_text(reason: &crate::transport::DownReason) -> String {
    use crate::transport::DownReason;
    match reason {
        DownReason::Unreachable(error) => error.to_string(),
        DownReason::Closed => "the publisher closed the connection".to_owned(),
        DownReason::Broken(what) => format!("the connection broke: {what}"),
        DownReason::Silence(span) => format!("silent for {span:?}; connecting anew"),
        DownReason::Overflow(messages) => {
            format!("{messages} messages dropped: the follower was too slow")
        }
    }
}

/// What a replay's end says. Whatever came before a cut is progress.
fn answer_end(outcome: &ReplayOutcome) -> AnswerEnd {
    match &outcome.end {
        ReplayEnd::EndMarker => AnswerEnd::Complete,
        _ if !outcome.messages.is_empty() => AnswerEnd::CutOff,
        ReplayEnd::Malformed(_) => AnswerEnd::Failed(QueryFailure::Unreadable),
        ReplayEnd::Idle
        | ReplayEnd::Total
        | ReplayEnd::LimitMessages
        | ReplayEnd::LimitBytes
        | ReplayEnd::Failed(_) => AnswerEnd::Failed(QueryFailure::Transport),
    }
}

fn log(notice: &Notice) {
    match notice {
        Notice::Trust { rank, from, to, reason } => tracing::info!(
            %rank,
            from = from.name(),
            to = to.name(),
            reason = reason.map(|reason| reason.name()),
            "trust changed"
        ),
        Notice::NewLife { rank, cursor } => {
            tracing::info!(%rank, cursor = cursor.map(|cursor| cursor.0), "new life");
        }
        Notice::Gap { rank, expected, got } => tracing::info!(%rank, %expected, %got, "gap"),
        Notice::Skipped { rank, first, last } => {
            tracing::warn!(%rank, %first, %last, "messages skipped for good");
        }
        Notice::Recovered { rank, end } => tracing::info!(%rank, end = end.name(), "recovered"),
        Notice::Reset { rank, reason } => tracing::info!(%rank, reason = reason.name(), "reset"),
        Notice::InitialRecoveryComplete { .. } | Notice::Discarded { .. } | _ => {
            tracing::debug!(?notice);
        }
    }
}
