//! The mirror of every capture equals what the engine itself held, at every moment at which the
//! engine had published all it had done.
//!
//! The captures are found by listing `data/captures`: one that is added is compared too.

use kvmirror_core::event::{EventBatch, EventKind};
use kvmirror_core::index::Duplicates;
use kvmirror_core::router::Trust;
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use kvmirror_tokio::capture::{Capture, CaptureMessage, CaptureReader};
use kvmirror_tokio::offline::{OfflineError, OfflineOptions, Snapshot, mirror_capture};
use kvmirror_tokio::truth::{Checkpoint, Difference, Truth};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/captures");

/// A capture and its truths: one for each engine life, in order.
#[derive(Debug)]
struct Case {
    name: String,
    capture: PathBuf,
    truths: Vec<PathBuf>,
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a readable directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Every capture that has a truth file: `NAME.truth.json` or, by engine life, `NAME.lifeN.truth.json`.
fn cases() -> Vec<Case> {
    let mut captures = BTreeMap::new();
    let mut truths: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let dirs = sorted(Path::new(CAPTURES)).into_iter().filter(|path| path.is_dir());
    for path in dirs.flat_map(|dir| sorted(&dir)) {
        let plain = path.to_str().expect("UTF-8").trim_end_matches(".gz").to_owned();
        if let Some(name) = plain.strip_suffix(".truth.json") {
            let name = name.rsplit_once(".life").map_or(name, |(name, _)| name);
            truths.entry(name.into()).or_default().push(path);
        } else if let Some(name) = plain.strip_suffix(".jsonl")
            && !name.contains(".replay-")
        {
            captures.insert(PathBuf::from(name), path);
        }
    }
    let case = |(name, truths): (PathBuf, Vec<PathBuf>)| {
        let capture = captures.get(&name).unwrap_or_else(|| panic!("{name:?} has no capture"));
        let short = name.strip_prefix(CAPTURES).expect("below it");
        Case { name: short.display().to_string(), capture: capture.clone(), truths }
    };
    truths.into_iter().map(case).collect()
}

/// The states of a capture by rank, life and sequence.
type States = BTreeMap<(u32, u64, u64), Snapshot>;

fn states(capture: &Path, duplicates: Duplicates, at: &[u64]) -> States {
    let options = OfflineOptions { duplicates, ..OfflineOptions::default() };
    let mut states = States::new();
    let messages = CaptureReader::open(capture).expect("a capture");
    let outcome = mirror_capture::<OfflineError>(messages, options, at, |state| {
        let key = (state.rank, state.life, state.after_seq);
        assert!(states.insert(key, state).is_none(), "two states for {key:?}");
        Ok(())
    });
    let outcome = outcome.expect("a readable capture");
    assert_eq!((outcome.unreadable, outcome.foreign), (0, 0));
    states
}

#[derive(Debug, Default)]
struct Compared {
    captures: usize,
    checkpoints: usize,
    end_states: usize,
    unpublished: usize,
    blocks: usize,
    as_sets: Vec<String>,
}

impl Compared {
    fn compare(&mut self, label: &str, truth: &Checkpoint, state: &Snapshot, how: Duplicates) {
        let label = format!("{label} after seq {}", truth.after_seq);
        let difference = truth.difference(&state.blocks, how);
        assert!(difference.is_empty(), "{label}: {difference}: {difference:?}");
        assert_eq!(state.blocks.len(), truth.blocks.len(), "{label}");
        assert_eq!((state.trust, state.reason), (Trust::Exact, None), "{label}");
        self.blocks += truth.blocks.len();
    }

