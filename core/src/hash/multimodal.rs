//! Multimodal objects: identifiers to hashes, and placeholder tokens to object tokens
//! (`wire.md` §7.1, LH-7).

use super::local_hash;
use crate::id::LocalHash;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64;

const PAD_BASE: u32 = 1_000_000;
const PAD_MASK: u64 = (1 << 30) - 1;
const HEX_IDENTIFIER: usize = 64;
const HEX_DIGITS: usize = 16;

/// The hash of a multimodal identifier; `None` when it is empty (LH-7).
pub fn mm_hash(identifier: &str) -> Option<u64> {
    mm_hash_bytes(identifier.as_bytes())
}

pub(crate) fn mm_hash_bytes(identifier: &[u8]) -> Option<u64> {
    if identifier.is_empty() {
        return None;
    }
    if identifier.len() == HEX_IDENTIFIER && identifier.iter().all(u8::is_ascii_hexdigit) {
        return leading_hex(identifier);
    }
    Some(xxh3_64(identifier))
}

/// The hash in a zero-padded identifier: 64 characters, 16 hex digits and then only `0` (XK-2).
pub(crate) fn padded_mm_hash(text: &[u8]) -> Option<u64> {
    let padding = text.get(HEX_DIGITS..)?;
    if text.len() != HEX_IDENTIFIER || padding.iter().any(|&digit| digit != b'0') {
        return None;
    }
    leading_hex(text)
}

fn leading_hex(text: &[u8]) -> Option<u64> {
    let digits = text.get(..HEX_DIGITS)?;
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some((value << 4) | u64::from(digit))
    })
}

/// The token that stands for an object in the hash input (MM-1).
pub fn pad_token(mm_hash: u64) -> u32 {
    let low = u32::try_from(mm_hash & PAD_MASK).unwrap_or(u32::MAX);
    PAD_BASE.wrapping_add(low)
}

/// Rewrites each run of `image` tokens to the next object's token; runs beyond the list use the
/// last object (MM-2). Returns false, and changes nothing, when there is no object or no run.
pub fn map_image_runs(tokens: &mut [u32], image: u32, objects: &[u64]) -> bool {
    let Some(&last) = objects.last() else {
        return false;
    };
    let mut rest = objects.iter();
    let mut pad = None;
    let mut any = false;
    for token in tokens {
        if *token == image {
            let value = *pad.get_or_insert_with(|| pad_token(*rest.next().unwrap_or(&last)));
            *token = value;
            any = true;
        } else {
            pad = None;
        }
    }
    any
}

/// Rewrites image and video runs when their groups correspond one to one to `objects` (MM-3): an
/// image run is an object of its own, consecutive video runs share one.
///
/// Returns false, and changes nothing, when the kinds share a token, there is no run, or the number
/// of groups differs from the number of objects.
pub fn map_exact(tokens: &mut [u32], image: Option<u32>, video: u32, objects: &[u64]) -> bool {
    if image == Some(video) {
        return false;
    }
    let kind_of = |token: u32| {
        if token == video {
            Some(Kind::Video)
        } else if image == Some(token) {
            Some(Kind::Image)
        } else {
            None
        }
    };
    let mut groups = Groups::default();
    for &token in tokens.iter() {
        groups.step(kind_of(token));
    }
    if groups.count == 0 || groups.count != objects.len() {
        return false;
    }
    groups = Groups::default();
    for token in tokens {
        let kind = kind_of(*token);
        groups.step(kind);
        if kind.is_some()
            && let Some(&object) = objects.get(groups.count.saturating_sub(1))
        {
            *token = pad_token(object);
        }
    }
    true
}

