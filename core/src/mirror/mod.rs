//! The embedded mirror: decoder, router machine and index as one pure machine for raw engines.
//!
//! A host tells it of sources, transports, messages and answers; it says what to ask whom, and
//! answers what is resident. It is what `kvmirror serve` runs, and what a host embeds that wants no
//! target of its own. Like the machines inside, it owns no clock and does no IO:
//!
//! ```
//! use kvmirror_core::id::{EventId, PublisherId, RankKey};
//! use kvmirror_core::mirror::{Mirror, MirrorOptions, SourceFacts};
//! use kvmirror_core::router::Trust;
//! use kvmirror_core::time::Timestamp;
//!
//! let mut mirror = Mirror::new(MirrorOptions::default()).expect("defaults are valid");
//! let domain = mirror.open_domain();
//! let (rank, publisher) = (RankKey::new(1, 0), PublisherId(42));
//! let now = Timestamp(0);
//! mirror.add_source(SourceFacts::live_only(rank, publisher, domain), now).expect("new rank");
//! mirror.transport_up(publisher, now);
//! // [1.5, [["AllBlocksCleared"]], nil]
//! let payload = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0\x91\x91\xb0AllBlocksCleared\xc0";
//! mirror.message(publisher, EventId(0), payload, now);
//! let view = mirror.rank(rank).expect("followed");
//! assert_eq!((view.trust, view.cursor), (Trust::Exact, Some(EventId(0))));
//! ```

mod counts;
mod message;
#[cfg(feature = "trace")]
mod recording;
mod sources;

pub use counts::SourceCounts;
#[cfg(feature = "trace")]
pub use recording::RecordingTooLate;
pub use sources::SourceFacts;

use crate::id::{EventId, OpId, PublisherId, QueryId, RankKey, TargetId};
use crate::index::{Applied, DomainId, Index, IndexError, IndexLimits, ResetScope};
use crate::router::{
    Command, Completion, Effects, Flaw, Input, LiveBatch, Notice, Origin, Policy, PolicyError,
    QueryFailure, RankView, RecoveryOutcome, RecoveryResponse, Router, Run, Runs, Scope,
    TransportChange,
};
use crate::time::Timestamp;
use crate::wire::{DecodeError, Decoder, Limits};
#[cfg(feature = "trace")]
use alloc::collections::VecDeque;
#[cfg(feature = "trace")]
use alloc::string::String;
use alloc::vec::Vec;
use message::{MessageRef, Reader};
#[cfg(feature = "trace")]
use recording::Recording;
use sources::Sources;

/// Diagnostics kept for a host that does not take them.
const NOTICES_KEPT: usize = 4_096;

/// Limits and timings of a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MirrorOptions {
    /// Of the router machine.
    pub policy: Policy,
    /// Of the decoder.
    pub decode: Limits,
    /// Of the index.
    pub index: IndexLimits,
}

/// What the host must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Ask a source for its messages from `start` on (its oldest when `None`); answer with
    /// [`Mirror::answer`].
    Ask {
        /// Names the question.
        query: QueryId,
        /// The rank it is for.
        rank: RankKey,
        /// The incarnation to ask.
        publisher: PublisherId,
        /// Where to ask.
        target: TargetId,
        /// First id wanted.
        start: Option<EventId>,
    },
    /// The answer no longer counts.
    Cancel {
        /// The question.
        query: QueryId,
    },
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerEnd {
    /// The source said that this was all.
    Complete,
    /// It was cut off; what came counts as progress.
    CutOff,
    /// There was no usable answer.
    Failed(QueryFailure),
}

/// Why a source cannot be added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The rank is followed already; remove its source first.
    #[error("rank {rank} is followed already; remove its source first")]
    RankTaken {
        /// The rank.
        rank: RankKey,
    },
    /// The publisher id is in use; give every source a fresh one.
    #[error("publisher {publisher} is in use; give every source a fresh id")]
    PublisherTaken {
        /// The publisher.
        publisher: PublisherId,
    },
    /// No source is known for the rank.
    #[error("no source is known for rank {rank}")]
    UnknownRank {
        /// The rank.
        rank: RankKey,
    },
    /// The index refused.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// What a live message turned out to be, for the host's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// It was read and handed to the machine.
    Read,
    /// It could not be read; its id counts, the rank is no longer exact.
    Unreadable(DecodeError),
    /// It names another rank than its source's and was left out whole (S6).
    Foreign,
    /// No source has this publisher.
    UnknownPublisher,
}

