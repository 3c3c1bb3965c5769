//! Events to changes of one rank.
//!
//! A store is taken block by block, each with the block before it as parent, whatever message or
//! event that one came in. So it makes no difference how a chain was cut into events.

use super::applied::Applied;
use super::domain::Domain;
use super::entries::EntryId;
use super::held::HeldSalt;
use super::lanes::Lane;
use super::limits::{IndexLimits, ResetScope};
use super::node::{Nodes, Place};
use super::place::Claim;
use super::rank::{Anchor, Rank};
use super::salt::SaltId;
use crate::event::{EventKind, EventRecord, EventView, Placement, ResidencyDomain, SkipReason};
use crate::id::{BlockHash, LocalHash};
use crate::wire;
use alloc::vec::Vec;

/// Buffers that calls use again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Local hashes of the event in work, hashed again under its parent's salt.
    pub(super) locals: Vec<LocalHash>,
    /// Blocks that got a position and may have others waiting for them.
    pub(super) placed: Vec<EntryId>,
    /// Blocks that a clear takes.
    pub(super) cleared: Vec<BlockHash>,
}

/// One rank and what it may change, for the length of one call.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) number: u32,
    pub(super) rank: &'a mut Rank,
    pub(super) domain: &'a mut Domain,
    pub(super) nodes: &'a mut Nodes,
    pub(super) scratch: &'a mut Scratch,
    /// Entries of all ranks.
    pub(super) entries: &'a mut u64,
    /// What `entries` may not exceed.
    pub(super) entry_cap: u64,
    pub(super) limits: IndexLimits,
    pub(super) applied: &'a mut Applied,
}

/// A store's salt, as far as it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainSalt {
    /// The event names it.
    Own(SaltId),
    /// It will be that of the first block with a position above one of the event's.
    Open,
    /// It is that of a chain; `rehashed` when the local hashes are in the scratch buffer.
    Inherited { salt: Option<SaltId>, rehashed: bool },
}

/// A store in work.
struct Chain<'a> {
    view: EventView<'a>,
    record: &'a EventRecord,
    locals: &'a [LocalHash],
    salt: ChainSalt,
}

