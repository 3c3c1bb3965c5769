//! Single blocks: their copies, their position, and what depends on it.
//!
//! Rules, in the order in which they decide (B23, B37, P28):
//! 1. a position that is known is kept; a claim that says nothing, or speaks of a block without
//!    position, does not change it;
//! 2. a claim of another position makes the block ambiguous: resident, without position, until its
//!    last copy is gone;
//! 3. a claim of a position places a block without one, whatever it waited for;
//! 4. a claim that speaks of a block without position is held until that block has one; a second,
//!    different one makes the block ambiguous;
//! 5. a claim below an ambiguous block says nothing that can be trusted.

use super::apply::Writer;
use super::held::{Held, HeldSalt};
use super::lanes::Lane;
use super::node::{NodeId, Place};
use super::rank::{Anchor, Entry, Position, Taken, entry_hash};
use super::salt::SaltId;
use crate::event::ResidencyDomain;
use crate::id::{BlockHash, LocalHash};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

/// Where an event says a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It does not say.
    None,
    /// Below a block whose own place is contradicted.
    Contradicted,
    /// Below a block that has no position.
    Below { parent: BlockHash, local: LocalHash, salt: HeldSalt },
    /// Here.
    At {
        parent_hash: Option<BlockHash>,
        parent: Option<NodeId>,
        local: LocalHash,
        salt: Option<SaltId>,
    },
}

