//! The index against a naive model: per rank a list of counted stores and claims, every position
//! worked out anew for every question by walking from parent to parent.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod events;
mod model;

use events::{BLOCKS, Op, RANKS, batch, hash, local_of, op, parent_of};
use kvmirror_core::event::{EventBatch, EventView};
use kvmirror_core::id::{BlockHash, LocalHash, RankKey, SequenceHash};
use kvmirror_core::index::{Applied, DomainId, Duplicates, FindScratch, Index, IndexLimits, Match};
use kvmirror_core::wire::SourceIdentity;
use model::ModelRank;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn key(rank: usize) -> RankKey {
    RankKey::new(9 - rank as u64 / 2, u32::try_from(rank % 2).unwrap())
}

struct Pair {
    index: Index,
    domains: [DomainId; 2],
    model: Vec<ModelRank>,
    scratch: FindScratch,
}

impl Pair {
    fn new() -> Self {
        let mut index = Index::new(IndexLimits::default());
        let domains = [index.open_domain(), index.open_domain()];
        let mut pair = Self { index, domains, model: Vec::new(), scratch: FindScratch::default() };
        for rank in 0..RANKS {
            let fresh = ModelRank {
                domain: usize::from(rank == 3),
                counted: rank % 3 != 1,
                ..ModelRank::default()
            };
            pair.model.push(fresh);
            pair.add(rank);
        }
        pair
    }

    fn add(&mut self, rank: usize) {
        let duplicates =
            if self.model[rank].counted { Duplicates::Counted } else { Duplicates::Set };
        let domain = self.domains[self.model[rank].domain];
        self.index.add_rank(key(rank), domain, SourceIdentity::default(), duplicates).unwrap();
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Apply(rank, events) => {
                let batch = batch(events);
                let got = self
                    .index
                    .apply(key(*rank), EventView { payload: &[], batch: &batch })
                    .unwrap();
                let mut want = Applied::default();
                for (event, number) in events.iter().zip(0..) {
                    self.model[*rank].apply(event, number, &mut want);
                }
                check_applied(&got, &want);
                self.check_rank(*rank);
            }
            Op::Replace(rank, batches) => {
                let made: Vec<EventBatch> = batches.iter().map(|events| batch(events)).collect();
                let views = made.iter().map(|batch| EventView { payload: &[], batch });
                let got = self.index.replace(key(*rank), views).unwrap();
                let mut want = Applied::default();
                let mut fresh = self.model[*rank].empty_like();
                for (event, number) in batches.iter().flatten().zip(0..) {
                    fresh.apply(event, number, &mut want);
                }
                self.model[*rank] = fresh;
                check_applied(&got, &want);
                self.check_rank(*rank);
            }
            Op::Reset(rank, scope) => {
                self.index.reset(key(*rank), *scope).unwrap();
                self.model[*rank].reset(*scope);
                self.check_rank(*rank);
            }
            Op::Recreate(rank) => {
                self.index.remove_rank(key(*rank)).unwrap();
                assert!(self.index.blocks(key(*rank)).is_empty());
                self.model[*rank] = self.model[*rank].empty_like();
                self.add(*rank);
            }
        }
        self.check_stats();
    }

    fn check_rank(&self, rank: usize) {
        let (key, model) = (key(rank), &self.model[rank]);
        assert_eq!(self.index.blocks(key), model.blocks());
        let mut counts = [0; 4];
        for fact in model.facts.values() {
            let tiers: BTreeSet<usize> = fact.copies.keys().map(|at| at.0.index()).collect();
            tiers.into_iter().for_each(|tier| counts[tier] += 1);
        }
        assert_eq!(self.index.counts(key), counts);
        for hash in 1..64 {
            let fact = model.facts.get(&hash).filter(|fact| !fact.copies.is_empty());
            assert_eq!(self.index.resident(key, BlockHash(hash)), fact.is_some());
            let path = fact.filter(|fact| !fact.ambiguous).and_then(|_| model.path(hash));
            let want = path.and_then(|path| sequence(&path).last().copied());
            assert_eq!(self.index.position(key, BlockHash(hash)), want, "position of {hash}");
        }
    }

    fn check_stats(&self) {
        let stats = self.index.stats();
        let (mut entries, mut remembered, mut held) = (0, 0, 0);
        let mut paths = BTreeSet::new();
        for rank in &self.model {
            for (hash, fact) in &rank.facts {
                entries += u64::from(!fact.copies.is_empty());
                remembered += u64::from(fact.copies.is_empty());
                match rank.path(*hash) {
                    Some(path) => {
                        paths.insert((rank.domain, path));
                    }
                    None => held += usize::from(fact.claim.is_some()),
                }
            }
        }
        assert_eq!(
            (stats.entries, stats.remembered, stats.held_aside, stats.nodes),
            (entries, remembered, held, paths.len())
        );
    }

    fn check_query(&mut self, leaf: u64, extra: &[u64]) {
        let mut hashes: Vec<u64> =
            std::iter::successors(Some(leaf), |hash| parent_of(*hash)).collect();
        hashes.reverse();
        let mut locals: Vec<u64> = hashes.iter().map(|hash| local_of(*hash)).collect();
        locals.extend(extra);
        let mut got = Vec::new();
        for domain in 0..2 {
            let mut want: Vec<Match> = (0..RANKS)
                .filter(|rank| self.model[*rank].domain == domain)
                .map(|rank| Match { rank: key(rank), matched: self.model[rank].find(&locals) })
                .filter(|found| found.total() > 0)
                .collect();
            want.sort_by_key(|found| found.rank);
            let asked: Vec<LocalHash> = locals.iter().copied().map(LocalHash).collect();
            self.index.find(self.domains[domain], &asked, &mut self.scratch, &mut got);
            assert_eq!(got, want, "find {locals:?}");
            let asked = sequence(&locals);
            self.index.find_sequence(self.domains[domain], &asked, &mut self.scratch, &mut got);
            assert_eq!(got, want, "find by sequence {locals:?}");
        }
        let asked: Vec<BlockHash> = hashes.iter().copied().map(BlockHash).collect();
        for rank in 0..RANKS {
            let want = self.model[rank].find_engine(&hashes);
            assert_eq!(self.index.find_engine(key(rank), &asked), want);
        }
    }
}

