//! Limits, timings and improvements of the router machine; the two profiles are two constants.

use crate::time::Micros;

/// A limit that would make the machine useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy value `{name}` is zero; give it at least 1")]
pub struct PolicyError {
    /// The field.
    pub name: &'static str,
}

/// What happens to a recoverable rank's state when events are missing (B4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapPolicy {
    /// It is emptied before the recovery: nothing stale is served meanwhile.
    ResetFirst,
    /// It stays; only what is missing is asked for, and only a snapshot replaces it.
    KeepServing,
}

/// Limits and timings (`system.md` §6), and one knob for each improvement over the reference design.
///
/// Every knob works with any combination of the others; [`Policy::REFERENCE`] has all of them off,
/// [`Policy::HARDENED`], the default, all of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each improvement is one switch of its own")]
pub struct Policy {
    /// Seed of the jitter generator.
    pub seed: u64,
    /// Attempts per recovery before it counts as failed.
    pub attempts: u32,
    /// Wait after the first failed attempt; doubles with each further one.
    pub backoff_base: Micros,
    /// How long one attempt may take.
    pub attempt_timeout: Micros,
    /// A recovery from the source's beginning waits a uniform time below this first.
    pub jitter_max: Micros,
    /// Queries in flight over all ranks (S5).
    pub concurrency: u32,
    /// Of these, how many may ask for a whole state (B9); the rest is kept for ranges.
    pub snapshot_concurrency: u32,
    /// After this long an attempt gives way to one that waits, and tries again behind it (B9);
    /// doubles each time it does.
    pub attempt_slice: Micros,
    /// How long one recovery may take over all its attempts (B9).
    pub recovery_budget: Micros,
    /// Events that wait, per rank: in the pending buffer, and again behind an incomplete command.
    pub pending_events: u32,
    /// Bytes that wait, per rank, likewise.
    pub pending_bytes: usize,
    /// Bytes that wait over all ranks (B13).
    pub pending_bytes_total: usize,
    /// How many answers in a row may bring nothing of a hole before it counts as one nobody can fill
    /// (B18).
    pub rounds: u32,
    /// First wait before a fenced rank retries its reset; doubles (B1).
    pub heal_base: Micros,
    /// Longest wait before a fenced rank retries.
    pub heal_max: Micros,
    /// Quiet time after which a source is asked for its tail (B3); doubles while quiet.
    pub probe_first: Micros,
    /// Longest wait between two probes of a quiet source.
    pub probe_max: Micros,
    /// Wait before a failed recovery is tried again in the background (B5); doubles to
    /// `repair_max`.
    pub repair_base: Micros,
    /// Longest wait between two background repairs.
    pub repair_max: Micros,
    /// First cool-down of a rejected source (B15); doubles with each further rejection.
    pub cool_down_base: Micros,
    /// Longest cool-down.
    pub cool_down_max: Micros,

    /// B1: a fenced rank retries its reset by itself.
    pub self_heal: bool,
    /// B2: ids that fall back and advance again are a restarted source.
    pub detect_restart: bool,
    /// B3: a quiet stream is no proof of health: watermarks count, and quiet sources are probed.
    pub check_tail: bool,
    /// B4: what a gap does to the state.
    pub gap_policy: GapPolicy,
    /// B5: a rank that went on across a hole is repaired in the background.
    pub repair: bool,
    /// B6: any change of source, or interrupted delivery, resets.
    pub reset_on_change: bool,
    /// B7: after a reconnect, and before a gap is filled, the source's life is established first.
    pub verify_life: bool,
    /// B9: separate lanes for ranges and whole states, one request per target, a total budget,
    /// jitter on retries, and attempts that give way.
    pub fair_recovery: bool,
    /// B10: answers are checked; a violation is fetched again once, then the source is corrupt.
    pub check_replies: bool,
    /// B12: the transport's own numbers are tracked as well as event ids.
    pub check_transport: bool,
    /// B13: a full pending buffer is dropped and fetched again, instead of losing its oldest events.
    pub refetch_overflow: bool,
    /// B14: a rank that has left and is empty is forgotten, tombstone and all.
    pub forget_removed: bool,
    /// B15: a rejected source comes back through probation, not only in a new generation.
    pub probation: bool,
    /// B17: another boot identity on any channel is another incarnation.
    pub check_boot: bool,
    /// B18: a hole that nobody can fill is given up after some rounds.
    pub bounded_rounds: bool,
    /// B32: a clear of one domain is an ordinary event, and barriers name their domains.
    pub split_domains: bool,
    /// B33: a failed answer is no answer: it never resets.
    pub keep_on_failure: bool,
    /// B34: id 0 is an id, "no cursor" is none; a snapshot below the cursor is never installed.
    pub optional_cursor: bool,
    /// B35: a corrupt source goes on probation, an unknown target is emptied at first activation,
    /// and superseded first recoveries are told.
    pub no_dark_state: bool,
    /// B37: an orphan means that something was lost before it was numbered.
    pub heed_orphans: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self::HARDENED
    }
}

