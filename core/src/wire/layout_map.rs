//! Events as maps: fields by name (`wire.md` §3.3).
//!
//! Keys are sorted out by length first and compared then: one comparison per key.

use super::cursor::Fault;
use super::draft::Draft;
use super::enums::{Locality, Ownership, Tag, spec_kind};
use super::reader::Reader;

impl Reader<'_, '_> {
    /// Reads an event whose marker says map. A key twice: the last one counts.
    #[inline]
    pub(crate) fn map_event(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let pairs = self.cursor.map()?;
        for _ in 0..pairs {
            let key = self.cursor.text()?;
            self.field(key, draft)?;
        }
        Ok(())
    }

    #[inline]
    fn field(&mut self, key: &[u8], draft: &mut Draft) -> Result<(), Fault> {
        match key.len() {
            4 if key == b"type" => self.tag(draft),
            6 if key == b"medium" => {
                draft.medium = self.name()?;
                Ok(())
            }
            7 if key == b"lora_id" => self.lora_id(draft),
            9 if key == b"token_ids" => self.tokens_or_nil(draft),
            9 if key == b"lora_name" => {
                draft.record.lora = self.name()?;
                Ok(())
            }
            9 if key == b"group_idx" => {
                draft.record.group = self.cursor.unsigned_or_nil()?;
                Ok(())
            }
            10 if key == b"block_size" => self.block_size_or_nil(draft),
            10 if key == b"extra_keys" => {
                draft.record.extra_keys = self.raw()?;
                Ok(())
            }
            12 if key == b"block_hashes" => self.hashes_or_nil(draft),
            17 if key == b"parent_block_hash" => self.parent(draft),
            _ => self.rare_field(key, draft),
        }
    }

    fn rare_field(&mut self, key: &[u8], draft: &mut Draft) -> Result<(), Fault> {
        match key {
            b"kv_cache_spec_kind" => {
                let span = self.cursor.text_or_nil()?;
                draft.record.spec = span.map(|span| spec_kind(span.of(self.cursor.bytes)));
            }
            b"kv_cache_spec_sliding_window" => {
                draft.record.sliding_window = self.cursor.unsigned_or_nil()?;
            }
            b"locality" => {
                let span = self.cursor.text_or_nil()?;
                draft.locality = span
                    .map(|span| Locality::parse(span.of(self.cursor.bytes)))
                    .unwrap_or_default();
            }
            b"ownership" => {
                let span = self.cursor.text_or_nil()?;
                draft.ownership = span
                    .map(|span| Ownership::parse(span.of(self.cursor.bytes)))
                    .unwrap_or_default();
            }
            b"cache_salt" => draft.explicit_salt = self.cursor.text_or_nil()?,
            b"session_id" => draft.record.session = self.name()?,
            b"block_mm_infos" => self.mm_infos(draft)?,
            b"event_type" => self.event_type(draft)?,
            b"seq_hashes" => self.hashes_or_nil(draft)?,
            b"parent_hash" => self.parent(draft)?,
            b"group_id" => self.group_id(draft)?,
            _ => self.cursor.skip(self.limits.depth)?,
        }
        Ok(())
    }

    #[inline]
    fn tag(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        draft.take_tag(Tag::parse(self.cursor.text()?));
        Ok(())
    }

    fn event_type(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        draft.take_tag(Tag::parse_event_type(self.cursor.text()?));
        draft.event_type = true;
        Ok(())
    }

    #[inline]
    fn hashes_or_nil(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        if self.cursor.nil()? { Ok(()) } else { self.hashes(draft) }
    }

    #[inline]
    fn tokens_or_nil(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        if self.cursor.nil()? { Ok(()) } else { self.tokens(draft) }
    }

    #[inline]
    fn block_size_or_nil(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        if self.cursor.nil()? { Ok(()) } else { self.block_size(draft) }
    }

    /// The store master's group: a number, or text, which counts when it is a decimal number.
    fn group_id(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        match self.cursor.peek()? {
            0xa0..=0xbf | 0xd9..=0xdb => {
                let text = core::str::from_utf8(self.cursor.text()?).ok();
                let number = text.and_then(|text| text.parse().ok());
                draft.record.group = number.or(draft.record.group);
            }
            _ => {
                let number = self.cursor.unsigned_or_nil()?;
                draft.record.group = number.or(draft.record.group);
            }
        }
        Ok(())
    }
}
