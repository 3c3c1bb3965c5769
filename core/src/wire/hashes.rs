//! Block hashes of every form, as 64 bits (rule B23).

use super::cursor::{Cursor, Fault};
use crate::id::BlockHash;
use alloc::vec::Vec;

/// Lists up to this long are searched for repeats by comparing all pairs.
const PAIRWISE: usize = 8;
/// Slots a lookup may visit before the table is given up as crowded by intent.
const MAX_PROBES: usize = 32;

/// One hash: an integer keeps its two's-complement bits, bytes give their last eight.
#[inline]
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<BlockHash, Fault> {
    if let Some(&[0xcf | 0xd3, a, b, c, d, e, f, g, h]) = cursor.rest().first_chunk::<9>() {
        cursor.position += 9;
        return Ok(BlockHash(u64::from_be_bytes([a, b, c, d, e, f, g, h])));
    }
    unusual(cursor)
}

#[cold]
fn unusual(cursor: &mut Cursor<'_>) -> Result<BlockHash, Fault> {
    match cursor.peek()? {
        0xc4..=0xc6 => low_bits(cursor.text()?),
        0xa0..=0xbf | 0xd9..=0xdb => number(cursor.text()?),
        _ => cursor.int().map(|int| BlockHash(int.bits)),
    }
}

fn low_bits(bytes: &[u8]) -> Result<BlockHash, Fault> {
    if bytes.is_empty() {
        return Err(Fault::Malformed);
    }
    let bits = bytes.iter().fold(0_u64, |bits, &byte| (bits << 8) | u64::from(byte));
    Ok(BlockHash(bits))
}

/// A hash as text: decimal, or hexadecimal after `0x`, of which the last 64 bits count.
fn number(text: &[u8]) -> Result<BlockHash, Fault> {
    let text = core::str::from_utf8(text).map_err(|_| Fault::Malformed)?;
    let Some(digits) = text.strip_prefix("0x") else {
        let decimal = text.bytes().all(|byte| byte.is_ascii_digit());
        return text.parse().ok().filter(|_| decimal).map(BlockHash).ok_or(Fault::Malformed);
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Fault::Malformed);
    }
    let low = digits.get(digits.len().saturating_sub(16)..).unwrap_or_default();
    u64::from_str_radix(low, 16).map(BlockHash).map_err(|_| Fault::Malformed)
}

/// A list of hashes, appended to `out`; `budget` is how many more it may hold.
#[inline]
pub(crate) fn read_list(
    cursor: &mut Cursor<'_>,
    budget: u32,
    out: &mut Vec<BlockHash>,
) -> Result<(), Fault> {
    let count = cursor.array()?;
    if count > budget as usize {
        return Err(Fault::OverLimit);
    }
    out.reserve(count);
    for _ in 0..count {
        out.push(read(cursor)?);
    }
    Ok(())
}

/// Whether a hash appears twice among `hashes` and `parent` (CV-4).
///
/// `table` is scratch. Expected linear; hashes made to collide cost a sort instead.
pub(crate) fn repeated(
    hashes: &[BlockHash],
    parent: Option<BlockHash>,
    table: &mut Vec<u64>,
) -> bool {
    if hashes.len() <= PAIRWISE {
        let mut rest = hashes;
        while let Some((first, others)) = rest.split_first() {
            if parent == Some(*first) || others.contains(first) {
                return true;
            }
            rest = others;
        }
        return false;
    }
    repeated_in_table(hashes, parent, table).unwrap_or_else(|| sorted(hashes, parent, table))
}

/// Open addressing over twice as many slots as hashes; `None` when a probe takes too long.
fn repeated_in_table(
    hashes: &[BlockHash],
    parent: Option<BlockHash>,
    table: &mut Vec<u64>,
) -> Option<bool> {
    let bits = hashes.len().saturating_mul(2).next_power_of_two().trailing_zeros();
    let slots = 1_usize << bits;
    table.clear();
    table.resize(slots, 0);
    // 0 marks a free slot, so the hash 0 is remembered apart.
    let mut zero_seen = false;
    for hash in hashes.iter().copied().chain(parent) {
        if hash.0 == 0 {
            if zero_seen {
                return Some(true);
            }
            zero_seen = true;
            continue;
        }
        let spread = hash.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
        let mut at = usize::try_from(spread).unwrap_or(0);
        let mut probes = 0;
        loop {
            let slot = table.get_mut(at & (slots - 1))?;
            if *slot == hash.0 {
                return Some(true);
            }
            if *slot == 0 {
                *slot = hash.0;
                break;
            }
            at += 1;
            probes += 1;
            if probes > MAX_PROBES {
                return None;
            }
        }
    }
    Some(false)
}

