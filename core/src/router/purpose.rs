//! What recoveries are for, and what that makes of them.

/// Why a source is asked.
///
/// | purpose | asked from | live events meanwhile | attempts | given up |
/// |---|---|---|---|---|
/// | `Initial` | the whole | wait | all | partial, repaired later |
/// | `Gap` | what is missing, or the whole | wait | all | go on across the hole as partial, repaired later (B5, B33) |
/// | `Fault` | the whole | wait | all | likewise |
/// | `Verify` | the cursor | wait | all | reset, restart as partial (B6) |
/// | `Probe` | the cursor | flow | one | asked again later |
/// | `Repair` | the whole | wait | one | asked again later |
/// | `Probation` | the whole | wait | all | the next cool-down (B15) |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The first recovery of an activation or life.
    Initial,
    /// Events are missing.
    Gap,
    /// The target reported a fault.
    Fault,
    /// The transport was interrupted, or ids fell back: is it still the same life (B7)?
    Verify,
    /// A quiet source may have lost its tail (B3).
    Probe,
    /// An earlier recovery failed (B5).
    Repair,
    /// A rejected source has cooled down (B15).
    Probation,
}

impl Purpose {
    /// The stable snake_case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Gap => "gap",
            Self::Fault => "fault",
            Self::Verify => "verify",
            Self::Probe => "probe",
            Self::Repair => "repair",
            Self::Probation => "probation",
        }
    }

    /// Whether live events wait for it.
    pub(super) const fn holds(self) -> bool {
        match self {
            Self::Initial
            | Self::Gap
            | Self::Fault
            | Self::Verify
            | Self::Repair
            | Self::Probation => true,
            Self::Probe => false,
        }
    }

    /// Whether one attempt is all it gets; it also gives way to a recovery that the stream itself
    /// asks for.
    pub(super) const fn is_background(self) -> bool {
        match self {
            Self::Probe | Self::Repair => true,
            Self::Initial | Self::Gap | Self::Fault | Self::Verify | Self::Probation => false,
        }
    }
}