    fn capture(&mut self, case: &Case) {
        let truths: Vec<Truth> =
            case.truths.iter().map(|path| Truth::read(path).expect("a truth file")).collect();
        let as_set = truths.iter().any(|truth| truth.duplicates() == Duplicates::Set);
        let how = if as_set { Duplicates::Set } else { Duplicates::Counted };
        if as_set {
            self.as_sets.push(case.name.clone());
        }
        let at: Vec<u64> =
            truths.iter().flat_map(|t| &t.checkpoints).map(|point| point.after_seq).collect();
        let states = states(&case.capture, how, &at);
        let ranks: BTreeSet<u32> = states.keys().map(|(rank, ..)| *rank).collect();
        let state = |rank, life, seq| {
            let found = states.get(&(rank, life, seq));
            found.unwrap_or_else(|| panic!("{}: no state {:?}", case.name, (rank, life, seq)))
        };
        for (life, truth) in (1..).zip(&truths) {
            for point in &truth.checkpoints {
                if !point.is_published() {
                    self.unpublished += 1;
                    continue;
                }
                let rank = *ranks.first().expect("a rank");
                assert_eq!(ranks.len(), 1, "{}: whose truth is it?", case.name);
                self.compare(&case.name, point, state(rank, life, point.after_seq), how);
                self.checkpoints += 1;
            }
            for (rank, end) in &truth.ranks {
                self.compare(&case.name, end, state(*rank, life, end.after_seq), how);
                self.end_states += 1;
            }
        }
        self.captures += 1;
    }
}

#[test]
fn the_mirror_of_every_capture_equals_the_engine() {
    let mut compared = Compared::default();
    for case in cases() {
        compared.capture(&case);
    }
    println!("{compared:?}");
    // At least what is there today; each capture must bring a state, or it proves nothing.
    assert!(compared.captures >= 31, "{compared:?}");
    assert!(compared.checkpoints >= 276, "{compared:?}");
    assert!(compared.end_states >= 2, "{compared:?}");
    assert!(compared.blocks >= 12_900, "{compared:?}");
    assert_eq!(
        compared.as_sets,
        ["vllm-0.32.0/salt-full-evict", "vllm-0.32.0/salt-session"],
        "only requests that report cache hits need the other reading"
    );
}

#[test]
fn a_tampered_truth_is_noticed() {
    let capture = Path::new(CAPTURES).join("vllm-0.32.0/evict.jsonl");
    let truth = Truth::read(&capture.with_file_name("evict.truth.json")).expect("a truth file");
    let point = truth.checkpoints.last().expect("a checkpoint");
    let states = states(&capture, Duplicates::Counted, &[point.after_seq]);
    let state = &states[&(0, 1, point.after_seq)];
    let noticed = |tamper: &dyn Fn(&mut Checkpoint)| {
        let mut tampered = point.clone();
        tamper(&mut tampered);
        sizes(&tampered.difference(&state.blocks, Duplicates::Counted))
    };
    let &(hash, tier, group) = point.blocks.keys().next().expect("a block");
    let set = |point: &mut Checkpoint, group, copies| {
        point.blocks.insert((hash, tier, group), Some(copies));
    };
    assert_eq!(noticed(&|_| ()), (0, 0, 0));
    let less = |point: &mut Checkpoint| point.blocks.retain(|place, _| place.0 != hash);
    assert_eq!(noticed(&less), (0, 1, 0), "one block less");
    assert_eq!(noticed(&|point| set(point, group + 1, 1)), (1, 0, 0), "another group");
    assert_eq!(noticed(&|point| set(point, group, 2)), (0, 0, 1), "one copy more");
}

fn sizes(difference: &Difference) -> (usize, usize, usize) {
    let Difference { missing, extra, copies } = difference;
    (missing.len(), extra.len(), copies.len())
}

/// The end state of `evict` with its messages changed, and what the engine held.
fn end_of_evict(
    tamper: impl FnOnce(&Checkpoint, &mut Vec<CaptureMessage>),
) -> (Snapshot, Checkpoint) {
    let path = Path::new(CAPTURES).join("vllm-0.32.0/evict.jsonl");
    let truth = Truth::read(&path.with_file_name("evict.truth.json")).expect("a truth file");
    let end = truth.checkpoints.last().expect("a checkpoint").clone();
    let mut messages = Capture::read(&path).expect("a capture").ranks.remove(0).lives.remove(0);
    tamper(&end, &mut messages);
    let mut last = None;
    let options = OfflineOptions::default();
    let outcome =
        mirror_capture::<OfflineError>(messages.into_iter().map(Ok), options, &[], |state| {
            last = Some(state);
            Ok(())
        });
    outcome.expect("a readable capture");
    (last.expect("an end"), end)
}

#[test]
fn one_other_block_in_the_stream_is_noticed() {
    let (state, end) = end_of_evict(|end, messages| {
        let &(hash, ..) = end.blocks.keys().next().expect("a block");
        let (old, new) = (hash.0.to_be_bytes(), (hash.0 ^ 1).to_be_bytes());
        for message in messages {
            let mut payload = message.payload.to_vec();
            while let Some(at) = payload.windows(8).position(|bytes| bytes == old) {
                payload[at..at + 8].copy_from_slice(&new);
            }
            message.payload = payload.into();
        }
    });
    let difference = end.difference(&state.blocks, Duplicates::Counted);
    assert_eq!(sizes(&difference), (1, 1, 0), "{difference:?}");
}

#[test]
fn a_lost_message_is_never_called_exact() {
    let (state, end) = end_of_evict(|_, messages| {
        messages.remove(messages.len() / 2);
    });
    assert_eq!((state.after_seq, state.trust), (end.after_seq, Trust::Partial));
}

/// Events by kind of each rank and life, as the decoder alone counts them.
#[test]
fn events_are_counted_for_each_life_from_its_beginning() {
    let mut decoder = Decoder::new(Limits::default());
    let mut batch = EventBatch::default();
    let (mut lives, mut events) = (0, 0);
    for case in cases() {
        let mut expected = BTreeMap::new();
        for stream in Capture::read(&case.capture).expect("a capture").ranks {
            for (life, messages) in (1_u64..).zip(&stream.lives) {
                let counts: &mut [u64; 3] = expected.entry((stream.rank, life)).or_default();
                for message in messages {
                    let identity = SourceIdentity::default();
                    decoder.decode(&message.payload, &identity, &mut batch).expect("readable");
                    for record in &batch.records {
                        assert_eq!(record.skip, None, "{}", case.name);
                        match record.kind {
                            EventKind::Stored => counts[0] += 1,
                            EventKind::Removed => counts[1] += 1,
                            EventKind::Cleared => counts[2] += 1,
                            EventKind::Unreadable => panic!("{}", case.name),
                        }
                    }
                }
                lives += 1;
                events += counts.iter().sum::<u64>();
            }
        }
        let mut counted = BTreeMap::new();
        for ((rank, life, _), state) in states(&case.capture, Duplicates::Counted, &[]) {
            let events = state.events;
            assert_eq!(events.skipped, 0);
            counted.insert((rank, life), [events.stored, events.removed, events.cleared]);
        }
        assert_eq!(counted, expected, "{}", case.name);
    }
    assert!((lives, events) >= (33, 20_000), "{lives} lives, {events} events");
}
