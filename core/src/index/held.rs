//! Blocks of one rank that wait until the block before them has a position (B37).
//!
//! Invariants: a held block belongs to exactly one entry, whose position says so; the blocks that
//! wait for one hash are a doubly linked list under that hash, so that any of them leaves at once;
//! there are never more than the limit.

use super::domain::Domain;
use super::salt::SaltId;
use crate::id::{BlockHash, LocalHash};
use alloc::vec::Vec;
use core::num::NonZeroU32;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldId(NonZeroU32);

impl HeldId {
    /// The id of the last of `len` places.
    fn last_of(len: usize) -> Self {
        let number = u32::try_from(len).ok().and_then(NonZeroU32::new);
        Self(number.expect("the limit on held blocks is a u32"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What salt a held block will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldSalt {
    /// Its event named one; the table counts as its user.
    Own(SaltId),
    /// Its chain's, and its local hash is right whatever that is: there were no tokens to hash.
    Chain,
    /// Its chain's, but its local hash is right only without one: the tokens are gone by then.
    NoneOrLost,
}

/// One block that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) hash: BlockHash,
    pub(super) parent: BlockHash,
    pub(super) local: LocalHash,
    pub(super) salt: HeldSalt,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    held: Held,
    prev: Option<HeldId>,
    next: Option<HeldId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct HeldAside {
    slots: Vec<Link>,
    free: Vec<HeldId>,
    first: HashMap<BlockHash, HeldId, FxBuildHasher>,
}

impl HeldAside {
    /// Puts a block aside; `None` when there are `limit` already. The caller has counted the table
    /// as a user of its salt, if it has one of its own.
    pub(super) fn hold(&mut self, held: Held, limit: u32) -> Option<HeldId> {
        if self.len() >= limit as usize {
            return None;
        }
        let next = self.first.get(&held.parent).copied();
        let link = Link { held, prev: None, next };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.index()] = link;
                id
            }
            None => {
                self.slots.push(link);
                HeldId::last_of(self.slots.len())
            }
        };
        if let Some(next) = next {
            self.slots[next.index()].prev = Some(id);
        }
        self.first.insert(held.parent, id);
        Some(id)
    }

    /// The block at `id`.
    pub(super) fn get(&self, id: HeldId) -> Held {
        self.slots[id.index()].held
    }

    /// Some block that waits for `parent`.
    pub(super) fn waiting_for(&self, parent: BlockHash) -> Option<HeldId> {
        self.first.get(&parent).copied()
    }

    /// Takes a block out; the use of its own salt passes to the caller.
    pub(super) fn take(&mut self, id: HeldId) -> Held {
        let Link { held, prev, next } = self.slots[id.index()];
        if let Some(next) = next {
            self.slots[next.index()].prev = prev;
        }
        match (prev, next) {
            (Some(prev), _) => self.slots[prev.index()].next = next,
            (None, Some(next)) => {
                self.first.insert(held.parent, next);
            }
            (None, None) => {
                self.first.remove(&held.parent);
            }
        }
        self.free.push(id);
        if self.free.len() == self.slots.len() {
            *self = Self::default();
        }
        held
    }

    /// Takes a block out that will have no position.
    pub(super) fn cancel(&mut self, id: HeldId, domain: &mut Domain) {
        if let HeldSalt::Own(salt) = self.take(id).salt {
            domain.salts.release(salt);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes reserved.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Link>()
            + self.free.capacity() * size_of::<HeldId>()
            + self.first.capacity() * (size_of::<(BlockHash, HeldId)>() + 1)
    }
}
