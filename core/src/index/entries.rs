//! The entries of one rank: a table from engine hash to a dense store.
//!
//! Entries stay where they are while they live, so that a block names its parent's by number, and
//! what a growing table moves is only numbers. Invariant: a place is free exactly when its entry
//! has neither copies nor blocks below (`rank.rs` keeps no such entry).

use super::rank::Entry;
use crate::id::BlockHash;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::num::NonZeroU32;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;
use rustc_hash::FxBuildHasher;

/// A place in a rank's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(NonZeroU32);

impl EntryId {
    /// The id of the last of `len` places.
    fn last_of(len: usize) -> Self {
        let number = u32::try_from(len).ok().and_then(NonZeroU32::new);
        Self(number.expect("entries are capped below u32::MAX"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What [`Entries::find_or_add`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An entry that was there.
    Known(EntryId),
    /// A new one, without copies yet.
    Added(EntryId),
    /// Nothing, and none may be added.
    Refused,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    slots: Vec<Entry>,
    free: Vec<EntryId>,
    by_hash: HashTable<EntryId>,
}

fn table_hash(hash: BlockHash) -> u64 {
    FxBuildHasher.hash_one(hash.0)
}

impl Entries {
    pub(super) fn find(&self, hash: BlockHash) -> Option<EntryId> {
        self.by_hash.find(table_hash(hash), |&id| self.get(id).hash == hash).copied()
    }

    pub(super) fn find_or_add(&mut self, hash: BlockHash, may_add: bool) -> Found {
        let Self { slots, free, by_hash } = self;
        let found = by_hash.entry(
            table_hash(hash),
            |id| slots[id.index()].hash == hash,
            |id| table_hash(slots[id.index()].hash),
        );
        match found {
            TableEntry::Occupied(known) => Found::Known(*known.get()),
            TableEntry::Vacant(_) if !may_add => Found::Refused,
            TableEntry::Vacant(vacant) => {
                let id = match free.pop() {
                    Some(id) => {
                        slots[id.index()] = Entry::new(hash);
                        id
                    }
                    None => {
                        slots.push(Entry::new(hash));
                        EntryId::last_of(slots.len())
                    }
                };
                vacant.insert(id);
                Found::Added(id)
            }
        }
    }

    pub(super) fn get(&self, id: EntryId) -> &Entry {
        &self.slots[id.index()]
    }

    pub(super) fn get_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.slots[id.index()]
    }

    /// Frees the place of an entry that has neither copies nor blocks below.
    pub(super) fn remove(&mut self, id: EntryId) {
        let Self { slots, free, by_hash } = self;
        let hash = slots[id.index()].hash;
        if let Ok(found) = by_hash.find_entry(table_hash(hash), |&other| other == id) {
            found.remove();
        }
        free.push(id);
        if free.len() == slots.len() {
            slots.clear();
            free.clear();
            slots.shrink_to(64);
            free.shrink_to(64);
        }
        super::node::shrink(by_hash, |id| table_hash(slots[id.index()].hash));
    }

    /// Every entry, in no order that may be shown.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().filter(|entry| entry.is_resident() || entry.children > 0)
    }

    /// Entries, remembered ones included.
    pub(super) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Bytes reserved, without what entries with more than two slots keep elsewhere.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<EntryId>()
            + self.by_hash.capacity() * (size_of::<EntryId>() + 1)
    }
}
