//! The index against a naive model: per rank a list of counted stores and claims, every position
//! worked out anew for every question by walking from parent to parent.

use kvmirror_core::event::{
    EventBatch, EventKind, EventRecord, EventView, Placement, ResidencyDomain, Span, SpecKind, Tier,
};
use kvmirror_core::id::{BlockHash, LocalHash, RankKey, SequenceHash};
use kvmirror_core::index::{
    Applied, DomainId, Duplicates, FindScratch, Index, IndexLimits, Match, ResetScope,
    ResidentBlock,
};
use kvmirror_core::wire::SourceIdentity;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Where = (Tier, u32, ResidencyDomain);
type Path = Vec<u64>;

const WORKER: ResidencyDomain = ResidencyDomain::Worker;
const OWNER: ResidencyDomain = ResidencyDomain::CacheOwner;

// ---- the model ----

#[derive(Clone, Debug, Default)]
struct Fact {
    copies: BTreeMap<Where, u32>,
    claim: Option<(Option<u64>, u64)>,
    ambiguous: bool,
}

#[derive(Clone, Debug, Default)]
struct ModelRank {
    domain: usize,
    counted: bool,
    facts: BTreeMap<u64, Fact>,
    kinds: BTreeMap<u32, SpecKind>,
    used: BTreeSet<Where>,
}

impl ModelRank {
    fn empty_like(&self) -> Self {
        Self { domain: self.domain, counted: self.counted, ..Self::default() }
    }

    fn path(&self, hash: u64) -> Option<Path> {
        let mut locals = Vec::new();
        let (mut at, mut steps) = (hash, 0);
        loop {
            let (parent, local) = self.facts.get(&at)?.claim?;
            locals.push(local);
            steps += 1;
            match parent {
                None => break,
                Some(_) if steps > self.facts.len() => return None,
                Some(parent) => at = parent,
            }
        }
        locals.reverse();
        Some(locals)
    }

    fn store(
        &mut self,
        hash: u64,
        at: Where,
        claim: Option<(Option<u64>, u64)>,
        out: &mut Applied,
    ) {
        let old = self.path(hash);
        let counted = self.counted;
        let fact = self.facts.entry(hash).or_default();
        match fact.copies.get_mut(&at) {
            None => {
                fact.copies.insert(at, 1);
                out.stored += 1;
            }
            Some(copies) => {
                *copies += u32::from(counted);
                out.duplicates += 1;
            }
        }
        let Some(claim) = claim else { return };
        if fact.ambiguous {
            return;
        }
        let held = fact.claim;
        if let Some(parent) = claim.0
            && self.facts.get(&parent).is_some_and(|parent| parent.ambiguous)
        {
            return;
        }
        let new = match claim.0 {
            None => Some(vec![claim.1]),
            Some(parent) => self.path(parent).map(|mut path| {
                path.push(claim.1);
                path
            }),
        };
        let fact = self.facts.get_mut(&hash).unwrap();
        match (old, new) {
            (Some(old), Some(new)) => fact.ambiguous = old != new,
            (Some(_), None) => {}
            (None, Some(_)) => fact.claim = Some(claim),
            (None, None) => match held {
                None => fact.claim = Some(claim),
                Some(held) if held == claim => {}
                Some(_) => {
                    fact.claim = None;
                    fact.ambiguous = true;
                }
            },
        }
    }

    fn prune(&mut self) {
        loop {
            let needed: BTreeSet<u64> = self
                .facts
                .iter()
                .filter(|(hash, _)| self.path(**hash).is_some())
                .filter_map(|(_, fact)| fact.claim?.0)
                .collect();
            let placed: BTreeSet<u64> =
                self.facts.keys().copied().filter(|hash| self.path(*hash).is_some()).collect();
            let before = self.facts.len();
            self.facts.retain(|hash, fact| {
                if fact.copies.is_empty() {
                    fact.ambiguous = false;
                }
                !fact.copies.is_empty() || (placed.contains(hash) && needed.contains(hash))
            });
            if self.facts.len() == before {
                return;
            }
        }
    }