impl Policy {
    /// The reference design, exactly.
    pub const REFERENCE: Self = Self {
        seed: 0,
        attempts: 8,
        backoff_base: Micros::from_millis(200),
        attempt_timeout: Micros::from_secs(30),
        jitter_max: Micros::from_millis(3),
        concurrency: 16,
        snapshot_concurrency: 12,
        attempt_slice: Micros::from_secs(1),
        recovery_budget: Micros::from_secs(300),
        pending_events: 1_024,
        pending_bytes: 8 << 20,
        pending_bytes_total: 256 << 20,
        rounds: 3,
        heal_base: Micros::from_secs(1),
        heal_max: Micros::from_secs(30),
        probe_first: Micros::from_secs(1),
        probe_max: Micros::from_secs(30),
        repair_base: Micros::from_secs(30),
        repair_max: Micros::from_secs(600),
        cool_down_base: Micros::from_secs(5),
        cool_down_max: Micros::from_secs(600),
        self_heal: false,
        detect_restart: false,
        check_tail: false,
        gap_policy: GapPolicy::ResetFirst,
        repair: false,
        reset_on_change: false,
        verify_life: false,
        fair_recovery: false,
        check_replies: false,
        check_transport: false,
        refetch_overflow: false,
        forget_removed: false,
        probation: false,
        check_boot: false,
        bounded_rounds: false,
        split_domains: false,
        keep_on_failure: false,
        optional_cursor: false,
        no_dark_state: false,
        heed_orphans: false,
    };

    /// The reference design with every improvement; the default.
    pub const HARDENED: Self = Self {
        self_heal: true,
        detect_restart: true,
        check_tail: true,
        gap_policy: GapPolicy::KeepServing,
        repair: true,
        reset_on_change: true,
        verify_life: true,
        fair_recovery: true,
        check_replies: true,
        check_transport: true,
        refetch_overflow: true,
        forget_removed: true,
        probation: true,
        check_boot: true,
        bounded_rounds: true,
        split_domains: true,
        keep_on_failure: true,
        optional_cursor: true,
        no_dark_state: true,
        heed_orphans: true,
        ..Self::REFERENCE
    };

    /// Checks that every limit leaves the machine able to work.
    ///
    /// # Errors
    /// [`PolicyError`] names the first field that is zero and must not be.
    pub fn validated(self) -> Result<Self, PolicyError> {
        let limits = [
            ("attempts", u64::from(self.attempts)),
            ("concurrency", u64::from(self.concurrency)),
            ("snapshot_concurrency", u64::from(self.snapshot_concurrency)),
            ("pending_events", u64::from(self.pending_events)),
            ("pending_bytes", self.pending_bytes as u64),
            ("pending_bytes_total", self.pending_bytes_total as u64),
            ("rounds", u64::from(self.rounds)),
            ("attempt_timeout", self.attempt_timeout.0),
            ("attempt_slice", self.attempt_slice.0),
            ("recovery_budget", self.recovery_budget.0),
            ("heal_base", self.heal_base.0),
            ("heal_max", self.heal_max.0),
            ("backoff_base", self.backoff_base.0),
            ("probe_max", self.probe_max.0),
            ("probe_first", self.probe_first.0),
            ("repair_max", self.repair_max.0),
            ("repair_base", self.repair_base.0),
            ("cool_down_base", self.cool_down_base.0),
            ("cool_down_max", self.cool_down_max.0),
        ];
        match limits.into_iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(PolicyError { name }),
            None => Ok(self),
        }
    }
}
