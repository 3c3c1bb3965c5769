//! Raw engines with lives and replay rings, and the truth of every life that ever was.
//!
//! A message is tiny: it stores or removes one of a few blocks, or clears. That is all the follower
//! machine can tell apart, since it looks at headers only.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use kvmirror_core::id::EventId;
use kvmirror_core::router::{Clears, Payload, Run};

/// What a message changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A block is stored.
    Store(u8),
    /// A block is removed.
    Remove(u8),
    /// Everything is removed.
    Clear,
}

impl Change {
    /// Carries it out.
    pub fn apply(self, state: &mut BTreeSet<u8>) {
        match self {
            Self::Store(block) => {
                state.insert(block);
            }
            Self::Remove(block) => {
                state.remove(&block);
            }
            Self::Clear => state.clear(),
        }
    }
}

/// One message: which life and sequence it is, what it changes, and whether that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Which life it is from.
    pub life: usize,
    /// Its sequence within that life.
    pub seq: u64,
    /// What it changes.
    pub change: Change,
    /// Whether its content cannot be read.
    pub damaged: bool,
}

impl Message {
    /// Whether a reader sees it clear everything.
    pub fn clears(self) -> bool {
        self.change == Change::Clear && !self.damaged
    }

    /// The message as the follower machine takes it.
    pub fn run(self) -> Run<Self> {
        Run {
            first: EventId(self.seq),
            len: NonZeroU32::MIN,
            clears: if self.clears() { Clears::Everything } else { Clears::Nothing },
            damaged: self.damaged,
            digest: NonZeroU64::new(((self.life as u64) << 32) + self.seq + 1),
            payload: self,
        }
    }
}

impl Payload for Message {
    fn len(&self) -> u32 {
        1
    }
    fn bytes(&self) -> usize {
        100
    }
    fn slice(&self, _range: Range<u32>) -> Self {
        *self
    }
}

/// Every message and every truth of one life.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// What it has published, by sequence.
    pub messages: Vec<Message>,
    /// What the engine held after each message.
    pub truth: Vec<BTreeSet<u8>>,
    /// Whether any of its messages cannot be read.
    pub damaged: bool,
}

/// All lives of all engines; a life's number is its index.
#[derive(Clone, Debug, Default)]
pub struct Lives(Vec<Life>);

impl Lives {
    /// Begins a life; gives its number.
    pub fn begin(&mut self) -> usize {
        self.0.push(Life::default());
        self.0.len() - 1
    }

    /// One life.
    ///
    /// # Panics
    /// When there is no such life.
    pub fn get(&self, life: usize) -> &Life {
        &self.0[life]
    }

    /// Numbers a message and remembers the truth after it.
    ///
    /// # Panics
    /// When there is no such life.
    pub fn publish(&mut self, life: usize, change: Change, damaged: bool) -> Message {
        let record = &mut self.0[life];
        let message = Message { life, seq: record.messages.len() as u64, change, damaged };
        let mut state = record.truth.last().cloned().unwrap_or_default();
        change.apply(&mut state);
        record.messages.push(message);
        record.truth.push(state);
        record.damaged |= damaged;
        message
    }

    /// What the engine held once `message` was published.
    ///
    /// # Panics
    /// When nobody published it.
    pub fn truth_at(&self, message: Message) -> &BTreeSet<u8> {
        &self.0[message.life].truth[usize::try_from(message.seq).expect("small")]
    }

    /// What the engine holds now; nothing before the first message.
    ///
    /// # Panics
    /// When there is no such life.
    pub fn truth_now(&self, life: usize) -> BTreeSet<u8> {
        self.0[life].truth.last().cloned().unwrap_or_default()
    }

    /// What a ring of `ring` messages answers to "everything from `start` on".
    ///
    /// # Panics
    /// When there is no such life.
    pub fn replay(&self, life: usize, ring: usize, start: Option<EventId>) -> Vec<Run<Message>> {
        let messages = &self.0[life].messages;
        let oldest = messages.len().saturating_sub(ring);
        let from = start.map_or(0, |start| usize::try_from(start.0).expect("small")).max(oldest);
        messages.get(from..).unwrap_or_default().iter().map(|message| message.run()).collect()
    }
}