/// The embedded mirror. See the module documentation.
#[derive(Debug)]
pub struct Mirror {
    router: Router<MessageRef>,
    index: Index,
    reader: Reader,
    sources: Sources,
    fx: Effects<MessageRef>,
    requests: Vec<Request>,
    notices: Vec<Notice>,
    notices_dropped: u64,
    #[cfg(feature = "trace")]
    recording: Option<Recording>,
    /// Commands that a recording has written and that wait to be carried out.
    #[cfg(feature = "trace")]
    waiting: VecDeque<Command<MessageRef>>,
}

impl Mirror {
    /// Makes a mirror that follows nothing yet.
    ///
    /// # Errors
    /// [`PolicyError`] when a limit is zero that must not be.
    pub fn new(options: MirrorOptions) -> Result<Self, PolicyError> {
        Ok(Self {
            router: Router::new(options.policy)?,
            index: Index::new(options.index),
            reader: Reader::new(Decoder::new(options.decode)),
            sources: Sources::default(),
            fx: Effects::new(),
            requests: Vec::new(),
            notices: Vec::new(),
            notices_dropped: 0,
            #[cfg(feature = "trace")]
            recording: None,
            #[cfg(feature = "trace")]
            waiting: VecDeque::new(),
        })
    }

    /// Opens an index domain (B19).
    pub fn open_domain(&mut self) -> DomainId {
        self.index.open_domain()
    }

    /// Closes an index domain; it goes with its last rank.
    ///
    /// # Errors
    /// [`MirrorError::Index`] when it is not open.
    pub fn close_domain(&mut self, domain: DomainId) -> Result<(), MirrorError> {
        Ok(self.index.close_domain(domain)?)
    }

    /// Adds a source. The rank is `missing` until [`Mirror::transport_up`] (S4: a transport must be
    /// connected before its source may be active).
    ///
    /// # Errors
    /// [`MirrorError`] when the rank or the publisher is taken or the domain is not open; nothing
    /// has changed then.
    pub fn add_source(&mut self, facts: SourceFacts, now: Timestamp) -> Result<(), MirrorError> {
        self.sources.check(&facts)?;
        let identity = facts.identity.clone();
        self.index.add_rank(facts.rank, facts.domain, identity, facts.duplicates)?;
        self.sources.add(facts);
        self.tell_membership(now);
        Ok(())
    }

    /// Removes a rank's source and everything the mirror holds of it.
    ///
    /// # Errors
    /// [`MirrorError::UnknownRank`].
    pub fn remove_source(&mut self, rank: RankKey, now: Timestamp) -> Result<(), MirrorError> {
        self.sources.remove(rank)?;
        self.tell_membership(now);
        Ok(self.index.remove_rank(rank)?)
    }

    /// The transport of a source is connected: for the first time, or again.
    pub fn transport_up(&mut self, publisher: PublisherId, now: Timestamp) {
        match self.sources.connected(publisher) {
            None => {}
            Some(sources::Connected::First) => self.tell_membership(now),
            Some(sources::Connected::Again) => {
                self.transport(publisher, TransportChange::Back, now);
            }
        }
    }

    /// The transport of a source was interrupted.
    pub fn transport_down(&mut self, publisher: PublisherId, now: Timestamp) {
        self.transport(publisher, TransportChange::Lost, now);
    }

    fn transport(&mut self, publisher: PublisherId, change: TransportChange, now: Timestamp) {
        self.feed(Input::Transport(publisher, change), now);
    }

    /// One live message.
    pub fn message(
        &mut self,
        publisher: PublisherId,
        seq: EventId,
        payload: &[u8],
        now: Timestamp,
    ) -> Received {
        let Some(source) = self.sources.of(publisher) else { return Received::UnknownPublisher };
        source.counts.live_messages += 1;
        source.counts.live_bytes += payload.len() as u64;
        let facts = &source.facts;
        let reading = self.reader.read(facts.rank.rank, seq, payload, &facts.identity);
        source.note(&reading);
        let received = match (reading.origin, reading.error) {
            (_, Some(error)) => Received::Unreadable(error),
            (Origin::Foreign, None) => Received::Foreign,
            (Origin::Own, None) => Received::Read,
        };
        let runs = Runs::from_buf([reading.run]);
        let batch = LiveBatch { publisher, seq: None, origin: reading.origin, runs };
        self.feed(Input::Live(batch), now);
        received
    }