#[cold]
fn sorted(hashes: &[BlockHash], parent: Option<BlockHash>, scratch: &mut Vec<u64>) -> bool {
    scratch.clear();
    scratch.extend(hashes.iter().copied().chain(parent).map(|hash| hash.0));
    scratch.sort_unstable();
    scratch.windows(2).any(|pair| pair.first() == pair.last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn hash(bytes: &[u8]) -> Result<u64, Fault> {
        let mut cursor = Cursor::new(bytes);
        let hash = read(&mut cursor)?;
        assert_eq!(cursor.position, bytes.len());
        Ok(hash.0)
    }

    #[test]
    fn integers_and_bytes_agree() {
        assert_eq!(hash(&[100]), Ok(100));
        assert_eq!(hash(&[0xff]), Ok(u64::MAX));
        assert_eq!(hash(&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Ok(u64::MAX));
        assert_eq!(hash(&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]), Ok(1 << 63));
        assert_eq!(hash(&[0xc4, 8, 0, 0, 0, 0, 0, 0, 0, 100]), Ok(100));
        assert_eq!(hash(&[0xc4, 1, 100]), Ok(100));
        assert_eq!(hash(&[0xc4, 2, 1, 0]), Ok(256));
        let mut digest = vec![0xc4, 32];
        digest.extend([0xaa; 24]);
        digest.extend(100_u64.to_be_bytes());
        assert_eq!(hash(&digest), Ok(100));
    }

    #[test]
    fn text_is_a_number_or_nothing() {
        assert_eq!(hash(b"\xa3100"), Ok(100));
        assert_eq!(hash(b"\xa40x64"), Ok(100));
        assert_eq!(hash(b"\xb50x1000000000000000064"), Ok(100));
        for bytes in [&b"\xa0"[..], b"\xa2+1", b"\xa20x", b"\xa3abc", b"\xa2\xff\xfe", b"\xa30xg"] {
            assert_eq!(hash(bytes), Err(Fault::Malformed), "{bytes:?}");
        }
        assert_eq!(hash(b"\xd9\x1499999999999999999999"), Err(Fault::Malformed));
    }

    #[test]
    fn other_types_are_malformed() {
        let malformed: [&[u8]; 4] = [&[0xc4, 0], &[0xc0], &[0xca, 0, 0, 0, 0], &[0x91, 1]];
        for bytes in malformed {
            assert_eq!(hash(bytes), Err(Fault::Malformed), "{bytes:?}");
        }
        let mut out = vec![];
        let list = read_list(&mut Cursor::new(&[0xc4, 2, 1, 2]), 10, &mut out);
        assert_eq!(list, Err(Fault::Malformed), "bytes are no list");
        let list = read_list(&mut Cursor::new(&[0x92, 1, 2]), 1, &mut out);
        assert_eq!(list, Err(Fault::OverLimit));
    }

    #[test]
    fn hashes_made_to_collide_are_sorted() {
        let inverse = 0xf1de_83e1_9937_733d_u64;
        let crowd: Vec<BlockHash> =
            (1..1_000).map(|i: u64| BlockHash(i.wrapping_mul(inverse))).collect();
        let mut table = Vec::new();
        assert_eq!(repeated_in_table(&crowd, None, &mut table), None, "the test's hashes collide");
        assert!(!repeated(&crowd, None, &mut table));
        assert!(repeated(&crowd, crowd.last().copied(), &mut table));
    }

    proptest! {
        #[test]
        fn repeats_are_found(
            hashes in proptest::collection::vec(0_u64..200, 0..40),
            parent in proptest::option::of(0_u64..200),
        ) {
            let mut all: Vec<u64> = hashes.iter().copied().chain(parent).collect();
            all.sort_unstable();
            let total = all.len();
            all.dedup();
            let hashes: Vec<BlockHash> = hashes.into_iter().map(BlockHash).collect();
            let found = repeated(&hashes, parent.map(BlockHash), &mut Vec::new());
            prop_assert_eq!(found, all.len() < total);
        }
    }
}
