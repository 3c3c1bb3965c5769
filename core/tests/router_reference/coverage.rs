//! Every rule of the list has a scenario or a test, and every rule that one names is in the list.
//!
//! What shows a rule: a line `# rules: …` in a scenario of `tests/scenarios/rows`, an entry in
//! `tests/rules/router-scenarios.txt` for one of the given scenarios, which are not edited, or a line
//! `// rule: …` in this folder.

use crate::scenarios::all;
use std::collections::BTreeSet;
use std::path::Path;

fn crate_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a list that say something.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Where a rule may be named, and which rules are named there.
fn cited() -> Vec<(String, BTreeSet<String>)> {
    let mut cited = Vec::new();
    for (name, text) in all("rows") {
        let rules: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# rules: ")).collect();
        assert!(!rules.is_empty(), "rows/{name} has no line `# rules: …`");
        cited.push((format!("rows/{name}"), words(&rules.join(" "))));
    }
    let map = crate_file("rules/router-scenarios.txt");
    for line in entries(&map) {
        let (name, rules) = line.split_once(':').expect("`scenario: rules`");
        cited.push((name.to_owned(), words(rules)));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/router_reference");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let source = std::fs::read_to_string(&path).expect("readable");
        let rules: Vec<&str> =
            source.lines().filter_map(|line| line.trim().strip_prefix("// rule: ")).collect();
        cited.push((path.display().to_string(), words(&rules.join(" "))));
    }
    cited
}

#[test]
fn every_rule_is_shown() {
    let list = crate_file("rules/router.txt");
    let listed: BTreeSet<String> = entries(&list).map(str::to_owned).collect();
    assert_eq!(listed.len(), entries(&list).count(), "a rule is listed twice");
    let cited = cited();
    let mut missing = listed.clone();
    for (place, rules) in &cited {
        let unknown: Vec<_> = rules.difference(&listed).collect();
        assert!(unknown.is_empty(), "{place} names rules that the list lacks: {unknown:?}");
        missing.retain(|rule| !rules.contains(rule));
    }
    assert!(missing.is_empty(), "nothing shows {missing:#?}");
}

#[test]
fn every_given_scenario_is_mapped_once() {
    let map = crate_file("rules/router-scenarios.txt");
    let mapped: Vec<String> = entries(&map)
        .map(|line| line.split_once(':').expect("`scenario: rules`").0.to_owned())
        .collect();
    let given: Vec<String> = all("reference/router").into_iter().map(|(name, _)| name).collect();
    assert_eq!(mapped, given, "the map's entries and the scenarios, in order of their names");
}
