//! Which messages are dropped or lost: the same ones for the same seed, rank by rank.

use crate::rng::SplitMix64;
use std::num::NonZeroU64;

/// Which numbered messages are lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DropRule {
    /// None.
    #[default]
    Never,
    /// Each with this probability.
    Probability(f64),
    /// Every Nth.
    Every(NonZeroU64),
}

/// The decisions for one rank, over all its lives.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    rule: DropRule,
    lose: Option<NonZeroU64>,
    rng: SplitMix64,
    numbered: u64,
    captured: u64,
}

impl Faults {
    pub(super) fn new(rule: DropRule, lose: Option<NonZeroU64>, seed: u64, rank: u32) -> Self {
        let rng = SplitMix64::for_stream(seed, u64::from(rank));
        Self { rule, lose, rng, numbered: 0, captured: 0 }
    }

    /// Whether the next captured message never gets a number.
    pub(super) fn loses(&mut self) -> bool {
        self.captured += 1;
        self.lose.is_some_and(|every| self.captured.is_multiple_of(every.get()))
    }

    /// Whether the next numbered message is dropped.
    pub(super) fn drops(&mut self) -> bool {
        self.numbered += 1;
        match self.rule {
            DropRule::Never => false,
            DropRule::Probability(p) => self.rng.next_unit() < p,
            DropRule::Every(every) => self.numbered.is_multiple_of(every.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(rule: DropRule, seed: u64, rank: u32) -> Vec<bool> {
        let mut faults = Faults::new(rule, None, seed, rank);
        (0..1_000).map(|_| faults.drops()).collect()
    }

    #[test]
    fn a_seed_and_a_rank_decide() {
        let rule = DropRule::Probability(0.25);
        let dropped = drops(rule, 1, 0);
        assert_eq!(dropped, drops(rule, 1, 0));
        assert_ne!(dropped, drops(rule, 2, 0));
        assert_ne!(dropped, drops(rule, 1, 1));
        let count = dropped.iter().filter(|dropped| **dropped).count();
        assert!((200..300).contains(&count), "{count} of 1000 at a quarter");
        assert!(!drops(DropRule::Probability(0.0), 1, 0).contains(&true));
        assert!(!drops(DropRule::Probability(1.0), 1, 0).contains(&false));
    }

    #[test]
    fn every_nth_is_the_nth() {
        let every = NonZeroU64::new(3).unwrap();
        assert_eq!(
            drops(DropRule::Every(every), 0, 0)[..6],
            [false, false, true, false, false, true]
        );
        let mut faults = Faults::new(DropRule::Never, Some(every), 0, 0);
        let lost: Vec<bool> = (0..4).map(|_| faults.loses()).collect();
        assert_eq!(lost, [false, false, true, false]);
    }
}
