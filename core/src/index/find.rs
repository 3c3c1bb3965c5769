//! Who holds the longest prefix.
//!
//! Per rank: from block 0 the device tier until its first miss, from there the host tier until its
//! first miss, then disk, then external; never back up. Residency domains are united. A walk down
//! the tree stops at the first block that is nowhere in the domain, or when every rank has missed.

use super::Index;
use super::domain::DomainId;
use super::node::{Holder, NodeId};
use crate::event::Tier;
use crate::id::{BlockHash, LocalHash, RankKey, SequenceHash};
use alloc::vec::Vec;

/// What one rank holds of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Match {
    /// The rank.
    pub rank: RankKey,
    /// Blocks the walk took from each tier, in the order of [`Tier::ALL`]; not cumulative.
    pub matched: [u32; 4],
}

impl Match {
    /// Blocks of the prefix that the rank can serve from all its tiers together.
    pub fn total(&self) -> u32 {
        self.matched.iter().sum()
    }
}

/// Working memory of [`Index::find`] and [`Index::find_sequence`]; one per caller, used again and
/// again. Grows with the number of ranks.
#[derive(Clone, Debug, Default)]
pub struct FindScratch {
    ranks: Vec<Walking>,
    /// By rank number, where the rank is in `ranks`; what is left of other queries is recognised by
    /// the number there.
    at: Vec<u32>,
}

/// A rank that holds the first block.
#[derive(Clone, Copy, Debug, Default)]
struct Walking {
    /// Number of the rank, as in the holder lists.
    number: u64,
    required: [u64; 4],
    walk: Walk,
    /// Blocks of the query that are in `walk`. What came after was held as the one before.
    counted: u32,
}

/// One rank's way through the tiers.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    tier: usize,
    matched: [u32; 4],
}

impl Walk {
    /// Whether the rank has missed in its last tier.
    fn is_over(&self) -> bool {
        self.tier == Tier::ALL.len()
    }

    /// Takes the next block, of which the rank holds `lanes`; false when no tier is left.
    fn advance(&mut self, required: &[u64; 4], lanes: u64) -> bool {
        while let Some(&needed) = required.get(self.tier) {
            if needed != 0 && lanes & needed == needed {
                self.matched[self.tier] += 1;
                return true;
            }
            self.tier += 1;
        }
        false
    }
}

impl Index {
    /// Finds what every rank of `domain` holds of the chain of blocks with these local hashes.
    ///
    /// `out` is cleared, then gets one [`Match`] for each rank that holds at least the first block
    /// in some tier, ascending by rank. A domain that is not there gives none. Time is linear in the
    /// blocks that anybody holds, so the caller caps the length of a query by taste, not for safety.
    pub fn find(
        &self,
        domain: DomainId,
        locals: &[LocalHash],
        scratch: &mut FindScratch,
        out: &mut Vec<Match>,
    ) {
        out.clear();
        if let Some(domain) = self.domains.get(domain) {
            self.walk(scratch, out, locals, |above, local| {
                self.nodes.child_by_local(domain, above, local)
            });
        }
    }

    /// As [`Index::find`], from sequence hashes: each names a block and all before it (SQ-1).
    pub fn find_sequence(
        &self,
        domain: DomainId,
        sequence: &[SequenceHash],
        scratch: &mut FindScratch,
        out: &mut Vec<Match>,
    ) {
        out.clear();
        if let Some(domain) = self.domains.get(domain) {
            self.walk(scratch, out, sequence, |above, seq| {
                self.nodes.child_by_sequence(domain, above, seq)
            });
        }
    }

    /// What one rank holds of a chain named by its engine's own hashes, by residency alone: no
    /// position is looked at, so blocks stored without tokens count. A rank that is not there gives
    /// zeros.
    pub fn find_engine(&self, rank: RankKey, hashes: &[BlockHash]) -> [u32; 4] {
        let mut walk = Walk::default();
        let Some(rank) = self.rank(rank) else {
            return walk.matched;
        };
        let required = rank.lanes.required();
        for &hash in hashes {
            let lanes = rank.get(hash).map_or(0, |entry| entry.lanes());
            if !walk.advance(&required, lanes) {
                break;
            }
        }
        walk.matched
    }

