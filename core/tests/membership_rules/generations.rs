//! §3.6: lifecycle generations, cell by cell.

use crate::rig::{Rig, reference};
use kvmirror_core::membership::MembershipPolicy;

/// One rank, 7/0. `E` = it is expected, `X` = it is not.
fn cell(policy: MembershipPolicy, before: &str, now: &str, want: &str) {
    let mut rig = Rig::new(policy);
    for input in before.split(", ").filter(|input| !input.is_empty()).chain([now]) {
        let _ = rig.feed(match input {
            "E" => "expect 7:0+1",
            "X" => "expect",
            other => other,
        });
    }
    assert_eq!(rig.render(), want, "{before}, then {now}");
}

/// The reference's generations, but able to skip views: a new list is applied as a whole.
const LISTS: MembershipPolicy =
    MembershipPolicy { suspect_discovery: true, quarantine: true, ..MembershipPolicy::REFERENCE };

#[test]
fn needs_reset() {
    let r = MembershipPolicy::REFERENCE;
    for (policy, before, now, want) in [
        // rule: 3.6/none-missing
        (r, "", "E", "7/0.0 missing"),
        (r, "E, X", "E", "7/0.0 missing"),
        (r, "E, ad 1 7/0, X, del 1", "E", "7/0.2 missing"),
        // rule: 3.6/none-active
        (r, "ad 1 7/0", "E", "7/0.0 1 live"),
        (r, "E, X, ad 1 7/0", "E", "7/0.0 1 live"),
        (r, "E, ad 1 7/0, X", "E", "7/0.2 1 live"),
        // rule: 3.6/none-ambiguous
        (r, "ad 1 7/0, ad 2 7/0", "E", "7/0.0 ambiguous 1,2"),
        (r, "E, ad 1 7/0, X, ad 2 7/0", "E", "7/0.2 ambiguous 1,2"),
        // rule: 3.6/missing-missing
        (r, "E", "lost", "7/0.0 missing"),
        (r, "E, ad 1 7/0, del 1", "lost", "7/0.1 missing"),
        // rule: 3.6/missing-active
        (r, "E", "ad 1 7/0", "7/0.0 1 live"),
        (r, "E", "ad 1 7/0 5", "7/0.0 1 t5"),
        (r, "E, ad 1 7/0, del 1", "ad 1 7/0", "7/0.2 1 live"),
        // rule: 3.6/missing-ambiguous
        (LISTS, "E, bad 1", "ad 1 7/0", "7/0.1 conflict 1"),
        (LISTS, "E, lost, ad 1 7/0, ad 2 7/0", "listed", "7/0.1 ambiguous 1,2"),
        // rule: 3.6/active-missing
        (r, "E, ad 1 7/0", "del 1", "7/0.1 missing"),
        // rule: 3.6/active-same
        (r, "E, ad 1 7/0 5", "ad 1 7/0 5", "7/0.0 1 t5"),
        (LISTS, "E, ad 1 7/0 5, lost, ad 1 7/0 5", "listed", "7/0.0 1 t5"),
        // rule: 3.6/active-other
        (LISTS, "E, ad 1 7/0, lost, ad 2 7/0", "listed", "7/0.1 2 live"),
        (LISTS, "E, ad 1 7/0 5, lost, ad 1 7/0 6", "listed", "7/0.1 1 t6"),
        (LISTS, "E, ad 1 7/0 5, lost, ad 1 7/0", "listed", "7/0.1 1 live"),
        (LISTS, "E, ad 1 7/0 boot=1, lost, ad 1 7/0 boot=2", "listed", "7/0.1 1 live"),
        // rule: 3.6/active-ambiguous
        (r, "E, ad 1 7/0", "ad 2 7/0", "7/0.1 ambiguous 1,2"),
        (r, "E, ad 1 7/0", "bad 1", "7/0.1 conflict 1"),
        // rule: 3.6/ambiguous-missing
        (r, "E, ad 1 7/0, bad 1", "del 1", "7/0.2 missing"),
        // rule: 3.6/ambiguous-active
        (r, "E, ad 1 7/0, ad 2 7/0", "del 1", "7/0.2 2 live"),
        (r, "ad 1 7/0, ad 2 7/0, E", "del 1", "7/0.1 2 live"),
        // rule: 3.6/ambiguous-same
        (r, "E, ad 1 7/0, ad 2 7/0", "ad 2 7/0", "7/0.1 ambiguous 1,2"),
        (r, "E, ad 1 7/0, ad 2 7/0, bad 1", "ad 3 7/0", "7/0.2 conflict 1"),
        // rule: 3.6/ambiguous-other
        (r, "E, ad 1 7/0, ad 2 7/0", "ad 3 7/0", "7/0.2 ambiguous 1,2,3"),
        (r, "E, ad 1 7/0, ad 2 7/0", "bad 1", "7/0.2 conflict 1"),
        (r, "E, ad 1 7/0, ad 2 7/0, bad 2", "bad 1", "7/0.3 conflict 1"),
    ] {
        cell(policy, before, now, want);
    }
}