impl Writer<'_> {
    /// Applies the events of one batch; `first` is the number of its first record.
    pub(super) fn apply(&mut self, view: EventView<'_>, first: u64) {
        for (number, record) in (first..).zip(&view.batch.records) {
            if let Some(reason) = record.skip {
                self.applied.skip(reason);
                continue;
            }
            match record.kind {
                EventKind::Stored => self.store(view, record, number),
                EventKind::Removed => self.remove(view, record),
                EventKind::Cleared => self.applied.cleared += self.clear(record.domain),
                EventKind::Unreadable => self.applied.skip(SkipReason::UnknownEvent),
            }
        }
    }

    fn store(&mut self, view: EventView<'_>, record: &EventRecord, number: u64) {
        let hashes = view.hashes(record);
        let blocks = hashes.len() as u64;
        let group = record.group.unwrap_or(0);
        if let Some(kind) = record.spec
            && !self.rank.lanes.teach(group, kind)
        {
            self.applied.over_groups += 1;
        }
        let anchor = self.anchor(record.parent, number);
        if hashes.is_empty() {
            return;
        }
        let Some(lane) = self.rank.lanes.open(record.tier, group, record.domain) else {
            self.applied.over_groups += blocks;
            return;
        };
        let locals = view.locals(record);
        let placement = match record.placement {
            Placement::Positioned if locals.len() != hashes.len() => Placement::TokenCountMismatch,
            placement @ (Placement::Positioned
            | Placement::TokenLess
            | Placement::BlockSizeMismatch
            | Placement::TokenCountMismatch
            | Placement::RepeatedHash
            | Placement::EagleMismatch) => placement,
        };
        let salt = view.text(record.salt);
        let too_long = salt.is_some_and(|salt| salt.len() > self.limits.salt_bytes as usize);
        if placement != Placement::Positioned || too_long {
            self.applied.unplace(placement, blocks);
            if placement == Placement::Positioned {
                self.applied.long_salts += blocks;
            }
            for &hash in hashes {
                self.store_block(hash, lane, record.domain, Claim::None);
            }
            return;
        }
        let own = salt.map(|text| self.domain.salts.intern(text));
        let salt = own.map_or(ChainSalt::Open, ChainSalt::Own);
        self.store_chain(&mut Chain { view, record, locals, salt }, hashes, lane, anchor);
        if let Some(own) = own {
            self.domain.salts.release(own);
        }
    }

    /// What the parent says, with an orphan counted.
    fn anchor(&mut self, parent: Option<BlockHash>, number: u64) -> Anchor {
        let Some(parent) = parent else {
            return Anchor::Root;
        };
        let found = self.rank.entries.find(parent);
        let entry = found.map(|id| self.rank.entries.get(id));
        if entry.is_none_or(|entry| !entry.is_resident()) {
            self.applied.orphans += 1;
            self.applied.first_orphan.get_or_insert(number);
            self.applied.remembered_parents += u64::from(entry.is_some());
        }
        let known = found.zip(entry.map(|entry| entry.position));
        known.map_or(Anchor::Unknown, |(id, position)| Anchor::of(id, position))
    }

    fn store_chain(
        &mut self,
        chain: &mut Chain<'_>,
        hashes: &[BlockHash],
        lane: Lane,
        mut anchor: Anchor,
    ) {
        let mut parent = chain.record.parent;
        for (at, &hash) in hashes.iter().enumerate() {
            let claim = self.claim(chain, at, parent, anchor);
            anchor = self.store_block(hash, lane, chain.record.domain, claim);
            parent = Some(hash);
        }
    }

    /// Where the event says that its block `at` is.
    fn claim(
        &mut self,
        chain: &mut Chain<'_>,
        at: usize,
        parent: Option<BlockHash>,
        anchor: Anchor,
    ) -> Claim {
        let (above, node) = match anchor {
            Anchor::Root => (None, None),
            Anchor::Under(entry, node) => (Some(entry), Some(node)),
            Anchor::Ambiguous => return Claim::Contradicted,
            Anchor::Unknown => {
                let Some(parent) = parent else {
                    return Claim::None;
                };
                let salt = match chain.salt {
                    ChainSalt::Own(salt) => HeldSalt::Own(salt),
                    ChainSalt::Open | ChainSalt::Inherited { .. } => {
                        if chain.view.bytes(chain.record.tokens).is_empty() {
                            HeldSalt::Chain
                        } else {
                            HeldSalt::NoneOrLost
                        }
                    }
                };
                return Claim::Below { parent, local: chain.locals[at], salt };
            }
        };
        let salt = node.and_then(|node| self.nodes.get(node).salt);
        match self.settle(chain, salt) {
            Some((salt, rehashed)) => {
                let local = if rehashed { self.scratch.locals[at] } else { chain.locals[at] };
                Claim::At { above, place: Place { parent: node, local, salt } }
            }
            None => Claim::Contradicted,
        }
    }

    /// The salt of a block of `chain` below a block with salt `above`, and whether the local hashes
    /// are the ones hashed again. `None`: the event's blocks would hang in chains of different salt.
    fn settle(
        &mut self,
        chain: &mut Chain<'_>,
        above: Option<SaltId>,
    ) -> Option<(Option<SaltId>, bool)> {
        match chain.salt {
            ChainSalt::Own(own) => Some((Some(own), false)),
            ChainSalt::Inherited { salt, rehashed } if salt == above => Some((salt, rehashed)),
            ChainSalt::Inherited { .. } => None,
            ChainSalt::Open => {
                let rehashed = above.is_some_and(|salt| {
                    let text = self.domain.salts.text(salt);
                    let out = &mut self.scratch.locals;
                    wire::rehash(chain.view, chain.record, &self.rank.identity, text, out)
                        && out.len() == chain.locals.len()
                });
                chain.salt = ChainSalt::Inherited { salt: above, rehashed };
                Some((above, rehashed))
            }
        }
    }

    fn remove(&mut self, view: EventView<'_>, record: &EventRecord) {
        let hashes = view.hashes(record);
        let Some(lane) = self.rank.lanes.find(record.tier, record.group.unwrap_or(0)) else {
            self.applied.unknown_removed += hashes.len() as u64;
            return;
        };
        for &hash in hashes {
            if self.remove_block(hash, lane, record.domain) {
                self.applied.removed += 1;
            } else {
                self.applied.unknown_removed += 1;
            }
        }
    }

    /// Takes every block of `domain` from the rank, in all tiers and groups, and returns how many
    /// slots that were. Costs nothing for a rank that has none (P16).
    pub(super) fn clear(&mut self, domain: ResidencyDomain) -> u64 {
        let slots = *self.rank.tally.slots_of(domain);
        if slots == 0 {
            return 0;
        }
        if self.rank.tally.slots.iter().sum::<u64>() == slots {
            self.wipe();
            return slots;
        }
        let mut hashes = core::mem::take(&mut self.scratch.cleared);
        hashes.extend(self.rank.entries.iter().filter_map(|entry| {
            entry.slots.iter().any(|slot| slot.domain == domain).then_some(entry.hash)
        }));
        for hash in hashes.drain(..) {
            if let Some(id) = self.rank.entries.find(hash) {
                self.clear_block(id, domain);
            }
        }
        self.scratch.cleared = hashes;
        slots
    }

    /// Empties the rank as far as `scope` says.
    pub(super) fn reset(&mut self, scope: ResetScope) {
        if scope == ResetScope::All {
            self.wipe();
        }
        for &domain in scope.domains() {
            self.clear(domain);
            self.rank.lanes.forget_use(domain);
        }
        match scope {
            ResetScope::All | ResetScope::Worker => self.rank.lanes.forget_kinds(),
            ResetScope::CacheOwner => {}
        }
    }
}
