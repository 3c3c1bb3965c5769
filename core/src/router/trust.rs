//! What a query may believe of a rank.

use core::fmt;

/// What a query may believe of a rank (`system.md` §2). The order is total: a later variant promises
/// more, so "at least" is `>=`. The first three are never answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// Nobody publishes for the rank.
    Missing,
    /// More than one source claims the rank.
    Ambiguous,
    /// The rank accepts nothing until a reset has completed.
    Fenced,
    /// Transport or discovery is in doubt and not yet verified.
    Suspect,
    /// Declared incomplete: history before the base is unknown, or a hole cannot be filled.
    Partial,
    /// Known history, recovery in flight.
    CatchingUp,
    /// Followed without a hole from a point where the state was known.
    Exact,
}

impl Trust {
    /// Every level, the most trusted first.
    pub const ALL: [Self; 7] = [
        Self::Exact,
        Self::CatchingUp,
        Self::Partial,
        Self::Suspect,
        Self::Fenced,
        Self::Ambiguous,
        Self::Missing,
    ];

    /// The stable snake_case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Ambiguous => "ambiguous",
            Self::Fenced => "fenced",
            Self::Suspect => "suspect",
            Self::Partial => "partial",
            Self::CatchingUp => "catching_up",
            Self::Exact => "exact",
        }
    }

    /// Whether a rank of this trust may appear in an answer at all.
    pub const fn answers(self) -> bool {
        match self {
            Self::Suspect | Self::Partial | Self::CatchingUp | Self::Exact => true,
            Self::Missing | Self::Ambiguous | Self::Fenced => false,
        }
    }

    /// Reads a least wanted trust: one of the four levels that may answer, by its exact name.
    pub fn parse_minimum(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.answers() && level.name() == name)
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a rank is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TrustReason {
    /// No source is known, or its transport never came up.
    NoSource,
    /// Several sources claim the rank.
    Ambiguous,
    /// A reset has been asked for and has not completed.
    Resetting,
    /// The target refused something; the reset is retried.
    TargetFault,
    /// A recovery reply named another rank than its source's.
    ForeignReply,
    /// The source was rejected and is on probation (B15).
    Rejected,
    /// Membership is the last known one: discovery is in doubt (B8).
    Discovery,
    /// The connection to the source is down.
    TransportLost,
    /// The connection is back; whether to the same life is being established (B7).
    Unverified,
    /// The first recovery has not answered yet.
    InitialRecovery,
    /// The source no longer has its history, and nothing cleared it since.
    HistoryUnknown,
    /// Messages were lost that nobody can give back.
    Hole,
    /// A message's content could not be read whole.
    Damaged,
    /// A store's parent is resident nowhere on the rank: something was lost before it was numbered
    /// (B37).
    Orphan,
    /// The target has no room left.
    Capacity,
    /// Missing messages are being fetched.
    Gap,
}

impl TrustReason {
    /// The stable snake_case code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSource => "no_source",
            Self::Ambiguous => "ambiguous",
            Self::Resetting => "resetting",
            Self::TargetFault => "target_fault",
            Self::ForeignReply => "foreign_reply",
            Self::Rejected => "rejected",
            Self::Discovery => "discovery",
            Self::TransportLost => "transport_lost",
            Self::Unverified => "unverified",
            Self::InitialRecovery => "initial_recovery",
            Self::HistoryUnknown => "history_unknown",
            Self::Hole => "hole",
            Self::Damaged => "damaged",
            Self::Orphan => "orphan",
            Self::Capacity => "capacity",
            Self::Gap => "gap",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_strictly_falling_order() {
        assert!(Trust::ALL.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn only_answering_levels_are_minima() {
        for (name, expected) in [
            ("exact", Some(Trust::Exact)),
            ("catching_up", Some(Trust::CatchingUp)),
            ("partial", Some(Trust::Partial)),
            ("suspect", Some(Trust::Suspect)),
            ("fenced", None),
            ("ambiguous", None),
            ("missing", None),
            ("EXACT", None),
            ("", None),
        ] {
            assert_eq!(Trust::parse_minimum(name), expected, "{name}");
        }
    }
}
