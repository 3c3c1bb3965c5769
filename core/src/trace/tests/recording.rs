//! What a recorder writes is what a replay does.

use super::super::header::Host;
use super::super::payload::{EventPayload, cut};
use super::super::router::{RouterHost, RouterMachine};
use super::super::{Content, Mode, Recorder, Replay, TraceDomain, TraceEvent, Traced, What};
use crate::id::{Epoch, EventId, OpId, PublisherId, QueryId, RankKey, TargetId};
use crate::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use crate::router::{
    Clears, Command, Completion, Disposition, Effects, Flaw, Input, LiveBatch, Notice, Origin,
    Payload, Policy, RecoveryOutcome, RecoveryResponse, Reply, Run, Scope, TargetFault,
    TransportChange, Watermark,
};
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};
use core::ops::Range;

/// Hands on what it gets, at once: enough of a router to be recorded.
#[derive(Clone, Debug, Default)]
struct Echo {
    op: u64,
    deadlines: Vec<Timestamp>,
}

const RANK: RankKey = RankKey::new(1, 0);

impl Echo {
    fn handle<P: Payload>(&mut self, input: Input<P>, now: Timestamp, fx: &mut Effects<P>) {
        // Like the router, it fires what is due before it takes an input.
        while let Some(due) = self.deadlines.pop_if(|due| *due <= now) {
            fx.notice(Notice::InitialRecoveryComplete { rank: RANK });
            fx.command(Command::Cancel { query: QueryId(due.0) });
        }
        self.op += 1;
        let op = OpId(self.op);
        match input {
            Input::Live(batch) => {
                let runs = batch.runs;
                fx.command(Command::Admit { op, rank: RANK, epoch: Epoch(3), runs });
                // Two deadlines at one time.
                self.deadlines = vec![Timestamp(now.0 + 5); 2];
            }
            Input::Recovery(response) => match response.outcome {
                RecoveryOutcome::Snapshot { runs, last } => {
                    let (rank, epoch, scope) = (RANK, Epoch(3), Scope::All);
                    fx.command(Command::Replace { op, rank, epoch, scope, runs, last });
                }
                RecoveryOutcome::Events { runs, .. } => {
                    // A part of each run.
                    let part = |run: Run<P>| Run {
                        first: EventId(run.first.0 + u64::from(run.len.get()) - 1),
                        len: NonZeroU32::MIN,
                        payload: run.payload.slice(run.len.get() - 1..run.len.get()),
                        ..run
                    };
                    let runs = runs.into_iter().map(part).collect();
                    fx.command(Command::Admit { op, rank: RANK, epoch: Epoch(3), runs });
                }
                RecoveryOutcome::SnapshotFailed { .. }
                | RecoveryOutcome::TooNew { .. }
                | RecoveryOutcome::InvalidRange
                | RecoveryOutcome::Failed(_) => {}
            },
            Input::Membership(_) => fx.command(Command::Query {
                query: QueryId(self.op),
                rank: RANK,
                publisher: PublisherId(9),
                target: TargetId(4),
                start: None,
            }),
            Input::TargetFault(fault) => {
                fx.reply(Reply::Fault { rank: fault.rank, disposition: Disposition::Stale });
                fx.command(Command::Cancel { query: QueryId(1) });
            }
            Input::Transport(publisher, _) => {
                fx.reply(Reply::TransportLost { publisher, fenced: true });
                fx.notice(Notice::Refused { rank: RANK });
            }
            Input::Timeout
            | Input::MembershipEnded
            | Input::Watermark(_)
            | Input::Completion(_)
            | Input::SourceRejection(_)
            | Input::Shutdown => {}
        }
    }
}

impl RouterMachine for Echo {
    fn handle(
        &mut self,
        input: Input<EventPayload>,
        now: Timestamp,
        fx: &mut Effects<EventPayload>,
    ) {
        Self::handle(self, input, now, fx);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.last().copied()
    }
}

/// What an engine's shell hands over: bytes, and perhaps what they mean.
#[derive(Clone, Debug, PartialEq)]
struct Message {
    sizes: Vec<usize>,
    content: Option<What>,
}

