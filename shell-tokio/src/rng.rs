//! A small seeded generator, so that a seed gives the same decisions on every machine.

/// SplitMix64: one addition and one mix a number; good enough for jitter and drop decisions.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for `stream` of `seed`: neighbouring streams are unrelated.
    pub(crate) fn for_stream(seed: u64, stream: u64) -> Self {
        let mut mixer = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(mixer.next_u64())
    }

    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0.0 .. 1.0`, 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
    pub(crate) fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_fixed() {
        let mut rng = SplitMix64::new(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_of_a_seed_differ_and_units_stay_in_range() {
        let mut a = SplitMix64::for_stream(7, 0);
        let mut b = SplitMix64::for_stream(7, 1);
        assert_ne!(a.next_u64(), b.next_u64());
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&a.next_unit())));
    }
}
