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