impl Payload for Message {
    fn len(&self) -> u32 {
        u32::try_from(self.sizes.len()).unwrap()
    }

    fn bytes(&self) -> usize {
        self.sizes.iter().sum()
    }

    fn slice(&self, range: Range<u32>) -> Self {
        let sizes = self.sizes[range.start as usize..range.end as usize].to_vec();
        Self { sizes, content: self.content.clone() }
    }
}

impl Traced for Message {
    fn content(&self, index: u32) -> Content {
        match &self.content {
            Some(what) => Content::Event(TraceEvent::new(EventId(0), what.clone())),
            None if self.sizes[index as usize] > 2 => {
                Content::Bytes(format!("{:02x}", self.sizes[index as usize]))
            }
            None => Content::Hidden,
        }
    }
}

fn run(first: u64, sizes: &[usize], clears: Clears, content: Option<What>) -> Run<Message> {
    Run {
        first: EventId(first),
        len: NonZeroU32::new(u32::try_from(sizes.len()).unwrap()).unwrap(),
        clears,
        damaged: first % 2 == 1,
        digest: NonZeroU64::new(first).filter(|_| sizes.len() == 1),
        payload: Message { sizes: sizes.to_vec(), content },
    }
}

fn membership(kind: SourceKind) -> Membership {
    let source = Source {
        publisher: PublisherId(9),
        target: Some(TargetId(4)),
        kind,
        first_id: EventId(0),
        boot: None,
    };
    let status = RankStatus::Active(source);
    let rank = |worker, ready| MemberRank {
        key: RankKey::new(worker, 0),
        generation: 3.into(),
        status,
        ready,
    };
    let ranks = vec![rank(1, true), rank(2, false)];
    Membership::restored(ranks, true, Some(5.into()), Some((4.into(), vec![RANK]))).unwrap()
}

/// Records what an echo is fed.
fn record<P: Traced>(inputs: Vec<(u64, Input<P>)>) -> String {
    let (mut machine, mut fx, mut text) = (Echo::default(), Effects::new(), String::new());
    let mut recorder = Recorder::new();
    recorder.header("echo", &Policy::HARDENED, &mut text);
    let mut turn = |machine: &mut Echo, now, input: Input<P>| {
        recorder.input(now, &input, &mut text);
        machine.handle(input, now, &mut fx);
        recorder.outputs(&fx, &mut text);
        fx.drain_commands();
        fx.drain_replies();
        fx.drain_notices();
    };
    for (now, input) in inputs {
        turn(&mut machine, Timestamp(now), input);
    }
    text
}

/// Replays a recording by an echo.
fn replay(text: &str, mode: Mode) -> String {
    let machine = Box::new(RouterHost::new(Echo::default(), Host::Manual));
    let mut replay = Replay::with_machine(machine, mode, true);
    for line in text.lines().skip(1) {
        replay.line(line).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    }
    replay.finish().unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    replay.take_text()
}

fn reproduces(text: &str) {
    replay(text, Mode::Exact);
    replay(text, Mode::Check);
    let (header, rest) = text.split_once('\n').unwrap();
    assert!(header.contains("\"host\":\"manual\""), "{header}");
    let again = replay(text, Mode::Rewrite);
    for (again, line) in again.lines().zip(rest.lines()) {
        assert_eq!(again, line);
    }
    assert_eq!(again, rest);
}

fn live(seq: u64, runs: Vec<Run<Message>>) -> Input<Message> {
    let (publisher, origin) = (PublisherId(9), Origin::Own);
    Input::Live(LiveBatch { publisher, seq: Some(seq), origin, runs: runs.into() })
}

