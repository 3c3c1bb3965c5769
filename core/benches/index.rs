//! Speed of the embedded index; prints `name: value unit` lines.
//!
//! 8 workers × 256 chains × 64 blocks, of their own or shared, one event a batch, by reference;
//! medians over fresh indexes. Lookups stand beside 131,072 blocks of other ranks.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark's own data")]

use kvmirror_core::event::{EventBatch, EventKind, EventRecord, EventView, Placement, Span};
use kvmirror_core::id::{BlockHash, LocalHash, RankKey};
use kvmirror_core::index::{DomainId, Duplicates, FindScratch, Index, IndexLimits};
use kvmirror_core::wire::SourceIdentity;
use std::hint::black_box;
use std::time::Instant;

const WORKERS: u64 = 8;
const CHAINS: u64 = 256;
const DEPTH: u64 = 64;
const RUNS: usize = 7;

fn main() {
    for shared in [false, true] {
        for blocks in [1, 16] {
            apply(shared, blocks);
        }
    }
    for ranks in [8, 64, 512] {
        for depth in [8, 64, 512] {
            find(ranks, depth, false);
            find(ranks, depth, true);
        }
    }
    cold();
}

/// A well mixed number for block `depth` of `chain`.
fn mix(chain: u64, depth: u64, salt: u64) -> u64 {
    let mut z = (chain << 32 | depth).wrapping_add(salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn hash(chain: u64, depth: u64) -> BlockHash {
    BlockHash(mix(chain, depth, 1))
}

fn local(chain: u64, depth: u64) -> LocalHash {
    LocalHash(mix(chain, depth, 2))
}

fn event(kind: EventKind, chain: u64, from: u64, blocks: u64) -> EventBatch {
    let mut batch = EventBatch::default();
    let mut record = EventRecord::new(kind);
    batch.hashes.extend((from..from + blocks).map(|depth| hash(chain, depth)));
    record.hashes = Span { start: 0, len: u32::try_from(blocks).unwrap() };
    if kind == EventKind::Stored {
        batch.locals.extend((from..from + blocks).map(|depth| local(chain, depth)));
        record.locals = record.hashes;
        record.placement = Placement::Positioned;
        record.parent = from.checked_sub(1).map(|above| hash(chain, above));
    }
    batch.records.push(record);
    batch
}

fn index(ranks: u64) -> (Index, DomainId) {
    let mut index = Index::new(IndexLimits::default());
    let domain = index.open_domain();
    for worker in 0..ranks {
        let key = RankKey::new(worker, 0);
        index.add_rank(key, domain, SourceIdentity::default(), Duplicates::Counted).unwrap();
    }
    (index, domain)
}

fn run(index: &mut Index, events: &[(RankKey, EventBatch)]) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    for (rank, batch) in events {
        let applied = index.apply(*rank, EventView { payload: &[], batch }).unwrap();
        done += applied.stored + applied.removed;
    }
    black_box(done);
    start.elapsed().as_secs_f64()
}

fn apply(shared: bool, blocks: u64) {
    let mut stores = Vec::new();
    let mut removes = Vec::new();
    for worker in 0..WORKERS {
        for chain in 0..CHAINS {
            let chain = if shared { chain } else { worker * CHAINS + chain };
            let rank = RankKey::new(worker, 0);
            for step in 0..DEPTH / blocks {
                let first = step * blocks;
                stores.push((rank, event(EventKind::Stored, chain, first, blocks)));
                let last = DEPTH - blocks - first;
                removes.push((rank, event(EventKind::Removed, chain, last, blocks)));
            }
        }
    }
    let total = (WORKERS * CHAINS * DEPTH) as f64;
    let (mut store, mut remove, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let (mut index, _) = index(WORKERS);
        store.push(run(&mut index, &stores));
        bytes = index.stats().bytes;
        remove.push(run(&mut index, &removes));
        assert_eq!(index.stats().nodes, 0);
    }
    let kind = if shared { "shared" } else { "own" };
    println!("store_{kind}_{blocks}: {:.2} Mblocks/s", total / median(&mut store) / 1e6);
    println!("remove_{kind}_{blocks}: {:.2} Mblocks/s", total / median(&mut remove) / 1e6);
    println!("bytes_{kind}_{blocks}: {:.1} B/(rank,block)", bytes as f64 / total);
}

fn find(ranks: u64, depth: u64, staggered: bool) {
    let (mut index, domain) = index(ranks);
    for worker in 0..WORKERS {
        for chain in 0..CHAINS {
            let batch = event(EventKind::Stored, 1_000 + worker * CHAINS + chain, 0, DEPTH);
            let view = EventView { payload: &[], batch: &batch };
            index.apply(RankKey::new(worker, 0), view).unwrap();
        }
    }
    for worker in 0..ranks {
        let blocks = if staggered { 1 + worker * depth / ranks } else { depth };
        let batch = event(EventKind::Stored, 7, 0, blocks);
        index.apply(RankKey::new(worker, 0), EventView { payload: &[], batch: &batch }).unwrap();
    }
    let query: Vec<LocalHash> = (0..depth).map(|at| local(7, at)).collect();
    let (mut scratch, mut out) = (FindScratch::default(), Vec::new());
    let mut times = Vec::new();
    for _ in 0..5_000 {
        let start = Instant::now();
        index.find(domain, black_box(&query), &mut scratch, &mut out);
        times.push(start.elapsed().as_secs_f64());
        assert_eq!(out.len() as u64, ranks);
    }
    let kind = if staggered { "_staggered" } else { "" };
    percentiles(&format!("find_{ranks}_ranks_depth_{depth}{kind}"), &mut times);
}

/// Random chains of an index much larger than the caches.
fn cold() {
    let (mut index, domain) = index(WORKERS);
    let chains = 1_000_000 / DEPTH;
    for chain in 0..chains {
        let batch = event(EventKind::Stored, chain, 0, DEPTH);
        let view = EventView { payload: &[], batch: &batch };
        index.apply(RankKey::new(chain % WORKERS, 0), view).unwrap();
    }
    let (mut scratch, mut out) = (FindScratch::default(), Vec::new());
    let mut times = Vec::new();
    for step in 0..20_000 {
        let chain = mix(step, 0, 3) % chains;
        let query: Vec<LocalHash> = (0..DEPTH).map(|at| local(chain, at)).collect();
        let start = Instant::now();
        index.find(domain, black_box(&query), &mut scratch, &mut out);
        times.push(start.elapsed().as_secs_f64());
    }
    percentiles("find_cold_1M_depth_64", &mut times);
    println!("bytes_1M: {:.1} B/block", index.stats().bytes as f64 / (chains * DEPTH) as f64);
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn percentiles(name: &str, times: &mut [f64]) {
    let p50 = median(times);
    println!("{name}_p50: {:.2} us", p50 * 1e6);
    println!("{name}_p99: {:.2} us", times[times.len() * 99 / 100] * 1e6);
}