/// The hash of a block with multimodal objects (§7.1, LH-2): its placeholders become the objects'
/// tokens where they can be assigned, else the objects' hashes follow its tokens.
///
/// `tokens` may be rewritten and `objects` sorted; `bytes` is scratch. Without objects it is the
/// hash of the tokens.
pub fn local_hash_with_objects(
    tokens: &mut [u32],
    objects: &mut [u64],
    image: Option<u32>,
    video: Option<u32>,
    seed: u64,
    bytes: &mut Vec<u8>,
) -> LocalHash {
    let mapped = match (image, video) {
        (image, Some(video)) => map_exact(tokens, image, video, objects),
        (Some(image), None) => map_image_runs(tokens, image, objects),
        (None, None) => false,
    };
    bytes.clear();
    bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
    if !mapped {
        objects.sort_unstable();
        bytes.extend(objects.iter().flat_map(|object| object.to_le_bytes()));
    }
    local_hash(bytes, seed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    Video,
}

/// Counts object groups while walking over tokens.
#[derive(Default)]
struct Groups {
    count: usize,
    current: Option<Kind>,
    last_run: Option<Kind>,
}

impl Groups {
    fn step(&mut self, kind: Option<Kind>) {
        if let Some(kind) = kind
            && self.current != Some(kind)
        {
            let joins = kind == Kind::Video && self.last_run == Some(Kind::Video);
            self.count += usize::from(!joins);
            self.last_run = Some(kind);
        }
        self.current = kind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        let hex = "0123456789abcdef".repeat(4);
        assert_eq!(mm_hash(&hex), Some(81_985_529_216_486_895));
        assert_eq!(mm_hash(&hex.to_uppercase()), Some(81_985_529_216_486_895));
        assert_eq!(mm_hash("opaque-renderer-image-0"), Some(14_437_604_544_409_538_977));
        assert_eq!(mm_hash(""), None);
    }

    #[test]
    fn padded_identifiers() {
        let zeros = "0".repeat(48);
        let text = std::format!("00000000000000fF{zeros}");
        assert_eq!(padded_mm_hash(text.as_bytes()), Some(255));
        assert_eq!(padded_mm_hash("0".repeat(64).as_bytes()), Some(0));
        assert_eq!(padded_mm_hash("0123456789abcdef".repeat(4).as_bytes()), None);
        assert_eq!(padded_mm_hash("0".repeat(63).as_bytes()), None);
        assert_eq!(padded_mm_hash(std::format!("g000000000000000{zeros}").as_bytes()), None);
    }

    #[test]
    fn pad_tokens() {
        assert_eq!(pad_token(0), 1_000_000);
        assert_eq!(pad_token(42), 1_000_042);
        assert_eq!(pad_token(9_533_257_059_414_191_570), 49_115_154);
        assert_eq!(pad_token((1 << 30) | 0xCAFE), 1_051_966);
    }

    #[test]
    fn image_runs() {
        let mut tokens = [10, 99, 42, 99, 20, 99];
        assert!(map_image_runs(&mut tokens, 99, &[7, 8]));
        assert_eq!(tokens, [10, 1_000_007, 42, 1_000_008, 20, 1_000_008]);
        let mut unchanged = [1, 99];
        assert!(!map_image_runs(&mut unchanged, 99, &[]));
        assert!(!map_image_runs(&mut unchanged, 5, &[7]));
        assert_eq!(unchanged, [1, 99]);
    }

    #[test]
    fn exact_mapping() {
        let mut tokens = [100, 100, 7, 100, 100, 8, 99, 99];
        assert!(map_exact(&mut tokens, Some(99), 100, &[41, 42]));
        let (one, two) = (1_000_041, 1_000_042);
        assert_eq!(tokens, [one, one, 7, one, one, 8, two, two]);
        let mut adjacent = [99, 100];
        assert!(map_exact(&mut adjacent, Some(99), 100, &[41, 42]));
        assert_eq!(adjacent, [one, two]);
        let mut joined = [100, 7, 100];
        assert!(!map_exact(&mut joined, Some(99), 100, &[41, 42]));
        assert_eq!(joined, [100, 7, 100]);
        assert!(!map_exact(&mut [1, 2], Some(99), 100, &[]));
        assert!(!map_exact(&mut [99], Some(99), 99, &[41]));
    }
}
