//! What the shell may want to know: notices (diagnostics) and counters. Neither is needed for
//! correctness.

use super::command::ResetReason;
use super::input::QueryFailure;
use super::trust::{Trust, TrustReason};
use crate::id::{EventId, PublisherId, RankKey};

/// Why live messages were discarded. Each is either provably superfluous or has led to a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DiscardReason {
    /// Already admitted: an equal message with this id.
    Duplicate,
    /// Its publisher is active for no rank.
    InactivePublisher,
    /// It names another rank than its source's (S6).
    Foreign,
    /// Its id fell back and nothing proves a new life yet (B2).
    Regression,
    /// The rank was fenced; its history is fetched again after the reset (S8).
    Fenced,
    /// The pending buffer was over its limit; it is fetched again (B13).
    OverLimit,
    /// It belonged to a life that has ended.
    OldLife,
    /// A clear made it irrelevant.
    Cleared,
    /// The oldest of a full pending buffer (reference profile).
    Evicted,
}

impl DiscardReason {
    /// Every reason, in order.
    pub const ALL: [Self; 9] = [
        Self::Duplicate,
        Self::InactivePublisher,
        Self::Foreign,
        Self::Regression,
        Self::Fenced,
        Self::OverLimit,
        Self::OldLife,
        Self::Cleared,
        Self::Evicted,
    ];

    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::InactivePublisher => "inactive_publisher",
            Self::Foreign => "foreign",
            Self::Regression => "regression",
            Self::Fenced => "fenced",
            Self::OverLimit => "over_limit",
            Self::OldLife => "old_life",
            Self::Cleared => "cleared",
            Self::Evicted => "evicted",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// How a recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RecoveryEnd {
    /// The rank is level with its source again.
    Healed,
    /// The source's history does not reach back far enough: the rank restarted as partial.
    Restarted,
    /// The source turned out to be another life.
    NewLife,
    /// All attempts failed.
    Failed,
    /// It was superseded (clear, fault, removal, disconnect).
    Superseded,
    /// The source's answers contradict themselves, or are another rank's (B10, S6).
    Corrupt,
}

impl RecoveryEnd {
    /// Every end, in order.
    pub const ALL: [Self; 6] = [
        Self::Healed,
        Self::Restarted,
        Self::NewLife,
        Self::Failed,
        Self::Superseded,
        Self::Corrupt,
    ];

    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healed => "healed",
            Self::Restarted => "restarted",
            Self::NewLife => "new_life",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
            Self::Corrupt => "corrupt",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// Why a rank is emptied, in more detail than its command says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ResetCause {
    /// The rank's source or generation changed, or the rank left.
    Lifecycle,
    /// The source began a new life (B2, B7, B17).
    NewLife,
    /// Events are missing, and the state is not kept meanwhile or can never be made whole.
    Hole,
    /// Delivery was interrupted.
    Transport,
    /// The source said that it cannot show its state.
    SnapshotFailed,
    /// The source's answers contradict themselves, or are another rank's.
    Corrupt,
    /// The target reported a fault, or calls the source's events impossible.
    Fault,
}

impl ResetCause {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::NewLife => "new_life",
            Self::Hole => "hole",
            Self::Transport => "transport",
            Self::SnapshotFailed => "snapshot_failed",
            Self::Corrupt => "corrupt",
            Self::Fault => "fault",
        }
    }

    /// What the command says (§5.9).
    pub const fn reason(self) -> ResetReason {
        match self {
            Self::Lifecycle | Self::NewLife | Self::Hole | Self::Transport | Self::Corrupt => {
                ResetReason::Lifecycle
            }
            Self::SnapshotFailed => ResetReason::SnapshotFailed,
            Self::Fault => ResetReason::TargetFault,
        }
    }
}

/// A diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notice {
    /// The first recovery of an activation has ended, however it ended (B35).
    InitialRecoveryComplete {
        /// The rank.
        rank: RankKey,
    },
    /// Ids are missing.
    Gap {
        /// The rank.
        rank: RankKey,
        /// The id that should have come.
        expected: EventId,
        /// The id that came.
        got: EventId,
    },
    /// The source began a new life.
    NewLife {
        /// The rank.
        rank: RankKey,
        /// The cursor of the old life.
        cursor: Option<EventId>,
    },
    /// Ids were skipped for good: a named degradation (S2).
    Skipped {
        /// The rank.
        rank: RankKey,
        /// First id skipped.
        first: EventId,
        /// Last id skipped.
        last: EventId,
    },
    /// Messages were discarded.
    Discarded {
        /// The publisher.
        publisher: PublisherId,
        /// Why.
        reason: DiscardReason,
        /// How many.
        messages: u64,
    },
    /// A recovery ended.
    Recovered {
        /// The rank.
        rank: RankKey,
        /// How.
        end: RecoveryEnd,
    },
    /// A rank's trust changed.
    Trust {
        /// The rank.
        rank: RankKey,
        /// What it was.
        from: Trust,
        /// What it is.
        to: Trust,
        /// Why it is not exact.
        reason: Option<TrustReason>,
    },
    /// A rank is being emptied.
    Reset {
        /// The rank.
        rank: RankKey,
        /// Why.
        cause: ResetCause,
    },
    /// An attempt to recover brought no usable answer.
    QueryFailed {
        /// The rank.
        rank: RankKey,
        /// How many attempts of this recovery have failed by now.
        attempt: u32,
        /// How; `None` when it was the deadline, or what the answer said.
        failure: Option<QueryFailure>,
    },
    /// The target refused a command: the rank is fenced.
    Refused {
        /// The rank.
        rank: RankKey,
    },
    /// Transport messages are missing, whatever the event ids say (B12).
    TransportGap {
        /// The rank.
        rank: RankKey,
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        got: u64,
    },
}

/// Counters since the machine was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// Live messages handed in.
    pub live_messages: u64,
    /// Event ids admitted.
    pub admitted: u64,
    /// Gaps noticed.
    pub gaps: u64,
    /// Queries sent, every attempt counted.
    pub queries: u64,
    /// Tail probes answered (B3).
    pub probes: u64,
    /// New lives noticed.
    pub new_lives: u64,
    /// Resets asked for.
    pub resets: u64,
    /// Commands the target refused.
    pub target_faults: u64,
    /// Transport messages that were skipped (B12).
    pub transport_gaps: u64,
    /// Answers whose query no longer counted.
    pub stale_replies: u64,
    /// Ranks of snapshots that were not followed, since no more than 2²⁴ − 1 can be at once.
    pub ranks_over_limit: u64,
    discarded: [u64; DiscardReason::ALL.len()],
    recoveries: [u64; RecoveryEnd::ALL.len()],
}

impl Stats {
    /// Messages discarded under `reason`.
    pub fn discarded(&self, reason: DiscardReason) -> u64 {
        self.discarded.get(reason.index()).copied().unwrap_or_default()
    }

    /// Recoveries that ended so.
    pub fn recoveries(&self, end: RecoveryEnd) -> u64 {
        self.recoveries.get(end.index()).copied().unwrap_or_default()
    }

    pub(super) fn discard(&mut self, reason: DiscardReason, messages: u64) {
        if let Some(count) = self.discarded.get_mut(reason.index()) {
            *count = count.saturating_add(messages);
        }
    }

    pub(super) fn recovery(&mut self, end: RecoveryEnd) {
        if let Some(count) = self.recoveries.get_mut(end.index()) {
            *count += 1;
        }
    }
}
