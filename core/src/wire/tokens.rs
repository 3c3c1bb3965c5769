//! Token lists: the hot loop of the decoder.
//!
//! What a token list costs is the chain from one token's length to the next one's place. So for a
//! window of bytes the place after "a token that begins here" is computed for *every* byte at once,
//! which the compiler turns into vector code; then reading is a walk from place to place.

use super::cursor::{Cursor, Fault, narrow, wrong};
use alloc::vec::Vec;

/// A token as the hash reads it: little-endian bytes.
pub(crate) type TokenBytes = [u8; 4];

/// Bytes of a window for short lists: sixteen tokens of the longest form.
const SHORT: usize = 80;
/// Bytes of a window for long lists.
const LONG: usize = 128;
/// Bytes before a window, so that the four bytes that *end* with a token are always in reach.
const BEFORE: usize = 3;
/// What must be there before and after a window's bytes.
const AROUND: usize = 16;
/// The longest plain form.
const LONGEST: usize = 5;
/// Which of those four bytes belong to a token of each length.
const MASKS: [u32; 8] = [0, 0xff, 0xff, 0xffff, 0, u32::MAX, 0, 0];

/// What a token list held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenList {
    /// Tokens; a list of n pairs holds n + 1 (EG-1).
    pub(crate) count: u32,
    /// Whether they came as pairs (EG-2).
    pub(crate) eagle: bool,
}

/// Reads a token list into the front of `out`, which grows as needed and keeps its length.
///
/// `budget` is how many tokens the message may still hold.
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    budget: u32,
    out: &mut Vec<TokenBytes>,
) -> Result<TokenList, Fault> {
    let values = cursor.array()?;
    if values == 0 {
        return Ok(TokenList::default());
    }
    let eagle = cursor.peek()? == 0x92;
    let count = values.saturating_add(usize::from(eagle));
    if count > budget as usize {
        return Err(Fault::OverLimit);
    }
    if out.len() < count {
        out.resize(count, TokenBytes::default());
    }
    let slots = out.get_mut(..count).unwrap_or_default();
    if eagle {
        pairs(cursor, slots)?;
    } else if count.saturating_mul(LONGEST) <= SHORT {
        plain::<SHORT, { SHORT + AROUND }>(cursor, slots)?;
    } else {
        plain::<LONG, { LONG + AROUND }>(cursor, slots)?;
    }
    Ok(TokenList { count: narrow(count), eagle })
}

/// For each byte of the window, where the value after it would begin if a token began there; 0 if
/// no plain token begins with that byte.
#[inline]
fn followers<const WINDOW: usize, const REACH: usize>(window: &[u8; REACH]) -> [u8; WINDOW] {
    let mut followers = [0_u8; WINDOW];
    let bytes = window.get(BEFORE..).unwrap_or_default();
    for (here, (follower, &byte)) in (0_u8..).zip(followers.iter_mut().zip(bytes)) {
        let if_length = |holds: bool, length: u8| u8::from(holds).wrapping_neg() & (here + length);
        *follower = if_length(byte < 0x80, 1)
            | if_length(byte == 0xcc, 2)
            | if_length(byte == 0xcd, 3)
            | if_length(byte == 0xce, 5);
    }
    followers
}

/// Fills `slots` with plain tokens. At a payload's end the window is padded with zeros; a list that
/// ran into them is told by the position it ends at.
#[inline]
fn plain<const WINDOW: usize, const REACH: usize>(
    cursor: &mut Cursor<'_>,
    slots: &mut [TokenBytes],
) -> Result<(), Fault> {
    let mut slots = slots.iter_mut();
    let Some(mut slot) = slots.next() else {
        return Ok(());
    };
    'windows: loop {
        let padded;
        let ahead = cursor.position.checked_sub(BEFORE).and_then(|from| cursor.bytes.get(from..));
        let window = match ahead.and_then(<[u8]>::first_chunk::<REACH>) {
            Some(window) => window,
            None => {
                padded = pad::<REACH>(cursor);
                &padded
            }
        };
        let followers = followers::<WINDOW, REACH>(window);
        let mut at = 0_usize;
        while at < WINDOW {
            let next = usize::from(followers[at]);
            let last = next.wrapping_sub(1);
            if last >= WINDOW + LONGEST {
                cursor.advance(at)?;
                *slot = unusual(cursor)?;
                let Some(next) = slots.next() else {
                    return Ok(());
                };
                slot = next;
                continue 'windows;
            }
            // The token ends `BEFORE` bytes later in the window than in the map.
            let word = [window[last], window[last + 1], window[last + 2], window[last + 3]];
            let mask = MASKS[next.wrapping_sub(at) & 7];
            *slot = (u32::from_be_bytes(word) & mask).to_le_bytes();
            at = next;
            let Some(next) = slots.next() else {
                break 'windows cursor.advance(at);
            };
            slot = next;
        }
        cursor.advance(at)?;
    }
}

