//! Every scenario holds: what the machines do is what the file says (`docs/trace-format.md`).

use kvmirror_core::trace::{Mode, replay};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of scenarios, each with a test of its own below.
const DIRECTORIES: [&str; 5] =
    ["hardened", "reference/membership", "reference/router", "rows", "without"];

/// The improvements of the hardened profile that concern router and membership, by their numbers
/// (`docs/rules.md`).
const IMPROVEMENTS: [u32; 22] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 32, 33, 34, 35, 37];

/// The one that has no knob: what it shows is always shown.
const ALWAYS: u32 = 16;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios")
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
    let failed: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let text = fs::read_to_string(file).expect("a readable scenario");
            let failure = replay(&text, Mode::Check).err()?;
            Some(format!("{}:{failure}", file.display()))
        })
        .collect();
    let (count, all) = (failed.len(), files.len());
    assert!(count == 0, "{count} of {all} scenarios failed:\n{}", failed.join("\n\n"));
}

#[test]
fn hardened() {
    check("hardened");
}

#[test]
fn rows() {
    check("rows");
}

#[test]
fn without() {
    check("without");
}

#[test]
fn reference_membership() {
    check("reference/membership");
}

#[test]
fn reference_router() {
    check("reference/router");
}

/// Their expectations leave nothing out: each snapshot is compared in full.
#[test]
fn reference_membership_says_everything() {
    for file in files(&root().join("reference/membership")) {
        let text = fs::read_to_string(&file).expect("a readable scenario");
        let rewritten = replay(&text, Mode::Rewrite).unwrap_or_else(|e| panic!("{e}"));
        let said = |text: &str| -> Vec<serde_json::Value> {
            let lines = text.lines().filter(|line| line.starts_with("{\"out\""));
            lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
        };
        assert_eq!(said(&text), said(&rewritten), "{}", file.display());
    }
}

/// Which improvement a scenario is about, by its name: `b01-self-heal.jsonl`.
fn improvement(file: &Path) -> u32 {
    let name = file.file_name().expect("a name").to_string_lossy();
    let number = name.strip_prefix('b').and_then(|rest| rest.split_once('-'));
    let number = number.and_then(|(number, _)| number.parse().ok());
    number.unwrap_or_else(|| panic!("{} is not named after an improvement", file.display()))
}

#[test]
fn every_improvement_has_a_scenario_with_it_and_one_without_it() {
    for directory in ["hardened", "without"] {
        let shown: BTreeSet<u32> =
            files(&root().join(directory)).iter().map(|file| improvement(file)).collect();
        let wanted = |number: &u32| directory == "hardened" || *number != ALWAYS;
        let missing: Vec<u32> = IMPROVEMENTS
            .into_iter()
            .filter(|number| wanted(number) && !shown.contains(number))
            .collect();
        assert!(missing.is_empty(), "{directory} shows nothing of {missing:?}");
        let others: Vec<u32> =
            shown.into_iter().filter(|number| !IMPROVEMENTS.contains(number)).collect();
        assert!(others.is_empty(), "{directory} shows unknown improvements {others:?}");
    }
}

#[test]
fn scenarios_are_named_like_their_files_and_say_what_they_show() {
    for directory in DIRECTORIES {
        for file in files(&root().join(directory)) {
            let text = fs::read_to_string(&file).expect("a readable scenario");
            let place = file.display();
            let mut lines = text.lines();
            let header: serde_json::Value =
                lines.next().and_then(|line| serde_json::from_str(line).ok()).expect("a header");
            assert_eq!(header["name"], *file.file_stem().expect("a stem").to_string_lossy());
            let words = lines.next().is_some_and(|line| line.starts_with("# "));
            assert!(words, "{place} does not say what it shows");
            if directory == "hardened" {
                assert_eq!(header["config"]["profile"], "hardened", "{place}");
            }
        }
    }
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
                // A note alone in its step may be: without it notes are not compared.
                if !line.starts_with("{\"out\"") || line.starts_with("{\"out\":{\"note\"") {
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
            let rewritten = replay(&text, Mode::Rewrite).unwrap_or_else(|e| panic!("{place}:{e}"));
            for mode in [Mode::Check, Mode::Exact] {
                replay(&rewritten, mode).unwrap_or_else(|e| panic!("{place}:{e}"));
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