    /// The answer to a question: its messages in order of arrival, and how it ended.
    #[expect(single_use_lifetimes, reason = "it cannot be left out inside `impl Trait` yet")]
    pub fn answer<'a>(
        &mut self,
        query: QueryId,
        publisher: PublisherId,
        messages: impl IntoIterator<Item = (EventId, &'a [u8])>,
        end: AnswerEnd,
        now: Timestamp,
    ) {
        let mut origin = Origin::Own;
        let outcome = match (end, self.sources.of(publisher)) {
            (AnswerEnd::Failed(failure), _) => RecoveryOutcome::Failed(failure),
            (AnswerEnd::Complete | AnswerEnd::CutOff, None) => {
                RecoveryOutcome::Failed(QueryFailure::Transport)
            }
            (AnswerEnd::Complete | AnswerEnd::CutOff, Some(source)) => {
                let mut runs = Vec::new();
                for (seq, payload) in messages {
                    source.counts.replayed_messages += 1;
                    source.counts.replayed_bytes += payload.len() as u64;
                    let facts = &source.facts;
                    let reading = self.reader.read(facts.rank.rank, seq, payload, &facts.identity);
                    source.note(&reading);
                    if reading.origin == Origin::Foreign {
                        origin = Origin::Foreign;
                    }
                    runs.push(reading.run);
                }
                let last = runs.last().map(Run::last);
                RecoveryOutcome::Events { runs, last, complete: end == AnswerEnd::Complete }
            }
        };
        let response = RecoveryResponse { query, origin, boot: None, outcome };
        self.feed(Input::Recovery(response), now);
    }

    /// Time has passed; to be called when [`Mirror::next_deadline`] is reached.
    pub fn timeout(&mut self, now: Timestamp) {
        self.feed(Input::Timeout, now);
    }

