//! The scenarios of the reference profile as texts: `coverage.rs` says which rules they show; that they
//! hold is the matter of `core/tests/scenarios.rs`.

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