#[cold]
fn pad<const REACH: usize>(cursor: &Cursor<'_>) -> [u8; REACH] {
    let mut padded = [0_u8; REACH];
    let before = cursor.position.min(BEFORE);
    let from = cursor.bytes.get(cursor.position - before..).unwrap_or_default();
    let target = padded.get_mut(BEFORE - before..).unwrap_or_default();
    let len = from.len().min(target.len());
    if let (Some(target), Some(from)) = (target.get_mut(..len), from.get(..len)) {
        target.copy_from_slice(from);
    }
    padded
}

/// A token in a form that no encoder of small numbers uses: 64-bit or signed.
#[cold]
fn unusual(cursor: &mut Cursor<'_>) -> Result<TokenBytes, Fault> {
    cursor.unsigned().map(u32::to_le_bytes)
}

/// Fills `slots` from pairs: every pair's first token and the last one's second (EG-1).
fn pairs(cursor: &mut Cursor<'_>, slots: &mut [TokenBytes]) -> Result<(), Fault> {
    let Some((last, firsts)) = slots.split_last_mut() else {
        return Ok(());
    };
    for slot in firsts {
        let marker = cursor.peek()?;
        if marker != 0x92 {
            return Err(wrong(marker));
        }
        cursor.advance(1)?;
        *slot = cursor.unsigned()?.to_le_bytes();
        *last = cursor.unsigned()?.to_le_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn decode(bytes: &[u8]) -> Result<(Vec<u32>, bool, usize), Fault> {
        let mut out = Vec::new();
        let mut cursor = Cursor::new(bytes);
        let list = read(&mut cursor, 1 << 20, &mut out)?;
        let tokens = &out[..list.count as usize];
        let tokens = tokens.iter().map(|&token| u32::from_le_bytes(token)).collect();
        Ok((tokens, list.eagle, cursor.position))
    }

    #[test]
    fn wire_forms() {
        assert_eq!(decode(&[0x90]), Ok((vec![], false, 1)));
        assert_eq!(decode(&[0x93, 1, 2, 3]), Ok((vec![1, 2, 3], false, 4)));
        let wide = [0x92, 0xcf, 0, 0, 0, 0, 0, 0, 0, 9, 0xd3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(decode(&wide), Ok((vec![9, u32::MAX], false, 19)));
        assert_eq!(decode(&[0x92, 0x92, 1, 2, 0x92, 9, 10]), Ok((vec![1, 9, 10], true, 7)));
        assert_eq!(decode(&[0x91, 0x92, 1, 2]), Ok((vec![1, 2], true, 4)));
    }

    #[test]
    fn wrong_tokens_are_malformed() {
        let malformed: [&[u8]; 8] = [
            &[0x91, 0xff],
            &[0x91, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0],
            &[0x91, 0xca, 0, 0, 0, 0],
            &[0x91, 0xc0],
            &[0xc4, 1, 1],
            &[0x92, 1, 0x92, 1, 2],
            &[0x92, 0x92, 1, 2, 1],
            &[0x91, 0x93, 1, 2, 3],
        ];
        for bytes in malformed {
            assert_eq!(decode(bytes), Err(Fault::Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn ends_are_noticed() {
        let cut: [&[u8]; 5] =
            [&[], &[0x92, 1], &[0x91, 0xcd, 1], &[0x92, 1, 0xce], &[0x91, 0x92, 1]];
        for bytes in cut {
            assert_eq!(decode(bytes), Err(Fault::Framing), "{bytes:?}");
        }
    }

    #[test]
    fn budget_is_checked_before_anything_is_reserved() {
        let mut out = Vec::new();
        let list = read(&mut Cursor::new(&[0x93, 1, 2, 3]), 2, &mut out);
        assert_eq!(list, Err(Fault::OverLimit));
        assert_eq!(out.capacity(), 0);
    }

    fn encode(token: u32, form: u8, out: &mut Vec<u8>) {
        let [_, _, high, low] = token.to_be_bytes();
        match form {
            0 if token < 0x80 => out.push(low),
            1 if token <= 0xff => out.extend([0xcc, low]),
            2 if token <= 0xffff => out.extend([0xcd, high, low]),
            3 => {
                out.push(0xcf);
                out.extend(u64::from(token).to_be_bytes());
            }
            _ => {
                out.push(0xce);
                out.extend(token.to_be_bytes());
            }
        }
    }

    proptest! {
        #[test]
        fn any_mixture_of_forms_reads_back(
            tokens in proptest::collection::vec(
                (prop_oneof![0_u32..200, 0_u32..70_000, any::<u32>()], 0_u8..5), 0..300),
            tail in proptest::collection::vec(any::<u8>(), 0..90),
        ) {
            let count = u16::try_from(tokens.len()).expect("at most 300");
            let mut bytes = vec![0xdc];
            bytes.extend(count.to_be_bytes());
            for &(token, form) in &tokens {
                encode(token, form, &mut bytes);
            }
            let end = bytes.len();
            for cut in 0..end {
                prop_assert_eq!(decode(&bytes[..cut]), Err(Fault::Framing));
            }
            bytes.extend(tail);
            let expected: Vec<u32> = tokens.iter().map(|&(token, _)| token).collect();
            prop_assert_eq!(decode(&bytes), Ok((expected, false, end)));
        }
    }
}
