//! Positions: the prefix tree of every domain.
//!
//! A node is one place in a domain's tree. It is found by its sequence hash; because a hash can
//! collide, whoever finds it also compares the parent node, the local hash and the salt, so that two
//! places are never taken for one.
//!
//! Invariants:
//! * a node lives while at least one entry of some rank is attached to it;
//! * the parent of a live node lives, since the entry that made the child keeps its parent's entry
//!   (`rank.rs`), and that one is attached to the parent node;
//! * `first_child`, where set, is a live child; a node with children may have none set;
//! * `holders` are the (rank, lanes) pairs of the entries attached with copies, ascending. An alias
//!   (a second hash of one rank at one place) is a second pair of that rank.

use super::domain::Domain;
use super::salt::SaltId;
use crate::hash::next_sequence_hash;
use crate::id::{LocalHash, SequenceHash};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::num::NonZeroU32;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A place in the node store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(NonZeroU32);

impl NodeId {
    /// The id of the last of `len` places.
    fn last_of(len: usize) -> Self {
        let number = u32::try_from(len).ok().and_then(NonZeroU32::new);
        Self(number.expect("nodes never outnumber entries, and those are capped"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Rank number and lanes. A plain pair of words, so that whole lists compare as memory.
pub(super) type Holder = [u64; 2];

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) seq: SequenceHash,
    pub(super) local: LocalHash,
    pub(super) parent: Option<NodeId>,
    first_child: Option<NodeId>,
    pub(super) salt: Option<SaltId>,
    /// Entries attached; 0 means the place is free.
    entries: u32,
    holders: SmallVec<[Holder; 1]>,
}

impl Node {
    pub(super) fn holders(&self) -> &[Holder] {
        &self.holders
    }
}

/// Where a block is claimed to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: Option<NodeId>,
    pub(super) local: LocalHash,
    pub(super) salt: Option<SaltId>,
}

/// The node store of all domains.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Node>,
    free: Vec<NodeId>,
}

fn table_hash(seq: SequenceHash) -> u64 {
    FxBuildHasher.hash_one(seq.0)
}

impl Nodes {
    pub(super) fn get(&self, id: NodeId) -> &Node {
        &self.slots[id.index()]
    }

    /// Whether `id` is at `place`.
    pub(super) fn is_at(&self, id: NodeId, place: Place) -> bool {
        let node = self.get(id);
        node.parent == place.parent && node.local == place.local && node.salt == place.salt
    }

    /// Attaches one entry to the node at `place`, which is made if it is not there. `None`: another
    /// place of the domain has the same sequence hash.
    pub(super) fn attach(&mut self, domain: &mut Domain, place: Place) -> Option<NodeId> {
        let parent_seq = place.parent.map(|parent| self.get(parent).seq);
        let seq = next_sequence_hash(parent_seq, place.local);
        let Self { slots, free } = self;
        let entry = domain.nodes.entry(
            table_hash(seq),
            |id| slots[id.index()].seq == seq,
            |id| table_hash(slots[id.index()].seq),
        );
        let vacant = match entry {
            Entry::Occupied(found) => {
                let id = *found.get();
                if !self.is_at(id, place) {
                    return None;
                }
                self.slots[id.index()].entries += 1;
                return Some(id);
            }
            Entry::Vacant(vacant) => vacant,
        };
        let node = Node {
            seq,
            local: place.local,
            parent: place.parent,
            first_child: None,
            salt: place.salt,
            entries: 1,
            holders: SmallVec::new(),
        };
        if let Some(salt) = place.salt {
            domain.salts.share(salt);
        }
        let id = match free.pop() {
            Some(id) => id,
            None => NodeId::last_of(slots.len() + 1),
        };
        vacant.insert(id);
        match slots.get_mut(id.index()) {
            Some(slot) => *slot = node,
            None => slots.push(node),
        }
        if let Some(parent) = place.parent {
            self.slots[parent.index()].first_child.get_or_insert(id);
        }
        Some(id)
    }

