//! The seven rules of "how --check compares", and `--exact`.

use super::super::{Mode, ReplayFailure};
use super::{check, run};
use alloc::format;
use alloc::string::String;

const R1: &str =
    r#"{"reset":{"worker":1,"rank":0,"epoch":3,"reason":"lifecycle","domain":"all","op":7}}"#;
const R2: &str =
    r#"{"reset":{"worker":2,"rank":0,"epoch":3,"reason":"lifecycle","domain":"all","op":8}}"#;
const Q1: &str = r#"{"query":{"worker":1,"rank":0,"publisher":9,"target":"t","start":null,"end":null,"query":4}}"#;
const Q2: &str =
    r#"{"query":{"worker":2,"rank":0,"publisher":8,"target":"u","start":5,"end":null,"query":6}}"#;
const C1: &str = r#"{"cancel":{"query":4}}"#;
const REPLY: &str = r#"{"reply":{"worker":1,"rank":0,"disposition":"stale"}}"#;
const LOST: &str = r#"{"reply":{"publisher":9,"fenced":true}}"#;
const DONE1: &str = r#"{"note":{"kind":"initial_recovery_complete","worker":1,"rank":0}}"#;
const DONE2: &str = r#"{"note":{"kind":"initial_recovery_complete","worker":2,"rank":0}}"#;
const GAP: &str = r#"{"note":{"kind":"gap","worker":1,"rank":0,"expected":1,"got":3}}"#;

