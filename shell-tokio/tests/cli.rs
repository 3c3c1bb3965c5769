//! The built `kvmirror` binary: what the offline commands print, and how they end.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data");

fn data(name: &str) -> PathBuf {
    Path::new(DATA).join(name)
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmirror"));
    command.args(args).env_remove("RUST_LOG").env_remove("KVMIRROR_LOG");
    command
}

fn run(args: &[&str], files: &[&Path]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        command(args).args(files).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn file(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a temporary file");
    path
}

#[test]
fn decode_prints_one_object_per_message() {
    let (code, out, err) = run(&["decode", "--json"], &[&data("wire/wire-variants.jsonl")]);
    assert_eq!((code, err.as_str()), (0, ""));
    let first = out.lines().next().expect("a line");
    let expected = r#"{"seq":0,"rank":null,"ts":1700000000.5,"events":[{"kind":"stored","hashes":[1234605616436508552,11072869122414935808],"parent":null,"tokens":8,"block_size":4,"tier":"device","group":null,"domain":"worker","lora":null,"salt":null,"reason":null}]}"#;
    assert_eq!(first, expected);
    let decoded = lines(&out);
    let lines_read = fs::read_to_string(data("wire/wire-variants.jsonl")).expect("text");
    assert_eq!(decoded.len(), lines_read.lines().count());
    for (got, line) in decoded.iter().zip(lines(&lines_read)) {
        let events = got["events"].as_array().expect("events");
        let expected = line["expected"]["events"].as_array().expect("events");
        assert_eq!(got["rank"], line["expected"]["rank_on_wire"]);
        assert_eq!(events.len(), expected.len(), "{}", line["description"]);
        for (event, wire) in events.iter().zip(expected) {
            let kind = match (event["reason"].is_null(), wire["type"].as_str()) {
                (false, _) => "skipped",
                (true, Some("BlockStored")) => "stored",
                (true, Some("BlockRemoved")) => "removed",
                (true, _) => "cleared",
            };
            assert_eq!(event["kind"], kind);
            if wire.get("lora_name").is_some_and(Value::is_string) {
                assert_eq!(event["lora"], wire["lora_name"]);
            }
        }
    }
    let skipped = decoded.iter().flat_map(|line| line["events"].as_array().expect("events"));
    let skipped: Vec<&Value> = skipped.filter(|event| event["kind"] == "skipped").collect();
    assert!(skipped.iter().any(|event| event["reason"] == "non_local_locality"));
    assert!(skipped.iter().all(|event| event["hashes"] != json!([])), "what was read is shown");
}

#[test]
fn decode_reads_replays_and_leaves_their_ends_out() {
    let path = data("captures/wire/replay-variants.jsonl");
    let (code, out, _) = run(&["decode", "--json"], &[&path]);
    let replays = lines(&fs::read_to_string(&path).expect("text"));
    let replies = replays.iter().map(|replay| replay["replies"].as_array().expect("list").len());
    assert_eq!((code, out.lines().count()), (0, replies.map(|replies| replies - 1).sum()));
}

#[test]
fn decode_without_json_prints_one_line_per_event() {
    let dir = TempDir::new().expect("a directory");
    let path = file(
        &dir,
        "two.jsonl",
        concat!(
            r#"{"topic":"6b76","seq":"0000000000000007","hex":"93cb41d954fc402000009296ab426c6f636b53746f72656492010203940102030404c091b0416c6c426c6f636b73436c656172656402"}"#,
            "\n",
            r#"{"frames":["6b76","0000000000000008","93cb3ff800000000000090c0"]}"#,
        ),
    );
    let (code, out, err) = run(&["decode"], &[&path]);
    let expected = "\
seq 7 rank 2 at 1700000000.5: stored 2 blocks [1, 2] after 3, 4 tokens in blocks of 4, device, worker
seq 7 rank 2 at 1700000000.5: cleared, worker
seq 8 at 1.5: no events
";
    assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
}

#[test]
fn decode_says_which_messages_cannot_be_read() {
    let dir = TempDir::new().expect("a directory");
    let path = file(
        &dir,
        "bad.jsonl",
        concat!(
            r#"{"frames":["","0000000000000001","07"]}"#,
            "\n",
            r#"{"frames":["","0000000000000002","93cb3ff80000000000009291b0416c6c426c6f636b73436c656172656496ab"]}"#,
            "\n",
            r#"{"frames":["","0000000000000003","93cb3ff80000000000009191a17807"]}"#,
        ),
    );
    let (code, out, err) = run(&["decode", "--json"], &[&path]);
    let decoded = lines(&out);
    assert_eq!(code, 1);
    assert_eq!(err, "2 of 3 messages could not be read whole\n");
    assert_eq!(decoded[0].as_object().map(serde_json::Map::len), Some(2));
    assert!(decoded[0]["error"].as_str().expect("text").contains("0x07"));
    assert_eq!(decoded[1]["events"][0]["kind"], "cleared");
    assert!(decoded[1]["error"].as_str().expect("text").contains("breaks off"));
    assert_eq!(decoded[2]["events"][0]["reason"], "unknown_event");
    assert_eq!((&decoded[2]["rank"], decoded[2].get("error")), (&json!(7), None));
    let (code, out, _) = run(&["decode"], &[&path]);
    assert_eq!((code, out.lines().count()), (1, 4));
}

#[test]
fn mirror_prints_the_states_asked_for() {
    let capture = data("captures/vllm-0.32.0/evict-dp2.jsonl");
    let args = ["mirror", "--at", "36", "--json", "--at", "70"];
    let (code, out, err) = run(&args, &[&capture]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with(r#"{"rank":2,"life":1,"after_seq":36,"blocks":[{"hash":"#), "{out}");
    let states = lines(&out);
    let heads: Vec<&Value> = states.iter().map(|state| &state["after_seq"]).collect();
    assert_eq!(heads, [36, 70, 128]);
    let truth =
        fs::read_to_string(data("captures/vllm-0.32.0/evict-dp2.truth.json")).expect("text");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let cached = truth["checkpoints"][0]["engine_cached"].as_array().expect("a list");
    let mut expected: Vec<(u64, u64)> = cached
        .iter()
        .map(|block| (block[0].as_u64().expect("u64"), block[1].as_u64().expect("u64")))
        .collect();
    expected.sort_unstable();
    let blocks = states[0]["blocks"].as_array().expect("a list").iter().map(|block| {
        assert_eq!((&block["tier"], &block["domain"]), (&json!("device"), &json!("worker")));
        (block["hash"].as_u64().expect("u64"), block["group"].as_u64().expect("u64"))
    });
    assert_eq!(blocks.collect::<Vec<_>>(), expected);
    let sum: u64 =
        states[2]["events"].as_object().expect("a map").values().filter_map(Value::as_u64).sum();
    assert_eq!(
        (sum, &states[2]["trust"], &states[2]["skipped"]),
        (391, &json!("exact"), &json!({}))
    );
}

#[test]
fn mirror_tells_the_lives_of_a_rank_apart() {
    let capture = data("captures/vllm-0.32.0/restart.jsonl");
    let (code, out, _) = run(&["mirror", "--json", "--at", "50", "--at", "65"], &[&capture]);
    let states = lines(&out);
    let heads: Vec<(Option<u64>, Option<u64>)> =
        states.iter().map(|state| (state["life"].as_u64(), state["after_seq"].as_u64())).collect();
    let expected = [(1, 50), (1, 60), (2, 50), (2, 65), (2, 70)];
    assert_eq!((code, heads), (0, expected.map(|(life, seq)| (Some(life), Some(seq))).to_vec()));
    let (code, out, err) = run(&["mirror", "--at", "71"], &[&capture]);
    assert_eq!(code, 0);
    assert!(
        out.starts_with(
            "rank 0 life 1 after seq 60: exact, 21 blocks\n  21 in device, group 0, worker\n"
        ),
        "{out}"
    );
    assert!(err.contains("no rank has a state at sequence 71"), "{err}");
}

#[test]
fn mirror_of_another_block_size_holds_the_same_blocks() {
    let capture = data("captures/vllm-0.32.0/prefix.jsonl");
    let (_, own, _) = run(&["mirror", "--json"], &[&capture]);
    let (code, other, _) = run(&["mirror", "--json", "--block-size", "16"], &[&capture]);
    assert_eq!((code, own), (0, other));
    assert_eq!(run(&["mirror", "--block-size", "0"], &[&capture]).0, 2);
}

#[test]
fn predict_compares_with_the_engine() {
    let dir = data("captures/vllm-0.32.0");
    let (capture, truth) = (dir.join("sequential.jsonl"), dir.join("sequential.truth.json"));
    let (code, out, err) = run(&["predict", "--json"], &[&capture, &truth]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().count(), 81);
    assert!(out.starts_with("{\"request\":\"r0\",\"predicted_tokens\":0,\"engine_tokens\":0}\n"));
    assert!(out.ends_with("{\"requests\":80,\"equal\":80,\"different\":0}\n"));

    let mut wrong: Value =
        serde_json::from_str(&fs::read_to_string(&truth).expect("text")).expect("JSON");
    wrong["requests"][7]["num_cached_tokens"] = json!(1);
    let temporary = TempDir::new().expect("a directory");
    let wrong = file(&temporary, "wrong.truth.json", &wrong.to_string());
    let (code, out, _) = run(&["predict"], &[&capture, &wrong]);
    assert_eq!(code, 1);
    let report: Vec<&str> = out.lines().collect();
    assert!(report[0].starts_with("r7: predicted ") && report[0].ends_with("the engine took 1"));
    assert_eq!(report[1..], ["80 requests: 79 predicted exactly, 1 different"]);
}

#[test]
fn files_that_cannot_be_used_are_named_with_their_line() {
    let dir = TempDir::new().expect("a directory");
    let bad = file(
        &dir,
        "bad.jsonl",
        "{\"frames\":[\"\",\"0000000000000001\",\"90\"]}\n\n{\"t_ns\":1}\n",
    );
    let name = bad.display().to_string();
    for command in ["decode", "mirror"] {
        let (code, _, err) = run(&[command], &[&bad]);
        assert_eq!(code, 2);
        assert!(err.contains(&format!("error: {name}:3: no \"frames\"")), "{err}");
        let (code, out, err) = run(&[command], &[&dir.path().join("absent")]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("absent: cannot open"), "{err}");
    }
    let capture = data("captures/vllm-0.32.0/sequential.jsonl");
    let (code, _, err) = run(&["predict"], &[&capture, &bad]);
    assert_eq!(code, 2);
    assert!(err.contains(&format!("error: {name}:")) && err.contains("not a truth file"), "{err}");
    assert_eq!(run(&["predict"], &[&capture]).0, 2, "an argument is missing");
    assert_eq!(run(&["nonsense"], &[]).0, 2);
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let mut child = command(&["decode", "--json"])
        .arg(data("wire/wire-variants.jsonl"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    drop(out);
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
    assert_eq!((child.wait().expect("it ends").code(), err.as_str()), (Some(0), ""));
}

#[test]
fn help_and_version() {
    let (code, out, _) = run(&["--version"], &[]);
    assert_eq!((code, out), (0, format!("kvmirror {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, out, _) = run(&["--help"], &[]);
    assert_eq!(code, 0);
    for command in ["play", "decode", "mirror", "predict", "Exit codes:"] {
        assert!(out.contains(command), "{command}");
    }
}

const TRACE: &str = r#"{"kvmirror_trace":1,"machine":"membership","name":"one"}
# A comment.
{"at":0,"in":{"expect":{"workers":[{"worker":1,"first_rank":0,"ranks":1}]}}}
{"out":{"snapshot":{"endpoint":"resolved","ranks":[{"worker":1,"rank":0,"generation":0,"status":"missing"}]}}}
"#;

#[test]
fn replay_prints_what_the_machine_does() {
    let dir = TempDir::new().expect("a directory");
    let trace = file(&dir, "a.jsonl", TRACE);
    let (code, out, err) = run(&["replay"], &[&trace, &trace]);
    let snapshot = TRACE.lines().last().expect("a line");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("{snapshot}\n{snapshot}\n"));
}

#[test]
fn replay_compares_and_counts() {
    let dir = TempDir::new().expect("a directory");
    let good = file(&dir, "good.jsonl", TRACE);
    let other = TRACE.replace("\"generation\":0", "\"generation\":7");
    let other = file(&dir, "other.jsonl", &other);
    for mode in ["--check", "--exact"] {
        let (code, out, err) = run(&["replay", mode], &[&good, &good]);
        assert_eq!((code, out.as_str(), err.as_str()), (0, "2 passed, 0 failed\n", ""));
        let (code, out, _) = run(&["replay", mode], &[&good, &other, &good]);
        assert_eq!(code, 1);
        assert!(out.ends_with("2 passed, 1 failed\n"), "{out}");
        let place = format!("{}:4: ", other.display());
        assert!(out.starts_with(&place), "{out}");
        for part in ["expected  {\"out\"", "got       {\"out\"", "the last steps:"] {
            assert!(out.contains(part), "{out}");
        }
        let (code, out, _) = run(&["replay", mode, "--json"], &[&good, &other]);
        let verdict: Value = serde_json::from_str(&out).expect("one object");
        assert_eq!((code, &verdict["passed"], &verdict["failed"]), (1, &json!(1), &json!(1)));
        assert_eq!(verdict["failures"][0]["line"], 4);
    }
}

#[test]
fn replay_tells_a_trace_that_it_does_not_understand() {
    let dir = TempDir::new().expect("a directory");
    let good = file(&dir, "good.jsonl", TRACE);
    let typo = file(&dir, "typo.jsonl", &TRACE.replace("\"ranks\":1", "\"rank\":1"));
    let missing = dir.path().join("missing.jsonl");
    let (code, out, _) = run(&["replay", "--check"], &[&typo, &missing, &good]);
    assert_eq!(code, 2);
    assert!(out.contains("typo.jsonl:3: column "), "{out}");
    assert!(out.contains("unknown field `rank`") && out.contains("missing.jsonl: "), "{out}");
    assert!(out.ends_with("1 passed, 2 failed\n"), "{out}");
    for (mode, path) in [("--rewrite", &typo), ("--rewrite", &missing)] {
        let (code, _, err) = run(&["replay", mode], &[path]);
        assert_eq!(code, 2);
        assert!(err.contains(&*path.to_string_lossy()), "{err}");
    }
    assert_eq!(run(&["replay"], &[&typo]).0, 2);
    assert_eq!(run(&["replay"], &[]).0, 2);
    assert_eq!(run(&["replay", "--check", "--exact"], &[&good]).0, 2);
    assert_eq!(run(&["replay", "--json"], &[&good]).0, 2);
    assert_eq!(
        fs::read_to_string(&typo).expect("text"),
        TRACE.replace("\"ranks\":1", "\"rank\":1")
    );
}

#[test]
fn replay_rewrites_files_in_place() {
    let dir = TempDir::new().expect("a directory");
    let good = file(&dir, "good.jsonl", TRACE);
    let bare: String = TRACE.lines().take(3).map(|line| format!("{line}\n")).collect();
    let bare = file(&dir, "bare.jsonl", &bare);
    let (code, out, err) = run(&["replay", "--rewrite"], &[&good, &bare]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(
        err.contains("good.jsonl: unchanged") && err.contains("bare.jsonl: rewritten"),
        "{err}"
    );
    for path in [&good, &bare] {
        assert_eq!(fs::read_to_string(path).expect("text"), TRACE);
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2, "nothing is left beside");
}

#[test]
fn replay_reads_standard_input() {
    let mut child = command(&["replay", "--rewrite", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let bare: String = TRACE.lines().take(3).map(|line| format!("{line}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(bare.as_bytes()).expect("it reads");
    drop(stdin);
    let Output { status, stdout, .. } = child.wait_with_output().expect("it ends");
    assert!(status.success());
    assert_eq!(String::from_utf8(stdout).expect("UTF-8"), TRACE);
}
