//! Token hashes: the seed of an identity, hashes of blocks, and the chain over them (`wire.md` §8, §9).

pub mod multimodal;

use crate::id::{LocalHash, SequenceHash};
use alloc::vec::Vec;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Seed of every hash that has no identity, and of the sequence chain (LH-1, SQ-1).
pub const BASE_SEED: u64 = 1337;
const SALT_SEED: u64 = 1;
const VERBATIM_SEED: u64 = 2;

/// The seed of a LoRA name and a salt; an empty one adds nothing (LH-1).
pub fn identity_seed(lora: &str, salt: &str) -> u64 {
    seed_of(lora.as_bytes(), salt.as_bytes())
}

/// [`identity_seed`] over names that were checked to be UTF-8 elsewhere.
pub(crate) fn seed_of(lora: &[u8], salt: &[u8]) -> u64 {
    let mut seed = BASE_SEED;
    if !lora.is_empty() {
        seed = seed.wrapping_add(xxh3_64(lora));
    }
    if !salt.is_empty() {
        seed = seed.wrapping_add(xxh3_64_with_seed(salt, SALT_SEED));
    }
    seed
}

/// What an extra key that is neither LoRA name, salt nor multimodal object adds to the seed of its
/// block: a hash of its raw msgpack bytes (rule B19). Add it with wrapping.
pub fn verbatim_part(raw: &[u8]) -> u64 {
    xxh3_64_with_seed(raw, VERBATIM_SEED)
}

/// The hash of one block (LH-3). `tokens_le` are its tokens as little-endian u32, one more than the
/// block size for an EAGLE source, followed by the sorted multimodal hashes if there are any (LH-2).
pub fn local_hash(tokens_le: &[u8], seed: u64) -> LocalHash {
    LocalHash(xxh3_64_with_seed(tokens_le, seed))
}

/// One hash for each complete block of `tokens` into `out`, which is cleared first (LH-4).
///
/// With `eagle` a block includes one look-ahead token. An incomplete tail is dropped, and a block
/// size of 0 gives nothing.
pub fn local_hashes(
    tokens: &[u32],
    block_size: u32,
    eagle: bool,
    seed: u64,
    out: &mut Vec<LocalHash>,
) {
    out.clear();
    let step = block_size as usize;
    if step == 0 {
        return;
    }
    let window = step.saturating_add(usize::from(eagle));
    let mut bytes = Vec::with_capacity(window.min(tokens.len()).saturating_mul(4));
    let mut start = 0_usize;
    while let Some(block) = tokens.get(start..start.saturating_add(window)) {
        bytes.clear();
        bytes.extend(block.iter().flat_map(|token| token.to_le_bytes()));
        out.push(local_hash(&bytes, seed));
        start = start.saturating_add(step);
    }
}

/// The next link of the chain over local hashes; the first link is the local hash itself (SQ-1).
pub fn next_sequence_hash(previous: Option<SequenceHash>, local: LocalHash) -> SequenceHash {
    let Some(previous) = previous else {
        return SequenceHash(local.0);
    };
    let mut pair = [0_u8; 16];
    pair[..8].copy_from_slice(&previous.0.to_le_bytes());
    pair[8..].copy_from_slice(&local.0.to_le_bytes());
    SequenceHash(xxh3_64_with_seed(&pair, BASE_SEED))
}