    fn apply(&mut self, event: &Ev, number: u64, out: &mut Applied) {
        match event {
            Ev::Store { chain, spot, spec, parent, positioned } => {
                let group = spot.group.unwrap_or(0);
                if let Some(kind) = spec {
                    self.kinds.insert(group, *kind);
                }
                if let Some(parent) = parent {
                    let fact = self.facts.get(parent);
                    if fact.is_none_or(|fact| fact.copies.is_empty()) {
                        out.orphans += 1;
                        out.first_orphan = out.first_orphan.or(Some(number));
                        out.remembered_parents += u64::from(fact.is_some());
                    }
                }
                if chain.is_empty() {
                    return;
                }
                let at = (spot.tier, group, spot.domain);
                self.used.insert(at);
                let mut above = *parent;
                for &(hash, local) in chain {
                    self.store(hash, at, positioned.then_some((above, local)), out);
                    above = Some(hash);
                }
            }
            Ev::Remove { hashes, spot } => {
                let at = (spot.tier, spot.group.unwrap_or(0), spot.domain);
                for hash in hashes {
                    let counted = self.counted;
                    let copies = self.facts.get_mut(hash).and_then(|fact| fact.copies.get_mut(&at));
                    match copies {
                        None => out.unknown_removed += 1,
                        Some(copies) => {
                            out.removed += 1;
                            *copies -= 1;
                            if *copies == 0 || !counted {
                                self.facts.get_mut(hash).unwrap().copies.remove(&at);
                            }
                        }
                    }
                    self.prune();
                }
            }
            Ev::Clear { domain } => out.cleared += self.clear(*domain),
        }
    }

    fn clear(&mut self, domain: ResidencyDomain) -> u64 {
        let mut gone = 0;
        for fact in self.facts.values_mut() {
            let before = fact.copies.len();
            fact.copies.retain(|at, _| at.2 != domain);
            gone += (before - fact.copies.len()) as u64;
        }
        self.prune();
        gone
    }

    fn reset(&mut self, scope: ResetScope) {
        let domains: &[ResidencyDomain] = match scope {
            ResetScope::All => &[WORKER, OWNER],
            ResetScope::Worker => &[WORKER],
            ResetScope::CacheOwner => &[OWNER],
        };
        for domain in domains {
            self.clear(*domain);
            self.used.retain(|at| at.2 != *domain);
        }
        if scope != ResetScope::CacheOwner {
            self.kinds.clear();
        }
    }

    fn decides(&self, group: u32) -> bool {
        self.kinds.get(&group).map_or(group == 0, |kind| *kind == SpecKind::MainAttention)
    }

    fn counts_in(&self, tier: Tier, held: &BTreeSet<(Tier, u32)>) -> bool {
        let mut needed =
            self.used.iter().filter(|at| at.0 == tier && self.decides(at.1)).peekable();
        needed.peek().is_some() && needed.all(|at| held.contains(&(at.0, at.1)))
    }

    fn walk(&self, blocks: impl Iterator<Item = BTreeSet<(Tier, u32)>>) -> [u32; 4] {
        let (mut matched, mut tier) = ([0; 4], 0);
        for held in blocks {
            while tier < 4 && !self.counts_in(Tier::ALL[tier], &held) {
                tier += 1;
            }
            if tier == 4 {
                break;
            }
            matched[tier] += 1;
        }
        matched
    }

    fn find(&self, locals: &[u64]) -> [u32; 4] {
        self.walk((1..=locals.len()).map(|depth| {
            let here = self.facts.iter().filter(|(hash, fact)| {
                !fact.ambiguous && self.path(**hash).as_deref() == Some(&locals[..depth])
            });
            here.flat_map(|(_, fact)| fact.copies.keys().map(|at| (at.0, at.1))).collect()
        }))
    }

    fn find_engine(&self, hashes: &[u64]) -> [u32; 4] {
        self.walk(hashes.iter().map(|hash| {
            let fact = self.facts.get(hash).into_iter();
            fact.flat_map(|fact| fact.copies.keys().map(|at| (at.0, at.1))).collect()
        }))
    }

    fn blocks(&self) -> Vec<ResidentBlock> {
        let all = self.facts.iter().flat_map(|(hash, fact)| {
            fact.copies.iter().map(|(at, copies)| ResidentBlock {
                hash: BlockHash(*hash),
                tier: at.0,
                group: at.1,
                domain: at.2,
                copies: *copies,
            })
        });
        all.collect()
    }
}

// ---- events ----

#[derive(Clone, Copy, Debug)]
struct Spot {
    tier: Tier,
    group: Option<u32>,
    domain: ResidencyDomain,
}

#[derive(Clone, Debug)]
enum Ev {
    Store {
        chain: Vec<(u64, u64)>,
        parent: Option<u64>,
        spot: Spot,
        spec: Option<SpecKind>,
        positioned: bool,
    },
    Remove {
        hashes: Vec<u64>,
        spot: Spot,
    },
    Clear {
        domain: ResidencyDomain,
    },
}

#[derive(Clone, Debug)]
enum Op {
    Apply(usize, Vec<Ev>),
    Replace(usize, Vec<Vec<Ev>>),
    Reset(usize, ResetScope),
    Recreate(usize),
}

