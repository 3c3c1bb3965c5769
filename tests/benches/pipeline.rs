//! The long capture of a real engine on one thread: decoding, hashing and applying its messages.
//!
//! Prints `name: value unit` lines, each the median of seven rounds:
//! * `direct`: decoder and index alone;
//! * `mirror`: the whole embedded mirror, with the machine between them.
#![allow(clippy::print_stdout, clippy::float_arithmetic, reason = "a benchmark reports figures")]

use kvmirror_core::event::{EventBatch, EventView};
use kvmirror_core::id::{EventId, PublisherId, RankKey};
use kvmirror_core::index::{Duplicates, Index, IndexLimits};
use kvmirror_core::mirror::{Mirror, MirrorOptions, SourceFacts};
use kvmirror_core::router::Trust;
use kvmirror_core::time::Timestamp;
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use kvmirror_tokio::capture::{CaptureMessage, CaptureReader};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const CAPTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/data/captures/vllm-0.32.0/long.jsonl.gz");
const RANK: RankKey = RankKey::new(1, 0);

/// Events read and blocks held at the end.
type Outcome = (u64, u64);

/// A way through the messages.
type Way = fn(&[CaptureMessage]) -> Outcome;

fn direct(messages: &[CaptureMessage]) -> Outcome {
    let mut decoder = Decoder::new(Limits::default());
    let identity = SourceIdentity::default();
    let mut index = Index::new(IndexLimits::default());
    let domain = index.open_domain();
    index.add_rank(RANK, domain, identity.clone(), Duplicates::Counted).expect("a new rank");
    let mut batch = EventBatch::default();
    let mut events = 0;
    for message in messages {
        decoder.decode(&message.payload, &identity, &mut batch).expect("a readable message");
        events += batch.records.len() as u64;
        let view = EventView { payload: &message.payload, batch: &batch };
        black_box(index.apply(RANK, view).expect("a known rank"));
    }
    (events, index.stats().entries)
}

fn mirror(messages: &[CaptureMessage]) -> Outcome {
    let mut mirror = Mirror::new(MirrorOptions::default()).expect("the defaults are valid");
    let domain = mirror.open_domain();
    let publisher = PublisherId(1);
    let now = Timestamp(0);
    let facts = SourceFacts::live_only(RANK, publisher, domain);
    mirror.add_source(facts, now).expect("a new rank");
    mirror.transport_up(publisher, now);
    for message in messages {
        black_box(mirror.message(publisher, EventId(message.seq), &message.payload, now));
        mirror.drain_notices();
    }
    assert_eq!(mirror.rank(RANK).expect("a followed rank").trust, Trust::Exact);
    let counts = mirror.counts(RANK).expect("a followed rank");
    let events = counts.stored_events + counts.removed_events + counts.cleared_events;
    (events + counts.skipped_events, mirror.index().stats().entries)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let messages = CaptureReader::open(Path::new(CAPTURE)).expect("the capture is there");
    let messages: Vec<CaptureMessage> = messages.collect::<Result<_, _>>().expect("a capture");
    let bytes: usize = messages.iter().map(|message| message.payload.len()).sum();
    println!("messages: {} count", messages.len());
    println!("payload: {bytes} bytes");
    let expected = direct(&messages);
    println!("events: {} count", expected.0);
    let ways: [(&str, Way); 2] = [("direct", direct), ("mirror", mirror)];
    let mut times = ways.map(|_| Vec::new());
    // In turns, so that whatever else the machine does meets both alike.
    for _ in 0..ROUNDS {
        for ((_, run), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            assert_eq!(run(black_box(&messages)), expected, "both ways come to the same");
            times.push(start.elapsed());
        }
    }
    for ((name, _), times) in ways.iter().zip(times) {
        let seconds = median(times);
        println!("{name}.time: {:.3} ms", seconds * 1e3);
        println!("{name}.batches: {:.0} 1/s", messages.len() as f64 / seconds);
        println!("{name}.events: {:.0} 1/s", expected.0 as f64 / seconds);
    }
}
