//! Limits and timings of the router machine.

use crate::time::Micros;

/// A limit that would make the machine useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy value `{name}` is zero; give it at least 1")]
pub struct PolicyError {
    /// The field.
    pub name: &'static str,
}

/// Limits and timings; the defaults are those of `system.md` §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Queries in flight over all ranks.
    pub concurrency: u32,
    /// Pending events per rank.
    pub pending_events: u32,
    /// Pending bytes per rank.
    pub pending_bytes: usize,
    /// How often a hole is asked for again before it counts as one nobody can fill (B18).
    pub rounds: u32,
    /// First wait before a fenced rank retries its reset; doubles (B1).
    pub heal_base: Micros,
    /// Longest wait before a fenced rank retries.
    pub heal_max: Micros,
    /// Quiet time after which a raw engine is asked for its tail (B3); doubles while quiet.
    pub probe_first: Micros,
    /// Longest wait between two probes of a quiet engine.
    pub probe_max: Micros,
    /// Wait before a failed recovery is tried again in the background (B5); doubles to
    /// `repair_max`.
    pub repair_base: Micros,
    /// Longest wait between two background repairs.
    pub repair_max: Micros,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            seed: 0,
            attempts: 8,
            backoff_base: Micros::from_millis(200),
            attempt_timeout: Micros::from_secs(30),
            jitter_max: Micros::from_millis(3),
            concurrency: 16,
            pending_events: 1_024,
            pending_bytes: 8 << 20,
            rounds: 3,
            heal_base: Micros::from_secs(1),
            heal_max: Micros::from_secs(30),
            probe_first: Micros::from_secs(1),
            probe_max: Micros::from_secs(30),
            repair_base: Micros::from_secs(30),
            repair_max: Micros::from_secs(600),
        }
    }
}

impl Policy {
    /// Checks that every limit leaves the machine able to work.
    ///
    /// # Errors
    /// [`PolicyError`] names the first field that is zero and must not be.
    pub const fn validated(self) -> Result<Self, PolicyError> {
        let name = if self.attempts == 0 {
            "attempts"
        } else if self.concurrency == 0 {
            "concurrency"
        } else if self.pending_events == 0 {
            "pending_events"
        } else if self.pending_bytes == 0 {
            "pending_bytes"
        } else if self.rounds == 0 {
            "rounds"
        } else if self.attempt_timeout.0 == 0 {
            "attempt_timeout"
        } else if self.heal_base.0 == 0 {
            "heal_base"
        } else if self.heal_max.0 == 0 {
            "heal_max"
        } else if self.backoff_base.0 == 0 {
            "backoff_base"
        } else if self.probe_max.0 == 0 {
            "probe_max"
        } else if self.repair_max.0 == 0 {
            "repair_max"
        } else if self.probe_first.0 == 0 {
            "probe_first"
        } else if self.repair_base.0 == 0 {
            "repair_base"
        } else {
            return Ok(self);
        };
        Err(PolicyError { name })
    }
}
