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
use super::entries::{Entries, EntryId, Found};
use super::held::{Held, HeldSalt};
use super::lanes::Lane;
use super::node::Place;
use super::rank::{Anchor, Position, Taken, Tally};
use crate::event::ResidencyDomain;
use crate::id::{BlockHash, LocalHash};

/// Where an event says a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It does not say.
    None,
    /// Below a block whose own place is contradicted.
    Contradicted,
    /// Below a block that has no position.
    Below { parent: BlockHash, local: LocalHash, salt: HeldSalt },
    /// Here, under the entry `above` unless it is the first of its chain.
    At { above: Option<EntryId>, place: Place },
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
        let id = match rank.entries.find_or_add(hash, *self.entries < self.entry_cap) {
            Found::Known(id) => {
                let is_resident = rank.entries.get(id).is_resident();
                rank.tally.remembered -= u64::from(!is_resident);
                id
            }
            Found::Added(id) => {
                *self.entries += 1;
                id
            }
            Found::Refused => {
                self.applied.capacity += 1;
                return Anchor::Unknown;
            }
        };
        let entry = rank.entries.get_mut(id);
        let before = entry.lanes();
        if entry.put(lane, domain, rank.duplicates) {
            self.applied.stored += 1;
            *rank.tally.slots_of(domain) += 1;
        } else {
            self.applied.duplicates += 1;
        }
        let after = entry.lanes();
        let position = entry.position;
        if before != after {
            rank.tally.change(rank.lanes.by_tier(), before, after);
            if let Position::At(node) = position {
                self.nodes.set_lanes(node, self.number, before, after);
            }
        }
        self.consider(id, position, claim)
    }

    /// Weighs a claim against what is known of a resident block.
    fn consider(&mut self, id: EntryId, position: Position, claim: Claim) -> Anchor {
        match (position, claim) {
            (Position::Unplaced | Position::Held(_), Claim::At { above, place }) => {
                let anchor = self.seat(id, above, place);
                if !self.rank.held.is_empty() {
                    self.scratch.placed.push(id);
                    self.adopt();
                }
                anchor
            }
            (Position::At(node), Claim::At { place, .. }) => {
                if self.nodes.is_at(node, place) {
                    return Anchor::Under(id, node);
                }
                self.contradict(id)
            }
            (Position::Held(held), Claim::Below { parent, local, salt }) => {
                let hash = self.rank.entries.get(id).hash;
                if self.rank.held.get(held) == (Held { hash, parent, local, salt }) {
                    return Anchor::Unknown;
                }
                self.contradict(id)
            }
            (Position::Unplaced, Claim::Below { parent, local, salt }) => {
                self.hold(id, parent, local, salt);
                Anchor::Unknown
            }
            (Position::At(_), Claim::None | Claim::Contradicted | Claim::Below { .. })
            | (Position::Unplaced | Position::Held(_) | Position::Ambiguous(_), Claim::None) => {
                Anchor::of(id, position)
            }
            (Position::Unplaced | Position::Held(_), Claim::Contradicted)
            | (
                Position::Ambiguous(_),
                Claim::Contradicted | Claim::Below { .. } | Claim::At { .. },
            ) => {
                self.applied.conflicts += 1;
                Anchor::of(id, position)
            }
        }
    }

    fn hold(&mut self, id: EntryId, parent: BlockHash, local: LocalHash, salt: HeldSalt) {
        let entry = self.rank.entries.get_mut(id);
        let held = Held { hash: entry.hash, parent, local, salt };
        let Some(place) = self.rank.held.hold(held, self.limits.held_aside_blocks) else {
            self.applied.not_held += 1;
            return;
        };
        entry.position = Position::Held(place);
        self.applied.held_aside += 1;
        if let HeldSalt::Own(salt) = salt {
            self.domain.salts.share(salt);
        }
    }

    /// Gives up a resident block's position, for as long as it has copies.
    fn contradict(&mut self, id: EntryId) -> Anchor {
        self.applied.conflicts += 1;
        let entry = self.rank.entries.get_mut(id);
        let old = entry.position;
        entry.position = Position::Ambiguous(old.node());
        match old {
            Position::At(node) => self.nodes.set_lanes(node, self.number, entry.lanes(), 0),
            Position::Held(held) => self.rank.held.cancel(held, self.domain),
            Position::Unplaced | Position::Ambiguous(_) => {}
        }
        Anchor::Ambiguous
    }

    /// Attaches a resident block without position to its node, and cancels what it waited for. When
    /// the place cannot be told from another one, the block is ambiguous.
    fn seat(&mut self, id: EntryId, above: Option<EntryId>, place: Place) -> Anchor {
        let Some(node) = self.nodes.attach(self.domain, place) else {
            return self.contradict(id);
        };
        let entry = self.rank.entries.get_mut(id);
        let old = entry.position;
        entry.position = Position::At(node);
        entry.parent = above;
        self.nodes.set_lanes(node, self.number, 0, entry.lanes());
        if let Position::Held(held) = old {
            self.rank.held.cancel(held, self.domain);
        }
        if let Some(above) = above {
            self.rank.entries.get_mut(above).children += 1;
        }
        Anchor::Under(id, node)
    }

    /// Places what waited for the blocks in `scratch.placed`, and what waited for those, and so on.
    /// Each step takes one block out of the table, so the work is bounded by what is held.
    fn adopt(&mut self) {
        while let Some(&above) = self.scratch.placed.last() {
            let parent = self.rank.entries.get(above);
            let (Position::At(node), Some(waiting)) =
                (parent.position, self.rank.held.waiting_for(parent.hash))
            else {
                self.scratch.placed.pop();
                continue;
            };
            let held = self.rank.held.get(waiting);
            let id = self.rank.entries.find(held.hash).expect("a held block is resident");
            let salt = self.nodes.get(node).salt;
            let salt = match held.salt {
                HeldSalt::Own(own) => Some(own),
                HeldSalt::Chain => salt,
                HeldSalt::NoneOrLost if salt.is_none() => None,
                HeldSalt::NoneOrLost => {
                    self.applied.unsalted += 1;
                    self.rank.held.cancel(waiting, self.domain);
                    self.rank.entries.get_mut(id).position = Position::Unplaced;
                    continue;
                }
            };
            let place = Place { parent: Some(node), local: held.local, salt };
            if let Anchor::Under(..) = self.seat(id, Some(above), place) {
                self.applied.adopted += 1;
                self.scratch.placed.push(id);
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
        let Some(id) = self.rank.entries.find(hash) else {
            return false;
        };
        let entry = self.rank.entries.get_mut(id);
        let before = entry.lanes();
        match entry.take(lane, domain, self.rank.duplicates) {
            Taken::Nothing => return false,
            Taken::Copy => return true,
            Taken::Slot => {}
        }
        *self.rank.tally.slots_of(domain) -= 1;
        self.lanes_lost(id, before);
        true
    }

    /// Takes all copies of one block in `domain`.
    pub(super) fn clear_block(&mut self, id: EntryId, domain: ResidencyDomain) {
        let entry = self.rank.entries.get_mut(id);
        let before = entry.lanes();
        let slots = entry.slots.len();
        entry.slots.retain(|slot| slot.domain != domain);
        let gone = (slots - entry.slots.len()) as u64;
        *self.rank.tally.slots_of(domain) -= gone;
        self.lanes_lost(id, before);
    }

    /// Follows up on an entry that has lost slots and had lanes `before`.
    fn lanes_lost(&mut self, id: EntryId, before: u64) {
        let entry = self.rank.entries.get_mut(id);
        let after = entry.lanes();
        self.rank.tally.change(self.rank.lanes.by_tier(), before, after);
        if let Position::At(node) = entry.position {
            self.nodes.set_lanes(node, self.number, before, after);
        }
        if entry.is_resident() {
            return;
        }
        match entry.position.node() {
            Some(node) if entry.children > 0 => {
                entry.position = Position::At(node);
                self.rank.tally.remembered += 1;
            }
            Some(_) | None => self.drop_entry(id),
        }
    }

    /// Drops an entry that has neither copies nor blocks below, and with it every remembered
    /// ancestor that was kept for it alone.
    fn drop_entry(&mut self, mut id: EntryId) {
        loop {
            let entry = self.rank.entries.get(id);
            let (position, above) = (entry.position, entry.parent);
            if let Position::Held(held) = position {
                self.rank.held.cancel(held, self.domain);
            }
            if let Some(node) = position.node() {
                self.nodes.detach(self.domain, node);
            }
            self.rank.entries.remove(id);
            *self.entries -= 1;
            let Some(above) = above else {
                return;
            };
            let parent = self.rank.entries.get_mut(above);
            parent.children -= 1;
            if parent.is_resident() || parent.children > 0 {
                return;
            }
            self.rank.tally.remembered -= 1;
            id = above;
        }
    }

    /// Drops every entry of the rank, and the memory they had: or the next wipe would cost what the
    /// rank once held.
    pub(super) fn wipe(&mut self) {
        let entries: Entries = core::mem::take(&mut self.rank.entries);
        *self.entries -= entries.len() as u64;
        for entry in entries.iter() {
            match entry.position {
                Position::Unplaced => {}
                Position::Held(held) => self.rank.held.cancel(held, self.domain),
                Position::At(node) => {
                    self.nodes.set_lanes(node, self.number, entry.lanes(), 0);
                    self.nodes.detach(self.domain, node);
                }
                Position::Ambiguous(Some(node)) => self.nodes.detach(self.domain, node),
                Position::Ambiguous(None) => {}
            }
        }
        self.rank.tally = Tally::default();
    }
}
