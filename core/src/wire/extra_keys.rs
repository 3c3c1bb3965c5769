//! Extra keys: what besides its tokens makes a block what it is (rule B19).
//!
//! One entry per block, nil or a list of items. An item is the LoRA name again, the salt (first
//! block only), a multimodal object (`[identifier, offset]`, or a zero-padded identifier, XK-2), or
//! something we do not know. The last kind is mixed into the block's seed as it stands on the wire,
//! so that a query without it never matches.

use super::cursor::{Cursor, Fault, narrow};
use crate::event::Span;
use crate::hash::multimodal::{mm_hash_bytes, padded_mm_hash};
use crate::hash::verbatim_part;
use alloc::vec::Vec;

/// Marks a text in the first block's entry as the salt (XK-1).
pub(crate) const SALT_TAG: &[u8] = b"dynamo-cache-salt:";

/// Whether the raw value says nothing: absent, or a list of nils only.
pub(crate) fn trivial(raw: &[u8]) -> bool {
    let entries = match raw {
        [] => return true,
        [0x90..=0x9f, entries @ ..] => entries,
        [0xdc, _, _, entries @ ..] => entries,
        [0xdd, _, _, _, _, entries @ ..] => entries,
        _ => return false,
    };
    entries.iter().all(|&byte| byte == 0xc0)
}

/// One item of an entry.
enum Item<'a> {
    /// A text, and where it is.
    Text(&'a [u8], Span),
    /// A multimodal object's hash.
    Object(u64),
    /// The raw bytes of anything else.
    Other(&'a [u8]),
}

fn item<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, Fault> {
    let start = cursor.position;
    match cursor.peek()? {
        0xa0..=0xbf | 0xd9..=0xdb => {
            let text = cursor.text()?;
            if let Some(hash) = padded_mm_hash(text) {
                return Ok(Item::Object(hash));
            }
            let end = cursor.since(start);
            let len = narrow(text.len());
            let span = Span { start: end.start + (end.len - len), len };
            return Ok(Item::Text(text, span));
        }
        0x92 => {
            let mut pair = *cursor;
            if let Some(hash) = object_pair(&mut pair) {
                *cursor = pair;
                return Ok(Item::Object(hash));
            }
        }
        _ => {}
    }
    cursor.step_over()?;
    Ok(Item::Other(cursor.since(start).of(cursor.bytes)))
}

/// `[identifier, offset]` with a usable identifier.
fn object_pair(cursor: &mut Cursor<'_>) -> Option<u64> {
    cursor.array().ok()?;
    if !matches!(cursor.peek(), Ok(0xa0..=0xbf | 0xd9..=0xdb)) {
        return None;
    }
    let identifier = cursor.text().ok()?;
    cursor.int().ok()?;
    core::str::from_utf8(identifier).ok()?;
    mm_hash_bytes(identifier)
}

/// The salt that the first block's entry names: a tagged text's remainder, else the first text that
/// is not the LoRA name (which is passed over once).
pub(crate) fn find_salt(payload: &[u8], keys: Span, lora: &[u8]) -> Result<Span, Fault> {
    let mut cursor = Cursor::at(payload, keys);
    if cursor.array()? == 0 {
        return Ok(Span::EMPTY);
    }
    let Some(items) = entry(&mut cursor)? else {
        return Ok(Span::EMPTY);
    };
    let mut lora_passed = lora.is_empty();
    let mut bare = Span::EMPTY;
    for _ in 0..items {
        let Item::Text(text, span) = item(&mut cursor)? else {
            continue;
        };
        if !lora_passed && text == lora {
            lora_passed = true;
        } else if core::str::from_utf8(text).is_err() {
            // Bytes that are no text name no salt.
        } else if let Some(rest) = text.strip_prefix(SALT_TAG) {
            if !rest.is_empty() {
                let len = narrow(rest.len());
                return Ok(Span { start: span.start + (span.len - len), len });
            }
        } else if bare.is_empty() {
            bare = span;
        }
    }
    Ok(bare)
}

/// Items of the entry ahead; `None` when it is no list, which is left unread.
fn entry(cursor: &mut Cursor<'_>) -> Result<Option<usize>, Fault> {
    match cursor.peek()? {
        0x90..=0x9f | 0xdc | 0xdd => cursor.array().map(Some),
        _ => Ok(None),
    }
}

/// Walks over the entries, block by block.
#[derive(Debug)]
pub(crate) struct ExtraKeys<'a> {
    cursor: Cursor<'a>,
    left: usize,
    lora: &'a [u8],
    /// The salt while the first entry is still to come; then empty.
    salt: &'a [u8],
}