fn sequence(locals: &[u64]) -> Vec<SequenceHash> {
    let mut previous: Option<u64> = None;
    locals
        .iter()
        .map(|local| {
            let hash = previous.map_or(*local, |previous| {
                let mut bytes = previous.to_le_bytes().to_vec();
                bytes.extend(local.to_le_bytes());
                xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, 1337)
            });
            previous = Some(hash);
            SequenceHash(hash)
        })
        .collect()
}

/// The counts that the model keeps.
fn check_applied(got: &Applied, want: &Applied) {
    let counted = |applied: &Applied| Applied {
        stored: applied.stored,
        duplicates: applied.duplicates,
        removed: applied.removed,
        unknown_removed: applied.unknown_removed,
        cleared: applied.cleared,
        orphans: applied.orphans,
        remembered_parents: applied.remembered_parents,
        first_orphan: applied.first_orphan,
        ..Applied::default()
    };
    assert_eq!(counted(got), counted(want));
}

proptest! {
    #[test]
    fn index_equals_the_naive_model(
        steps in prop::collection::vec((op(), hash(), prop::collection::vec(100_u64..104, 0..2)), 1..40)
    ) {
        let mut pair = Pair::new();
        for (op, leaf, extra) in &steps {
            pair.run(op);
            pair.check_query(leaf % 32, extra);
        }
        for leaf in 16..=BLOCKS {
            pair.check_query(leaf, &[]);
        }
        for rank in 0..RANKS {
            pair.index.remove_rank(key(rank)).unwrap();
        }
        for domain in pair.domains {
            pair.index.close_domain(domain).unwrap();
        }
        let left = pair.index.stats();
        prop_assert_eq!(
            (left.domains, left.ranks, left.nodes, left.entries, left.remembered, left.held_aside, left.salts),
            (0, 0, 0, 0, 0, 0, 0)
        );
    }
}
