//! What a query may believe of a rank (`system.md` §2).

use core::fmt;

/// Trust in one rank's rows. The order is total: a later variant promises more, so "at least" is
/// `>=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// Nothing is followed for the rank. Never answers.
    Missing,
    /// Two sources claim the rank. Never answers.
    Ambiguous,
    /// The rank accepts nothing until a reset has completed. Never answers.
    Fenced,
    /// Discovery or transport is in doubt.
    Suspect,
    /// Declared incomplete: history before the base is unknown, or a hole cannot be filled.
    Partial,
    /// Known history, recovery in flight.
    CatchingUp,
    /// Equal to what the engine held at the rank's cursor.
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
            Self::Exact => "exact",
            Self::CatchingUp => "catching_up",
            Self::Partial => "partial",
            Self::Suspect => "suspect",
            Self::Fenced => "fenced",
            Self::Ambiguous => "ambiguous",
            Self::Missing => "missing",
        }
    }

    /// Whether a rank at this level may report matches at all.
    pub const fn may_answer(self) -> bool {
        match self {
            Self::Exact | Self::CatchingUp | Self::Partial | Self::Suspect => true,
            Self::Fenced | Self::Ambiguous | Self::Missing => false,
        }
    }

    /// Reads a `min_trust` value: one of the four levels that may answer, by its exact name.
    pub fn parse_minimum(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.may_answer() && level.name() == name)
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
