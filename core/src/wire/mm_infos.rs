//! Explicit multimodal objects: an array with an entry per block, nil or a list of objects.
//!
//! An entry is `{"mm_objects": [..]}`, an object `{"mm_hash": n, ..}`; structs written as arrays,
//! `[[..]]` and `[n, ..]`, read alike. Offsets are not used.

use super::cursor::{Cursor, Fault, is_array, is_map};
use crate::event::Span;
use alloc::vec::Vec;

/// Whether every entry can be read. An empty list is valid and means the same as none.
pub(crate) fn valid(payload: &[u8], span: Span) -> bool {
    let mut hashes = Vec::new();
    let Ok(mut infos) = MmInfos::new(payload, span) else {
        return false;
    };
    while infos.left > 0 {
        hashes.clear();
        if infos.next_block(&mut hashes).is_err() {
            return false;
        }
    }
    true
}

/// Walks over the entries.
#[derive(Debug)]
pub(crate) struct MmInfos<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> MmInfos<'a> {
    /// Entries at `span`; none when it is empty.
    pub(crate) fn new(payload: &'a [u8], span: Span) -> Result<Self, Fault> {
        let mut cursor = Cursor::at(payload, span);
        let left = if span.is_empty() { 0 } else { cursor.array()? };
        Ok(Self { cursor, left })
    }

    /// Whether there is no entry at all.
    pub(crate) const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Appends the object hashes of the next block; nothing beyond the last entry.
    pub(crate) fn next_block(&mut self, hashes: &mut Vec<u64>) -> Result<(), Fault> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        if self.cursor.nil()? {
            return Ok(());
        }
        let marker = self.cursor.peek()?;
        if is_map(marker) {
            for _ in 0..self.cursor.map()? {
                if self.cursor.text()? == b"mm_objects" {
                    self.objects(hashes)?;
                } else {
                    self.cursor.step_over()?;
                }
            }
            return Ok(());
        }
        let fields = self.cursor.array()?;
        for field in 0..fields {
            if field == 0 { self.objects(hashes)? } else { self.cursor.step_over()? }
        }
        Ok(())
    }

    fn objects(&mut self, hashes: &mut Vec<u64>) -> Result<(), Fault> {
        for _ in 0..self.cursor.array()? {
            let marker = self.cursor.peek()?;
            let found = if is_array(marker) { self.array_object()? } else { self.map_object()? };
            hashes.push(found.ok_or(Fault::Malformed)?);
        }
        Ok(())
    }

    fn array_object(&mut self) -> Result<Option<u64>, Fault> {
        let fields = self.cursor.array()?;
        let mut found = None;
        for field in 0..fields {
            if field == 0 {
                found = Some(self.cursor.int()?.bits);
            } else {
                self.cursor.step_over()?;
            }
        }
        Ok(found)
    }

    fn map_object(&mut self) -> Result<Option<u64>, Fault> {
        let mut found = None;
        for _ in 0..self.cursor.map()? {
            if self.cursor.text()? == b"mm_hash" {
                found = Some(self.cursor.int()?.bits);
            } else {
                self.cursor.step_over()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn span(bytes: &[u8]) -> Span {
        Span { start: 0, len: u32::try_from(bytes.len()).expect("short") }
    }

    fn blocks(bytes: &[u8], count: usize) -> Result<Vec<Vec<u64>>, Fault> {
        let span = span(bytes);
        let mut infos = MmInfos::new(bytes, span)?;
        let mut out = Vec::new();
        for _ in 0..count {
            let mut hashes = Vec::new();
            infos.next_block(&mut hashes)?;
            out.push(hashes);
        }
        assert_eq!(valid(bytes, span), infos.left == 0);
        Ok(out)
    }

    #[test]
    fn maps_and_arrays_read_alike() {
        let map =
            b"\x92\xc0\x81\xaamm_objects\x92\x82\xa7mm_hash\x2a\xa7offsets\x90\x81\xa7mm_hash\x07";
        assert_eq!(blocks(map, 3), Ok(vec![vec![], vec![42, 7], vec![]]));
        let array = b"\x92\xc0\x91\x92\x92\x2a\x90\x91\x07";
        assert_eq!(blocks(array, 3), Ok(vec![vec![], vec![42, 7], vec![]]));
        assert_eq!(blocks(b"\x90", 1), Ok(vec![vec![]]));
    }

    #[test]
    fn anything_else_is_no_list_of_objects() {
        for bytes in [&b"\x91\x05"[..], b"\x05", b"\x91\x81\xaamm_objects\x91\x80", b"\x91\x91\x05"]
        {
            assert!(!valid(bytes, span(bytes)), "{bytes:?}");
        }
    }
}
