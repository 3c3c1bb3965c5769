//! Captures of one request at a time: the mirror tells for each request how many of its tokens the
//! engine then takes from its cache.

use kvmirror_tokio::capture::CaptureReader;
use kvmirror_tokio::commands::CommandError;
use kvmirror_tokio::commands::predict::{Prediction, predictions};
use kvmirror_tokio::truth::{Began, Truth};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/captures");

fn truth_of(capture: &Path) -> Truth {
    Truth::read(&capture.with_extension("truth.json")).expect("a truth file")
}

fn predict(capture: &Path, truth: &Truth) -> Result<Vec<Prediction>, CommandError> {
    predictions(CaptureReader::open(capture)?, truth)
}

fn right(predictions: &[Prediction]) -> usize {
    predictions.iter().filter(|one| one.predicted_tokens == one.engine_tokens).count()
}

#[test]
fn every_request_is_predicted_exactly() {
    let mut counts = BTreeMap::new();
    for dir in fs::read_dir(CAPTURES).expect("a directory") {
        let dir = dir.expect("an entry").path();
        for file in fs::read_dir(dir).into_iter().flatten() {
            let path = file.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
            if !name.starts_with("sequential") || !name.ends_with(".jsonl") {
                continue;
            }
            let predictions = predict(&path, &truth_of(&path)).expect("files that fit");
            for one in &predictions {
                assert_eq!(one.predicted_tokens, one.engine_tokens, "{name} {}", one.request);
            }
            let reused = predictions.iter().filter(|one| one.engine_tokens > 0).count();
            assert!(reused > predictions.len() / 4, "{name}: only {reused} requests say anything");
            counts.insert(name, right(&predictions));
        }
    }
    let expected = [("sequential-lora.jsonl", 60), ("sequential.jsonl", 80)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

/// The prediction depends on each of the things it should depend on.
#[test]
fn a_wrong_moment_adapter_salt_or_prompt_is_noticed() {
    let path = PathBuf::from(CAPTURES).join("vllm-0.32.0/sequential-lora.jsonl");
    let truth = truth_of(&path);
    let all = truth.requests.len();
    let wrong = |change: &dyn Fn(usize, &mut Truth)| {
        let mut changed = truth.clone();
        (0..all).for_each(|at| change(at, &mut changed));
        all - right(&predict(&path, &changed).expect("files that fit"))
    };
    assert_eq!(wrong(&|_, _| ()), 0);
    let early = wrong(&|at, truth| truth.requests[at].began = Some(Began::First));
    let base = wrong(&|at, truth| truth.requests[at].lora.clear());
    let salted = wrong(&|at, truth| truth.requests[at].salt = "another tenant".to_owned());
    let other = wrong(&|at, truth| truth.requests[at].prompt[0] ^= 1);
    for (what, count) in [("moment", early), ("LoRA", base), ("salt", salted), ("prompt", other)] {
        assert!(count >= all / 6, "{what}: only {count} of {all} noticed");
    }
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let dir = PathBuf::from(CAPTURES).join("vllm-0.32.0");
    let truth = truth_of(&dir.join("sequential.jsonl"));
    let refused = |capture: &str, truth: &Truth| match predict(&dir.join(capture), truth) {
        Err(CommandError::Mismatch(what)) => what,
        other => panic!("{capture}: {other:?}"),
    };
    assert!(refused("lora.jsonl", &truth).contains("ends at"));
    assert!(refused("dp2.jsonl", &truth).contains("several ranks"));
    assert!(refused("restart.jsonl", &truth).contains("several engine lives"));
    let overlapping = truth_of(&dir.join("evict.jsonl"));
    assert!(refused("evict.jsonl", &overlapping).contains("before_seq"));
}
