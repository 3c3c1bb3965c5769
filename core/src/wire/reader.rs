//! Reading the fields that both event layouts share.

use super::cursor::{Cursor, Fault, is_array, is_map, narrow, wrong};
use super::draft::Draft;
use super::mm_infos;
use super::scratch::Scratch;
use super::source::{Limits, SourceIdentity};
use super::{hashes, tokens};
use crate::event::{EventBatch, Span};

/// What one decode call works with.
pub(crate) struct Reader<'p, 'd> {
    pub(crate) cursor: Cursor<'p>,
    pub(crate) limits: Limits,
    pub(crate) identity: &'d SourceIdentity,
    pub(crate) scratch: &'d mut Scratch,
    pub(crate) out: &'d mut EventBatch,
    /// Hashes the batch held when the event began.
    pub(crate) first_hash: usize,
    /// Tokens the message may still hold.
    pub(crate) tokens_left: u32,
}

impl Reader<'_, '_> {
    /// Reads an event in the layout that its first byte tells.
    #[inline]
    pub(crate) fn event(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let marker = self.cursor.peek()?;
        if is_array(marker) {
            self.array_event(draft)
        } else if is_map(marker) {
            self.map_event(draft)
        } else {
            Err(wrong(marker))
        }
    }

    /// Reads a list of hashes over whatever this event's list was before.
    #[inline]
    pub(crate) fn hashes(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        self.out.hashes.truncate(self.first_hash);
        let held = narrow(self.first_hash);
        let budget = self.limits.hashes.saturating_sub(held);
        hashes::read_list(&mut self.cursor, budget, &mut self.out.hashes)?;
        let count = self.out.hashes.len().saturating_sub(self.first_hash);
        draft.record.hashes = Span { start: held, len: narrow(count) };
        draft.has_hashes = true;
        Ok(())
    }

    #[inline]
    pub(crate) fn parent(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        if !self.cursor.nil()? {
            draft.record.parent = Some(hashes::read(&mut self.cursor)?);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn tokens(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let start = self.cursor.position;
        let list = tokens::read(&mut self.cursor, self.tokens_left, &mut self.scratch.tokens)?;
        self.tokens_left = self.tokens_left.saturating_sub(list.count);
        draft.record.tokens = self.cursor.since(start);
        draft.record.token_count = list.count;
        draft.record.eagle = list.eagle;
        self.scratch.most_tokens = self.scratch.most_tokens.max(list.count as usize);
        draft.has_tokens = true;
        Ok(())
    }

    #[inline]
    pub(crate) fn block_size(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        draft.record.block_size = self.cursor.unsigned()?;
        draft.has_block_size = true;
        Ok(())
    }

    /// An adapter id: nil, a number, or (leniently) a text.
    #[inline]
    pub(crate) fn lora_id(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        draft.record.lora_id = Span::EMPTY;
        if self.cursor.nil()? {
            return Ok(());
        }
        let start = self.cursor.position;
        match self.cursor.peek()? {
            0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => {
                self.cursor.text()?;
            }
            _ => {
                self.cursor.int()?;
            }
        }
        draft.record.lora_id = self.cursor.since(start);
        Ok(())
    }

    /// A text whose absence means the same as the empty one.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Span, Fault> {
        Ok(self.cursor.text_or_nil()?.unwrap_or_default())
    }

    /// Steps over a value and says where it is; empty for nil.
    #[inline]
    pub(crate) fn raw(&mut self) -> Result<Span, Fault> {
        if self.cursor.nil()? {
            return Ok(Span::EMPTY);
        }
        let start = self.cursor.position;
        self.cursor.skip(self.limits.depth)?;
        Ok(self.cursor.since(start))
    }

    /// Explicit multimodal objects, which must be readable.
    #[cold]
    pub(crate) fn mm_infos(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let span = self.raw()?;
        if !span.is_empty() && !mm_infos::valid(self.cursor.bytes, span) {
            return Err(Fault::Malformed);
        }
        draft.record.mm_infos = span;
        Ok(())
    }
}
