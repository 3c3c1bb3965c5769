//! Publishers: agents with a journal, engines with a replay ring, and how they answer, well or not.

use std::collections::VecDeque;

use kvmirror_core::id::{BootId, EventId, PublisherId, TargetId};
use kvmirror_core::membership::{Source, SourceKind};
use kvmirror_core::router::{Clears, Origin, QueryFailure, RecoveryOutcome, Run};

use crate::history::{Change, Event, Life, Part, State, Way, cut};
use crate::target::Proof;

/// How one publisher behaves in all its lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceConfig {
    pub(crate) engine: bool,
    pub(crate) recoverable: bool,
    /// Events that its journal or ring keeps.
    pub(crate) window: usize,
    /// An agent that says its boot id on every channel; else on none.
    pub(crate) tells_boot: bool,
    /// An agent's single events carry digests. An engine's messages always do.
    pub(crate) digests: bool,
    /// Its messages are numbered by the transport.
    pub(crate) numbered: bool,
    /// An agent answers with events where they reach back to its first id.
    pub(crate) ranges: bool,
    /// It shares its recovery target with all others that do.
    pub(crate) shares_target: bool,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) seq: Option<u64>,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    pub(crate) index: usize,
    pub(crate) rank: usize,
    pub(crate) config: SourceConfig,
    pub(crate) lives: Vec<Life>,
    next_seq: u64,
    /// Its transport works.
    pub(crate) up: bool,
    pub(crate) delayed: VecDeque<Message>,
    /// The newest messages, to be delivered once more.
    pub(crate) sent: VecDeque<Message>,
}

/// An answer, and who says it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Which life it is from.
    pub(crate) life: usize,
    pub(crate) origin: Origin,
    pub(crate) boot: Option<BootId>,
    pub(crate) outcome: RecoveryOutcome<Part>,
}

/// As of when an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Now,
    /// So many events ago.
    Behind(usize),
    /// From the life before.
    OldLife,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Whatever the question deserves.
    Fitting,
    Failed(QueryFailure),
    SnapshotFailed,
    InvalidRange,
    TooNew(Option<u64>),
}

/// What is wrong with the events of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    /// It breaks off behind so many runs.
    Cut(usize),
    /// A run is missing.
    Hole(usize),
    /// A run comes twice.
    Falling(usize),
    /// The last id that it says it covers is one too high, or too low.
    WrongLast(bool),
}

/// How an answer differs from an honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twist {
    pub(crate) age: Age,
    pub(crate) words: Words,
    pub(crate) shape: Shape,
    /// It begins with the oldest that there is, whatever was asked.
    pub(crate) below: bool,
    pub(crate) foreign: bool,
    pub(crate) other_boot: bool,
}

impl Twist {
    pub(crate) const HONEST: Self = Self {
        age: Age::Now,
        words: Words::Fitting,
        shape: Shape::Whole,
        below: false,
        foreign: false,
        other_boot: false,
    };

    /// Whether it says other than what the source has, and does not say that it fails.
    pub(crate) fn lies(self) -> bool {
        let shape = match self.shape {
            Shape::Whole | Shape::Cut(_) => false,
            Shape::Hole(_) | Shape::Falling(_) | Shape::WrongLast(_) => true,
        };
        let words = match self.words {
            Words::Fitting | Words::Failed(_) | Words::SnapshotFailed => false,
            Words::InvalidRange | Words::TooNew(_) => true,
        };
        shape || words || self.age != Age::Now
    }
}

impl Publisher {
    pub(crate) fn new(index: usize, rank: usize, config: SourceConfig) -> Self {
        let mut publisher = Self {
            index,
            rank,
            config,
            lives: Vec::new(),
            next_seq: 0,
            up: true,
            delayed: VecDeque::new(),
            sent: VecDeque::new(),
        };
        publisher.begin_life();
        publisher
    }

    pub(crate) const fn id(&self) -> PublisherId {
        PublisherId(self.index as u64 + 1)
    }

    pub(crate) const fn kind(&self) -> SourceKind {
        if self.config.engine { SourceKind::Engine } else { SourceKind::Agent }
    }

    pub(crate) const fn first_id(&self) -> u64 {
        if self.config.engine { 0 } else { 1 }
    }

    const fn digests(&self) -> bool {
        self.config.engine || self.config.digests
    }

    /// Whether its lives can be told apart by their boot ids.
    pub(crate) const fn tells_boot(&self) -> bool {
        !self.config.engine && self.config.tells_boot
    }

    pub(crate) const fn proof(&self) -> Proof {
        match (self.config.engine, self.config.tells_boot) {
            (true, _) => Proof::Digests,
            (false, true) => Proof::Boots,
            (false, false) => Proof::Nothing,
        }
    }

    pub(crate) fn boot(&self) -> Option<BootId> {
        self.tells_boot().then(|| self.life().boot)
    }

    pub(crate) fn life(&self) -> &Life {
        self.lives.last().expect("it always runs")
    }

    pub(crate) fn begin_life(&mut self) {
        let boot = (self.index as u64 + 1) * 1_000 + self.lives.len() as u64;
        self.lives.push(Life::new(BootId(boot), self.first_id()));
    }

    /// As membership describes it.
    pub(crate) fn advertised(&self) -> Source {
        let target = if self.config.shares_target { 0 } else { self.id().0 };
        Source {
            publisher: self.id(),
            target: self.config.recoverable.then_some(TargetId(target)),
            kind: self.kind(),
            first_id: EventId(self.first_id()),
            boot: self.boot(),
        }
    }

