//! Engines with lives and rings, and the truth of every life that ever was.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use kvmirror_core::id::EventId;
use kvmirror_core::router::{Payload, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    Store(u8),
    Remove(u8),
    Clear,
}

impl Change {
    pub(crate) fn apply(self, state: &mut BTreeSet<u8>) {
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
pub(crate) struct Message {
    pub(crate) life: usize,
    pub(crate) seq: u64,
    pub(crate) change: Change,
    pub(crate) damaged: bool,
}

impl Message {
    pub(crate) fn clears(self) -> bool {
        self.change == Change::Clear && !self.damaged
    }

    pub(crate) fn run(self) -> Run<Self> {
        Run {
            first: EventId(self.seq),
            len: NonZeroU32::MIN,
            clear: self.clears(),
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
pub(crate) struct Life {
    pub(crate) messages: Vec<Message>,
    pub(crate) truth: Vec<BTreeSet<u8>>,
    pub(crate) damaged: bool,
}

/// All lives of all engines; a life's number is its index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives(Vec<Life>);

impl Lives {
    pub(crate) fn begin(&mut self) -> usize {
        self.0.push(Life::default());
        self.0.len() - 1
    }

    pub(crate) fn get(&self, life: usize) -> &Life {
        &self.0[life]
    }

    pub(crate) fn publish(&mut self, life: usize, change: Change, damaged: bool) -> Message {
        let record = &mut self.0[life];
        let message = Message { life, seq: record.messages.len() as u64, change, damaged };
        let mut state = record.truth.last().cloned().unwrap_or_default();
        change.apply(&mut state);
        record.messages.push(message);
        record.truth.push(state);
        record.damaged |= damaged;
        message
    }

    pub(crate) fn truth_at(&self, message: Message) -> &BTreeSet<u8> {
        &self.0[message.life].truth[usize::try_from(message.seq).expect("small")]
    }

    pub(crate) fn truth_now(&self, life: usize) -> BTreeSet<u8> {
        self.0[life].truth.last().cloned().unwrap_or_default()
    }

    /// What the ring answers.
    pub(crate) fn replay(
        &self,
        life: usize,
        ring: usize,
        start: Option<EventId>,
    ) -> Vec<Run<Message>> {
        let messages = &self.0[life].messages;
        let oldest = messages.len().saturating_sub(ring);
        let from = start.map_or(0, |start| usize::try_from(start.0).expect("small")).max(oldest);
        messages.get(from..).unwrap_or_default().iter().map(|message| message.run()).collect()
    }
}
