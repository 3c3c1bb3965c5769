//! Events as arrays: fields by position (`wire.md` §3.4).

use super::cursor::{Fault, is_map};
use super::draft::Draft;
use super::enums::{Ownership, Tag};
use super::reader::Reader;

/// Elements of a store that must be there: tag, hashes, parent, tokens, block size.
const STORED_MINIMUM: usize = 5;

impl Reader<'_, '_> {
    /// Reads an event whose marker says array.
    #[inline]
    pub(crate) fn array_event(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let count = self.cursor.array()?;
        if count == 0 {
            return Err(Fault::Malformed);
        }
        draft.take_tag(Tag::parse(self.cursor.text()?));
        let tag = draft.tag.ok_or(Fault::Malformed)?;
        match tag {
            Tag::Stored => self.array_stored(count, draft),
            Tag::Removed => self.array_removed(count, draft),
            Tag::Cleared => self.array_cleared(count, draft),
            Tag::Ignored => self.rest(count, 1),
        }
    }

    #[inline]
    fn array_stored(&mut self, count: usize, draft: &mut Draft) -> Result<(), Fault> {
        if count < STORED_MINIMUM {
            return Err(Fault::Malformed);
        }
        self.hashes(draft)?;
        self.parent(draft)?;
        self.tokens(draft)?;
        self.block_size(draft)?;
        if count > 5 {
            self.lora_id(draft)?;
        }
        if count > 6 {
            draft.medium = self.name()?;
        }
        if count > 7 {
            self.lora_or_metadata(draft)?;
        }
        if count > 8 {
            draft.record.extra_keys = self.raw()?;
        }
        if count > 9 { self.tail(count - 9, true, draft) } else { Ok(()) }
    }

    fn array_removed(&mut self, count: usize, draft: &mut Draft) -> Result<(), Fault> {
        if count < 2 {
            return Err(Fault::Malformed);
        }
        self.hashes(draft)?;
        if count > 2 {
            draft.medium = self.name()?;
        }
        if count > 3 { self.tail(count - 3, false, draft) } else { Ok(()) }
    }

    fn array_cleared(&mut self, count: usize, draft: &mut Draft) -> Result<(), Fault> {
        if count > 1
            && let Some(span) = self.cursor.text_or_nil()?
        {
            draft.ownership = Ownership::parse(span.of(self.cursor.bytes));
        }
        self.rest(count, 2)
    }

    /// Steps over the elements from `read` on.
    fn rest(&mut self, count: usize, read: usize) -> Result<(), Fault> {
        for _ in read..count {
            self.cursor.skip(self.limits.depth)?;
        }
        Ok(())
    }

    /// Slot 7: a LoRA name, or a map that may hold `cache_salt`.
    #[inline]
    fn lora_or_metadata(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        match self.cursor.peek()? {
            marker if is_map(marker) => self.metadata(draft),
            _ => {
                draft.record.lora = self.name()?;
                Ok(())
            }
        }
    }

    #[cold]
    fn metadata(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let pairs = self.cursor.map()?;
        for _ in 0..pairs {
            let key = self.cursor.text()?;
            if key == b"cache_salt" {
                draft.explicit_salt = self.cursor.text_or_nil()?;
            } else {
                self.cursor.skip(self.limits.depth)?;
            }
        }
        Ok(())
    }
}
