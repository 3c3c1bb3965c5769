//! `serve --record`, and `replay --exact` of what it wrote.

use crate::player::{Expected, Ports};
use crate::process::{PATIENCE, Process};
use crate::serve::Serve;
use std::fs;
use std::path::Path;

const CAPTURE: &str = "vllm-0.32.0/evict.jsonl";

/// Follows a lossy player that restarts, and records it.
async fn record(path: &Path, more: &[&str]) -> String {
    let mut expected = Expected::of(CAPTURE, "vllm-0.32.0/evict.truth.json", 0);
    let ports = Ports::free(1);
    let file = path.to_str().expect("UTF-8");
    let mut serve = Serve::start(&[&["--record", file], more].concat());
    let _player = ports.play(CAPTURE, "--speed 4 --drop 0.2 --restart-at 60 --seed 7");
    serve.follow(ports, 0).await;
    serve.ends_equal(0, &mut expected).await;
    serve.process.signal("INT");
    assert_eq!(serve.process.code_within(PATIENCE), Some(0));
    fs::read_to_string(path).expect("a recording")
}

fn replay(arguments: &[&str], path: &Path) -> (Option<i32>, String) {
    let file = path.to_str().expect("UTF-8");
    let mut replay = Process::start_with(&[&["replay"], arguments, &[file]].concat());
    let code = replay.code_within(PATIENCE);
    (code, [replay.out(), replay.err()].concat().join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_reproduced_bit_for_bit() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("incident.jsonl");
    let text = record(&path, &[]).await;
    let (code, said) = replay(&["--exact"], &path);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 passed, 0 failed"), "{said}");
    // Losses and the restart are in it; what the messages said is not.
    for part in ["\"query\":", "\"admit\":", "\"reset\":", "\"kind\":\"gap\"", "\"opaque\":"] {
        assert!(text.contains(part), "no {part} in {} bytes", text.len());
    }
    assert!(!text.contains("\"payload\":"));
    // One bit of one digest: the machine comes to another end, or at least says it otherwise.
    let at = text.rfind("\"digest\":").expect("a digest") + "\"digest\":".len();
    let other = text[..at].to_owned() + &text[at..].replacen("0x", "0x1", 1);
    let wrong = directory.path().join("wrong.jsonl");
    fs::write(&wrong, other).expect("writable");
    let (code, said) = replay(&["--exact"], &wrong);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_written_when_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("with-payloads.jsonl");
    let text = record(&path, &["--payloads"]).await;
    assert!(text.contains("\"payload\":"));
    let (code, said) = replay(&["--exact"], &path);
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_has_its_limit_and_an_old_one_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("short.jsonl");
    let text = record(&path, &["--record-max-bytes", "20000"]).await;
    assert!(text.ends_with("# the recording ends here: the file has its limit\n"), "{text}");
    assert!(text.len() < 40_000, "{}", text.len());
    let (code, said) = replay(&["--exact"], &path);
    assert_eq!(code, Some(0), "{said}");
    let file = path.to_str().expect("UTF-8");
    let mut again = Process::start_with(&["serve", "--listen", "127.0.0.1:0", "--record", file]);
    assert_eq!(again.code_within(PATIENCE), Some(2));
    assert!(again.err().join("\n").contains("does not exist"), "{:?}", again.err());
}
