//! Real capture files.

use crate::common::{data, read};
use kvmirror_tokio::capture::CaptureReader;

#[test]
fn two_ranks_of_one_file_are_told_apart() {
    let capture = read("vllm-0.32.0/dp2.jsonl");
    let shape: Vec<_> = capture.ranks.iter().map(|r| (r.rank, r.lives.len())).collect();
    assert_eq!(shape, [(0, 1), (1, 1)]);
    for rank in &capture.ranks {
        let seqs: Vec<u64> = rank.lives[0].iter().map(|m| m.seq).collect();
        assert_eq!(seqs, (0..rank.len() as u64).collect::<Vec<_>>());
        assert!(rank.lives[0].iter().all(|m| &m.topic[..] == b"kv-events" && m.t_ns.is_some()));
    }
}

#[test]
fn a_restart_is_a_second_life() {
    let capture = read("vllm-0.32.0/restart.jsonl");
    assert_eq!(capture.ranks.len(), 1);
    assert_eq!(capture.ranks[0].lives.len(), 2);
    assert!(capture.ranks[0].lives.iter().all(|life| life[0].seq == 0));
}

#[test]
fn replay_files_read_like_the_stream_they_replay() {
    for (version, with_end) in [("vllm-0.32.0/evict-dp2", 1), ("vllm-0.22.1/evict", 1)] {
        let live = read(&format!("{version}.jsonl"));
        let live = &live.ranks[0].lives[0];
        let path = data(&format!("{version}.replay-mid.jsonl"));
        let replayed: Vec<_> =
            CaptureReader::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(replayed.len() + with_end, lines, "the end marker is no message");
        for message in &replayed {
            let original = live.iter().find(|m| m.seq == message.seq).unwrap();
            assert_eq!(original.payload, message.payload);
        }
    }
    let path = data("vllm-0.22.1/evict.replay-req-socket.jsonl");
    assert_eq!(CaptureReader::open(&path).unwrap().filter(Result::is_ok).count(), 1);
}

#[test]
fn wire_files_of_every_version_are_readable() {
    let path = data("wire/replay-variants.jsonl");
    let all: Vec<_> = CaptureReader::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
    // Each line is a replay from 1 of what was published from 0.
    let published: u64 = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["published"].as_u64().unwrap() - 1)
        .sum();
    assert_eq!(all.len() as u64, published);
}