    /// Publishes one message.
    pub(crate) fn publish(&mut self, changes: &[(Change, bool)]) -> Message {
        let changes = if self.config.engine { &changes[..1] } else { changes };
        let (source, life) = (self.index, self.lives.len() - 1);
        let current = self.lives.last_mut().expect("it always runs");
        let mut events = Vec::new();
        for (change, damaged) in changes.iter().copied() {
            let id = current.next_id();
            let event = Event { source, life, id, change, damaged, way: Way::Live };
            current.publish(event);
            events.push(event);
        }
        let seq = self.config.numbered.then_some(self.next_seq);
        self.next_seq += 1;
        let message = Message { seq, events };
        self.sent.push_back(message.clone());
        if self.sent.len() > 12 {
            self.sent.pop_front();
        }
        message
    }

    pub(crate) fn cut(&self, events: &[Event]) -> Vec<Run<Part>> {
        cut(events, self.kind(), self.digests())
    }

    /// The answer to "from `start` on", twisted.
    pub(crate) fn answer(&self, start: Option<EventId>, twist: Twist) -> Answer {
        let current = self.lives.len() - 1;
        let (index, life) = match twist.age {
            Age::OldLife if current > 0 => (current - 1, self.lives[current - 1].clone()),
            Age::Behind(events) => (current, self.life().as_it_was(events)),
            Age::Now | Age::OldLife => (current, self.life().clone()),
        };
        let last = life.newest().unwrap_or_default();
        let outcome = match twist.words {
            Words::Failed(failure) => RecoveryOutcome::Failed(failure),
            Words::SnapshotFailed => RecoveryOutcome::SnapshotFailed { last },
            Words::InvalidRange => RecoveryOutcome::InvalidRange,
            Words::TooNew(newest) => RecoveryOutcome::TooNew { newest: newest.map(EventId) },
            Words::Fitting if self.config.engine => {
                let start = start.filter(|_| !twist.below).map_or(0, |start| start.0);
                self.events(life.from(start, self.config.window).0, twist.shape)
            }
            Words::Fitting => self.range_or_snapshot(index, &life, start, twist),
        };
        let other = if twist.other_boot { 500 } else { 0 };
        let boot = self.tells_boot().then_some(BootId(life.boot.0 + other));
        let origin = if twist.foreign { Origin::Foreign } else { Origin::Own };
        Answer { life: index, origin, boot, outcome }
    }

    fn range_or_snapshot(
        &self,
        index: usize,
        life: &Life,
        start: Option<EventId>,
        twist: Twist,
    ) -> RecoveryOutcome<Part> {
        let start = match (start, life.newest()) {
            (Some(start), Some(newest)) if start > newest => {
                return RecoveryOutcome::TooNew { newest: Some(newest) };
            }
            (Some(start), Some(_)) if !twist.below => start.0,
            (None | Some(_), Some(_)) if self.config.ranges => life.first_id,
            (None | Some(_), _) => 0,
        };
        let (events, reaches) = life.from(start, self.config.window);
        if reaches && start >= life.first_id && !events.is_empty() {
            // What precedes the last clear no longer matters.
            let clear = events.iter().rposition(|event| event.clears() == Clears::Everything);
            let events = clear.and_then(|at| events.get(at..)).unwrap_or(events);
            return self.events(events, twist.shape);
        }
        let last = life.newest().unwrap_or_default();
        RecoveryOutcome::Snapshot { runs: self.snapshot(index, life.truth_now()), last }
    }

    fn events(&self, events: &[Event], shape: Shape) -> RecoveryOutcome<Part> {
        let answered: Vec<Event> =
            events.iter().map(|event| Event { way: Way::Answer, ..*event }).collect();
        let mut runs = self.cut(&answered);
        let mut last = runs.last().map(Run::last);
        match shape {
            Shape::Whole => {}
            Shape::Cut(kept) => {
                runs.truncate(kept);
                last = runs.last().map(Run::last);
            }
            Shape::Hole(at) if !runs.is_empty() => {
                runs.remove(at % runs.len());
            }
            Shape::Falling(at) if !runs.is_empty() => {
                let at = at % runs.len();
                runs.insert(at, runs[at].clone());
            }
            Shape::Hole(_) | Shape::Falling(_) => {}
            Shape::WrongLast(higher) => {
                let off = |last: EventId| {
                    if higher { last.0.checked_add(1) } else { last.0.checked_sub(1) }
                };
                last = last.and_then(off).map(EventId);
            }
        }
        let complete = !matches!(shape, Shape::Cut(_));
        RecoveryOutcome::Events { runs, last, complete }
    }

    /// Stores that build `state` from nothing, under ids that mean nothing.
    fn snapshot(&self, life: usize, state: State) -> Vec<Run<Part>> {
        let worker = (0..8).filter(|block| state.worker & (1 << block) != 0).map(Change::Store);
        let owner = (0..8).filter(|block| state.owner & (1 << block) != 0).map(Change::Keep);
        let stores = worker.chain(owner).zip(0..).map(|(change, id)| Event {
            source: self.index,
            life,
            id,
            change,
            damaged: false,
            way: Way::Answer,
        });
        cut(&stores.collect::<Vec<_>>(), SourceKind::Agent, false)
    }
}