#[test]
fn messages_of_an_engine_are_reproduced() {
    let none = Clears::Nothing;
    let answer = |outcome| {
        let (query, boot, origin) = (QueryId(1), Some(7.into()), Origin::Own);
        Input::Recovery(RecoveryResponse { query, origin, boot, outcome })
    };
    let text = record(vec![
        (0, Input::Membership(membership(SourceKind::Engine))),
        (3, live(1, vec![run(5, &[100], none, None)])),
        (4, live(2, vec![run(6, &[9], Clears::Everything, None), run(7, &[3], none, None)])),
        // Behind both deadlines, which are due at one time.
        (30, live(3, vec![run(8, &[1], Clears::OneDomain, None)])),
        (30, live(4, vec![run(9, &[7], Clears::Everything, Some(What::Clear))])),
        (
            31,
            live(5, vec![run(u64::MAX, &[7], none, Some(What::Remove { blocks: vec![3.into()] }))]),
        ),
        (
            32,
            Input::Live(LiveBatch {
                publisher: PublisherId(9),
                seq: None,
                origin: Origin::Foreign,
                runs: vec![run(2, &[8], none, None)].into(),
            }),
        ),
        (
            40,
            answer(RecoveryOutcome::Snapshot {
                runs: vec![run(0, &[4], none, None), run(1, &[5], none, None)],
                last: EventId(1),
            }),
        ),
        (40, Input::Timeout),
        (40, Input::Timeout),
        (41, answer(RecoveryOutcome::TooNew { newest: None })),
        (42, Input::Completion(Completion { op: OpId(2), ok: true, flaw: Some(Flaw::Orphan) })),
        (43, Input::Completion(Completion { op: OpId(3), ok: false, flaw: None })),
        (44, Input::Transport(PublisherId(9), TransportChange::Lost)),
        (45, Input::TargetFault(TargetFault { rank: RANK, epoch: Epoch(3), barrier_failed: true })),
        (46, Input::MembershipEnded),
        (47, Input::Shutdown),
    ]);
    reproduces(&text);
    // Two calls at one time are one step.
    assert_eq!(text.matches("\"tick\"").count(), 1, "{text}");
    // What was due came with the input that it came before.
    assert!(text.contains("{\"out\":{\"cancel\":{\"query\":9}}}"), "{text}");
    let opaque = r#""opaque":{"bytes":100,"digest":5,"clear":false,"payload":"64"},"damaged":true"#;
    assert!(text.contains(opaque), "{text}");
}

#[test]
fn parts_of_an_agents_runs_are_reproduced() {
    let none = Clears::Nothing;
    let events = |content: Option<What>| {
        let runs = vec![
            run(4, &[1, 2, 3], none, content.clone()),
            run(9, &[4, 5], none, content),
            run(12, &[6], Clears::OneDomain, Some(What::Clear)),
        ];
        let runs = runs.into_iter().map(|run| Run { digest: None, ..run }).collect();
        Input::Recovery(RecoveryResponse {
            query: QueryId(1),
            origin: Origin::Own,
            boot: None,
            outcome: RecoveryOutcome::Events { runs, last: Some(EventId(12)), complete: false },
        })
    };
    for content in [None, Some(What::Remove { blocks: vec![1.into()] })] {
        reproduces(&record(vec![
            (0, Input::Membership(membership(SourceKind::Agent))),
            (1, events(content)),
            (
                2,
                Input::Watermark(Watermark {
                    publisher: PublisherId(9),
                    last: None,
                    boot: Some(3.into()),
                }),
            ),
        ]));
    }
}

#[test]
fn events_that_were_read_are_written_as_they_are() {
    let event = |text: &str| serde_json::from_str::<TraceEvent>(text).unwrap();
    let events = vec![
        event(r#"{"id":4,"remove":[1]}"#),
        event(r#"{"id":5,"remove":[2],"tier":"host","worker":1}"#),
        event(r#"{"id":6,"clear":true}"#),
        event(r#"{"id":7,"opaque":{"bytes":3}}"#),
    ];
    assert_eq!(events[2].domain, None::<TraceDomain>);
    let runs = cut(events, SourceKind::Agent);
    let text = record(vec![
        (0, Input::Membership(membership(SourceKind::Agent))),
        (
            1,
            Input::Recovery(RecoveryResponse {
                query: QueryId(1),
                origin: Origin::Own,
                boot: None,
                outcome: RecoveryOutcome::Events { runs, last: None, complete: true },
            }),
        ),
    ]);
    reproduces(&text);
    assert!(
        text.contains(r#"{"id":4,"remove":[1]},{"id":5,"remove":[2],"tier":"host","worker":1}"#)
    );
}