    /// Detaches one entry. The last one frees the node; its children must be free or about to be.
    pub(super) fn detach(&mut self, domain: &mut Domain, id: NodeId) {
        let Self { slots, free } = self;
        let node = &mut slots[id.index()];
        node.entries -= 1;
        if node.entries > 0 {
            return;
        }
        node.first_child = None;
        node.holders = SmallVec::new();
        let (seq, parent) = (node.seq, node.parent);
        if let Some(salt) = node.salt.take() {
            domain.salts.release(salt);
        }
        if let Ok(found) = domain.nodes.find_entry(table_hash(seq), |&other| other == id) {
            found.remove();
        }
        // When a whole rank goes, the parent may be gone already; its place is not reused meanwhile.
        if let Some(parent) = parent
            && slots[parent.index()].first_child == Some(id)
        {
            slots[parent.index()].first_child = None;
        }
        free.push(id);
        shrink(&mut domain.nodes, |id| table_hash(slots[id.index()].seq));
        if free.len() == slots.len() {
            slots.clear();
            free.clear();
            slots.shrink_to(64);
            free.shrink_to(64);
        }
    }

    /// One entry of `rank` at `id` had lanes `before` and has lanes `after`.
    pub(super) fn set_lanes(&mut self, id: NodeId, rank: u32, before: u64, after: u64) {
        if before == after {
            return;
        }
        let holders = &mut self.slots[id.index()].holders;
        let rank = u64::from(rank);
        if before != 0
            && let Ok(at) = holders.binary_search(&[rank, before])
        {
            holders.remove(at);
            if holders.spilled() && (holders.len() <= 1 || holders.len() * 4 < holders.capacity()) {
                holders.shrink_to_fit();
            }
        }
        if after != 0 {
            let at = holders.partition_point(|holder| *holder < [rank, after]);
            holders.insert(at, [rank, after]);
        }
    }

    /// The child of `parent` (`None`: the first block of a chain) with this local hash.
    pub(super) fn child_by_local(
        &self,
        domain: &Domain,
        parent: Option<NodeId>,
        local: LocalHash,
    ) -> Option<NodeId> {
        let Some(above) = parent else {
            return self.lookup(domain, None, SequenceHash(local.0));
        };
        let above = self.get(above);
        if let Some(child) = above.first_child
            && self.get(child).local == local
        {
            return Some(child);
        }
        let seq = next_sequence_hash(Some(above.seq), local);
        let found = self.lookup(domain, parent, seq)?;
        (self.get(found).local == local).then_some(found)
    }

    /// The child of `parent` (`None`: the first block of a chain) with this sequence hash.
    pub(super) fn child_by_sequence(
        &self,
        domain: &Domain,
        parent: Option<NodeId>,
        seq: SequenceHash,
    ) -> Option<NodeId> {
        if let Some(child) = parent.and_then(|above| self.get(above).first_child)
            && self.get(child).seq == seq
        {
            return Some(child);
        }
        self.lookup(domain, parent, seq)
    }

    fn lookup(&self, domain: &Domain, parent: Option<NodeId>, seq: SequenceHash) -> Option<NodeId> {
        let found = domain.nodes.find(table_hash(seq), |&id| self.get(id).seq == seq)?;
        (self.get(*found).parent == parent).then_some(*found)
    }

    /// Live nodes.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes reserved, holder lists included.
    pub(super) fn bytes(&self) -> usize {
        let spilled: usize = self
            .slots
            .iter()
            .filter(|node| node.holders.spilled())
            .map(|node| node.holders.capacity() * size_of::<Holder>())
            .sum();
        spilled
            + self.slots.capacity() * size_of::<Node>()
            + self.free.capacity() * size_of::<NodeId>()
    }
}

/// Gives memory back once a table is mostly empty. Amortised: a table must lose most of what it
/// holds, or gain as much, before it is moved again.
pub(super) fn shrink<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.capacity() > 1_024 && table.len() * 8 < table.capacity() {
        table.shrink_to(table.len() * 2, hash);
    }
}