impl Writer<'_> {
    /// Adds a copy of one block and returns what it says to the block after it.
    pub(super) fn store_block(
        &mut self,
        hash: BlockHash,
        lane: Lane,
        domain: ResidencyDomain,
        claim: Claim,
    ) -> Anchor {
        let rank = &mut *self.rank;
        let found = rank.entries.entry(
            entry_hash(hash),
            |entry| entry.hash == hash,
            |entry| entry_hash(entry.hash),
        );
        let entry = match found {
            TableEntry::Occupied(known) => {
                let entry = known.into_mut();
                rank.tally.remembered -= u64::from(!entry.is_resident());
                entry
            }
            TableEntry::Vacant(_) if *self.entries >= self.entry_cap => {
                self.applied.capacity += 1;
                return Anchor::Unknown;
            }
            TableEntry::Vacant(vacant) => {
                *self.entries += 1;
                vacant.insert(Entry::new(hash)).into_mut()
            }
        };
        let before = entry.lanes();
        if entry.put(lane, domain, rank.duplicates) {
            self.applied.stored += 1;
            *rank.tally.slots_of(domain) += 1;
        } else {
            self.applied.duplicates += 1;
        }
        let after = entry.lanes();
        if before != after {
            rank.tally.change(rank.lanes.by_tier(), before, after);
            if let Position::At(node) = entry.position {
                self.nodes.set_lanes(node, self.number, before, after);
            }
        }
        if claim == Claim::None {
            return entry.position.into();
        }
        let position = entry.position;
        self.consider(hash, position, claim)
    }

    /// Weighs a claim against what is known of a resident block.
    fn consider(&mut self, hash: BlockHash, position: Position, claim: Claim) -> Anchor {
        match (position, claim) {
            (Position::At(node), Claim::At { parent, local, salt, .. }) => {
                if self.nodes.is_at(node, Place { parent, local, salt }) {
                    return Anchor::Node(node);
                }
                self.contradict(hash)
            }
            (
                Position::Unplaced | Position::Held(_),
                Claim::At { parent_hash, parent, local, salt },
            ) => self.place(hash, parent_hash, Place { parent, local, salt }),
            (Position::Held(id), Claim::Below { parent, local, salt }) => {
                if self.rank.held.get(id) == (Held { hash, parent, local, salt }) {
                    return Anchor::Unknown;
                }
                self.contradict(hash)
            }
            (Position::Unplaced, Claim::Below { parent, local, salt }) => {
                self.hold(Held { hash, parent, local, salt });
                Anchor::Unknown
            }
            (
                position @ Position::At(_),
                Claim::None | Claim::Contradicted | Claim::Below { .. },
            )
            | (
                position @ (Position::Unplaced | Position::Held(_) | Position::Ambiguous(_)),
                Claim::None,
            ) => position.into(),
            (position @ (Position::Unplaced | Position::Held(_)), Claim::Contradicted)
            | (
                position @ Position::Ambiguous(_),
                Claim::Contradicted | Claim::Below { .. } | Claim::At { .. },
            ) => {
                self.applied.conflicts += 1;
                position.into()
            }
        }
    }

    fn hold(&mut self, held: Held) {
        let Some(id) = self.rank.held.hold(held, self.limits.held_aside_blocks) else {
            self.applied.not_held += 1;
            return;
        };
        self.applied.held_aside += 1;
        if let HeldSalt::Own(salt) = held.salt {
            self.domain.salts.share(salt);
        }
        self.set_position(held.hash, Position::Held(id));
    }

    /// Gives up a resident block's position, for as long as it has copies.
    fn contradict(&mut self, hash: BlockHash) -> Anchor {
        self.applied.conflicts += 1;
        let entry = self.rank.get(hash).expect("only a resident block is contradicted");
        let lanes = entry.lanes();
        match entry.position {
            Position::At(node) => {
                self.nodes.set_lanes(node, self.number, lanes, 0);
                self.set_position(hash, Position::Ambiguous(Some(node)));
            }
            Position::Held(id) => {
                self.rank.held.cancel(id, self.domain);
                self.set_position(hash, Position::Ambiguous(None));
            }
            Position::Unplaced => self.set_position(hash, Position::Ambiguous(None)),
            Position::Ambiguous(_) => {}
        }
        Anchor::Ambiguous
    }

    fn set_position(&mut self, hash: BlockHash, position: Position) {
        let entry = self.rank.get_mut(hash).expect("only entries have positions");
        entry.position = position;
    }

    /// Places a resident block, and then every block that waited for it.
    fn place(&mut self, hash: BlockHash, parent_hash: Option<BlockHash>, place: Place) -> Anchor {
        let anchor = self.place_one(hash, parent_hash, place);
        if !self.rank.held.is_empty() {
            self.scratch.placed.push(hash);
            self.adopt();
        }
        anchor
    }

    /// Places one resident block that has no position, and cancels what it waited for.
    fn place_one(
        &mut self,
        hash: BlockHash,
        parent_hash: Option<BlockHash>,
        place: Place,
    ) -> Anchor {
        let Some(node) = self.nodes.attach(self.domain, place) else {
            return self.contradict(hash);
        };
        let entry = self.rank.get_mut(hash).expect("only a resident block is placed");
        let lanes = entry.lanes();
        let old = entry.position;
        entry.position = Position::At(node);
        entry.parent = parent_hash.unwrap_or_default();
        self.nodes.set_lanes(node, self.number, 0, lanes);
        if let Position::Held(id) = old {
            self.rank.held.cancel(id, self.domain);
        }
        if let Some(parent) = parent_hash {
            let above = self.rank.get_mut(parent).expect("a placed parent is an entry");
            above.children += 1;
        }
        Anchor::Node(node)
    }

    /// Places what waited for the blocks in `scratch.placed`, and what waited for those, and so on.
    /// Each step takes one block out of the table, so the work is bounded by what is held.
    fn adopt(&mut self) {
        while let Some(&parent) = self.scratch.placed.last() {
            let Some(id) = self.rank.held.waiting_for(parent) else {
                self.scratch.placed.pop();
                continue;
            };
            let Some(Position::At(node)) = self.rank.get(parent).map(|entry| entry.position) else {
                self.scratch.placed.pop();
                continue;
            };
            let held = self.rank.held.get(id);
            let above = self.nodes.get(node).salt;
            let salt = match held.salt {
                HeldSalt::Own(own) => Some(own),
                HeldSalt::Chain => above,
                HeldSalt::NoneOrLost if above.is_none() => None,
                HeldSalt::NoneOrLost => {
                    self.applied.unsalted += 1;
                    self.rank.held.cancel(id, self.domain);
                    self.set_position(held.hash, Position::Unplaced);
                    continue;
                }
            };
            let place = Place { parent: Some(node), local: held.local, salt };
            if let Anchor::Node(_) = self.place_one(held.hash, Some(parent), place) {
                self.applied.adopted += 1;
                self.scratch.placed.push(held.hash);
            }
        }
    }

    /// Takes a copy of one block; false when there is none.
    pub(super) fn remove_block(
        &mut self,
        hash: BlockHash,
        lane: Lane,
        domain: ResidencyDomain,
    ) -> bool {
        let duplicates = self.rank.duplicates;
        let Some(entry) = self.rank.get_mut(hash) else {
            return false;
        };
        let before = entry.lanes();
        match entry.take(lane, domain, duplicates) {
            Taken::Nothing => return false,
            Taken::Copy => return true,
            Taken::Slot => {}
        }
        *self.rank.tally.slots_of(domain) -= 1;
        self.lanes_lost(hash, before);
        true
    }

    /// Takes all copies of one block in `domain`.
    pub(super) fn clear_block(&mut self, hash: BlockHash, domain: ResidencyDomain) {
        let Some(entry) = self.rank.get_mut(hash) else {
            return;
        };
        let before = entry.lanes();
        let slots = entry.slots.len();
        entry.slots.retain(|slot| slot.domain != domain);
        let gone = (slots - entry.slots.len()) as u64;
        *self.rank.tally.slots_of(domain) -= gone;
        self.lanes_lost(hash, before);
    }

    /// Follows up on an entry that has lost slots and had lanes `before`.
    fn lanes_lost(&mut self, hash: BlockHash, before: u64) {
        let entry = self.rank.get_mut(hash).expect("it has just lost a slot");
        let (after, position) = (entry.lanes(), entry.position);
        let (resident, children) = (entry.is_resident(), entry.children);
        self.rank.tally.change(self.rank.lanes.by_tier(), before, after);
        if let Position::At(node) = position {
            self.nodes.set_lanes(node, self.number, before, after);
        }
        if resident {
            return;
        }
        match position.node() {
            Some(node) if children > 0 => {
                self.set_position(hash, Position::At(node));
                self.rank.tally.remembered += 1;
            }
            Some(_) | None => self.drop_entry(hash),
        }
    }

    /// Drops an entry that has neither copies nor blocks below, and with it every remembered
    /// ancestor that was kept for it alone.
    fn drop_entry(&mut self, mut hash: BlockHash) {
        loop {
            let found = self.rank.entries.find_entry(entry_hash(hash), |entry| entry.hash == hash);
            let Ok(found) = found else {
                return;
            };
            let (entry, _) = found.remove();
            *self.entries -= 1;
            if let Position::Held(id) = entry.position {
                self.rank.held.cancel(id, self.domain);
            }
            let Some(node) = entry.position.node() else {
                break;
            };
            let has_parent = self.nodes.get(node).parent.is_some();
            self.nodes.detach(self.domain, node);
            if !has_parent {
                break;
            }
            let parent = self.rank.get_mut(entry.parent).expect("a placed parent is an entry");
            parent.children -= 1;
            if parent.is_resident() || parent.children > 0 {
                break;
            }
            self.rank.tally.remembered -= 1;
            hash = entry.parent;
        }
        super::node::shrink(&mut self.rank.entries, |entry| entry_hash(entry.hash));
    }

    /// Drops every entry of the rank.
    pub(super) fn wipe(&mut self) {
        let mut entries = core::mem::replace(&mut self.rank.entries, HashTable::new());
        let capacity = entries.capacity();
        *self.entries -= entries.len() as u64;
        for entry in entries.drain() {
            match entry.position {
                Position::Unplaced => {}
                Position::Held(id) => self.rank.held.cancel(id, self.domain),
                Position::At(node) => {
                    self.nodes.set_lanes(node, self.number, entry.lanes(), 0);
                    self.nodes.detach(self.domain, node);
                }
                Position::Ambiguous(node) => {
                    if let Some(node) = node {
                        self.nodes.detach(self.domain, node);
                    }
                }
            }
        }
        // A small table is used again; a large one is given back, or the next wipe would cost what
        // it once held.
        if capacity <= 1_024 {
            self.rank.entries = entries;
        }
        self.rank.tally = super::rank::Tally::default();
    }
}
