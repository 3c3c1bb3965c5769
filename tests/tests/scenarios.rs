//! Every scenario holds: what the machines do is what the file says (`docs/trace-format.md`).

use kvmirror_core::trace::{Mode, replay};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of scenarios, each with a test of its own below.
const DIRECTORIES: [&str; 2] = ["reference/membership", "reference/router"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// The scenarios of `directory`, in order of their names.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of scenarios");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    files
}

fn check(directory: &str) {
    let files = files(&root().join(directory));
    assert!(!files.is_empty(), "{directory} has no scenarios");
    let mut failed = 0;
    for file in &files {
        let text = fs::read_to_string(file).expect("a readable scenario");
        if let Err(failure) = replay(&text, Mode::Check) {
            failed += 1;
            println!("{}: {failure}\n", file.display());
        }
    }
    assert_eq!(failed, 0, "{failed} of {} scenarios in {directory} failed", files.len());
}

#[test]
fn reference_membership() {
    check("reference/membership");
}

#[test]
fn reference_router() {
    check("reference/router");
}

/// The lines of `text` without the one at `index`, and with `other` in its place.
fn with_line(lines: &[&str], index: usize, other: Option<String>) -> String {
    let own = lines.iter().enumerate().filter(|(at, _)| *at != index || other.is_some());
    let line = |(at, line): (usize, &&str)| match &other {
        Some(other) if at == index => other.clone(),
        Some(_) | None => (*line).to_owned(),
    };
    own.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_expected_line_can_be_left_out_or_be_about_another_epoch() {
    let mut tried = 0;
    for directory in DIRECTORIES {
        for file in files(&root().join(directory)) {
            let text = fs::read_to_string(&file).expect("a readable scenario");
            let lines: Vec<&str> = text.lines().collect();
            for (index, line) in lines.iter().enumerate() {
                if !line.starts_with("{\"out\"") {
                    continue;
                }
                let without = with_line(&lines, index, None);
                let place = format!("{}:{}", file.display(), index + 1);
                assert!(replay(&without, Mode::Check).is_err(), "{place} can be left out");
                for (key, other) in [("epoch", "999"), ("ids", "[999]"), ("query", "999")] {
                    if let Some(changed) = with_other(line, key, other) {
                        let changed = with_line(&lines, index, Some(changed));
                        assert!(replay(&changed, Mode::Check).is_err(), "{place}: {key}");
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

/// The line with another value in the field `key` of its output, if it has such a field.
fn with_other(line: &str, key: &str, other: &str) -> Option<String> {
    let mut line: serde_json::Value = serde_json::from_str(line).ok()?;
    let output = line.get_mut("out")?.as_object_mut()?.values_mut().next()?;
    let field = output.get_mut(key)?;
    *field = serde_json::from_str(other).ok()?;
    Some(line.to_string())
}

#[test]
fn rewriting_a_scenario_changes_nothing_but_what_its_lines_leave_out() {
    for directory in DIRECTORIES {
        for file in files(&root().join(directory)) {
            let text = fs::read_to_string(&file).expect("a readable scenario");
            let place = file.display();
            let rewritten = replay(&text, Mode::Rewrite).unwrap_or_else(|e| panic!("{place}: {e}"));
            for mode in [Mode::Check, Mode::Exact] {
                replay(&rewritten, mode).unwrap_or_else(|e| panic!("{place}: {e}"));
            }
            assert_eq!(replay(&rewritten, Mode::Rewrite).as_ref(), Ok(&rewritten), "{place}");
            let kept = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| !line.starts_with("{\"out\""));
                lines.map(str::to_owned).collect()
            };
            assert_eq!(kept(&rewritten), kept(&text), "{place}");
        }
    }
}

#[test]
fn every_directory_with_scenarios_has_a_test() {
    let mut found = BTreeSet::new();
    let mut open = vec![root()];
    while let Some(directory) = open.pop() {
        if !files(&directory).is_empty() {
            let path = directory.strip_prefix(root()).expect("below the root");
            found.insert(path.to_string_lossy().replace('\\', "/"));
        }
        let entries = fs::read_dir(&directory).expect("a directory");
        open.extend(entries.map(|entry| entry.expect("an entry").path()).filter(|p| p.is_dir()));
    }
    assert_eq!(found, DIRECTORIES.map(String::from).into());
}
