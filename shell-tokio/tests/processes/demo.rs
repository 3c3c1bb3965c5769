//! `kvmirror demo`.

use crate::process::{PATIENCE, Process};
use serde_json::Value;

fn run(arguments: &str) -> (Option<i32>, Value) {
    let mut demo = Process::start(&format!("demo --seconds 3 --json {arguments}"));
    let code = demo.code_within(PATIENCE);
    let out = demo.out();
    let [line] = out.as_slice() else { panic!("one line expected: {out:?}") };
    (code, serde_json::from_str(line).expect("JSON"))
}

#[test]
fn it_proves_that_every_mirror_is_equal() {
    let (code, proof) = run("");
    assert_eq!((code, &proof["equal"]), (Some(0), &Value::Bool(true)), "{proof}");
}

#[test]
fn a_falsified_block_is_found() {
    let (code, proof) = run("--tamper");
    assert_eq!((code, &proof["equal"]), (Some(1), &Value::Bool(false)), "{proof}");
    let differences = |what: &str| -> Vec<u64> {
        let ranks = proof["ranks"].as_array().expect("ranks");
        ranks.iter().map(|rank| rank[what].as_u64().expect("a count")).collect()
    };
    assert_eq!(differences("missing").iter().sum::<u64>(), 1, "{proof}");
    assert_eq!(differences("extra").iter().sum::<u64>(), 1, "{proof}");
}
