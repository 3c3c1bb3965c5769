//! §3.4: the status of a rank; each row against all that come after it.

use crate::rig::reference;

// rule: 3.4/1
#[test]
fn an_ambiguous_mapping_comes_first() {
    reference(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 7/1.0 missing
        bad 1 -> 7/0.1 conflict 1; 7/1.0 missing
        expect 7:0+2 8:0+0~kv -> unresolved 7/0.2 mapping kv,serving; 7/1.1 mapping kv,serving
        ",
    );
}

// rule: 3.4/2
#[test]
fn a_contradiction_comes_before_several_incarnations() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 3 7/0 -> 7/0.0 3 live
        ad 2 7/0 -> 7/0.1 ambiguous 2,3
        bad 3 -> 7/0.2 conflict 3
        bad 2 -> 7/0.3 conflict 2
        del 2 -> 7/0.4 conflict 3
        ",
    );
}

// rule: 3.4/3
#[test]
fn no_record_is_missing() {
    reference("expect 7:0+1 -> 7/0.0 missing");
}

// rule: 3.4/4
#[test]
fn several_records_are_ambiguous_whatever_their_numbers() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 205 7/0 5 -> 7/0.0 205 t5
        ad 100 7/0 -> 7/0.1 ambiguous 100,205
        ad 18446744073709551615 7/0 -> 7/0.2 ambiguous 100,205,18446744073709551615
        ",
    );
}

// rule: 3.4/5
// rule: 3.4/6
#[test]
fn one_record_is_active_with_or_without_a_target() {
    reference(
        "
        expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing
        ad 1 7/0 0 -> 7/0.0 1 t0; 7/1.0 missing
        ad 2 7/1 -> 7/0.0 1 t0; 7/1.0 2 live
        ",
    );
}
