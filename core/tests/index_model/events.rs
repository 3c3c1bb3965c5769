//! Events, as drawn and as batches: mostly one truthful tree of blocks, some lies.

use crate::model::{OWNER, WORKER};
use kvmirror_core::event::{
    EventBatch, EventKind, EventRecord, Placement, ResidencyDomain, Span, SpecKind, Tier,
};
use kvmirror_core::id::{BlockHash, LocalHash};
use kvmirror_core::index::ResetScope;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) tier: Tier,
    pub(crate) group: Option<u32>,
    pub(crate) domain: ResidencyDomain,
}

#[derive(Clone, Debug)]
pub(crate) enum Ev {
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
pub(crate) enum Op {
    Apply(usize, Vec<Ev>),
    Replace(usize, Vec<Vec<Ev>>),
    Reset(usize, ResetScope),
    Recreate(usize),
}

pub(crate) fn batch(events: &[Ev]) -> EventBatch {
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

/// Blocks 1 to 31 form a binary tree under block 1; 32 + n is a second hash for block n.
pub(crate) const BLOCKS: u64 = 31;

pub(crate) fn parent_of(hash: u64) -> Option<u64> {
    let block = hash % 32;
    (block > 1).then_some(block / 2)
}

pub(crate) fn local_of(hash: u64) -> u64 {
    100 + hash % 32 % 4
}

pub(crate) fn spot() -> impl Strategy<Value = Spot> {
    let tier = prop_oneof![
        6 => Just(Tier::Device), 3 => Just(Tier::Host), 1 => Just(Tier::Disk), 1 => Just(Tier::External)
    ];
    let group =
        prop_oneof![7 => Just(None), 2 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(Some(2))];
    let domain = prop_oneof![4 => Just(WORKER), 1 => Just(OWNER)];
    (tier, group, domain).prop_map(|(tier, group, domain)| Spot { tier, group, domain })
}

pub(crate) fn hash() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..=BLOCKS, 1 => 33..=(32 + BLOCKS)]
}

pub(crate) fn spec() -> impl Strategy<Value = Option<SpecKind>> {
    prop_oneof![
        12 => Just(None),
        2 => Just(Some(SpecKind::MainAttention)),
        1 => Just(Some(SpecKind::Other)),
        1 => Just(Some(SpecKind::Unknown)),
    ]
}

pub(crate) fn store() -> impl Strategy<Value = Ev> {
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

pub(crate) fn event() -> impl Strategy<Value = Ev> {
    prop_oneof![
        10 => store(),
        6 => (prop::collection::vec(hash(), 0..5), spot())
            .prop_map(|(hashes, spot)| Ev::Remove { hashes, spot }),
        1 => prop_oneof![Just(WORKER), Just(OWNER)].prop_map(|domain| Ev::Clear { domain }),
    ]
}

pub(crate) const RANKS: usize = 5;

pub(crate) fn op() -> impl Strategy<Value = Op> {
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
