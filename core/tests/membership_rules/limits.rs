//! What happens at each limit: nothing is selected by omission, and everything is counted.

use crate::rig::{Rig, run};
use kvmirror_core::id::PublisherId;
use kvmirror_core::membership::{Coordinator, MembershipPolicy};

const HARDENED: MembershipPolicy = MembershipPolicy::HARDENED;

#[test]
fn ranks_over_the_limit_are_left_out_until_there_is_room() {
    let rig = run(
        MembershipPolicy { ranks_max: 3, ..HARDENED },
        "
        expect 7:0+2 8:0+2 9:0+1 -> 7/0.0 missing; 7/1.0 missing; 8/0.0 missing
        ad 1 8/1 -> -
        expect 7:0+1 8:0+2 9:0+1 -> 7/0.0 missing; 8/0.0 missing; 8/1.0 1 live
        expect 8:0+2 9:0+1 -> 8/0.0 missing; 8/1.0 1 live; 9/0.0 missing
        ",
    );
    assert_eq!(rig.coordinator.stats().ranks_over_limit, 2);
}

#[test]
fn workers_over_the_limit_are_not_expected_until_named_again() {
    let rig = run(
        MembershipPolicy { workers_max: 2, ..HARDENED },
        "
        expect 7:0+1 8:0+1 9:0+1~kv -> 7/0.0 missing; 8/0.0 missing
        worker 8:0+1~rec -> view
        gone 7 -> 8/0.0 missing
        worker 9:0+1 -> 8/0.0 missing; 9/0.0 missing
        ",
    );
    assert_eq!(rig.coordinator.stats().workers_over_limit, 1);
}

#[test]
fn a_worker_with_endless_ranks_costs_no_more_than_the_limit() {
    let mut rig = Rig::new(MembershipPolicy { ranks_max: 1_000, ..HARDENED });
    let _ = rig.feed("expect 7:0+4294967295");
    assert_eq!(rig.coordinator.membership().len(), 1_000);
}

#[test]
fn a_rank_that_was_refused_a_source_is_never_decided() {
    let rig = run(
        MembershipPolicy { advertisements_per_rank_max: 2, ..HARDENED },
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        ad 2 7/0 -> 7/0.1 ambiguous 1,2
        ad 3 7/0 -> -
        del 1 -> 7/0.2 ambiguous 2
        del 3 -> -
        del 2 -> 7/0.3 missing
        ad 3 7/0 -> 7/0.4 3 live
        ",
    );
    assert_eq!(rig.coordinator.stats().advertisements_over_limit, 1);
}

#[test]
fn a_full_store_refuses_and_marks_whom_it_concerns() {
    let rig = run(
        MembershipPolicy { advertisements_max: 1, ..HARDENED },
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing
        ad 2 7/1 -> -
        ad 3 7/0 -> 7/0.1 ambiguous 1; 7/1.0 missing
        lost -> suspect 7/0.1 ambiguous 1; 7/1.0 missing
        ad 3 7/0 -> -
        listed -> 7/0.2 3 live; 7/1.0 missing
        ",
    );
    assert_eq!(rig.coordinator.stats().advertisements_over_limit, 2);
}

#[test]
fn a_full_quarantine_ignores() {
    let rig = run(
        MembershipPolicy { quarantine_max: 1, ..HARDENED },
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        bad 1 -> -
        bad 2 -> -
        ad 2 7/0 -> 7/0.0 2 live; 7/1.0 missing
        ad 1 7/1 -> 7/0.0 2 live; 7/1.1 conflict 1
        ",
    );
    assert_eq!(rig.coordinator.stats().invalid_ignored, 1);
}

#[test]
fn a_publisher_closes_a_bounded_number_of_ranks() {
    let mut rig = Rig::new(HARDENED);
    let _ = rig.feed("expect 7:0+100");
    for rank in 0..100 {
        let _ = rig.feed(&format!("ad 1 7/{rank}"));
    }
    let closed = rig.coordinator.view().mismatch().bad
        - rig
            .coordinator
            .membership()
            .ranks()
            .filter(|member| rig.coordinator.view().ambiguity(member.key).is_none())
            .count();
    assert_eq!(closed, 17, "its own and 16 more");
    assert_eq!(rig.coordinator.stats().advertisements_over_limit, 83);
    let _ = rig.feed("del 1");
    assert!(
        rig.coordinator
            .membership()
            .ranks()
            .all(|member| { rig.coordinator.view().ambiguity(member.key).is_none() })
    );
}

#[test]
fn the_reference_forgets_only_beyond_its_limit_and_loses_no_fence() {
    let rig = run(
        MembershipPolicy { idle_ranks_max: 1, ..MembershipPolicy::REFERENCE },
        "
        ad 1 7/0 -> -
        ad 2 8/0 -> -
        expect 7:0+1 8:0+1 -> 7/0.0 1 live; 8/0.0 2 live
        expect 8:0+1 -> 8/0.0 2 live
        expect -> none
        expect 7:0+1 8:0+1 -> 7/0.1 1 live; 8/0.2 2 live
        ",
    );
    assert_eq!(rig.coordinator.stats().forgotten, 1);
}

#[test]
fn a_rank_that_has_returned_is_not_forgotten() {
    let rig = run(
        MembershipPolicy { idle_ranks_max: 1, ..MembershipPolicy::REFERENCE },
        "
        ad 1 7/0 -> -
        expect 7:0+1 8:0+1 -> 7/0.0 1 live; 8/0.0 missing
        expect 8:0+1 -> 8/0.0 missing
        expect 7:0+1 8:0+1 -> 7/0.2 1 live; 8/0.0 missing
        expect 7:0+1 -> 7/0.2 1 live
        del 1 -> 7/0.3 missing
        ",
    );
    assert_eq!(rig.coordinator.stats().forgotten, 0);
    assert_eq!(rig.coordinator.tracked_ranks(), 2);
}

#[test]
fn limits_of_zero_are_refused_by_name() {
    for (policy, name) in [
        (MembershipPolicy { workers_max: 0, ..HARDENED }, "workers_max"),
        (MembershipPolicy { ranks_max: 0, ..HARDENED }, "ranks_max"),
        (MembershipPolicy { advertisements_max: 0, ..HARDENED }, "advertisements_max"),
        (
            MembershipPolicy { advertisements_per_rank_max: 0, ..HARDENED },
            "advertisements_per_rank_max",
        ),
        (MembershipPolicy { quarantine_max: 0, ..HARDENED }, "quarantine_max"),
        (MembershipPolicy { idle_ranks_max: 0, ..HARDENED }, "idle_ranks_max"),
        (
            MembershipPolicy { suspect_grace: kvmirror_core::time::Micros(0), ..HARDENED },
            "suspect_grace",
        ),
    ] {
        let error = Coordinator::new("serving".into(), policy).expect_err(name);
        assert_eq!(error.name, name);
        assert!(error.to_string().contains(name));
    }
    assert_eq!(MembershipPolicy::default(), HARDENED);
}

#[test]
fn publisher_numbers_at_the_ends_are_publishers_like_any_other() {
    let rig = run(
        HARDENED,
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 18446744073709551615 7/0 -> 7/0.0 18446744073709551615 live
        ad 0 7/0 -> 7/0.1 ambiguous 0,18446744073709551615
        ",
    );
    let why = rig.coordinator.view().ambiguity(kvmirror_core::id::RankKey::new(7, 0));
    let publishers = why.expect("ambiguous").publishers().to_vec();
    assert_eq!(publishers, [PublisherId(0), PublisherId(u64::MAX)]);
}