impl<'a> ExtraKeys<'a> {
    /// Entries at `keys`; none when it is empty. `lora` and `salt` are those in force.
    pub(crate) fn new(
        payload: &'a [u8],
        keys: Span,
        lora: &'a [u8],
        salt: &'a [u8],
    ) -> Result<Self, Fault> {
        let mut cursor = Cursor::at(payload, keys);
        let left = if keys.is_empty() { 0 } else { cursor.array()? };
        Ok(Self { cursor, left, lora, salt })
    }

    /// What the next block's entry adds to its seed; its objects are appended to `objects`.
    pub(crate) fn next_block(&mut self, objects: &mut Vec<u64>) -> Result<u64, Fault> {
        let salt = core::mem::take(&mut self.salt);
        if self.left == 0 {
            return Ok(0);
        }
        self.left -= 1;
        if self.cursor.nil()? {
            return Ok(0);
        }
        let Some(items) = entry(&mut self.cursor)? else {
            let start = self.cursor.position;
            self.cursor.step_over()?;
            return Ok(verbatim_part(self.cursor.since(start).of(self.cursor.bytes)));
        };
        let mut expected = Expected { lora: self.lora, bare: salt, tagged: salt };
        let mut part = 0_u64;
        for _ in 0..items {
            let start = self.cursor.position;
            match item(&mut self.cursor)? {
                Item::Object(hash) => objects.push(hash),
                Item::Text(text, _) if expected.take(text) => {}
                Item::Text(..) => {
                    let raw = self.cursor.since(start).of(self.cursor.bytes);
                    part = part.wrapping_add(verbatim_part(raw));
                }
                Item::Other(raw) => part = part.wrapping_add(verbatim_part(raw)),
            }
        }
        Ok(part)
    }
}

/// Texts that repeat what the seed holds already; each is expected once.
struct Expected<'a> {
    lora: &'a [u8],
    bare: &'a [u8],
    tagged: &'a [u8],
}

