//! Speed of the membership coordinator: what one changed rank costs among 65,536.
//!
//! Prints `name: value unit` lines, medians of nine rounds. Ranks take turns, so that each step finds
//! other parts of the maps. The whole list is what a host pays that tells all expectations anew.
#![allow(clippy::print_stdout, clippy::float_arithmetic, reason = "a benchmark reports figures")]

use kvmirror_core::id::{EventId, PublisherId, Rank, RankKey, TargetId, WorkerId};
use kvmirror_core::membership::{
    Advertisement, Coordinator, MembershipPolicy, Publishing, Source, SourceKind, Update,
    Withdrawal, WorkerExpectation,
};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 9;
const WORKERS: u64 = 8_192;
const RANKS: u32 = 8;
/// Coprime to the number of workers: every worker has its turn.
const STRIDE: u64 = 4_099;
const STEPS: u64 = 65_536;

fn main() {
    for policy in [MembershipPolicy::REFERENCE, MembershipPolicy::HARDENED] {
        let name = if policy.suspect_discovery { "hardened" } else { "reference" };
        let mut fleet = full_fleet(policy);
        report(name, "withdraw_advertise", || {
            for step in 0..STEPS / 2 {
                let key = key(step);
                let withdrawal = Withdrawal { publisher: publisher(key), endpoint: None };
                assert_eq!(fleet.handle_withdrawal(&withdrawal), Update::Snapshot);
                assert_eq!(fleet.handle_advertisement(source(key)), Update::Snapshot);
            }
            STEPS
        });
        report(name, "worker_leaves_and_joins", || {
            for step in 0..STEPS / u64::from(2 * RANKS) {
                let worker = key(step).worker;
                assert_eq!(fleet.handle_unexpected(worker), Update::Snapshot);
                assert_eq!(fleet.handle_expected(expectation(worker)), Update::Snapshot);
            }
            STEPS
        });
        report(name, "equal_list_of_all_workers", || {
            let list = (0..WORKERS).map(|id| expectation(WorkerId(id))).collect();
            assert_eq!(fleet.handle_expectations(list), Update::Unchanged);
            WORKERS * u64::from(RANKS)
        });
        black_box(&fleet);
    }
}

/// Runs it a few times and prints the median microseconds per rank.
fn report(policy: &str, name: &str, mut work: impl FnMut() -> u64) {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let ranks = work();
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let ranks = ranks as f64;
            started.elapsed().as_secs_f64() * 1e6 / ranks
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("membership_{policy}_{name}: {:.3} us/rank", costs[ROUNDS / 2]);
}

fn full_fleet(policy: MembershipPolicy) -> Coordinator {
    let mut fleet = Coordinator::new("serving".into(), policy).expect("limits are not zero");
    let workers = (0..WORKERS).map(|id| expectation(WorkerId(id))).collect();
    assert_eq!(fleet.handle_expectations(workers), Update::Snapshot);
    for worker in 0..WORKERS {
        for rank in 0..RANKS {
            let advertisement = source(RankKey::new(worker, rank));
            assert_eq!(fleet.handle_advertisement(advertisement), Update::Snapshot);
        }
    }
    fleet
}

fn key(step: u64) -> RankKey {
    let rank = u32::try_from(step % u64::from(RANKS)).expect("a small number");
    RankKey::new(step.wrapping_mul(STRIDE) % WORKERS, rank)
}

fn publisher(key: RankKey) -> PublisherId {
    let number = key.worker.0 * u64::from(RANKS) + u64::from(key.rank.0);
    PublisherId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn source(rank: RankKey) -> Advertisement {
    let source = Source {
        publisher: publisher(rank),
        target: Some(TargetId(rank.worker.0)),
        kind: SourceKind::Agent,
        first_id: EventId(1),
        boot: None,
    };
    Advertisement { rank, endpoint: None, source }
}

fn expectation(worker: WorkerId) -> WorkerExpectation {
    WorkerExpectation {
        worker,
        first_rank: Rank(0),
        ranks: RANKS,
        publishing: Publishing::Enabled,
        recovery_expected: true,
        endpoint: None,
    }
}
