//! §3.2: which ranks are expected, and what is expected of them.

use crate::rig::reference;
use kvmirror_core::id::{RankKey, WorkerId};
use kvmirror_core::membership::Publishing;

// rule: 3.2/M4
#[test]
fn a_worker_has_its_ranks_from_the_first_on() {
    let rig = reference(
        "
        expect 7:4+2 8:0+0 -> 7/4.0 missing; 7/5.0 missing
        expect 7:5+2 -> 7/5.0 missing; 7/6.0 missing
        expect 7:4294967294+5 -> 7/4294967294.0 missing; 7/4294967295.0 missing
        ad 1 7/4294967295 -> 7/4294967294.0 missing; 7/4294967295.0 1 live
        ",
    );
    assert_eq!(rig.coordinator.stats().ranks_beyond_u32, 3, "left out, but not silently");
}

// rule: 3.2/M5
#[test]
fn the_view_says_what_is_expected_of_each_worker() {
    let rig = reference(
        "expect 7:0+1~rec 8:0+1~off 9:0+1~mute -> \
        7/0.0 missing; 8/0.0 missing; 9/0.0 missing",
    );
    let view = rig.coordinator.view();
    let publishing: Vec<_> = [7, 8, 9, 10].map(|worker| view.publishing(WorkerId(worker))).to_vec();
    assert_eq!(
        publishing,
        [Some(Publishing::Enabled), Some(Publishing::Disabled), Some(Publishing::Undeclared), None]
    );
    let recovery = [(7, 0), (7, 1), (8, 0), (10, 0)]
        .map(|(worker, rank)| view.recovery_expected(RankKey::new(worker, rank)));
    assert_eq!(recovery, [true, false, false, false]);
    assert_eq!(view.serving_endpoint().as_str(), "serving");
    assert_eq!(view.workers().map(|known| known.worker.0).collect::<Vec<_>>(), [7, 8, 9]);
}

// rule: 3.2/M6
#[test]
fn only_expected_ranks_appear() {
    reference(
        "
        expect 7:2+1 -> 7/2.0 missing
        ad 1 7/3 -> -
        ad 2 9/2 -> -
        expect 7:2+2 -> 7/2.0 missing; 7/3.0 1 live
        ",
    );
}

#[test]
fn one_worker_can_be_set_without_the_others() {
    let rig = reference(
        "
        worker 7:0+1 -> 7/0.0 missing
        worker 8:0+1 -> 7/0.0 missing; 8/0.0 missing
        worker 8:0+1 -> -
        worker 8:0+1~off -> view
        worker 8:0+2~kv -> unresolved 7/0.1 mapping kv,serving; 8/0.1 mapping kv,serving; \
            8/1.1 mapping kv,serving
        gone 7 -> 8/0.2 missing; 8/1.2 missing
        gone 7 -> -
        gone 8 -> none
        ",
    );
    assert_eq!(rig.coordinator.changed_workers(), [WorkerId(8)]);
}

#[test]
fn a_worker_named_twice_counts_as_its_last_entry_says() {
    let rig = reference("expect 7:0+3 8:0+1 7:1+1 -> 7/1.0 missing; 8/0.0 missing");
    assert_eq!(rig.coordinator.stats().workers_repeated, 1);
}