impl Expected<'_> {
    fn take(&mut self, text: &[u8]) -> bool {
        let slot = if !self.lora.is_empty() && text == self.lora {
            &mut self.lora
        } else if !self.bare.is_empty() && text == self.bare {
            &mut self.bare
        } else if !self.tagged.is_empty() && text.strip_prefix(SALT_TAG) == Some(self.tagged) {
            &mut self.tagged
        } else {
            return false;
        };
        *slot = &[];
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn span(bytes: &[u8]) -> Span {
        Span { start: 0, len: u32::try_from(bytes.len()).expect("short") }
    }

    fn salt(bytes: &[u8], lora: &str) -> alloc::string::String {
        let found = find_salt(bytes, span(bytes), lora.as_bytes()).expect("readable");
        core::str::from_utf8(found.of(bytes)).expect("text").to_string()
    }

    #[test]
    fn lists_of_nils_are_trivial() {
        for raw in [&b""[..], b"\x90", b"\x93\xc0\xc0\xc0", b"\xdc\x00\x01\xc0"] {
            assert!(trivial(raw));
        }
        for raw in [&b"\x91\x90"[..], b"\x92\xc0\x91\xa1x", b"\x05"] {
            assert!(!trivial(raw));
        }
    }

    #[test]
    fn salts() {
        assert_eq!(salt(b"\x90", ""), "");
        assert_eq!(salt(b"\x91\xc0", ""), "");
        assert_eq!(salt(b"\x91\x91\xa1s", ""), "s");
        assert_eq!(salt(b"\x91\x91\xa1x", "x"), "");
        assert_eq!(salt(b"\x91\x92\xa1x\xa1s", "x"), "s");
        assert_eq!(salt(b"\x91\x92\xa1x\xa1x", "x"), "x");
        assert_eq!(salt(b"\x91\x92\xa1a\xb4dynamo-cache-salt:ab", ""), "ab");
        assert_eq!(salt(b"\x91\x91\xb2dynamo-cache-salt:", ""), "");
        assert_eq!(salt(b"\x91\x94\x05\xc4\x01s\xa1\xff\xa1t", ""), "t");
        assert_eq!(salt(b"\x91\x92\x92\xa1m\x00\xa1t", ""), "t", "an object is no salt");
        assert_eq!(salt(b"\x92\xc0\x91\xa1s", ""), "", "only the first block names one");
        let padded = alloc::format!("{}{}", "0123456789abcdef", "0".repeat(48));
        let mut bytes = vec![0x91, 0x91, 0xd9, 64];
        bytes.extend(padded.as_bytes());
        assert_eq!(salt(&bytes, ""), "");
    }

    fn walk(bytes: &[u8], lora: &str, salt: &str, blocks: usize) -> Vec<(u64, Vec<u64>)> {
        let mut keys =
            ExtraKeys::new(bytes, span(bytes), lora.as_bytes(), salt.as_bytes()).expect("readable");
        let mut out = Vec::new();
        for _ in 0..blocks {
            let mut objects = Vec::new();
            let part = keys.next_block(&mut objects).expect("readable");
            out.push((part, objects));
        }
        out
    }

    #[test]
    fn known_keys_add_nothing() {
        let none = (0, vec![]);
        assert_eq!(walk(b"\x92\x91\xa1x\x91\xa1x", "x", "", 3), vec![none.clone(); 3]);
        assert_eq!(walk(b"\x91\x92\xa1x\xa1s", "x", "s", 1), vec![none.clone()]);
        assert_eq!(walk(b"\x91\x91\xb3dynamo-cache-salt:s", "", "s", 1), vec![none]);
    }

    #[test]
    fn unknown_keys_are_mixed_in_as_they_stand() {
        let part = |raw: &[u8]| verbatim_part(raw);
        assert_eq!(walk(b"\x91\x91\xa1s", "", "", 1), vec![(part(b"\xa1s"), vec![])]);
        assert_eq!(walk(b"\x91\x92\xa1s\xa1s", "", "s", 1), vec![(part(b"\xa1s"), vec![])]);
        let later = walk(b"\x92\xc0\x91\xa1s", "", "s", 2);
        assert_eq!(later, vec![(0, vec![]), (part(b"\xa1s"), vec![])]);
        let several = walk(b"\x91\x95\xc4\x01\xff\x05\xc3\xc0\x92\xa0\x01", "", "", 1);
        let raws = [&b"\xc4\x01\xff"[..], b"\x05", b"\xc3", b"\xc0", b"\x92\xa0\x01"];
        let sum = raws.iter().fold(0_u64, |sum, raw| sum.wrapping_add(part(raw)));
        assert_eq!(several, vec![(sum, vec![])]);
        assert_eq!(walk(b"\x91\xa1s", "", "", 1), vec![(part(b"\xa1s"), vec![])]);
    }

    #[test]
    fn objects_keep_their_order() {
        let keys = b"\x92\x92\x92\xa1b\x00\x92\xa1a\xff\x91\x92\xa1b\x05";
        let hash = |text: &str| mm_hash_bytes(text.as_bytes()).expect("not empty");
        assert_eq!(
            walk(keys, "", "", 2),
            vec![(0, vec![hash("b"), hash("a")]), (0, vec![hash("b")])]
        );
    }
}
