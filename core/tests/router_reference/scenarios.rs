//! The scenarios that this folder adds hold; `coverage.rs` reads which rules they show.

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
fn the_rows_hold() {
    let scenarios = all("rows");
    assert!(!scenarios.is_empty(), "no scenarios");
    let mut failed = 0;
    for (name, text) in &scenarios {
        assert!(
            text.contains(&format!("\"name\":\"{name}\"")),
            "{name} is called otherwise inside"
        );
        if let Err(failure) = replay(text, Mode::Check) {
            failed += 1;
            println!("{name}: {failure}\n");
        }
    }
    assert_eq!(failed, 0, "{failed} of {} scenarios failed", scenarios.len());
}
