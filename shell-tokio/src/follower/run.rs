//! The loop itself.

use super::FollowerOptions;
use super::call::Call;
use super::log;
use super::per_rank::PerRank;
use super::prompt::Matcher;
use crate::metrics;
use crate::record::Recording;
use crate::registry::{self, Registry};
use crate::replay::{ReplayEnd, ReplayOutcome, replay};
use crate::source::{SourceEvent, SourceInput};
use crate::transport::Transport;
use kvmirror_core::event::Placement;
use kvmirror_core::id::{EventId, PublisherId, QueryId, RankKey};
use kvmirror_core::index::DomainId;
use kvmirror_core::mirror::{AnswerEnd, Mirror, Received, Request, SourceCounts};
use kvmirror_core::router::{Notice, QueryFailure};
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
    pub(super) transport: T,
    pub(super) options: FollowerOptions,
    pub(super) mirror: Mirror,
    pub(super) registry: Registry,
    pub(super) domains: BTreeMap<registry::DomainId, DomainId>,
    pub(super) ranks: PerRank,
    /// Counters of sources that are gone: what a metric has counted it never forgets.
    pub(super) retired: SourceCounts,
    pub(super) retired_overflow: u64,
    pub(super) queries: u64,
    pub(super) matcher: Matcher,
    pub(super) events: mpsc::Sender<SourceInput>,
    events_in: mpsc::Receiver<SourceInput>,
    replays: JoinSet<Answer>,
    asked: BTreeMap<QueryId, AbortHandle>,
    origin: Instant,
    recording: Option<Recording>,
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
        recording: Option<Recording>,
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
            recording,
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
                Turn::Call(Some(call)) => {
                    self.answer_call(call);
                    self.take_waiting_events();
                }
                Turn::Answer(answer) => {
                    self.replay_ended(answer);
                    self.take_waiting_events();
                }
                Turn::Event(event) => self.take_events(event),
                Turn::Deadline => {}
            }
            self.catch_up();
            self.write_recording();
        };
        self.replays.shutdown().await;
        for followed in self.ranks.take_all() {
            followed.task.stop().await;
        }
        if let Some(recording) = self.recording.take() {
            recording.finish(self.mirror.take_recording()).await;
        }
        if let Some(stopped) = stopped {
            // Whoever asked may have gone meanwhile.
            let _ = stopped.send(());
        }
    }

    /// What the select above prefers something else to. Its order only says who waits least: without
    /// this, callers who never pause would stop the events, and events the deadlines.
    fn catch_up(&mut self) {
        self.carry_out();
        while let Some(answer) = self.replays.try_join_next() {
            self.replay_ended(Some(answer));
            self.carry_out();
        }
        let now = self.now();
        if self.mirror.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.mirror.timeout(now);
            self.carry_out();
        }
    }

    fn write_recording(&mut self) {
        if let Some(recording) = self.recording.as_ref().filter(|recording| recording.has_room()) {
            let lines = self.mirror.take_recording();
            if !lines.is_empty() {
                recording.write(lines);
            }
        }
    }

    pub(super) fn now(&self) -> Timestamp {
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

    fn take_waiting_events(&mut self) {
        let first = self.events_in.try_recv().ok();
        self.take_events(first);
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
                followed.down = Some(log::down(&reason));
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
        if self.asked.remove(&query).is_none() {
            // Cancelled when it had just ended: not worth reading.
            return;
        }
        let mute = if outcome.messages.is_empty() { log::mute(&outcome.end) } else { None };
        if let Some(followed) = self.ranks.of(publisher) {
            if let Some(why) = mute.as_ref().filter(|_| followed.mute.is_none()) {
                tracing::warn!(%publisher, why, "recovery is not possible at the moment");
            }
            followed.mute = mute;
        }
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
        let mut changed = Vec::new();
        for notice in self.mirror.drain_notices() {
            self.ranks.note(&notice);
            log::notice(&notice);
            if let Notice::Trust { rank, .. } = notice {
                changed.push(rank);
            }
        }
        for rank in changed {
            self.check_block_size(rank);
        }
    }

    /// Warns once of a rank whose blocks can never match, which nothing else would show.
    fn check_block_size(&mut self, rank: RankKey) {
        if self.has_other_block_size(rank)
            && let Some(followed) = self.ranks.get_mut(rank)
            && !std::mem::replace(&mut followed.warned_of_block_size, true)
        {
            tracing::warn!(%rank, "{}", log::BLOCK_SIZE);
        }
    }

    pub(super) fn has_other_block_size(&self, rank: RankKey) -> bool {
        self.mirror
            .counts(rank)
            .is_some_and(|counts| counts.applied.unplaced_for(Placement::BlockSizeMismatch) > 0)
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
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
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
