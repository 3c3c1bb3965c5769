//! Where the slots live: one place a rank, found by the rank's key or by its number.

use super::input::Payload;
use super::slot::{Slot, Wanted};
use super::slot_id::SlotId;
use crate::id::RankKey;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place<P> {
    /// The newest snapshot's word. Not part of the slot, so that a whole snapshot is compared with
    /// words that lie side by side.
    wanted: Option<Wanted>,
    /// Boxed, so that what a rank takes does not depend on how many there were before.
    slot: Option<Box<Slot<P>>>,
}

/// The slots of all ranks, at most 2²⁴ − 1. Places of ranks that have left are used again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slab<P> {
    places: Vec<Place<P>>,
    free: Vec<SlotId>,
    by_key: BTreeMap<RankKey, SlotId>,
}

impl<P> Default for Slab<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), by_key: BTreeMap::new() }
    }
}

impl<P: Payload> Slab<P> {
    pub(super) fn find(&self, key: RankKey) -> Option<SlotId> {
        self.by_key.get(&key).copied()
    }

    /// Ascending by rank.
    pub(super) fn ids(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.by_key.values().copied()
    }

    pub(super) fn holds(&self, id: SlotId) -> bool {
        self.get(id).is_some()
    }

    pub(super) fn get(&self, id: SlotId) -> Option<(&Slot<P>, Option<Wanted>)> {
        let place = self.places.get(id.index())?;
        Some((place.slot.as_deref()?, place.wanted))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<(&mut Slot<P>, &mut Option<Wanted>)> {
        let place = self.places.get_mut(id.index())?;
        Some((place.slot.as_deref_mut()?, &mut place.wanted))
    }

    /// What the newest snapshot said of each rank, ascending.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (RankKey, Option<Wanted>)> {
        let wanted = |id: &SlotId| self.places.get(id.index()).and_then(|place| place.wanted);
        self.by_key.iter().map(move |(key, id)| (*key, wanted(id)))
    }

    /// Where the next new rank goes; `None` when there are as many as ops can name.
    pub(super) fn vacancy(&self) -> Option<SlotId> {
        self.free.last().copied().or_else(|| SlotId::at(self.places.len()))
    }

    /// Puts a new rank's slot into the vacancy.
    pub(super) fn insert(&mut self, key: RankKey, id: SlotId, slot: Slot<P>) {
        let new = Place { wanted: None, slot: Some(Box::new(slot)) };
        self.free.pop();
        match self.places.get_mut(id.index()) {
            Some(place) => *place = new,
            None => {
                // By an eighth, not twofold: idle places would count for every rank.
                if self.places.len() == self.places.capacity() {
                    self.places.reserve_exact(self.places.len() / 8 + 64);
                }
                self.places.push(new);
            }
        }
        self.by_key.insert(key, id);
    }

    pub(super) fn remove(&mut self, key: RankKey) {
        let Some(id) = self.by_key.remove(&key) else { return };
        if let Some(place) = self.places.get_mut(id.index()) {
            *place = Place { wanted: None, slot: None };
            self.free.push(id);
        }
    }
}
