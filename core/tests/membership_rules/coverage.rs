//! Every rule of the list has a test, and every test's rule is in the list.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_rule_is_cited_by_a_test() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).expect("readable");
    let list = read(&crate_folder.join("tests/rules/membership.txt"));
    let listed: BTreeSet<&str> =
        list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let folder = std::fs::read_dir(crate_folder.join("tests/membership_rules"));
    let sources: Vec<String> = folder
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| read(&path))
        .collect();
    let cited: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| line.trim().strip_prefix("// rule: "))
        .collect();
    let missing: Vec<_> = listed.difference(&cited).collect();
    let unknown: Vec<_> = cited.difference(&listed).collect();
    assert!(missing.is_empty(), "no test cites {missing:?}");
    assert!(unknown.is_empty(), "the list lacks {unknown:?}");
}
