//! Recordings of the real router are reproduced byte for byte.

use super::super::{Content, Mode, Recorder, Traced, replay};
use crate::id::{
    BootId, Epoch, EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId,
};
use crate::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use crate::router::{
    Clears, Command, Completion, Effects, Flaw, Input, LiveBatch, Origin, Payload, Policy,
    QueryFailure, RecoveryOutcome, RecoveryResponse, Router, Run, SourceRejection, TargetFault,
    TransportChange, Watermark,
};
use crate::time::{Micros, Timestamp};
use alloc::string::String;
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};
use core::ops::Range;
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes only, as many for each id as its number says.
#[derive(Clone, Debug, PartialEq)]
struct Bytes(Range<u64>);

impl Payload for Bytes {
    fn len(&self) -> u32 {
        u32::try_from(self.0.end - self.0.start).unwrap()
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.0.clone().sum::<u64>()).unwrap()
    }

    fn slice(&self, range: Range<u32>) -> Self {
        let at = |index: u32| self.0.start + u64::from(index);
        Self(at(range.start)..at(range.end))
    }
}

impl Traced for Bytes {
    fn content(&self, _index: u32) -> Content {
        Content::Hidden
    }
}

/// What a test does next. Numbers are small, so that they hit what there is.
#[derive(Clone, Debug)]
enum Step {
    Member { generation: u64, status: u8, ready: bool, suspect: bool },
    Live { publisher: u64, runs: Vec<(u64, u32, u8)>, foreign: bool, seq: bool },
    Answer { nth: usize, kind: u8, first: u64, len: u32, last: u64 },
    Done { nth: usize, ok: bool, flaw: bool },
    Other { kind: u8, number: u64 },
    Wait { micros: u64, late: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let runs = vec((0..12_u64, 1..4_u32, 0..8_u8), 0..3);
    prop_oneof![
        1 => (0..3_u64, 0..6_u8, any::<bool>(), any::<bool>()).prop_map(
            |(generation, status, ready, suspect)| Step::Member { generation, status, ready, suspect }
        ),
        6 => (1..4_u64, runs, prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(publisher, runs, foreign, seq)| Step::Live { publisher, runs, foreign, seq }),
        4 => (0..3_usize, 0..9_u8, 0..12_u64, 1..6_u32, 0..16_u64)
            .prop_map(|(nth, kind, first, len, last)| Step::Answer { nth, kind, first, len, last }),
        14 => (0..2_usize, prop::bool::weighted(0.95), prop::bool::weighted(0.1))
            .prop_map(|(nth, ok, flaw)| Step::Done { nth, ok, flaw }),
        1 => (0..6_u8, 0..4_u64).prop_map(|(kind, number)| Step::Other { kind, number }),
        3 => (prop_oneof![0..10_u64, 0..40_000_000_u64], any::<bool>())
            .prop_map(|(micros, late)| Step::Wait { micros, late }),
        1 => (100_000_000..200_000_000_u64, any::<bool>())
            .prop_map(|(micros, late)| Step::Wait { micros, late }),
    ]
}

fn run(engine: bool, first: u64, len: u32, kind: u8) -> Run<Bytes> {
    let clears = match kind {
        0 => Clears::Everything,
        1 => Clears::OneDomain,
        _ => Clears::Nothing,
    };
    let alone = engine || clears != Clears::Nothing;
    let len = if alone { 1 } else { len };
    Run {
        first: EventId(first),
        len: NonZeroU32::new(len).unwrap(),
        clears,
        damaged: kind == 2,
        digest: NonZeroU64::new(first * 8 + u64::from(kind)).filter(|_| engine),
        payload: Bytes(first..first + u64::from(len)),
    }
}

#[derive(Debug)]
struct World {
    router: Router<Bytes>,
    recorder: Recorder,
    fx: Effects<Bytes>,
    text: String,
    now: u64,
    engine: bool,
    ops: Vec<OpId>,
    queries: Vec<QueryId>,
    messages: u64,
}

impl World {
    fn new(policy: Policy, engine: bool) -> Self {
        let (recorder, mut text) = (Recorder::new(), String::new());
        recorder.header("random", &policy, &mut text);
        Self {
            router: Router::new(policy).unwrap(),
            recorder,
            fx: Effects::new(),
            text,
            now: 0,
            engine,
            ops: Vec::new(),
            queries: Vec::new(),
            messages: 0,
        }
    }

    fn feed(&mut self, at: u64, input: Input<Bytes>) {
        self.recorder.input(Timestamp(at), &input, &mut self.text);
        self.router.handle(input, Timestamp(at), &mut self.fx);
        self.recorder.outputs(&self.fx, &mut self.text);
        for command in self.fx.drain_commands() {
            match command {
                Command::Admit { op, .. }
                | Command::Replace { op, .. }
                | Command::Reset { op, .. } => self.ops.push(op),
                Command::Query { query, .. } => self.queries.push(query),
                Command::Cancel { .. } => {}
            }
        }
        self.fx.drain_replies();
        self.fx.drain_notices();
    }

