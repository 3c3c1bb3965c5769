//! What a source published, and what it held after each event: the truth of every life.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use kvmirror_core::id::{BlockHash, BootId, EventId, LocalHash};
use kvmirror_core::membership::SourceKind;
use kvmirror_core::router::{Clears, Payload, Run};
use kvmirror_core::trace::{Content, TraceDomain, TraceEvent, Traced, What};

/// Bytes that one event counts for.
pub(crate) const EVENT_BYTES: usize = 10;

/// Blocks that a rank holds, as bits: what dies with the engine, and what its cache owner keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) worker: u8,
    pub(crate) owner: u8,
}

impl State {
    pub(crate) const EMPTY: Self = Self { worker: 0, owner: 0 };

    pub(crate) const fn is_within(self, other: Self) -> bool {
        self.worker & !other.worker == 0 && self.owner & !other.owner == 0
    }
}

/// What an event changes. Blocks are numbered below 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    Store(u8),
    Remove(u8),
    Keep(u8),
    Drop(u8),
    /// One domain's clear.
    ClearOwner,
    ClearAll,
}

impl Change {
    pub(crate) const fn apply(self, state: &mut State) {
        match self {
            Self::Store(block) => state.worker |= 1 << block,
            Self::Remove(block) => state.worker &= !(1 << block),
            Self::Keep(block) => state.owner |= 1 << block,
            Self::Drop(block) => state.owner &= !(1 << block),
            Self::ClearOwner => state.owner = 0,
            Self::ClearAll => *state = State::EMPTY,
        }
    }

    const fn clears(self) -> Clears {
        match self {
            Self::Store(_) | Self::Remove(_) | Self::Keep(_) | Self::Drop(_) => Clears::Nothing,
            Self::ClearOwner => Clears::OneDomain,
            Self::ClearAll => Clears::Everything,
        }
    }
}

/// How an event reached the machine. It cannot see this; the checks can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    Live,
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    /// Which publisher, as an index.
    pub(crate) source: usize,
    /// Which of its lives.
    pub(crate) life: usize,
    pub(crate) id: u64,
    pub(crate) change: Change,
    /// Its content cannot be read.
    pub(crate) damaged: bool,
    pub(crate) way: Way,
}

impl Event {
    /// A damaged clear is not seen to be one.
    pub(crate) const fn clears(self) -> Clears {
        if self.damaged { Clears::Nothing } else { self.change.clears() }
    }

    const fn digest(self) -> Option<NonZeroU64> {
        NonZeroU64::new(
            ((self.source as u64 + 1) << 40) | ((self.life as u64) << 24) | (self.id + 1),
        )
    }
}

/// The payload: the events themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part(pub(crate) Vec<Event>);

impl Payload for Part {
    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("few")
    }

    fn bytes(&self) -> usize {
        self.0.len() * EVENT_BYTES
    }

    fn slice(&self, range: Range<u32>) -> Self {
        Self(self.0[range.start as usize..range.end as usize].to_vec())
    }
}

impl Traced for Part {
    fn content(&self, index: u32) -> Content {
        let event = self.0[index as usize];
        let store = |block: u8| What::Store {
            parent: None,
            blocks: vec![(BlockHash(block.into()), LocalHash(block.into()))],
        };
        let remove = |block: u8| What::Remove { blocks: vec![BlockHash(block.into())] };
        let (what, domain) = match event.change {
            Change::Store(block) => (store(block), None),
            Change::Remove(block) => (remove(block), None),
            Change::Keep(block) => (store(block), Some(TraceDomain::CacheOwner)),
            Change::Drop(block) => (remove(block), Some(TraceDomain::CacheOwner)),
            Change::ClearOwner => (What::Clear, Some(TraceDomain::CacheOwner)),
            Change::ClearAll => (What::Clear, Some(TraceDomain::All)),
        };
        Content::Event(TraceEvent { domain, ..TraceEvent::new(EventId(event.id), what) })
    }
}

/// Cuts events into runs: an engine's message is one id; an agent's consecutive ids share a run,
/// clears and damaged events apart.
pub(crate) fn cut(events: &[Event], kind: SourceKind, digests: bool) -> Vec<Run<Part>> {
    let mut runs = Vec::new();
    let mut rest = events;
    while let Some(first) = rest.first() {
        let alone = |event: &Event| {
            kind == SourceKind::Engine || event.damaged || event.clears() != Clears::Nothing
        };
        let mut len = 1;
        while !alone(first)
            && let Some(next) = rest.get(len)
            && !alone(next)
            && next.id == first.id + len as u64
        {
            len += 1;
        }
        let (run, behind) = rest.split_at(len);
        rest = behind;
        runs.push(Run {
            first: EventId(first.id),
            len: NonZeroU32::new(u32::try_from(len).expect("few")).expect("not empty"),
            clears: first.clears(),
            damaged: first.damaged,
            digest: first.digest().filter(|_| digests && len == 1),
            payload: Part(run.to_vec()),
        });
    }
    runs
}

/// Everything that one life published, and what it held after each event.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) boot: BootId,
    pub(crate) first_id: u64,
    pub(crate) events: Vec<Event>,
    truth: Vec<State>,
    pub(crate) damaged: bool,
}

impl Life {
    pub(crate) const fn new(boot: BootId, first_id: u64) -> Self {
        Self { boot, first_id, events: Vec::new(), truth: Vec::new(), damaged: false }
    }

    pub(crate) fn publish(&mut self, event: Event) {
        let mut state = self.truth.last().copied().unwrap_or_default();
        event.change.apply(&mut state);
        self.events.push(event);
        self.truth.push(state);
        self.damaged |= event.damaged;
    }

    pub(crate) const fn next_id(&self) -> u64 {
        self.first_id + self.events.len() as u64
    }

    pub(crate) fn newest(&self) -> Option<EventId> {
        self.events.last().map(|event| EventId(event.id))
    }

    /// What it held once `id` was published; `first_id − 1` is the time before the first event.
    /// `None`: it never published that.
    pub(crate) fn truth_at(&self, id: u64) -> Option<State> {
        if id + 1 == self.first_id {
            return Some(State::EMPTY);
        }
        let index = usize::try_from(id.checked_sub(self.first_id)?).expect("small");
        self.truth.get(index).copied()
    }

    /// The life as it was before its last so many events.
    pub(crate) fn as_it_was(&self, events: usize) -> Self {
        let mut shorter = Self::new(self.boot, self.first_id);
        let kept = self.events.len().saturating_sub(events);
        self.events.iter().take(kept).for_each(|event| shorter.publish(*event));
        shorter
    }

    pub(crate) fn truth_now(&self) -> State {
        self.truth.last().copied().unwrap_or_default()
    }

    /// The newest `window` events from `start` on, and whether that reaches back to `start`.
    pub(crate) fn from(&self, start: u64, window: usize) -> (&[Event], bool) {
        let oldest = self.next_id() - self.events.len().min(window) as u64;
        let at = usize::try_from(start.max(oldest).saturating_sub(self.first_id)).expect("small");
        (self.events.get(at..).unwrap_or_default(), start >= oldest)
    }
}
