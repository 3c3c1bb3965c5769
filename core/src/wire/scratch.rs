//! Buffers of a decoder that outlive a message.

use super::tokens::TokenBytes;
use crate::event::EventBatch;
use crate::hash::seed_of;
use alloc::vec::Vec;

/// Elements a buffer of numbers may always keep.
const KEEP: usize = 16_384;
/// Records, which are some twenty times as big, that may always be kept.
const KEEP_RECORDS: usize = 1_024;
/// Messages in a row that must have used little of a big buffer before it is given back.
const CALM: u32 = 64;

/// Working memory of one decoder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// Tokens of the event at hand are at its front; its length only says how far it has grown.
    pub(crate) tokens: Vec<TokenBytes>,
    /// Table for the search for repeated hashes.
    pub(crate) table: Vec<u64>,
    /// Words for blocks with multimodal objects.
    pub(crate) keyed: Keyed,
    seed: SeedMemo,
    /// Most tokens of one event since the last look at the buffers.
    pub(crate) most_tokens: usize,
    calm: u32,
}

/// Working memory for one block with extra keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyed {
    pub(crate) objects: Vec<u64>,
    pub(crate) words: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
}

/// The seed of the last identity: runs of events share one.
#[derive(Clone, Debug, Default)]
struct SeedMemo {
    lora: Vec<u8>,
    salt: Vec<u8>,
    seed: u64,
    filled: bool,
}

impl Scratch {
    /// The seed of a LoRA name and a salt.
    #[inline]
    pub(crate) fn seed(&mut self, lora: &[u8], salt: &[u8]) -> u64 {
        if lora.is_empty() && salt.is_empty() {
            return crate::hash::BASE_SEED;
        }
        let memo = &mut self.seed;
        if !memo.filled || memo.lora != lora || memo.salt != salt {
            memo.lora.clear();
            memo.lora.extend_from_slice(lora);
            memo.salt.clear();
            memo.salt.extend_from_slice(salt);
            memo.seed = seed_of(lora, salt);
            memo.filled = true;
        }
        memo.seed
    }

    /// Gives big buffers back when many messages in a row needed little of them. Called before
    /// `out` is cleared, so that its lengths still tell what the last message needed.
    #[inline]
    pub(crate) fn give_back(&mut self, out: &mut EventBatch) {
        let keyed = &mut self.keyed;
        let big = wasteful(self.tokens.capacity(), self.most_tokens, KEEP)
            || wasteful(self.table.capacity(), self.table.len(), KEEP)
            || wasteful(keyed.objects.capacity(), keyed.objects.len(), KEEP)
            || wasteful(keyed.words.capacity(), keyed.words.len(), KEEP)
            || wasteful(keyed.bytes.capacity(), keyed.bytes.len(), KEEP)
            || wasteful(self.seed.lora.capacity(), self.seed.lora.len(), KEEP)
            || wasteful(self.seed.salt.capacity(), self.seed.salt.len(), KEEP)
            || wasteful(out.records.capacity(), out.records.len(), KEEP_RECORDS)
            || wasteful(out.hashes.capacity(), out.hashes.len(), KEEP)
            || wasteful(out.locals.capacity(), out.locals.len(), KEEP);
        self.table.clear();
        keyed.objects.clear();
        keyed.words.clear();
        keyed.bytes.clear();
        self.most_tokens = 0;
        if !big {
            self.calm = 0;
            return;
        }
        self.calm += 1;
        if self.calm >= CALM {
            self.calm = 0;
            self.shrink(out);
        }
    }

    #[cold]
    fn shrink(&mut self, out: &mut EventBatch) {
        self.tokens.truncate(KEEP);
        self.tokens.shrink_to(KEEP);
        self.table.clear();
        self.table.shrink_to(KEEP);
        self.keyed = Keyed::default();
        self.seed = SeedMemo::default();
        out.clear();
        out.records.shrink_to(KEEP_RECORDS);
        out.hashes.shrink_to(KEEP);
        out.locals.shrink_to(KEEP);
    }
}

fn wasteful(capacity: usize, used: usize, keep: usize) -> bool {
    capacity > keep && used < capacity / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BlockHash;

    #[test]
    fn outliers_are_given_back_after_calm() {
        let mut scratch = Scratch::default();
        let mut out = EventBatch::default();
        scratch.tokens.resize(1 << 20, TokenBytes::default());
        scratch.table.resize(1 << 20, 0);
        scratch.seed(&[b'x'; 1 << 17], b"");
        scratch.seed(b"x", b"");
        out.hashes.resize(1 << 18, BlockHash(0));
        scratch.most_tokens = 1 << 20;
        for _ in 0..=CALM {
            scratch.give_back(&mut out);
            out.clear();
        }
        assert!(scratch.tokens.capacity() <= KEEP);
        assert!(scratch.table.capacity() <= KEEP);
        assert!(scratch.seed.lora.capacity() <= KEEP);
        assert!(out.hashes.capacity() <= KEEP);
    }

    #[test]
    fn buffers_in_use_are_kept() {
        let mut scratch = Scratch::default();
        let mut out = EventBatch::default();
        for _ in 0..2 * CALM {
            scratch.tokens.resize(1 << 20, TokenBytes::default());
            scratch.most_tokens = 1 << 20;
            scratch.give_back(&mut out);
        }
        assert!(scratch.tokens.capacity() >= 1 << 20);
    }

    #[test]
    fn seeds_are_remembered_by_name() {
        let mut scratch = Scratch::default();
        for _ in 0..2 {
            assert_eq!(scratch.seed(b"", b""), seed_of(b"", b""));
            assert_eq!(scratch.seed(b"a", b""), seed_of(b"a", b""));
            assert_eq!(scratch.seed(b"", b"a"), seed_of(b"", b"a"));
        }
    }
}
