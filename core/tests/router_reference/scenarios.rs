//! The scenarios of the reference profile hold; `coverage.rs` says which rules they show.

use kvmirror_core::trace::{Mode, replay};
use std::path::{Path, PathBuf};

/// A folder of scenarios of the repository.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios").join(name)
}

/// Name and text of every scenario of a folder, in order of the names.
pub(crate) fn all(name: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder(name)).expect("a folder of scenarios");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("a readable scenario"))
    };
    files.into_iter().map(read).collect()
}

#[test]
fn they_hold() {
    for folder in ["rows", "reference/router"] {
        let scenarios = all(folder);
        assert!(!scenarios.is_empty(), "{folder} has no scenarios");
        let mut failed = 0;
        for (name, text) in &scenarios {
            let named = text.contains(&format!("\"name\":\"{name}\""));
            assert!(named, "{folder}/{name} is called otherwise inside");
            if let Err(failure) = replay(text, Mode::Check) {
                failed += 1;
                println!("{folder}/{name}: {failure}\n");
            }
        }
        assert_eq!(failed, 0, "{failed} of {} scenarios in {folder} failed", scenarios.len());
    }
}
