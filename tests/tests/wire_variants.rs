//! Every wire form of every looked-at engine release means what its producer said.
//!
//! The data was written by the engines' own encoders; see `data/wire`.

use kvmirror_core::event::{
    BatchRank, EventBatch, EventKind, EventRecord, EventView, Placement, ResidencyDomain,
    SkipReason, SpecKind, Tier,
};
use kvmirror_core::hash::{identity_seed, local_hash, multimodal, verbatim_part};
use kvmirror_core::id::{BlockHash, EventId, Rank};
use kvmirror_core::wire::frames::{ReplayFrames, parse_live, parse_replay, replay_request};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity, rehash};
use serde_json::Value;
use std::collections::BTreeMap;

const VARIANTS: &str = include_str!("../data/wire/wire-variants.jsonl");
const REPLAYS: &str = include_str!("../data/wire/replay-variants.jsonl");

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line"))
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit");
    let bytes = hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1]));
    bytes.map(|byte| u8::try_from(byte).expect("a byte")).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// An absent or null number is `None`.
fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn small(value: &Value, key: &str) -> Option<u32> {
    number(value, key).map(|number| u32::try_from(number).expect("a small number"))
}

fn hash(value: &Value) -> BlockHash {
    if let Some(hex) = text(value, "hex") {
        let bytes = unhex(hex);
        let low = bytes[bytes.len() - 8..].try_into().expect("8 bytes");
        return BlockHash(u64::from_be_bytes(low));
    }
    let signed = value.as_i64().map(i64::cast_unsigned);
    BlockHash(value.as_u64().or(signed).expect("an integer"))
}

fn tier(medium: Option<&str>) -> Tier {
    match medium {
        None | Some("GPU") => Tier::Device,
        Some("CPU" | "CPU_PINNED") => Tier::Host,
        Some("STORAGE" | "DISK") => Tier::Disk,
        Some("EXTERNAL") => Tier::External,
        Some(other) => panic!("the data has a new medium {other}"),
    }
}

fn tokens(event: &Value) -> Vec<u32> {
    let list = event["token_ids"].as_array().expect("tokens");
    list.iter().map(|token| u32::try_from(token.as_u64().expect("a token")).expect("u32")).collect()
}

/// What the block's extra keys in this data stand for: salt, object hashes, and what is left over.
fn salt_and_objects(event: &Value, lora: &str) -> (String, Vec<Vec<u64>>) {
    let mut salt = event
        .get("metadata")
        .and_then(|metadata| text(metadata, "cache_salt"))
        .or_else(|| text(event, "cache_salt"))
        .unwrap_or_default()
        .to_owned();
    let mut objects = Vec::new();
    for entry in event.get("extra_keys").and_then(Value::as_array).into_iter().flatten() {
        let mut of_block = Vec::new();
        for item in entry.as_array().into_iter().flatten() {
            match item {
                Value::String(name) if name == lora => {}
                Value::String(name) => salt.clone_from(name),
                Value::Array(pair) => {
                    let identifier = pair[0].as_str().expect("an identifier");
                    of_block.push(multimodal::mm_hash(identifier).expect("not empty"));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    panic!("the data has a new extra key {item}")
                }
            }
        }
        objects.push(of_block);
    }
    (salt, objects)
}

fn raw_number(id: u64) -> Vec<u8> {
    vec![u8::try_from(id).ok().filter(|id| *id < 128).expect("a small adapter id")]
}

fn expected_locals(event: &Value, lora: &str, salt: &str, objects: &[Vec<u64>]) -> Vec<u64> {
    let mut seed = identity_seed(lora, salt);
    if let (Some(id), true) = (number(event, "lora_id"), lora.is_empty()) {
        seed = seed.wrapping_add(verbatim_part(&raw_number(id)));
    }
    let size = small(event, "block_size").expect("a size") as usize;
    let tokens = tokens(event);
    let blocks = tokens.chunks(size).enumerate();
    blocks
        .map(|(index, block)| {
            let mut bytes: Vec<u8> = block.iter().flat_map(|token| token.to_le_bytes()).collect();
            let mut sorted = objects.get(index).cloned().unwrap_or_default();
            sorted.sort_unstable();
            bytes.extend(sorted.iter().flat_map(|object| object.to_le_bytes()));
            local_hash(&bytes, seed).0
        })
        .collect()
}

