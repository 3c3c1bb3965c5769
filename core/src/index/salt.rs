//! The salts of one index domain, each kept once and counted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::num::NonZeroU32;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A salt of one index domain; valid while something that was counted for it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SaltId(NonZeroU32);

impl SaltId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Debug)]
struct Salt {
    text: Box<str>,
    /// Nodes, held blocks and calls in progress that use it; 0 means the place is free.
    users: u32,
}

/// Invariant: `by_text` holds exactly the ids whose `users` is not 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Salts {
    slots: Vec<Salt>,
    free: Vec<SaltId>,
    by_text: HashTable<SaltId>,
}

impl Salts {
    /// The id of `text`, with one user more.
    ///
    /// Every user is a node, a held block or the call in progress, so that ids and counts stay
    /// within the cap on entries plus one.
    pub(super) fn intern(&mut self, text: &str) -> SaltId {
        let hash = FxBuildHasher.hash_one(text);
        let Self { slots, free, by_text } = self;
        if let Some(&id) = by_text.find(hash, |id| &*slots[id.index()].text == text) {
            slots[id.index()].users += 1;
            return id;
        }
        let salt = Salt { text: text.into(), users: 1 };
        let id = if let Some(id) = free.pop() {
            slots[id.index()] = salt;
            id
        } else {
            slots.push(salt);
            let number = u32::try_from(slots.len()).ok().and_then(NonZeroU32::new);
            SaltId(number.expect("salts are fewer than entries, and those are capped"))
        };
        by_text.insert_unique(hash, id, |id| FxBuildHasher.hash_one(&*slots[id.index()].text));
        id
    }

    /// One user more of a salt that is in use.
    pub(super) fn share(&mut self, id: SaltId) {
        self.slots[id.index()].users += 1;
    }

    /// One user less; the last one frees the text.
    pub(super) fn release(&mut self, id: SaltId) {
        let Self { slots, free, by_text } = self;
        let salt = &mut slots[id.index()];
        salt.users -= 1;
        if salt.users > 0 {
            return;
        }
        let hash = FxBuildHasher.hash_one(&*salt.text);
        salt.text = Box::default();
        if let Ok(entry) = by_text.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
        free.push(id);
    }

    /// The text of a salt that is in use.
    pub(super) fn text(&self, id: SaltId) -> &str {
        &self.slots[id.index()].text
    }

    /// Salts in use.
    pub(super) fn len(&self) -> usize {
        self.by_text.len()
    }

    /// Bytes of the texts in use and of the table.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.slots.iter().map(|salt| salt.text.len()).sum();
        texts + self.slots.capacity() * size_of::<Salt>() + self.by_text.capacity() * 5
    }
}