fn admit(worker: u64, ids: &[u64], op: u64) -> String {
    let events: String = ids
        .iter()
        .map(|id| format!(r#"{{"id":{id},"remove":[{id}]}}"#))
        .collect::<alloc::vec::Vec<_>>()
        .join(",");
    format!(
        r#"{{"admit":{{"worker":{worker},"rank":0,"epoch":3,"ids":{ids:?},"events":[{events}],"op":{op}}}}}"#
    )
}

#[test]
fn rule_1_all_outputs_of_a_step_are_compared() {
    assert_eq!(check(&[(&[R1, Q1], &[R1, Q1])]), Ok(()));
    assert!(check(&[(&[R1], &[R1, Q1])]).unwrap_err().contains("nothing more came of rank 1/0"));
    assert!(check(&[(&[R1, Q1], &[R1])]).unwrap_err().contains("rank 1/0: unexpected query"));
    assert!(check(&[(&[R1], &[R1]), (&[], &[R1])]).is_err());
}

#[test]
fn rule_2_order_matters_within_a_rank_only() {
    assert_eq!(check(&[(&[R1, Q1, R2, Q2], &[R2, R1, Q2, Q1])]), Ok(()));
    let swapped = check(&[(&[R1, Q1], &[Q1, R1])]).unwrap_err();
    assert_eq!(swapped, "rank 1/0: a reset came, expected a query");
}

#[test]
fn rule_2_a_cancel_belongs_to_the_rank_of_its_query() {
    let label = r#"{"query":{"worker":1,"rank":0,"query":"q"}}"#;
    let cancel = r#"{"cancel":{"query":"q"}}"#;
    let asked: (&[&str], &[&str]) = (&[Q1], &[label]);
    // Between the other rank's commands, and behind them.
    assert_eq!(check(&[asked, (&[C1, R2, R1], &[R2, cancel, R1])]), Ok(()));
    assert!(check(&[asked, (&[R1, C1], &[cancel, R1])]).is_err());
    assert!(check(&[asked, (&[C1, R1], &[R1, cancel])]).is_err());
    // Query and cancel in one step.
    assert_eq!(check(&[(&[Q1, R2, C1, R1], &[R2, label, cancel, R1])]), Ok(()));
    // Another query's.
    let other = r#"{"cancel":{"query":"other"}}"#;
    assert!(check(&[asked, (&[C1], &[other])]).is_err());
    // By number, and without saying which.
    assert_eq!(check(&[asked, (&[C1, R1], &[C1, R1])]), Ok(()));
    assert_eq!(check(&[asked, (&[C1, R1], &[r#"{"cancel":{}}"#, R1])]), Ok(()));
}

#[test]
fn rule_2_replies_are_ordered_among_themselves_only() {
    assert_eq!(check(&[(&[R1, REPLY, LOST], &[REPLY, LOST, R1])]), Ok(()));
    assert!(check(&[(&[REPLY, LOST], &[LOST, REPLY])]).is_err());
}

#[test]
fn rule_3_only_the_fields_of_a_line_are_compared() {
    assert_eq!(check(&[(&[R1, R2], &[r#"{"reset":{"epoch":3}}"#, r#"{"reset":{}}"#])]), Ok(()));
    let error = check(&[(&[R1], &[r#"{"reset":{"worker":1,"rank":0,"epoch":4}}"#])]).unwrap_err();
    assert_eq!(error, "rank 1/0: `epoch` is 3, expected 4");
    let one = admit(1, &[1, 2], 7);
    let with = |ids: &str| format!(r#"{{"admit":{{"worker":1,"rank":0,"ids":{ids}}}}}"#);
    assert_eq!(check(&[(&[&one], &[&with("[1,2]")])]), Ok(()));
    for ids in ["[1]", "[1,2,3]", "[2,1]", "[]", "1"] {
        assert!(check(&[(&[&one], &[&with(ids)])]).is_err(), "{ids}");
    }
    let events = |events: &str| format!(r#"{{"admit":{{"events":{events}}}}}"#);
    assert_eq!(check(&[(&[&one], &[&events(r#"[{"id":1},{"remove":[2]}]"#)])]), Ok(()));
    assert!(check(&[(&[&one], &[&events(r#"[{"id":1},{"remove":[3]}]"#)])]).is_err());
    assert!(check(&[(&[&one], &[&events(r#"[{"id":1}]"#)])]).is_err());
}

#[test]
fn rule_3_a_line_without_a_rank_takes_the_first_that_fits() {
    let second = r#"{"reset":{"epoch":3,"worker":2}}"#;
    assert_eq!(check(&[(&[R1, R2], &[second, R1])]), Ok(()));
    assert!(check(&[(&[R1], &[second])]).is_err());
}

#[test]
fn rule_4_adjacent_admits_count_as_one() {
    let (a, b, ab) = (admit(1, &[1], 7), admit(1, &[2, 3], 8), admit(1, &[1, 2, 3], 9));
    let ids = |ids: &str| format!(r#"{{"admit":{{"worker":1,"rank":0,"epoch":3,"ids":{ids}}}}}"#);
    assert_eq!(check(&[(&[&a, &b], &[&ids("[1,2,3]")])]), Ok(()));
    assert_eq!(check(&[(&[&ab], &[&ids("[1]"), &ids("[2,3]")])]), Ok(()));
    assert_eq!(check(&[(&[&a, &b], &[&ids("[1,2]"), &ids("[3]")])]), Ok(()));
    assert!(check(&[(&[&a, &b], &[&ids("[1,2]"), &ids("[4]")])]).is_err());
    // Another rank's command does not come between them; one of their own rank does.
    assert_eq!(check(&[(&[&a, R2, &b], &[&ids("[1,2,3]"), R2])]), Ok(()));
    assert_eq!(check(&[(&[&ab, R2], &[&ids("[1]"), R2, &ids("[2,3]")])]), Ok(()));
    assert!(check(&[(&[&a, R1, &b], &[&ids("[1,2,3]"), R1])]).is_err());
    assert!(check(&[(&[&a, R1, &b], &[&ids("[1]"), R1, &ids("[2,3]")])]).is_ok());
    // Not over steps, and not over epochs.
    assert!(check(&[(&[&a], &[&ids("[1,2,3]")]), (&[&b], &[])]).is_err());
    let later = b.replace("\"epoch\":3", "\"epoch\":4");
    assert!(check(&[(&[&a, &later], &[&ids("[1,2,3]")])]).is_err());
    // What one says and the other does not cannot be joined.
    let silent = r#"{"admit":{"worker":1,"rank":0,"epoch":3}}"#;
    assert!(check(&[(&[&a, &b], &[&ids("[1]"), silent])]).unwrap_err().contains("count as one"));
    assert_eq!(check(&[(&[&a, &b], &[silent, silent])]), Ok(()));
}

#[test]
fn rule_4_labels_of_joined_admits_are_bound() {
    let line = |ids: &str, op: &str| {
        format!(r#"{{"admit":{{"worker":1,"rank":0,"epoch":3,"ids":{ids},"op":{op}}}}}"#)
    };
    let (a, b, ab) = (admit(1, &[1], 7), admit(1, &[2], 8), admit(1, &[1, 2], 9));
    let reset = |op: &str| format!(r#"{{"reset":{{"op":{op}}}}}"#);
    let (a_line, b_line) = (line("[1]", "\"a\""), line("[2]", "\"b\""));
    let (r7, r8, r9) = (R1, R2, R1.replace("\"op\":7", "\"op\":9"));
    // One each.
    let both: (&[&str], &[&str]) = (&[&a, &b], &[&a_line, &b_line]);
    assert_eq!(check(&[both, (&[r7], &[&reset("\"a\"")]), (&[r8], &[&reset("\"b\"")])]), Ok(()));
    assert!(check(&[both, (&[r7], &[&reset("\"b\"")])]).is_err());
    // One label for two commands is the last one's; two for one are both that one's.
    let ab_line = line("[1,2]", "\"ab\"");
    assert_eq!(check(&[(&[&a, &b], &[&ab_line]), (&[r8], &[&reset("\"ab\"")])]), Ok(()));
    let shared: (&[&str], &[&str]) = (&[&ab], &[&a_line, &b_line]);
    assert_eq!(
        check(&[shared, (&[&r9], &[&reset("\"b\"")]), (&[&r9], &[&reset("\"a\"")])]),
        Ok(())
    );
}

#[test]
fn rule_5_labels_bind_once_and_numbers_are_exact() {
    let reset = |op: &str| format!(r#"{{"reset":{{"worker":1,"rank":0,"op":{op}}}}}"#);
    let again = R1.replace("\"op\":7", "\"op\":9");
    assert_eq!(check(&[(&[R1], &[&reset("\"o1\"")]), (&[&again], &[&reset("\"o2\"")])]), Ok(()));
    assert!(check(&[(&[R1], &[&reset("\"o1\"")]), (&[&again], &[&reset("\"o1\"")])]).is_err());
    assert!(check(&[(&[R1], &[&reset("\"o1\"")]), (&[R1], &[&reset("\"o2\"")])]).is_err());
    assert_eq!(check(&[(&[R1], &[&reset("7")])]), Ok(()));
    let error = check(&[(&[R1], &[&reset("8")])]).unwrap_err();
    assert_eq!(error, "rank 1/0: `op` is 7, expected 8");
    // A text is a label also when it looks like a number.
    assert_eq!(check(&[(&[R1], &[&reset("\"0x8\"")])]), Ok(()));
}

#[test]
fn rule_6_notes_count_only_where_one_is_expected() {
    assert_eq!(check(&[(&[DONE1, R1, GAP], &[R1])]), Ok(()));
    assert_eq!(check(&[(&[GAP], &[])]), Ok(()));
    assert_eq!(check(&[(&[DONE1], &[DONE1])]), Ok(()));
    assert!(check(&[(&[], &[DONE1])]).is_err());
    assert!(check(&[(&[DONE1, DONE2], &[DONE1])]).unwrap_err().contains("unexpected note"));
    assert_eq!(check(&[(&[DONE1, DONE2], &[DONE2, DONE1])]), Ok(()));
    // A kind that no line of the step names is not compared.
    assert_eq!(check(&[(&[GAP, DONE1], &[DONE1])]), Ok(()));
    assert!(check(&[(&[GAP, DONE1], &[DONE1, r#"{"note":{"worker":1}}"#])]).is_err());
}

#[test]
fn rule_7_a_step_without_lines_has_no_command() {
    assert_eq!(check(&[(&[], &[])]), Ok(()));
    assert!(check(&[(&[R1], &[])]).is_err());
    assert!(check(&[(&[REPLY], &[])]).is_err());
}

#[test]
fn lines_that_no_machine_can_meet_are_refused() {
    for line in [
        r#"{"resett":{}}"#,
        r#"{"reset":{"worker":1,"ranks":0}}"#,
        r#"{"reset":[]}"#,
        r#"{"reset":{},"query":{}}"#,
        "{}",
        r#"{"reset":{"op":1.5}}"#,
        r#"{"cancel":{"query":null}}"#,
    ] {
        let failure = run(Mode::Check, true, &[(&[R1], &[line])]).unwrap_err();
        assert!(matches!(failure, ReplayFailure::Trace(_)), "{line}: {failure}");
    }
}

fn exact(manual: bool, got: &[&str], expected: &[&str]) -> bool {
    run(Mode::Exact, manual, &[(got, expected)]).is_ok()
}

#[test]
fn exact_wants_every_field_and_every_line_in_order() {
    assert!(exact(true, &[R1, Q2, REPLY], &[R1, Q2, REPLY]));
    assert!(!exact(true, &[R1, Q2], &[Q2, R1]));
    assert!(!exact(true, &[R1], &[&R1.replace("\"epoch\":3,", "")]));
    assert!(!exact(true, &[R1], &[&R1.replace("lifecycle", "target_fault")]));
    assert!(!exact(true, &[R1, R2], &[R1]));
    assert!(!exact(true, &[R1], &[R1, R2]));
    assert!(!exact(true, &[Q1], &[&Q1.replace(",\"query\":4", "")]));
    let (a, b, ab) = (admit(1, &[1], 7), admit(1, &[2, 3], 8), admit(1, &[1, 2, 3], 7));
    assert!(exact(true, &[&a, &b], &[&a, &b]));
    assert!(!exact(true, &[&a, &b], &[&ab]));
    // Spelling is of no consequence: numbers as texts, order of fields.
    assert!(exact(true, &[R1], &[&R1.replace("\"epoch\":3", "\"epoch\":\"0x3\"")]));
    // Notes as everywhere: if one is expected, all are.
    assert!(exact(true, &[R1, GAP], &[R1]));
    assert!(exact(true, &[DONE1, GAP], &[DONE1, GAP]));
    assert!(!exact(true, &[DONE1, GAP], &[DONE1]));
}

#[test]
fn exact_wants_the_op_where_it_can_be_seen() {
    let hidden = R1.replace(",\"op\":7", "");
    assert!(!exact(true, &[R1], &[&hidden]));
    assert!(exact(false, &[R1], &[&hidden]));
    assert!(exact(false, &[R1], &[R1]));
}
