//! B14: nothing grows with the number of workers that have ever been there.

use kvmirror_core::id::{EventId, PublisherId, Rank, RankKey, WorkerId};
use kvmirror_core::membership::{
    Advertisement, Coordinator, MembershipPolicy, Publishing, RankStatus, Source, SourceKind,
    Update, Withdrawal, WorkerExpectation,
};

const LIVE: u64 = 1_000;
const A_DAY: u64 = 1_000 * 60 * 24;

/// A random-looking worker id, different for each number.
const fn worker(number: u64) -> WorkerId {
    WorkerId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn join(coordinator: &mut Coordinator, number: u64) {
    let expectation = WorkerExpectation {
        worker: worker(number),
        first_rank: Rank(0),
        ranks: 1,
        publishing: Publishing::Enabled,
        recovery_expected: false,
        endpoint: None,
    };
    assert_eq!(coordinator.handle_expected(expectation), Update::Snapshot);
    let source = Source {
        publisher: PublisherId(number),
        target: None,
        kind: SourceKind::Engine,
        first_id: EventId(0),
        boot: None,
    };
    let rank = RankKey { worker: worker(number), rank: Rank(0) };
    let advertisement = Advertisement { rank, endpoint: None, source };
    assert_eq!(coordinator.handle_advertisement(advertisement), Update::Snapshot);
}

fn leave(coordinator: &mut Coordinator, number: u64) {
    let withdrawal = Withdrawal { publisher: PublisherId(number), endpoint: None };
    assert_eq!(coordinator.handle_withdrawal(&withdrawal), Update::Snapshot);
    assert_eq!(coordinator.handle_unexpected(worker(number)), Update::Snapshot);
}

// rule: B14
#[test]
fn a_day_of_a_thousand_new_workers_a_minute_stays_flat() {
    let mut coordinator =
        Coordinator::new("serving".into(), MembershipPolicy::HARDENED).expect("valid");
    for number in 0..A_DAY {
        join(&mut coordinator, number);
        if let Some(old) = number.checked_sub(LIVE) {
            leave(&mut coordinator, old);
            let sizes = [
                coordinator.membership().len(),
                coordinator.tracked_ranks(),
                coordinator.advertisements(),
            ];
            assert_eq!(sizes, [1_000; 3], "at worker {number}");
        }
    }
    assert_eq!(coordinator.stats().forgotten, A_DAY - LIVE);
}

// rule: B14
#[test]
fn a_forgotten_rank_returns_in_a_generation_it_never_had() {
    let mut coordinator =
        Coordinator::new("serving".into(), MembershipPolicy::HARDENED).expect("valid");
    let mut last = None;
    for _ in 0..10 {
        join(&mut coordinator, 7);
        let member = coordinator.membership().ranks().next().expect("it is there");
        assert!(matches!(member.status, RankStatus::Active(_)));
        assert!(Some(member.generation) > last, "a consumer that missed the absence must see it");
        last = Some(member.generation);
        assert_eq!(coordinator.handle_unexpected(worker(7)), Update::Snapshot);
        assert_eq!(coordinator.tracked_ranks(), 0);
        let withdrawal = Withdrawal { publisher: PublisherId(7), endpoint: None };
        assert_eq!(coordinator.handle_withdrawal(&withdrawal), Update::Unchanged);
    }
}
