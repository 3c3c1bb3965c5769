//! Counters of the coordinator.

/// Counters since the coordinator was made. None is needed for correctness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MembershipStats {
    /// Snapshots to be published.
    pub snapshots: u64,
    /// Ranks left out because their number does not fit in 32 bits (M4).
    pub ranks_beyond_u32: u64,
    /// Ranks left out because too many are expected.
    pub ranks_over_limit: u64,
    /// Workers that are not expected because there are too many.
    pub workers_over_limit: u64,
    /// Workers that one list of expectations names again; the last entry counts.
    pub workers_repeated: u64,
    /// Advertisements and withdrawals for another endpoint than the resolved one, or while none is.
    pub other_endpoint: u64,
    /// Advertisements that were not kept: a limit.
    pub advertisements_over_limit: u64,
    /// Advertisements and malformed records that contradict what their publisher advertised.
    pub conflicts: u64,
    /// Malformed records of unknown publishers that were ignored.
    pub invalid_ignored: u64,
    /// Malformed records of unknown publishers that are held against them (W-V3).
    pub quarantined: u64,
    /// Withdrawals of unknown publishers.
    pub unknown_withdrawals: u64,
    /// Publishers advertised with another boot id (B17).
    pub reboots: u64,
    /// Failures of discovery.
    pub losses: u64,
    /// Suspicions that ended with a complete list (B8).
    pub resynchronised: u64,
    /// Suspicions that ended because their time was over (B8).
    pub suspicions_expired: u64,
    /// Ranks whose lifecycle generation was forgotten (B14).
    pub forgotten: u64,
    /// Inputs after the end of the membership input, ignored (reference profile).
    pub after_end: u64,
}