fn expected_placement(event: &Value) -> Placement {
    let hashes: Vec<BlockHash> =
        event["block_hashes"].as_array().expect("a list").iter().map(hash).collect();
    let count = tokens(event).len();
    let size = small(event, "block_size").expect("a size") as usize;
    let mut all = hashes.clone();
    all.extend(event.get("parent_block_hash").filter(|parent| !parent.is_null()).map(hash));
    all.sort_unstable();
    let distinct = all.windows(2).all(|pair| pair[0] != pair[1]);
    if count == 0 || size == 0 {
        Placement::TokenLess
    } else if count != hashes.len() * size {
        Placement::TokenCountMismatch
    } else if !distinct {
        Placement::RepeatedHash
    } else {
        Placement::Positioned
    }
}

fn check_residency(record: &EventRecord, event: &Value, view: EventView<'_>) {
    let expected: Vec<BlockHash> =
        event["block_hashes"].as_array().expect("a list").iter().map(hash).collect();
    assert_eq!(view.hashes(record), expected);
    assert_eq!(record.tier, tier(text(event, "medium")));
    assert_eq!(record.group, small(event, "group_idx"));
    assert_eq!(record.sliding_window, small(event, "kv_cache_spec_sliding_window"));
    let spec = match text(event, "kv_cache_spec_kind") {
        None => None,
        Some("full_attention") => Some(SpecKind::MainAttention),
        Some("sliding_window") => Some(SpecKind::Other),
        Some(other) => panic!("the data has a new kind {other}"),
    };
    assert_eq!(record.spec, spec);
    assert_eq!(record.domain, ResidencyDomain::Worker);
    let skip = match (text(event, "ownership"), text(event, "locality")) {
        (Some(_), _) => Some(SkipReason::UnknownOwnership),
        (None, Some("LOCAL") | None) => None,
        (None, Some(_)) => Some(SkipReason::NonLocalLocality),
    };
    assert_eq!(record.skip, skip);
}

fn check_stored(record: &EventRecord, event: &Value, view: EventView<'_>) {
    check_residency(record, event, view);
    let parent = event.get("parent_block_hash").filter(|parent| !parent.is_null()).map(hash);
    assert_eq!(record.parent, parent);
    assert_eq!(record.token_count as usize, tokens(event).len());
    assert!(!record.eagle);
    assert_eq!(Some(record.block_size), small(event, "block_size"));
    let lora = text(event, "lora_name").unwrap_or_default();
    assert_eq!(view.text(record.lora).unwrap_or_default(), lora);
    assert_eq!(view.text(record.session), text(event, "session_id"));
    assert_eq!(record.lora_id.is_empty(), number(event, "lora_id").is_none());
    let (salt, objects) = salt_and_objects(event, lora);
    assert_eq!(view.text(record.salt).unwrap_or_default(), salt);
    assert_eq!(record.placement, expected_placement(event));
    let locals: Vec<u64> = view.locals(record).iter().map(|hash| hash.0).collect();
    let identity = SourceIdentity::default();
    let mut again = Vec::new();
    let positioned = rehash(view, record, &identity, &salt, &mut again);
    assert_eq!(positioned, record.placement == Placement::Positioned);
    if positioned {
        assert_eq!(locals, expected_locals(event, lora, &salt, &objects));
        assert_eq!(again, view.locals(record));
    } else {
        assert!(locals.is_empty() && record.locals.is_empty());
    }
}

