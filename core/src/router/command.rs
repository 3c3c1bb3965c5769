//! Everything the router machine wants done, and the one buffer it leaves through.

use super::input::{Run, Runs};
use super::notice::Notice;
use crate::id::{Epoch, EventId, OpId, PublisherId, QueryId, RankKey, TargetId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Why a rank is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResetReason {
    /// The rank's source, generation, life or history changed, or the rank left.
    Lifecycle,
    /// The source says that it cannot show its state (reference profile).
    SnapshotFailed,
    /// The target refused something or reported a fault.
    TargetFault,
}

impl ResetReason {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::SnapshotFailed => "snapshot_failed",
            Self::TargetFault => "target_fault",
        }
    }
}

/// Which residency domains a barrier concerns (B32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// What dies with the engine; what a cache owner holds stays.
    Worker,
    /// Everything.
    All,
}

impl Scope {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::All => "all",
        }
    }
}

/// What became of a reported fault or rejection (§5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// It named an activation that is no longer current: nothing happened.
    Stale,
    /// The rank accepts nothing until a reset has completed.
    Fenced,
    /// The rank's state is being fetched again.
    Recovering,
    /// The live-only rank has been emptied and starts over.
    ResetLiveOnly,
}

impl Disposition {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Fenced => "fenced",
            Self::Recovering => "recovering",
            Self::ResetLiveOnly => "reset_live_only",
        }
    }
}

/// The answer to an input that asks for one; it comes when the rank's waiting work allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To a target fault or a rejected source.
    Fault {
        /// The rank it named.
        rank: RankKey,
        /// What became of it.
        disposition: Disposition,
    },
    /// To a lost transport.
    TransportLost {
        /// The publisher it named.
        publisher: PublisherId,
        /// Whether a rank followed it.
        fenced: bool,
    },
}

/// What the shell must do. Exhaustive on purpose: a host must not compile if it ignores one.
///
/// Commands of one rank are executed in the order they were emitted; at most one of them is
/// incomplete at any time. Different ranks are independent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<P> {
    /// Hand events to the target, in order. Completes when the target has accepted all of them;
    /// a failure fences the rank.
    Admit {
        /// Completed by this id.
        op: OpId,
        /// The rank.
        rank: RankKey,
        /// The activation it belongs to.
        epoch: Epoch,
        /// The events.
        runs: Runs<P>,
    },
    /// The answer to this query no longer counts; stop working on it. Needs no completion.
    Cancel {
        /// The query.
        query: QueryId,
    },
    /// Ask a source for its events from `start` on (for its whole state, or all it still has, when
    /// `None`). Answered by a
    /// [`super::RecoveryResponse`]; the machine keeps the deadline itself.
    Query {
        /// Fresh for every attempt.
        query: QueryId,
        /// The rank.
        rank: RankKey,
        /// The incarnation to ask.
        publisher: PublisherId,
        /// Where to ask.
        target: TargetId,
        /// First id wanted.
        start: Option<EventId>,
    },
    /// Swap the rank's whole state for these events, atomically. A barrier, all or nothing.
    Replace {
        /// Completed by this id.
        op: OpId,
        /// The rank.
        rank: RankKey,
        /// The activation it belongs to.
        epoch: Epoch,
        /// Whose residency is swapped.
        scope: Scope,
        /// The new state, as a stream from nothing.
        runs: Vec<Run<P>>,
        /// The last id the new state reflects.
        last: EventId,
    },
    /// Remove what the target holds for the rank. A barrier.
    Reset {
        /// Completed by this id.
        op: OpId,
        /// The rank.
        rank: RankKey,
        /// The activation it belongs to.
        epoch: Epoch,
        /// Whose residency goes.
        scope: Scope,
        /// Why.
        reason: ResetReason,
    },
}

/// Caller-owned, reusable output buffer. Nothing waits inside the machine: what a handler wants is
/// here when it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects<P> {
    commands: VecDeque<Command<P>>,
    replies: Vec<Reply>,
    notices: Vec<Notice>,
}

impl<P> Default for Effects<P> {
    fn default() -> Self {
        Self { commands: VecDeque::new(), replies: Vec::new(), notices: Vec::new() }
    }
}

impl<P> Effects<P> {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next command, in order of emission: a host that carries commands out one by one may
    /// complete each before it takes the next.
    pub fn next_command(&mut self) -> Option<Command<P>> {
        self.commands.pop_front()
    }

    /// Takes the commands, in order of emission.
    pub fn drain_commands(&mut self) -> alloc::collections::vec_deque::Drain<'_, Command<P>> {
        self.commands.drain(..)
    }

    /// Takes the replies, in order of emission.
    pub fn drain_replies(&mut self) -> alloc::vec::Drain<'_, Reply> {
        self.replies.drain(..)
    }

    /// Takes the notices, in order of emission. A host may drop them.
    pub fn drain_notices(&mut self) -> alloc::vec::Drain<'_, Notice> {
        self.notices.drain(..)
    }

    /// The commands not yet taken.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = &Command<P>> {
        self.commands.iter()
    }

    /// The replies not yet taken.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// The notices not yet taken.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.replies.is_empty() && self.notices.is_empty()
    }

    pub(crate) fn command(&mut self, command: Command<P>) {
        self.commands.push_back(command);
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.replies.push(reply);
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}
