//! Everything the router machine wants done, and the one buffer it leaves through.

use super::input::{Run, Runs};
use super::notice::Notice;
use crate::id::{Epoch, EventId, OpId, PublisherId, QueryId, RankKey, TargetId};
use alloc::vec::Vec;

/// Why a rank is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetReason {
    /// The rank's source or generation changed, or the rank left.
    Lifecycle,
    /// The source began a new life (B2, B7).
    NewLife,
    /// Messages are missing that nobody can give back (B18).
    Hole,
    /// The target refused something, or a reply named another rank (B1, S6).
    Fault,
}

impl ResetReason {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::NewLife => "new_life",
            Self::Hole => "hole",
            Self::Fault => "target_fault",
        }
    }
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
    /// Ask a source for its messages from `start` on (from its oldest when `None`). Answered by a
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
        /// The new state, as a stream from nothing.
        runs: Vec<Run<P>>,
        /// The last id the new state reflects.
        last: EventId,
    },
    /// Remove everything the target holds for the rank. A barrier.
    Reset {
        /// Completed by this id.
        op: OpId,
        /// The rank.
        rank: RankKey,
        /// The activation it belongs to.
        epoch: Epoch,
        /// Why.
        reason: ResetReason,
    },
}

/// Caller-owned, reusable output buffer. Nothing waits inside the machine: what a handler wants is
/// here when it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects<P> {
    commands: Vec<Command<P>>,
    notices: Vec<Notice>,
}

impl<P> Default for Effects<P> {
    fn default() -> Self {
        Self { commands: Vec::new(), notices: Vec::new() }
    }
}

impl<P> Effects<P> {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the commands, in order of emission.
    pub fn drain_commands(&mut self) -> alloc::vec::Drain<'_, Command<P>> {
        self.commands.drain(..)
    }

    /// Takes the notices, in order of emission. A host may drop them.
    pub fn drain_notices(&mut self) -> alloc::vec::Drain<'_, Notice> {
        self.notices.drain(..)
    }

    /// The commands not yet taken.
    pub fn commands(&self) -> &[Command<P>] {
        &self.commands
    }

    /// The notices not yet taken.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.notices.is_empty()
    }

    pub(super) fn command(&mut self, command: Command<P>) {
        self.commands.push(command);
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}
