//! The rolling hash of a chain of blocks (`wire.md` §9, SQ-1).

use crate::id::{LocalHash, SequenceHash};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of every chain, also with an adapter or a salt: those are in the local hashes already.
const CHAIN_SEED: u64 = 1337;

/// The sequence hash of the block `local` after `prev`; the first block of a chain has none before.
pub(super) fn next_sequence_hash(prev: Option<SequenceHash>, local: LocalHash) -> SequenceHash {
    let Some(prev) = prev else {
        return SequenceHash(local.0);
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&prev.0.to_le_bytes());
    bytes[8..].copy_from_slice(&local.0.to_le_bytes());
    SequenceHash(xxh3_64_with_seed(&bytes, CHAIN_SEED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sq_1_golden_chain() {
        let mut seq = None;
        let chain: std::vec::Vec<u64> = (1..=5)
            .map(|local| {
                seq = Some(next_sequence_hash(seq, LocalHash(local)));
                seq.unwrap_or_default().0
            })
            .collect();
        assert_eq!(
            chain,
            [
                1,
                16_740_963_408_272_063_728,
                5_417_695_437_591_212_399,
                15_413_681_679_220_706_959,
                16_713_516_116_484_648_481
            ]
        );
    }
}