/// The chain over `locals` into `out`, which is cleared first (SQ-1).
pub fn sequence_hashes(locals: &[LocalHash], out: &mut Vec<SequenceHash>) {
    out.clear();
    out.reserve(locals.len());
    let mut previous = None;
    for &local in locals {
        let next = next_sequence_hash(previous, local);
        out.push(next);
        previous = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::multimodal::local_hash_with_objects;
    use super::*;
    use alloc::vec;

    fn plain(tokens: &[u32], block: u32, seed: u64) -> Vec<u64> {
        hashes(tokens, block, false, seed)
    }

    fn hashes(tokens: &[u32], block: u32, eagle: bool, seed: u64) -> Vec<u64> {
        let mut out = Vec::new();
        local_hashes(tokens, block, eagle, seed, &mut out);
        out.into_iter().map(|hash| hash.0).collect()
    }

    fn with_objects(tokens: &[u32], objects: &[u64], image: Option<u32>) -> u64 {
        let (mut tokens, mut objects) = (tokens.to_vec(), objects.to_vec());
        let mut bytes = vec![1];
        local_hash_with_objects(&mut tokens, &mut objects, image, None, BASE_SEED, &mut bytes).0
    }

    fn range(end: u32) -> Vec<u32> {
        (0..end).collect()
    }

    #[test]
    fn golden_plain_vectors() {
        let h3 = [9_143_094_415_614_847_814, 12_124_091_508_212_882_195, 1_088_361_764_653_601_668];
        assert_eq!(plain(&range(4), 4, BASE_SEED), h3[..1], "H1");
        assert_eq!(plain(&range(8), 4, BASE_SEED), h3[..2], "H2");
        assert_eq!(plain(&range(12), 4, BASE_SEED), h3, "H3");
        assert_eq!(plain(&range(11), 4, BASE_SEED), h3[..2], "H4");
        let one_to_16: Vec<u32> = (1..=16).collect();
        assert_eq!(plain(&one_to_16, 16, BASE_SEED), [16_863_443_419_780_771_464], "H5");
        assert_eq!(plain(&[10, 20, 30, 40], 4, BASE_SEED), [16_324_159_493_528_209_483], "H6");
        assert_eq!(plain(&[10, 11, 12, 13], 4, BASE_SEED), [8_906_183_847_324_352_865], "H7");
        assert_eq!(
            plain(&range(6), 2, BASE_SEED),
            [10_918_435_022_357_402_928, 10_731_123_482_949_079_648, 12_189_426_826_560_619_506],
            "H14"
        );
        assert_eq!(plain(&range(6), 0, BASE_SEED), [0_u64; 0], "block size 0");
        assert_eq!(local_hash(b"test data", BASE_SEED).0, 13_226_331_709_069_118_873, "H23");
    }

    #[test]
    fn golden_identity_vectors() {
        assert_eq!(identity_seed("adapter-a", ""), 8_842_669_519_798_868_182);
        assert_eq!(identity_seed("", "tenant-a"), 1_948_188_790_972_764_086);
        assert_eq!(identity_seed("adapter-a", "tenant-a"), 10_790_858_310_771_630_931);
        assert_eq!(identity_seed("", ""), BASE_SEED, "H12");
        let lora = identity_seed("adapter-a", "");
        assert_eq!(
            plain(&range(8), 4, lora),
            [6_665_157_333_201_000_639, 11_721_812_545_976_571_723],
            "H8, H9"
        );
        let salt = identity_seed("", "tenant-a");
        assert_eq!(plain(&range(4), 4, salt), [17_009_624_042_690_211_646], "H10");
        let both = identity_seed("adapter-a", "tenant-a");
        assert_eq!(plain(&range(4), 4, both), [8_269_515_957_840_517_240], "H11");
    }

    #[test]
    fn golden_eagle_vectors() {
        let h13 = [11_646_242_937_812_223_497, 9_948_816_348_502_404_300];
        assert_eq!(hashes(&range(6), 2, true, BASE_SEED), h13, "H13");
        assert_eq!(hashes(&range(5), 4, true, BASE_SEED), [14_562_210_786_876_287_112], "H15");
        assert_eq!(hashes(&range(4), 4, true, BASE_SEED), [0_u64; 0], "no look-ahead token");
        let bigram: Vec<u32> = (10..=14).collect();
        assert_eq!(
            hashes(&bigram, 2, true, BASE_SEED),
            [5_959_138_341_449_004_422, 13_917_772_031_453_556_700],
            "H22"
        );
    }

    #[test]
    fn golden_multimodal_vectors() {
        let h1 = 9_143_094_415_614_847_814;
        assert_eq!(with_objects(&range(4), &[42], None), 18_280_081_842_874_931_122, "H16");
        for objects in [[42, 7], [7, 42]] {
            let found = with_objects(&range(4), &objects, None);
            assert_eq!(found, 4_581_426_371_996_505_827, "H17");
        }
        assert_eq!(with_objects(&range(4), &[], None), h1, "H18");
        let second = with_objects(&[4, 5, 6, 7], &[42], None);
        assert_eq!(second, 15_267_005_282_704_193_396, "H19");
        let object = [9_533_257_059_414_191_570];
        let tokens = [10, 20, 151_655, 151_655];
        assert_eq!(with_objects(&tokens, &object, Some(151_655)), 71_881_790_567_603_244, "H20");
        assert_eq!(with_objects(&tokens, &object, None), 16_596_569_145_532_104_744, "H21");
        let padded = [10, 20, 49_115_154, 49_115_154];
        assert_eq!(with_objects(&padded, &[], None), 71_881_790_567_603_244, "H20 again");
    }

    #[test]
    fn golden_chains() {
        let chain = |locals: &[u64]| {
            let locals: Vec<LocalHash> = locals.iter().map(|&hash| LocalHash(hash)).collect();
            let mut out = vec![SequenceHash(1)];
            sequence_hashes(&locals, &mut out);
            out.into_iter().map(|hash| hash.0).collect::<Vec<u64>>()
        };
        let h3 = plain(&range(12), 4, BASE_SEED);
        assert_eq!(
            chain(&h3),
            [9_143_094_415_614_847_814, 9_510_318_385_840_434_533, 16_998_148_715_716_822_651]
        );
        let h9 = plain(&range(8), 4, identity_seed("adapter-a", ""));
        assert_eq!(chain(&h9), [6_665_157_333_201_000_639, 13_351_519_314_849_170_528]);
        let h13 = hashes(&range(6), 2, true, BASE_SEED);
        assert_eq!(chain(&h13), [11_646_242_937_812_223_497, 16_579_128_339_329_071_142]);
        let h19 = [9_143_094_415_614_847_814, 15_267_005_282_704_193_396];
        assert_eq!(chain(&h19), [9_143_094_415_614_847_814, 6_091_675_887_886_520_276]);
        assert_eq!(chain(&[11, 22, 33]), [11, 750_553_365_844_651_409, 3_257_565_445_809_651_757]);
        assert_eq!(
            chain(&[1, 2, 3, 4, 5]),
            [
                1,
                16_740_963_408_272_063_728,
                5_417_695_437_591_212_399,
                15_413_681_679_220_706_959,
                16_713_516_116_484_648_481
            ]
        );
        assert_eq!(chain(&[]), [0_u64; 0]);
    }
}
