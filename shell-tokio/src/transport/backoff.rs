//! Waiting longer and longer between attempts, never in step with others.

use crate::rng::SplitMix64;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Doubling waits with jitter: each is between three quarters and five quarters of its nominal
/// length, which starts at `first` and doubles up to `max` (P36: a dead endpoint is not hammered).
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    nominal: Duration,
    rng: SplitMix64,
}

impl Backoff {
    /// A fresh sequence; the jitter is seeded by the process.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self::seeded(first, max, RandomState::new().hash_one(0_u8))
    }

    /// A fresh sequence with its jitter given.
    pub const fn seeded(first: Duration, max: Duration, seed: u64) -> Self {
        Self { first, max, nominal: first, rng: SplitMix64::new(seed) }
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.nominal.min(self.max).mul_f64(0.75 + self.rng.next_unit() / 2.0);
        self.nominal = self.nominal.saturating_mul(2).min(self.max);
        wait
    }

    /// Starts over, after a success.
    pub const fn reset(&mut self) {
        self.nominal = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_within_their_jitter() {
        let mut backoff =
            Backoff::seeded(Duration::from_millis(100), Duration::from_secs(5), 0xfeed);
        let nominal = [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000];
        for millis in nominal {
            let wait = backoff.next_wait();
            let nominal = Duration::from_millis(millis);
            assert!(wait >= nominal * 3 / 4 && wait <= nominal * 5 / 4, "{wait:?} of {nominal:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(125));
    }
}