    fn walk<H: Copy>(
        &self,
        scratch: &mut FindScratch,
        out: &mut Vec<Match>,
        hashes: &[H],
        child: impl Fn(Option<NodeId>, H) -> Option<NodeId>,
    ) {
        let mut above = None;
        let mut before: &[Holder] = &[];
        let (mut blocks, mut alive) = (0, 0);
        for &hash in hashes {
            let Some(node) = child(above, hash) else {
                break;
            };
            let holders = self.nodes.get(node).holders();
            if above.is_none() {
                alive = self.start(scratch, holders);
                before = holders;
            }
            // Only ranks that hold this block in other lanes than the one before are looked at.
            if holders != before {
                for_each_change(before, holders, |number| {
                    let Some(rank) = scratch.get(number) else {
                        return;
                    };
                    if rank.walk.is_over() || rank.counted > blocks {
                        return;
                    }
                    rank.catch_up(blocks);
                    rank.counted += 1;
                    if !rank.walk.advance(&rank.required, lanes_of(holders, number)) {
                        alive -= 1;
                    }
                });
            }
            if alive == 0 {
                break;
            }
            before = holders;
            above = Some(node);
            blocks += 1;
        }
        for mut rank in scratch.ranks.drain(..) {
            rank.catch_up(blocks);
            let matched = rank.walk.matched;
            if matched != [0; Tier::ALL.len()]
                && let Some(facts) = self.facts(rank.number)
            {
                out.push(Match { rank: facts.key, matched });
            }
        }
        // Rank numbers follow the order of adding, which mostly is the order of keys; sorting what
        // is sorted is one pass.
        out.sort_unstable_by_key(|found| found.rank);
    }

    /// Every rank that holds the first block sets out; returns how many.
    fn start(&self, scratch: &mut FindScratch, mut holders: &[Holder]) -> usize {
        let FindScratch { ranks, at } = scratch;
        ranks.clear();
        at.resize(self.facts.len(), 0);
        while let Some((&[number, mut lanes], mut rest)) = holders.split_first() {
            while let Some((&[next, more], others)) = rest.split_first()
                && next == number
            {
                lanes |= more;
                rest = others;
            }
            holders = rest;
            let Some(facts) = self.facts(number) else {
                continue;
            };
            let mut rank = Walking { number, required: facts.required, ..Walking::default() };
            if rank.walk.advance(&rank.required, lanes)
                && let Ok(index) = usize::try_from(number)
                && let Ok(place) = u32::try_from(ranks.len())
            {
                rank.counted = 1;
                at[index] = place;
                ranks.push(rank);
            }
        }
        ranks.len()
    }
}

impl FindScratch {
    /// The walking rank of a number.
    fn get(&mut self, number: u64) -> Option<&mut Walking> {
        let place = *self.at.get(usize::try_from(number).ok()?)?;
        self.ranks.get_mut(place as usize).filter(|rank| rank.number == number)
    }
}

impl Walking {
    /// Counts what was held unchanged, up to the first `blocks` blocks of the query.
    fn catch_up(&mut self, blocks: u32) {
        if let Some(matched) = self.walk.matched.get_mut(self.walk.tier) {
            *matched += blocks.saturating_sub(self.counted);
            self.counted = self.counted.max(blocks);
        }
    }
}

/// The lanes of a rank in a holder list.
fn lanes_of(holders: &[Holder], number: u64) -> u64 {
    let first = holders.partition_point(|holder| holder[0] < number);
    let own = holders[first..].iter().take_while(|holder| holder[0] == number);
    own.fold(0, |lanes, holder| lanes | holder[1])
}

/// Calls `change` with the number of every rank that is in one list otherwise than in the other; it
/// may be called again for the same rank.
fn for_each_change(mut before: &[Holder], mut now: &[Holder], mut change: impl FnMut(u64)) {
    const RUN: usize = 16;
    loop {
        while let (Some(a), Some(b)) = (before.get(..RUN), now.get(..RUN))
            && a == b
        {
            (before, now) = (&before[RUN..], &now[RUN..]);
        }
        let same = before.iter().zip(now).take_while(|(a, b)| a == b).take(RUN).count();
        (before, now) = (&before[same..], &now[same..]);
        match (before.split_first(), now.split_first()) {
            (None, None) => return,
            (Some((a, rest)), Some((b, _))) if a < b => {
                change(a[0]);
                before = rest;
            }
            (Some((a, rest)), None) => {
                change(a[0]);
                before = rest;
            }
            (Some((a, _)), Some((b, _))) if a == b => {}
            (_, Some((b, rest))) => {
                change(b[0]);
                now = rest;
            }
        }
    }
}
