//! §3.3: what becomes of a record of discovery.

use crate::rig::{hardened, reference};

// rule: 3.3/1
#[test]
fn a_record_of_another_endpoint_is_ignored() {
    let rig = reference(
        "
        expect 7:0+1~kv -> 7/0.0 missing
        ad 1 7/0 -> -
        ad 1 7/0 @other -> -
        ad 1 7/0 @kv -> 7/0.0 1 live
        ad 1 7/0 5 @other -> -
        ",
    );
    assert_eq!(rig.coordinator.stats().other_endpoint, 3);
}

// rule: 3.3/2-known
#[test]
fn a_malformed_record_of_a_known_publisher_closes_its_rank() {
    reference(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing
        bad 1 -> 7/0.1 conflict 1; 7/1.0 missing
        bad 1 -> -
        ad 1 7/0 -> -
        del 1 -> 7/0.2 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.3 1 live; 7/1.0 missing
        ",
    );
}

// rule: 3.3/2-unknown
#[test]
fn a_malformed_record_of_an_unknown_publisher_is_ignored() {
    let rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        bad 1 -> -
        ad 1 7/0 -> 7/0.0 1 live
        ",
    );
    assert_eq!(rig.coordinator.stats().invalid_ignored, 1);
}

// rule: W-V3
#[test]
fn hardened_a_malformed_record_is_held_against_an_unknown_publisher() {
    let rig = hardened(
        "
        expect 7:0+1 -> 7/0.0 missing
        bad 1 -> -
        ad 1 7/0 -> 7/0.1 conflict 1
        del 1 -> 7/0.2 missing
        ad 1 7/0 -> 7/0.2 1 live
        del 1 -> 7/0.3 missing
        bad 1 -> -
        del 1 -> -
        ad 1 7/0 -> 7/0.4 1 live
        ",
    );
    assert_eq!(rig.coordinator.stats().quarantined, 2);
}

// rule: 3.3/3
// rule: 3.3/4
#[test]
fn an_unknown_publisher_is_inserted_and_repeating_it_changes_nothing() {
    let rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 5 -> 7/0.0 1 t5
        ad 1 7/0 5 -> -
        ",
    );
    assert_eq!(rig.coordinator.advertisements(), 1);
    assert_eq!(rig.coordinator.stats().conflicts, 0);
}

// rule: 3.3/5
#[test]
fn any_other_description_of_a_known_publisher_is_a_contradiction() {
    for other in ["ad 1 7/0", "ad 1 7/0 6", "ad 1 7/1 5", "ad 1 7/0 5 boot=1"] {
        let mut rig = reference(
            "
            expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
            ad 1 7/0 5 -> 7/0.0 1 t5; 7/1.0 missing
            ",
        );
        assert_eq!(rig.feed(other), "7/0.1 conflict 1; 7/1.0 missing", "{other}");
        assert_eq!(rig.feed("ad 1 7/0 5"), "-", "the first description again does not mend it");
        assert_eq!(rig.feed("del 1"), "7/0.2 missing; 7/1.0 missing", "the other was not stored");
    }
}

// rule: W-V3
#[test]
fn hardened_a_second_claim_closes_the_second_rank_too() {
    hardened(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 2 7/1 -> 7/0.0 missing; 7/1.0 2 live
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 2 live
        ad 1 7/1 -> 7/0.1 conflict 1; 7/1.1 conflict 1
        ad 1 7/1 -> -
        del 1 -> 7/0.2 missing; 7/1.2 2 live
        ",
    );
}

// rule: 3.3/6
#[test]
fn a_withdrawal_at_another_endpoint_is_ignored() {
    reference(
        "
        expect 7:0+1~kv -> 7/0.0 missing
        ad 1 7/0 @kv -> 7/0.0 1 live
        del 1 -> -
        del 1 @other -> -
        del 1 @kv -> 7/0.1 missing
        ",
    );
}

// rule: 3.3/7
#[test]
fn a_withdrawal_of_an_unknown_publisher_changes_nothing() {
    let rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        del 2 -> -
        ",
    );
    assert_eq!(rig.coordinator.stats().unknown_withdrawals, 1);
}

// rule: 3.3/8
#[test]
fn a_withdrawal_takes_exactly_one_incarnation_and_its_mark() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        ad 2 7/0 -> 7/0.1 ambiguous 1,2
        bad 2 -> 7/0.2 conflict 2
        del 2 -> 7/0.3 1 live
        del 2 -> -
        ",
    );
}

// rule: 3.3/9
// rule: 3.3/10
#[test]
fn a_stream_that_fails_or_ends_takes_everything() {
    let rig = reference(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing
        ad 2 7/1 -> 7/0.0 1 live; 7/1.0 2 live
        bad 2 -> 7/0.0 1 live; 7/1.1 conflict 2
        lost -> 7/0.1 missing; 7/1.2 missing
        lost -> -
        ad 2 7/1 -> 7/0.1 missing; 7/1.3 2 live
        ",
    );
    assert_eq!(rig.coordinator.advertisements(), 1);
}

// rule: 3.3/11
#[test]
fn another_endpoint_takes_everything() {
    let rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        expect 7:0+1~kv -> 7/0.1 missing
        expect 7:0+1 -> 7/0.2 missing
        ",
    );
    assert_eq!(rig.coordinator.advertisements(), 0);
}
