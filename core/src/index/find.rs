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
/// again.
#[derive(Clone, Debug, Default)]
pub struct FindScratch {
    active: Vec<Active>,
}

/// A rank that has not missed in all tiers yet.
#[derive(Clone, Copy, Debug)]
struct Active {
    /// Number of the rank, as in the holder lists.
    number: u64,
    required: [u64; 4],
    walk: Walk,
}

/// One rank's way through the tiers.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    tier: usize,
    matched: [u32; 4],
}

impl Walk {
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
        let active = &mut scratch.active;
        active.clear();
        let mut above = None;
        let mut before: &[Holder] = &[];
        // Blocks below the last one looked at in detail that are held by exactly the same ranks in
        // the same lanes: each rank that got this far holds them in the tier it is in.
        let mut same = 0;
        for &hash in hashes {
            let Some(node) = child(above, hash) else {
                break;
            };
            let holders = self.nodes.get(node).holders();
            if above.is_none() {
                self.start(active, holders);
            }
            if holders == before {
                same += 1;
            } else {
                take_same(active, &mut same);
                self.narrow(active, holders, out);
                before = holders;
            }
            if active.is_empty() {
                break;
            }
            above = Some(node);
        }
        take_same(active, &mut same);
        for rank in active.drain(..) {
            self.finish(&rank, out);
        }
        // Rank numbers follow the order of adding, which mostly is the order of keys; sorting what
        // is sorted is one pass.
        out.sort_unstable_by_key(|found| found.rank);
    }

    /// Every holder of the first block sets out.
    fn start(&self, active: &mut Vec<Active>, holders: &[Holder]) {
        let mut last = None;
        for &[number, _] in holders {
            if last.replace(number) == Some(number) {
                continue;
            }
            if let Some(facts) = self.facts(number) {
                active.push(Active { number, required: facts.required, walk: Walk::default() });
            }
        }
    }

    /// Takes one block for every active rank, and lets those go that hold it nowhere.
    fn narrow(&self, active: &mut Vec<Active>, mut holders: &[Holder], out: &mut Vec<Match>) {
        active.retain_mut(|rank| {
            let mut lanes = 0;
            while let Some((&[number, held], rest)) = holders.split_first() {
                if number > rank.number {
                    break;
                }
                if number == rank.number {
                    lanes |= held;
                }
                holders = rest;
            }
            let goes_on = rank.walk.advance(&rank.required, lanes);
            if !goes_on {
                self.finish(rank, out);
            }
            goes_on
        });
    }

    fn finish(&self, rank: &Active, out: &mut Vec<Match>) {
        let matched = rank.walk.matched;
        if matched != [0; Tier::ALL.len()]
            && let Some(facts) = self.facts(rank.number)
        {
            out.push(Match { rank: facts.key, matched });
        }
    }
}

/// Counts blocks that nothing changed at.
fn take_same(active: &mut [Active], same: &mut u32) {
    if *same > 0 {
        for rank in active {
            rank.walk.matched[rank.walk.tier] += *same;
        }
        *same = 0;
    }
}