fn batch(events: &[Ev]) -> EventBatch {
    let mut batch = EventBatch::default();
    for event in events {
        let start = u32::try_from(batch.hashes.len()).unwrap();
        let (kind, spot) = match event {
            Ev::Store { chain, spot, .. } => {
                batch.hashes.extend(chain.iter().map(|block| BlockHash(block.0)));
                (EventKind::Stored, *spot)
            }
            Ev::Remove { hashes, spot } => {
                batch.hashes.extend(hashes.iter().copied().map(BlockHash));
                (EventKind::Removed, *spot)
            }
            Ev::Clear { domain } => {
                (EventKind::Cleared, Spot { tier: Tier::Device, group: None, domain: *domain })
            }
        };
        let mut record = EventRecord::new(kind);
        record.hashes = Span { start, len: u32::try_from(batch.hashes.len()).unwrap() - start };
        (record.tier, record.group, record.domain) = (spot.tier, spot.group, spot.domain);
        if let Ev::Store { chain, parent, spec, positioned, .. } = event {
            record.parent = parent.map(BlockHash);
            record.spec = *spec;
            if *positioned {
                record.placement = Placement::Positioned;
                record.locals.start = u32::try_from(batch.locals.len()).unwrap();
                record.locals.len = u32::try_from(chain.len()).unwrap();
                batch.locals.extend(chain.iter().map(|block| LocalHash(block.1)));
            }
        }
        batch.records.push(record);
    }
    batch
}

// ---- the generator: mostly one truthful tree of blocks, some lies ----

/// Blocks 1 to 31 form a binary tree under block 1; 32 + n is a second hash for block n.
const BLOCKS: u64 = 31;

fn parent_of(hash: u64) -> Option<u64> {
    let block = hash % 32;
    (block > 1).then_some(block / 2)
}

fn local_of(hash: u64) -> u64 {
    100 + hash % 32 % 4
}

fn spot() -> impl Strategy<Value = Spot> {
    let tier = prop_oneof![
        6 => Just(Tier::Device), 3 => Just(Tier::Host), 1 => Just(Tier::Disk), 1 => Just(Tier::External)
    ];
    let group =
        prop_oneof![7 => Just(None), 2 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(Some(2))];
    let domain = prop_oneof![4 => Just(WORKER), 1 => Just(OWNER)];
    (tier, group, domain).prop_map(|(tier, group, domain)| Spot { tier, group, domain })
}

fn hash() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..=BLOCKS, 1 => 33..=(32 + BLOCKS)]
}

fn spec() -> impl Strategy<Value = Option<SpecKind>> {
    prop_oneof![
        12 => Just(None),
        2 => Just(Some(SpecKind::MainAttention)),
        1 => Just(Some(SpecKind::Other)),
        1 => Just(Some(SpecKind::Unknown)),
    ]
}

fn store() -> impl Strategy<Value = Ev> {
    let lie = prop_oneof![12 => Just(None), 1 => any::<u64>().prop_map(Some)];
    let shape = (hash(), any::<u8>(), 0_usize..5, prop::bool::weighted(0.12));
    (shape, spot(), spec(), lie, prop::bool::weighted(0.5)).prop_map(
        |((first, turns, length, token_less), spot, spec, lie, from_root)| {
            let mut chain = Vec::new();
            let mut next = if from_root { 1 } else { first };
            for step in 0..length {
                if next > BLOCKS && step > 0 {
                    break;
                }
                chain.push((next, local_of(next)));
                next = next % 32 * 2 + u64::from(turns >> step & 1);
            }
            let mut parent = parent_of(if from_root { 1 } else { first });
            match lie {
                None => {}
                Some(lie) if lie % 3 == 0 => parent = Some(1 + lie / 3 % BLOCKS),
                Some(lie) if lie % 3 == 1 => parent = None,
                Some(lie) => {
                    for block in &mut chain {
                        block.1 = 100 + (block.1 + lie / 3) % 4;
                    }
                }
            }
            Ev::Store { chain, parent, spot, spec, positioned: !token_less }
        },
    )
}

fn event() -> impl Strategy<Value = Ev> {
    prop_oneof![
        10 => store(),
        6 => (prop::collection::vec(hash(), 0..5), spot())
            .prop_map(|(hashes, spot)| Ev::Remove { hashes, spot }),
        1 => prop_oneof![Just(WORKER), Just(OWNER)].prop_map(|domain| Ev::Clear { domain }),
    ]
}

const RANKS: usize = 5;

fn op() -> impl Strategy<Value = Op> {
    let scope =
        prop_oneof![Just(ResetScope::All), Just(ResetScope::Worker), Just(ResetScope::CacheOwner)];
    let events = || prop::collection::vec(event(), 1..4);
    prop_oneof![
        30 => (0..RANKS, events()).prop_map(|(rank, events)| Op::Apply(rank, events)),
        1 => (0..RANKS, prop::collection::vec(events(), 0..3))
            .prop_map(|(rank, batches)| Op::Replace(rank, batches)),
        1 => (0..RANKS, scope).prop_map(|(rank, scope)| Op::Reset(rank, scope)),
        1 => (0..RANKS).prop_map(Op::Recreate),
    ]
}

// ---- side by side ----

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
