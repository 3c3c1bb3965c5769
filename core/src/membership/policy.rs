//! Limits and improvements of the coordinator; the two profiles are two constants.

use crate::time::Micros;

/// A limit that would make the coordinator useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("membership policy value `{name}` is zero; give it at least 1")]
pub struct MembershipPolicyError {
    /// The field.
    pub name: &'static str,
}

/// Limits of the coordinator, and one knob for each improvement over the reference design.
///
/// The limits hold in both profiles, far above what a fleet needs. What is over one is counted in
/// [`super::MembershipStats`]; a source is never selected because another one was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each improvement is one switch of its own")]
pub struct MembershipPolicy {
    /// Expected workers. One more is not expected, and its endpoint not counted, until it is named
    /// again when there is room.
    pub workers_max: usize,
    /// Expected ranks, over all workers. A worker's ranks beyond it are left out, its last ones
    /// first, until others leave.
    pub ranks_max: usize,
    /// Advertisements kept, over all ranks. One more is not kept; a rank that has one already is
    /// then ambiguous until all it has are withdrawn, or discovery lists afresh.
    pub advertisements_max: usize,
    /// Advertisements kept per rank; over it likewise.
    pub advertisements_per_rank_max: usize,
    /// Malformed records of unknown publishers remembered; further ones are only counted.
    pub quarantine_max: usize,
    /// Ranks that left whose lifecycle generation is kept exactly; beyond it they are forgotten as
    /// with [`Self::forget_idle`].
    pub idle_ranks_max: usize,
    /// How long the last known membership outlives a failure of discovery (B8).
    pub suspect_grace: Micros,

    /// B8, B35: a failure of discovery leaves the last known membership, marked as suspect, and
    /// the end of the membership input is told.
    pub suspect_discovery: bool,
    /// B14: a rank that leaves is forgotten at once. If it returns it begins at a generation above
    /// every one that it was active under, so that a consumer that missed its absence still sees a
    /// difference; one that saw it and forgot the rank as well resets whatever it activates anew.
    pub forget_idle: bool,
    /// B17: a publisher that is advertised again with another boot id, and nothing else changed, is
    /// a new incarnation in the place of the old one, not a contradiction.
    pub check_boot: bool,
    /// W-V3: a malformed record of an unknown publisher is held against what that publisher
    /// advertises later; a publisher that claims a second rank closes that one, too.
    pub quarantine: bool,
}

impl Default for MembershipPolicy {
    fn default() -> Self {
        Self::HARDENED
    }
}

impl MembershipPolicy {
    /// The reference design, exactly.
    pub const REFERENCE: Self = Self {
        workers_max: 1 << 20,
        ranks_max: 1 << 20,
        advertisements_max: 1 << 20,
        advertisements_per_rank_max: 64,
        quarantine_max: 1 << 16,
        idle_ranks_max: 1 << 20,
        suspect_grace: Micros::from_secs(60),
        suspect_discovery: false,
        forget_idle: false,
        check_boot: false,
        quarantine: false,
    };

    /// The reference design with every improvement; the default.
    pub const HARDENED: Self = Self {
        suspect_discovery: true,
        forget_idle: true,
        check_boot: true,
        quarantine: true,
        ..Self::REFERENCE
    };

    /// Checks that every limit leaves the coordinator able to work.
    ///
    /// # Errors
    /// [`MembershipPolicyError`] names the first field that is zero and must not be.
    pub fn validated(self) -> Result<Self, MembershipPolicyError> {
        let limits = [
            ("workers_max", self.workers_max == 0),
            ("ranks_max", self.ranks_max == 0),
            ("advertisements_max", self.advertisements_max == 0),
            ("advertisements_per_rank_max", self.advertisements_per_rank_max == 0),
            ("quarantine_max", self.quarantine_max == 0),
            ("idle_ranks_max", self.idle_ranks_max == 0),
            ("suspect_grace", self.suspect_grace.0 == 0),
        ];
        match limits.into_iter().find(|(_, zero)| *zero) {
            Some((name, _)) => Err(MembershipPolicyError { name }),
            None => Ok(self),
        }
    }
}
