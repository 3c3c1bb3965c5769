//! What one rank holds: its entries by engine hash.
//!
//! An entry is a block hash of one rank, with the copies it has per tier, group and residency
//! domain, and its position. Invariants:
//! * an entry has copies (it is *resident*), or placed blocks below it that still need to know where
//!   they hang (it is *remembered*); else it is not in the table;
//! * an entry has one node for life: its position may become ambiguous, it never moves;
//! * `children` counts the entries of this rank placed under this one, so every placed
//!   block's ancestors are entries of the same rank. A rank never depends on another's blocks;
//! * the node's holder list has this entry's lanes while it is placed and resident, else nothing;
//! * the tallies equal what the table says.

use super::domain::DomainId;
use super::entries::{Entries, EntryId};
use super::held::{HeldAside, HeldId};
use super::lanes::{Lane, Lanes};
use super::limits::Duplicates;
use super::node::NodeId;
use crate::event::ResidencyDomain;
use crate::id::{BlockHash, RankKey};
use crate::wire::SourceIdentity;
use smallvec::SmallVec;

/// Where an entry is in its domain's tree.
///
/// ```text
/// Unplaced ──parent has no position──▶ Held ──parent gets one──▶ At
///    └────────────parent has a position────────────────────────▶ At
/// Held, At ──a contradicting claim──▶ Ambiguous ──last copy gone, blocks below──▶ At
/// ```
/// Any of them ends when the last copy goes and nothing is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// No event has said where it is.
    Unplaced,
    /// An event has said it in terms of a block without position.
    Held(HeldId),
    /// Known.
    At(NodeId),
    /// Events contradict each other. The node it was at, if any, still carries what is below it.
    Ambiguous(Option<NodeId>),
}

impl Position {
    /// The node the entry is attached to.
    pub(super) fn node(self) -> Option<NodeId> {
        match self {
            Self::At(node) => Some(node),
            Self::Ambiguous(node) => node,
            Self::Unplaced | Self::Held(_) => None,
        }
    }
}

/// What a block's parent says of the block's own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The block is the first of its chain.
    Root,
    /// The parent is this entry, at this node.
    Under(EntryId, NodeId),
    /// The parent's place is contradicted.
    Ambiguous,
    /// The parent has no place.
    Unknown,
}

impl Anchor {
    /// What an entry with this position says to the block after it.
    pub(super) fn of(id: EntryId, position: Position) -> Self {
        match position {
            Position::At(node) => Self::Under(id, node),
            Position::Ambiguous(_) => Self::Ambiguous,
            Position::Unplaced | Position::Held(_) => Self::Unknown,
        }
    }
}

/// Copies of a block in one lane and residency domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) lane: Lane,
    pub(super) domain: ResidencyDomain,
    pub(super) copies: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) hash: BlockHash,
    /// The entry it was placed under, if it has a node and is not the first of its chain.
    pub(super) parent: Option<EntryId>,
    pub(super) children: u32,
    pub(super) position: Position,
    pub(super) slots: SmallVec<[Slot; 2]>,
}

/// What became of the one copy taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// There was none.
    Nothing,
    /// Others are left in the same slot.
    Copy,
    /// It was the slot's last.
    Slot,
}

impl Entry {
    pub(super) fn new(hash: BlockHash) -> Self {
        Self {
            hash,
            parent: None,
            children: 0,
            position: Position::Unplaced,
            slots: SmallVec::new(),
        }
    }

    pub(super) fn is_resident(&self) -> bool {
        !self.slots.is_empty()
    }

    /// The lanes it has copies in.
    pub(super) fn lanes(&self) -> u64 {
        self.slots.iter().fold(0, |lanes, slot| lanes | slot.lane.bit())
    }

    /// Adds a copy; true when the slot is new.
    pub(super) fn put(
        &mut self,
        lane: Lane,
        domain: ResidencyDomain,
        duplicates: Duplicates,
    ) -> bool {
        let known = self.slots.iter_mut().find(|slot| slot.lane == lane && slot.domain == domain);
        let Some(slot) = known else {
            self.slots.push(Slot { lane, domain, copies: 1 });
            return true;
        };
        match duplicates {
            Duplicates::Counted => slot.copies = slot.copies.saturating_add(1),
            Duplicates::Set => {}
        }
        false
    }

    /// Takes a copy, or all of the slot's when repeated stores are one.
    pub(super) fn take(
        &mut self,
        lane: Lane,
        domain: ResidencyDomain,
        duplicates: Duplicates,
    ) -> Taken {
        let known = self.slots.iter().position(|slot| slot.lane == lane && slot.domain == domain);
        let Some(at) = known else {
            return Taken::Nothing;
        };
        let slot = &mut self.slots[at];
        match duplicates {
            Duplicates::Counted if slot.copies > 1 => {
                slot.copies -= 1;
                Taken::Copy
            }
            Duplicates::Counted | Duplicates::Set => {
                self.slots.swap_remove(at);
                Taken::Slot
            }
        }
    }
}

/// One rank.
#[derive(Clone, Debug)]
pub(super) struct Rank {
    pub(super) key: RankKey,
    pub(super) domain: DomainId,
    pub(super) identity: SourceIdentity,
    pub(super) duplicates: Duplicates,
    pub(super) entries: Entries,
    pub(super) held: HeldAside,
    pub(super) lanes: Lanes,
    pub(super) tally: Tally,
}

/// Sums over a rank's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Slots per residency domain.
    pub(super) slots: [u64; 2],
    /// Blocks per tier, each once.
    pub(super) blocks: [u64; 4],
    /// Entries without copies.
    pub(super) remembered: u64,
}

impl Tally {
    /// Slots of `domain`.
    pub(super) fn slots_of(&mut self, domain: ResidencyDomain) -> &mut u64 {
        match domain {
            ResidencyDomain::Worker => &mut self.slots[0],
            ResidencyDomain::CacheOwner => &mut self.slots[1],
        }
    }

    /// An entry's lanes change.
    pub(super) fn change(&mut self, by_tier: [u64; 4], before: u64, after: u64) {
        for (blocks, lanes) in self.blocks.iter_mut().zip(by_tier) {
            match (before & lanes != 0, after & lanes != 0) {
                (false, true) => *blocks += 1,
                (true, false) => *blocks -= 1,
                (false, false) | (true, true) => {}
            }
        }
    }
}

impl Rank {
    pub(super) fn new(
        key: RankKey,
        domain: DomainId,
        identity: SourceIdentity,
        duplicates: Duplicates,
    ) -> Self {
        Self {
            key,
            domain,
            identity,
            duplicates,
            entries: Entries::default(),
            held: HeldAside::default(),
            lanes: Lanes::default(),
            tally: Tally::default(),
        }
    }

    pub(super) fn get(&self, hash: BlockHash) -> Option<&Entry> {
        self.entries.find(hash).map(|id| self.entries.get(id))
    }
}