    /// When [`Mirror::timeout`] has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.router.next_deadline()
    }

    /// Takes what the host must do, in order.
    pub fn drain_requests(&mut self) -> alloc::vec::Drain<'_, Request> {
        self.requests.drain(..)
    }

    /// Takes the diagnostics since the last call. At most 4,096 are kept; what does not fit is
    /// counted by [`Mirror::notices_dropped`].
    pub fn drain_notices(&mut self) -> alloc::vec::Drain<'_, Notice> {
        self.notices.drain(..)
    }

    /// Diagnostics that nobody took in time.
    pub const fn notices_dropped(&self) -> u64 {
        self.notices_dropped
    }

    /// The index, for queries.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// What the machine knows of one rank.
    pub fn rank(&self, rank: RankKey) -> Option<RankView> {
        self.router.rank(rank)
    }

    /// What the machine knows of all ranks, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = RankView> + '_ {
        self.router.ranks()
    }

    /// Counters of the machine.
    pub const fn stats(&self) -> &crate::router::Stats {
        self.router.stats()
    }

    /// Counters of one rank's source.
    pub fn counts(&self, rank: RankKey) -> Option<&SourceCounts> {
        self.sources.get(rank).map(|source| &source.counts)
    }

    /// The facts of one rank's source.
    pub fn facts(&self, rank: RankKey) -> Option<&SourceFacts> {
        self.sources.get(rank).map(|source| &source.facts)
    }

    fn tell_membership(&mut self, now: Timestamp) {
        #[cfg(feature = "trace")]
        if let Some(recording) = &mut self.recording {
            recording.input(now, &Input::Membership(self.sources.membership().clone()));
        }
        self.router.handle_membership(self.sources.membership(), now, &mut self.fx);
        self.told();
        self.settle(now);
    }

    /// Gives the machine an input and carries out what it wants.
    fn feed(&mut self, input: Input<MessageRef>, now: Timestamp) {
        self.hand_in(input, now);
        self.settle(now);
    }

    fn hand_in(&mut self, input: Input<MessageRef>, now: Timestamp) {
        #[cfg(feature = "trace")]
        if let Some(recording) = &mut self.recording {
            recording.input(now, &input);
        }
        self.router.handle(input, now, &mut self.fx);
        self.told();
    }

    /// Takes out what came of the last input beside commands. A recording sees all of it first.
    fn told(&mut self) {
        #[cfg(feature = "trace")]
        if let Some(recording) = &mut self.recording {
            recording.outputs(&self.fx);
            // Each input's own commands: those that wait have been written.
            self.waiting.extend(self.fx.drain_commands());
        }
        // Only hosts report interruptions or faults from outside and want to know what came of it.
        self.fx.drain_replies().for_each(drop);
        let room = NOTICES_KEPT.saturating_sub(self.notices.len());
        let mut told = self.fx.drain_notices();
        self.notices.extend(told.by_ref().take(room));
        self.notices_dropped += told.count() as u64;
    }

    fn next_command(&mut self) -> Option<Command<MessageRef>> {
        #[cfg(feature = "trace")]
        if let Some(command) = self.waiting.pop_front() {
            return Some(command);
        }
        self.fx.next_command()
    }

    /// Begins to record what the router machine is fed and what it wants; the text is taken with
    /// [`Mirror::take_recording`]. With `payloads` messages are written as they came, without only
    /// their sizes and digests.
    ///
    /// # Errors
    /// [`RecordingTooLate`] when the mirror has had an input already.
    #[cfg(feature = "trace")]
    pub fn record(&mut self, name: &str, payloads: bool) -> Result<(), RecordingTooLate> {
        if self.recording.is_some() || self.router.stats() != &crate::router::Stats::default() {
            return Err(RecordingTooLate);
        }
        if self.router.ranks().next().is_some() {
            return Err(RecordingTooLate);
        }
        self.reader.show_payloads(payloads);
        self.recording = Some(Recording::begin(name, self.router.policy()));
        Ok(())
    }

    /// Takes what has been recorded since the last call: whole lines. At most 64 MiB are kept; a
    /// recording that nobody takes ends there, and says so.
    #[cfg(feature = "trace")]
    pub fn take_recording(&mut self) -> String {
        self.recording.as_mut().map(Recording::take).unwrap_or_default()
    }

    /// Carries out commands until none is left. The embedded index never waits, so each completes
    /// at once.
    fn settle(&mut self, now: Timestamp) {
        while let Some(command) = self.next_command() {
            if let Some(done) = self.execute(command) {
                self.hand_in(Input::Completion(done), now);
            }
        }
    }

    fn execute(&mut self, command: Command<MessageRef>) -> Option<Completion> {
        match command {
            Command::Admit { op, rank, runs, .. } => {
                let mut flaw = None;
                let mut ok = true;
                for run in runs {
                    ok = ok && self.apply(rank, &run.payload, &mut flaw);
                    self.reader.recycle(run.payload);
                }
                Some(Completion { op, ok, flaw })
            }
            Command::Replace { op, rank, runs, .. } => Some(self.replace(op, rank, &runs)),
            Command::Reset { op, rank, scope, .. } => {
                let scope = match scope {
                    Scope::All => ResetScope::All,
                    Scope::Worker => ResetScope::Worker,
                };
                let ok = self.index.reset(rank, scope).is_ok();
                Some(Completion { op, ok, flaw: None })
            }
            Command::Query { query, rank, publisher, target, start } => {
                self.requests.push(Request::Ask { query, rank, publisher, target, start });
                None
            }
            Command::Cancel { query } => {
                self.requests.push(Request::Cancel { query });
                None
            }
        }
    }

    fn apply(&mut self, rank: RankKey, message: &MessageRef, flaw: &mut Option<Flaw>) -> bool {
        let view = message.view();
        let Ok(applied) = self.index.apply(rank, view) else { return false };
        *flaw = flaw.or_else(|| flaw_of(&applied));
        if let Some(source) = self.sources.at(rank) {
            source.counts.apply(view.batch, applied);
        }
        true
    }

    fn replace(&mut self, op: OpId, rank: RankKey, runs: &[Run<MessageRef>]) -> Completion {
        let views = runs.iter().map(|run| run.payload.view());
        match self.index.replace(rank, views) {
            Ok(applied) => Completion { op, ok: true, flaw: flaw_of(&applied) },
            Err(_) => Completion { op, ok: false, flaw: None },
        }
    }
}

/// What the index noticed that the machine must know. A partial rank's orphans are expected; the
/// machine tells the cases apart.
const fn flaw_of(applied: &Applied) -> Option<Flaw> {
    if applied.capacity > 0 || applied.over_groups > 0 {
        Some(Flaw::Capacity)
    } else if applied.orphans > 0 {
        Some(Flaw::Orphan)
    } else {
        None
    }
}