    fn step(&mut self, step: &Step) {
        let input = match step {
            Step::Wait { micros, late } => {
                let until = self.now + micros;
                let due = |due: &Timestamp| !late && due.0 <= until;
                while let Some(due) = self.router.next_deadline().filter(due) {
                    self.feed(due.0, Input::Timeout);
                }
                self.now = until;
                // Half of the late ones come with the next input.
                (*late && micros % 2 == 0).then_some(Input::Timeout)
            }
            Step::Member { generation, status, ready, suspect } => {
                Some(self.membership(*generation, *status, *ready, *suspect))
            }
            Step::Live { publisher, runs, foreign, seq } => {
                self.messages += 1;
                let runs =
                    runs.iter().map(|(first, len, kind)| run(self.engine, *first, *len, *kind));
                Some(Input::Live(LiveBatch {
                    publisher: PublisherId(*publisher),
                    seq: seq.then_some(self.messages),
                    origin: if *foreign { Origin::Foreign } else { Origin::Own },
                    runs: runs.collect(),
                }))
            }
            Step::Answer { nth, kind, first, len, last } => {
                let query = self.queries.iter().rev().nth(*nth).copied();
                query.map(|query| self.answer(query, *kind, *first, *len, *last))
            }
            Step::Done { nth, ok, flaw } => {
                let op = (*nth < self.ops.len()).then(|| self.ops.remove(*nth));
                op.map(|op| {
                    let flaw = (*ok && *flaw).then_some(Flaw::Orphan);
                    Input::Completion(Completion { op, ok: *ok, flaw })
                })
            }
            Step::Other { kind, number } => Some(Self::other(*kind, *number)),
        };
        if let Some(input) = input {
            self.feed(self.now, input);
        }
    }

    fn membership(&self, generation: u64, status: u8, ready: bool, suspect: bool) -> Input<Bytes> {
        let source = |publisher, target| {
            RankStatus::Active(Source {
                publisher: PublisherId(publisher),
                target,
                kind: if self.engine { SourceKind::Engine } else { SourceKind::Agent },
                first_id: EventId(u64::from(!self.engine)),
                boot: None,
            })
        };
        let status_of = |status: u8, publisher: u64| match status {
            0 => RankStatus::Missing,
            1 => RankStatus::Ambiguous,
            2 => source(publisher, None),
            _ => source(publisher, Some(TargetId(publisher % 2))),
        };
        let rank = |worker: u64, status: u8, ready: bool| MemberRank {
            key: RankKey::new(worker, 0),
            generation: Generation(generation),
            status: status_of(status, worker),
            ready,
        };
        let ranks = [rank(1, status, ready), rank(2, 5 - status, true), rank(3, 5, true)].to_vec();
        Input::Membership(Membership::restored(ranks, suspect, None, None).unwrap())
    }

    fn answer(&self, query: QueryId, kind: u8, first: u64, len: u32, last: u64) -> Input<Bytes> {
        let runs: Vec<_> = if self.engine {
            (0..u64::from(len)).map(|index| run(true, first + index, 1, 5)).collect()
        } else {
            [run(false, first, len, 5)].to_vec()
        };
        let last_id = EventId(last);
        let whole = Some(EventId(first + u64::from(len) - 1));
        let outcome = match kind {
            0 | 1 => RecoveryOutcome::Events { runs, last: whole, complete: kind == 0 },
            2 => RecoveryOutcome::Events { runs: Vec::new(), last: None, complete: true },
            3 | 4 => RecoveryOutcome::Snapshot { runs, last: last_id },
            5 => RecoveryOutcome::SnapshotFailed { last: last_id },
            6 => RecoveryOutcome::TooNew { newest: Some(last_id) },
            7 => RecoveryOutcome::InvalidRange,
            _ => RecoveryOutcome::Failed(QueryFailure::Transport),
        };
        let origin = if last == 15 { Origin::Foreign } else { Origin::Own };
        let boot = (last == 14).then_some(BootId(first));
        Input::Recovery(RecoveryResponse { query, origin, boot, outcome })
    }

    fn other(kind: u8, number: u64) -> Input<Bytes> {
        let (rank, epoch, publisher) =
            (RankKey::new(number, 0), Epoch(number), PublisherId(number));
        match kind {
            0 => Input::Transport(publisher, TransportChange::Lost),
            1 => Input::Transport(publisher, TransportChange::Back),
            2 => Input::TargetFault(TargetFault { rank, epoch, barrier_failed: number == 3 }),
            3 => Input::SourceRejection(SourceRejection { rank, epoch }),
            4 => {
                let last = number.checked_sub(1).map(|last| EventId(last * 3));
                Input::Watermark(Watermark { publisher, last, boot: None })
            }
            _ => Input::MembershipEnded,
        }
    }
}

fn reproduces(text: &str) {
    for mode in [Mode::Exact, Mode::Check] {
        replay(text, mode).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    }
    assert_eq!(replay(text, Mode::Rewrite).unwrap(), text);
}

proptest! {
    #[test]
    fn random_recordings_are_reproduced(
        steps in vec(step(), 0..80),
        hardened in any::<bool>(),
        engine in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let base = if hardened { Policy::HARDENED } else { Policy::REFERENCE };
        // Many deadlines in a row, so that a late call meets more of them than the machine fires each
        // at its own time.
        let probe_max = Micros::from_secs(1);
        let (pending_events, pending_bytes, concurrency, attempts) = (6, 60, 2, 3);
        let policy =
            Policy { seed, pending_events, pending_bytes, concurrency, attempts, probe_max, ..base };
        let mut world = World::new(policy, engine);
        world.feed(0, world.membership(0, 2, true, false));
        for step in &steps {
            world.step(step);
        }
        world.feed(world.now, Input::Shutdown);
        reproduces(&world.text);
    }
}