// rule: 3.6/G1
#[test]
fn a_remap_is_one_step_for_every_expected_rank() {
    reference(
        "
        expect 7:0+2~a -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 @a -> 7/0.0 1 live; 7/1.0 missing
        expect 7:0+3~b -> 7/0.1 missing; 7/1.1 missing; 7/2.1 missing
        expect 7:0+1~b 8:0+1~a -> unresolved 7/0.2 mapping a,b; 8/0.1 mapping a,b
        expect 7:0+1~b 8:0+1~c -> unresolved 7/0.3 mapping b,c; 8/0.2 mapping b,c
        expect 7:0+1~b 8:0+2~c -> unresolved 7/0.3 mapping b,c; 8/0.2 mapping b,c; 8/1.0 mapping b,c
        ",
    );
}

// rule: 3.6/G2
#[test]
fn one_view_is_one_step_even_when_several_reasons_meet() {
    // Remapped, and away from an active source.
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        expect 7:0+1~kv -> 7/0.1 missing
        ad 1 7/0 @kv -> 7/0.2 1 live
        ",
    );
}

// rule: 3.6/G3
#[test]
fn leaving_is_a_step_only_after_having_been_active() {
    reference(
        "
        expect 7:0+1 8:0+1 9:0+1 -> 7/0.0 missing; 8/0.0 missing; 9/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 8/0.0 missing; 9/0.0 missing
        expect 9:0+1 -> 9/0.0 missing
        expect 9:0+1~rec -> view
        expect -> none
        expect 7:0+1 8:0+1 -> 7/0.2 1 live; 8/0.0 missing
        ",
    );
}

// rule: 3.6/G4
#[test]
fn a_consumer_that_missed_views_sees_another_generation() {
    let mut rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        ",
    );
    let before = rig.coordinator.membership().clone();
    for missed in ["ad 2 7/0", "del 2"] {
        let _ = rig.feed(missed);
    }
    let (before, after) = (before.ranks().next(), rig.coordinator.membership().ranks().next());
    let (before, after) = (before.expect("7/0"), after.expect("7/0"));
    assert_eq!(before.status, after.status, "the same source");
    assert!(before.generation < after.generation, "but not undisturbed");
}

// rule: 3.6/G5
#[test]
fn the_reference_forgets_no_rank() {
    let rig = reference(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing
        expect -> none
        ",
    );
    assert_eq!(rig.coordinator.tracked_ranks(), 2);
    assert_eq!(rig.coordinator.stats().forgotten, 0);
}

// rule: 3.6/G6
#[test]
fn the_tracker_sees_views_that_are_not_sent() {
    // The first view resolves to the serving endpoint and shows nothing; the next one is a remap.
    reference(
        "
        ad 1 7/0 -> -
        expect 7:0+1~kv -> 7/0.1 missing
        ",
    );
    // Without an input before it there is no resolution to differ from.
    reference("expect 7:0+1~kv -> 7/0.0 missing");
}