fn check_batch(payload: &[u8], expected: &Value, out: &EventBatch) {
    assert_eq!(Some(out.ts), expected["ts"].as_f64());
    let rank = small(expected, "rank_on_wire");
    assert_eq!(out.rank, rank.map_or(BatchRank::Absent, |rank| BatchRank::Named(Rank(rank))));
    assert!(!out.cut);
    let events = expected["events"].as_array().expect("events");
    assert_eq!(out.records.len(), events.len());
    let view = EventView { payload, batch: out };
    for (record, event) in out.records.iter().zip(events) {
        match text(event, "type") {
            Some("BlockStored") => {
                assert_eq!(record.kind, EventKind::Stored);
                check_stored(record, event, view);
            }
            Some("BlockRemoved") => {
                assert_eq!(record.kind, EventKind::Removed);
                check_residency(record, event, view);
                assert!(record.locals.is_empty() && record.parent.is_none());
            }
            Some("AllBlocksCleared") => assert_eq!(*record, EventRecord::new(EventKind::Cleared)),
            other => panic!("the data has a new event {other:?}"),
        }
    }
}

#[test]
fn every_variant_means_what_was_encoded() {
    let mut decoder = Decoder::new(Limits::default());
    let mut out = EventBatch::default();
    let (mut batches, mut events) = (0, 0);
    for line in lines(VARIANTS) {
        let frames = [&line["topic"], &line["seq"], &line["hex"]]
            .map(|hex| unhex(hex.as_str().expect("hex")));
        let live = parse_live(&frames).expect("three frames");
        decoder.decode(live.payload, &SourceIdentity::default(), &mut out).expect("readable");
        let label = format!("{} {} {}", line["engine"], line["version"], line["description"]);
        let checked =
            std::panic::catch_unwind(|| check_batch(live.payload, &line["expected"], &out));
        assert!(checked.is_ok(), "{label}: {out:?}");
        batches += 1;
        events += out.records.len();
    }
    assert_eq!((batches, events), (1_104, 1_547));
}

#[test]
fn every_replay_reply_reads_like_the_live_messages() {
    let mut expected: BTreeMap<(String, u64), Value> = BTreeMap::new();
    for line in lines(VARIANTS).filter(|line| line["dp_rank"] != 2) {
        let seq = u64::from_str_radix(line["seq"].as_str().expect("hex"), 16).expect("a number");
        let release = format!("{} {}", line["engine"], line["version"]);
        expected.insert((release, seq), line);
    }
    let mut decoder = Decoder::new(Limits::default());
    let mut out = EventBatch::default();
    let (mut releases, mut checked) = (0, 0);
    for line in lines(REPLAYS) {
        let release = format!("{}", line["engine"]) + " " + &format!("{}", line["version"]);
        let frames = |value: &Value| -> Vec<Vec<u8>> {
            let list = value.as_array().expect("frames");
            list.iter().map(|hex| unhex(hex.as_str().expect("hex"))).collect()
        };
        assert_eq!(
            replay_request(EventId(1)).to_vec(),
            frames(&line["request_frames_from_dealer"])
        );
        let replies = line["replies"].as_array().expect("replies");
        let (end, messages) = replies.split_last().expect("an end marker at least");
        assert_eq!(parse_replay(&frames(end)), Ok(ReplayFrames::End), "{release}");
        assert_eq!(parse_replay(&frames(&line["end_marker"])), Ok(ReplayFrames::End));
        assert_eq!(number(&line, "published"), Some(messages.len() as u64 + 1));
        for (next, message) in (1..).zip(messages) {
            let frames = frames(message);
            let Ok(ReplayFrames::Message { seq, payload }) = parse_replay(&frames) else {
                panic!("{release}: {message} is no message");
            };
            assert_eq!(seq, EventId(next), "{release}");
            decoder.decode(payload, &SourceIdentity::default(), &mut out).expect("readable");
            if let Some(live) = expected.get(&(release.clone(), next)) {
                check_batch(payload, &live["expected"], &out);
                checked += 1;
            }
        }
        releases += 1;
    }
    assert_eq!((releases, checked), (45, 758));
}
