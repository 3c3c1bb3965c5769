//! B8: a failure of discovery does not empty the mirror.

use crate::rig::hardened;
use kvmirror_core::time::{Micros, Timestamp};

const START: &str = "
    expect 7:0+3 -> 7/0.0 missing; 7/1.0 missing; 7/2.0 missing
    ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing; 7/2.0 missing
    ad 2 7/1 -> 7/0.0 1 live; 7/1.0 2 live; 7/2.0 missing
    lost -> suspect 7/0.0 1 live; 7/1.0 2 live; 7/2.0 missing
";

// rule: B8
#[test]
fn a_complete_list_applies_the_difference_at_once() {
    let mut rig = hardened(START);
    rig.play(
        "
        ad 3 7/2 -> -
        ad 2 7/1 -> -
        listed -> 7/0.1 missing; 7/1.0 2 live; 7/2.0 3 live
        listed -> -
        wait 61 -> -
        ",
    );
    assert_eq!(rig.coordinator.stats().resynchronised, 1);
    assert_eq!(rig.coordinator.advertisements(), 2);
}

// rule: B8
#[test]
fn an_equal_list_costs_no_reset() {
    let mut rig = hardened(START);
    rig.play(
        "
        ad 2 7/1 -> -
        ad 1 7/0 -> -
        listed -> 7/0.0 1 live; 7/1.0 2 live; 7/2.0 missing
        ",
    );
    let (_, changed) = rig.coordinator.membership().since().expect("it follows one");
    assert!(changed.is_empty(), "only the suspicion has ended");
}

// rule: B8
#[test]
fn after_the_grace_only_what_is_listed_stays() {
    let mut rig = hardened(START);
    assert_eq!(rig.coordinator.next_deadline(), Some(Timestamp::ZERO.after(Micros::from_secs(60))));
    rig.play(
        "
        wait 59 -> -
        ad 2 7/1 -> -
        wait 1 -> 7/0.1 missing; 7/1.0 2 live; 7/2.0 missing
        wait 60 -> -
        del 2 -> 7/0.1 missing; 7/1.1 missing; 7/2.0 missing
        ",
    );
    assert_eq!(rig.coordinator.stats().suspicions_expired, 1);
    assert_eq!(rig.coordinator.next_deadline(), None);
}

// rule: B8
#[test]
fn a_stream_that_flaps_begins_its_list_anew_and_gets_no_more_time() {
    let mut rig = hardened(START);
    rig.play(
        "
        ad 1 7/0 -> -
        wait 30 -> -
        lost -> -
        ad 2 7/1 -> -
        wait 29 -> -
        wait 1 -> 7/0.1 missing; 7/1.0 2 live; 7/2.0 missing
        lost -> suspect 7/0.1 missing; 7/1.0 2 live; 7/2.0 missing
        wait 59 -> -
        ",
    );
    assert_eq!(rig.coordinator.stats().losses, 3);
}

// rule: B8
#[test]
fn records_meanwhile_belong_to_the_new_list() {
    let mut rig = hardened(START);
    rig.play(
        "
        del 1 -> -
        bad 2 -> -
        ad 2 7/1 -> -
        ad 4 7/2 -> -
        ad 5 7/2 -> -
        del 4 -> -
        listed -> 7/0.1 missing; 7/1.1 conflict 2; 7/2.0 5 live
        ",
    );
}

// rule: B8
#[test]
fn expectations_take_effect_at_once() {
    let mut rig = hardened(START);
    rig.play(
        "
        expect 7:1+1 8:0+1 -> suspect 7/1.0 2 live; 8/0.0 missing
        wait 60 -> 7/1.1 missing; 8/0.0 missing
        ",
    );
}

// rule: B8
#[test]
fn another_endpoint_ends_the_suspicion() {
    let mut rig = hardened(START);
    rig.play(
        "
        ad 1 7/0 -> -
        expect 7:0+1~kv -> 7/0.1 missing
        ad 1 7/0 -> -
        ad 9 7/0 @kv -> 7/0.2 9 live
        wait 61 -> -
        ",
    );
}
