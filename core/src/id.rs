//! Identifiers. Every id is a newtype, so that two of them cannot be swapped by mistake.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

id! {
    /// A logical inference worker (`system.md` §2).
    WorkerId(u64)
}
id! {
    /// A global data-parallel rank number of a worker.
    Rank(u32)
}
id! {
    /// One incarnation of a rank's event source: random, never ordered by meaning.
    PublisherId(u64)
}
id! {
    /// One run of the process behind a source, chosen at random when it starts: another value on any
    /// channel means another incarnation (rule B17).
    BootId(u64)
}
id! {
    /// Names a membership snapshot, so that the next one can say what it changes. Unique within one
    /// sequence of snapshots.
    SnapshotId(u64)
}
id! {
    /// Cumulative count of a rank's reset-relevant membership changes. Any difference to the last
    /// applied value means "reset before accepting anything".
    Generation(u64)
}
id! {
    /// The generation a source was activated under; carried by every command, so that late work of
    /// an old source can be told apart.
    Epoch(u64)
}
id! {
    /// Position in a source's stream: an agent's event id, or a raw engine's message sequence.
    /// 0 is an id like any other (rule B34).
    EventId(u64)
}
id! {
    /// One emitted reset, admit or replace. Opaque: never two incomplete ones alike, no order.
    OpId(u64)
}
id! {
    /// One launch of a recovery query; never reused.
    QueryId(u64)
}
id! {
    /// Where a recovery query is sent. The host keeps the meaning (an address, a client handle).
    TargetId(u64)
}
id! {
    /// The engine's own hash of a block, reduced to 64 bits (rule B23). Opaque: it compares neither
    /// between ranks nor across lives.
    BlockHash(u64)
}
id! {
    /// Hash of one block's tokens and identity, not chained (`wire.md` §8).
    LocalHash(u64)
}
id! {
    /// Rolling hash of a block and everything before it (`wire.md` §9).
    SequenceHash(u64)
}

/// The only routing identity: a worker and one of its ranks. Ordered by worker, then rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankKey {
    /// The worker.
    pub worker: WorkerId,
    /// Its global data-parallel rank.
    pub rank: Rank,
}

impl RankKey {
    /// Makes a key from plain numbers.
    pub const fn new(worker: u64, rank: u32) -> Self {
        Self { worker: WorkerId(worker), rank: Rank(rank) }
    }
}

impl fmt::Display for RankKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.worker, self.rank)
    }
}
