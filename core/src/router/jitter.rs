//! The machine's own generator: seeded, part of the state, integers only.

use crate::time::Micros;

/// splitmix64: one 64-bit word of state, full period, good enough to spread retries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A uniform span below `max`; zero when `max` is.
    pub(super) fn below(&mut self, max: Micros) -> Micros {
        if max.0 == 0 {
            return max;
        }
        let wide = u128::from(self.next()) * u128::from(max.0);
        Micros(u64::try_from(wide >> 64).unwrap_or(u64::MAX))
    }

    /// `span` stretched to a uniform value in [¾, 1¼) of itself.
    pub(super) fn around(&mut self, span: Micros) -> Micros {
        let low = span.0 - span.0 / 4;
        Micros(low.saturating_add(self.below(Micros(span.0 / 2)).0))
    }
}
