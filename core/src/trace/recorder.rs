//! Recording a live router machine as a trace that [`super::Mode::Exact`] reproduces.

use super::config::RouterConfig;
use super::event::{Opaque, OpaqueClear, TraceDomain, TraceEvent, What};
use super::header::{Header, Host, Machine};
use super::input::{
    Answer, DoneLine, EventsLine, FlawName, InvalidRangeLine, LiveLine, Nothing, PublisherLine,
    RejectSourceLine, ResponseLine, RouterInput, SnapshotFailedLine, SnapshotLine, TargetFaultLine,
    TooNewLine, WatermarkLine,
};
use super::note::Note;
use super::number::{IdRef, U64};
use super::output::Output;
use super::payload::EventPayload;
use super::ranks::MembershipLine;
use super::targets::Targets;
use crate::id::EventId;
use crate::router::{
    Clears, Effects, Flaw, Input, Origin, Payload, Policy, QueryFailure, RecoveryOutcome,
    RecoveryResponse, Run, TransportChange,
};
use crate::time::Timestamp;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Serialize;

/// What a trace shows of one id of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing but its header.
    Hidden,
    /// Its bytes as hexadecimal digits, beside its header.
    Bytes(String),
    /// What it does. Its id, size, digest and damage are taken from its header.
    Event(TraceEvent),
    /// An event that was read from a trace: it is written as it is.
    AsRead(TraceEvent),
}

/// A payload that can be recorded.
pub trait Traced: Payload {
    /// What to show of the id at `index`, which is below [`Payload::len`].
    fn content(&self, index: u32) -> Content;

    /// The size of the id at `index`. [`Payload::bytes`] of any slice must be the sum over its ids,
    /// or the pending budget runs out elsewhere when the trace is replayed.
    fn bytes_at(&self, index: u32) -> u64 {
        self.slice(index..index.saturating_add(1)).bytes() as u64
    }
}

impl Traced for EventPayload {
    fn content(&self, index: u32) -> Content {
        let event = self.events().get(index as usize);
        event.map_or(Content::Hidden, |event| Content::AsRead(event.clone()))
    }
}

/// Writes what a router machine was fed and what it wanted, line by line. It does no IO: lines are
/// appended to a text of the caller's.
///
/// Call [`Recorder::header`] once, then for each call of the machine [`Recorder::input`] before it
/// and [`Recorder::outputs`] after it, while the outputs are still in their buffer. The machine must
/// be new when recording begins.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Always empty: targets are named by number.
    targets: Targets,
    now: Timestamp,
    /// The last input was a timeout: another one at the same time is the same step.
    in_timeout: bool,
}

#[derive(Serialize)]
struct InLine<'a> {
    at: u64,
    #[serde(rename = "in")]
    input: &'a RouterInput,
}

impl Recorder {
    /// A recorder for one machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the header of a trace of a machine that was made with `policy`.
    pub fn header(&self, name: &str, policy: &Policy, text: &mut String) {
        let machine = Machine::Router(RouterConfig::from(policy));
        let header = Header { name: name.to_string(), machine, host: Host::Manual };
        push(text, &header.line());
    }

    /// Appends an input. `now` never decreases; where it does, the last one counts.
    pub fn input<P: Traced>(&mut self, now: Timestamp, input: &Input<P>, text: &mut String) {
        let now = now.max(self.now);
        let same_step = self.in_timeout && now == self.now && matches!(input, Input::Timeout);
        self.now = now;
        self.in_timeout = matches!(input, Input::Timeout);
        if same_step {
            return;
        }
        let line = InLine { at: now.0, input: &self.line(input) };
        // Texts, numbers and lists only: nothing of it can fail to be written.
        push(text, &serde_json::to_string(&line).unwrap_or_default());
    }

    /// Appends what came of the last input.
    pub fn outputs<P: Traced>(&self, fx: &Effects<P>, text: &mut String) {
        for command in fx.commands() {
            push(text, &Output::command(command, &self.targets, show).line());
        }
        for reply in fx.replies() {
            push(text, &Output::reply(reply).line());
        }
        for notice in fx.notices() {
            push(text, &Output::Note(Note::of(notice)).line());
        }
    }

    fn line<P: Traced>(&self, input: &Input<P>) -> RouterInput {
        match input {
            Input::Membership(membership) => {
                RouterInput::Membership(MembershipLine::of(membership, &self.targets))
            }
            Input::MembershipEnded => RouterInput::MembershipEnded(Nothing {}),
            Input::Live(batch) => RouterInput::Live(LiveLine {
                publisher: U64(batch.publisher.0),
                seq: batch.seq.map(U64),
                foreign: batch.origin == Origin::Foreign,
                events: events(&batch.runs),
                runs: lengths(&batch.runs),
            }),
            Input::Watermark(watermark) => RouterInput::Watermark(WatermarkLine {
                publisher: U64(watermark.publisher.0),
                last: watermark.last.map(|last| U64(last.0)),
                boot: watermark.boot.map(|boot| U64(boot.0)),
            }),
            Input::Recovery(response) => RouterInput::Response(response_line(response)),
            Input::Completion(completion) => RouterInput::Done(DoneLine {
                op: IdRef::Number(completion.op.0),
                ok: completion.ok.then_some(true),
                error: (!completion.ok).then(|| "failed".to_string()),
                flaw: completion.flaw.filter(|_| completion.ok).map(|flaw| match flaw {
                    Flaw::Capacity => FlawName::Capacity,
                    Flaw::Orphan => FlawName::Orphan,
                }),
            }),
            Input::Transport(publisher, change) => {
                let line = PublisherLine { publisher: U64(publisher.0) };
                match change {
                    TransportChange::Lost => RouterInput::TransportLost(line),
                    TransportChange::Back => RouterInput::TransportBack(line),
                }
            }
            Input::TargetFault(fault) => RouterInput::TargetFault(TargetFaultLine {
                worker: U64(fault.rank.worker.0),
                rank: fault.rank.rank.0,
                epoch: U64(fault.epoch.0),
                barrier_failed: fault.barrier_failed,
            }),
            Input::SourceRejection(rejection) => RouterInput::RejectSource(RejectSourceLine {
                worker: U64(rejection.rank.worker.0),
                rank: rejection.rank.rank.0,
                epoch: U64(rejection.epoch.0),
            }),
            Input::Timeout => RouterInput::Tick(Nothing {}),
            Input::Shutdown => RouterInput::Shutdown(Nothing {}),
        }
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn response_line<P: Traced>(response: &RecoveryResponse<P>) -> ResponseLine {
    let answer = match &response.outcome {
        RecoveryOutcome::Events { runs, last, complete } => Answer::Events(EventsLine {
            events: events(runs),
            runs: lengths(runs),
            last: last.map(|last| U64(last.0)),
            complete: *complete,
        }),
        RecoveryOutcome::Snapshot { runs, last } => Answer::Snapshot(SnapshotLine {
            events: events(runs),
            runs: lengths(runs),
            last: U64(last.0),
        }),
        RecoveryOutcome::SnapshotFailed { last } => {
            Answer::SnapshotFailed(SnapshotFailedLine { last: U64(last.0), message: String::new() })
        }
        RecoveryOutcome::TooNew { newest } => Answer::TooNew(TooNewLine {
            start: None,
            end: None,
            newest: newest.map(|newest| U64(newest.0)),
        }),
        RecoveryOutcome::InvalidRange => {
            Answer::InvalidRange(InvalidRangeLine { start: None, end: None })
        }
        RecoveryOutcome::Failed(failure) => match failure {
            QueryFailure::Transport => Answer::Failed("no answer".to_string()),
            QueryFailure::Refused => Answer::Error("refused".to_string()),
            QueryFailure::Unreadable => Answer::Unreadable("unreadable".to_string()),
        },
    };
    ResponseLine {
        query: IdRef::Number(response.query.0),
        boot: response.boot.map(|boot| U64(boot.0)),
        foreign: response.origin == Origin::Foreign,
        answer,
    }
}

fn events<P: Traced>(runs: &[Run<P>]) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    for run in runs {
        show(run, &mut events);
    }
    events
}

/// The lengths of the runs, where their events do not tell: where a reader would join two of them.
fn lengths<P>(runs: &[Run<P>]) -> Option<Vec<u32>> {
    let alone = |run: &Run<P>| run.clears != Clears::Nothing || run.digest.is_some();
    let joined = runs.windows(2).any(|pair| match pair {
        [a, b] => {
            a.last().0.checked_add(1) == Some(b.first.0)
                && a.damaged == b.damaged
                && !alone(a)
                && !alone(b)
        }
        _ => false,
    });
    joined.then(|| runs.iter().map(|run| run.len.get()).collect())
}

/// The events of a run: one for each of its ids.
fn show<P: Traced>(run: &Run<P>, events: &mut Vec<TraceEvent>) {
    for index in 0..run.len.get() {
        let id = EventId(run.first.0.saturating_add(u64::from(index)));
        let bytes = run.payload.bytes_at(index);
        let payload = match run.payload.content(index) {
            Content::AsRead(event) => {
                events.push(event);
                continue;
            }
            Content::Event(event) => {
                events.push(headed(event, id, bytes, run));
                continue;
            }
            Content::Bytes(digits) => Some(digits),
            Content::Hidden => None,
        };
        let opaque = Opaque {
            bytes,
            digest: run.digest.filter(|_| run.len.get() == 1),
            clear: match run.clears {
                Clears::Nothing => OpaqueClear::Nothing,
                Clears::OneDomain => OpaqueClear::OneDomain,
                Clears::Everything => OpaqueClear::Everything,
            },
            payload,
        };
        let damaged = run.damaged;
        events.push(TraceEvent { damaged, ..TraceEvent::new(id, What::Opaque(opaque)) });
    }
}

/// An event with everything that its run's header says of it.
fn headed<P>(event: TraceEvent, id: EventId, bytes: u64, run: &Run<P>) -> TraceEvent {
    let everything = event.what == What::Clear && run.clears == Clears::Everything;
    TraceEvent {
        id,
        domain: if everything { Some(TraceDomain::All) } else { event.domain },
        bytes: Some(bytes),
        digest: Some(run.digest.filter(|_| run.len.get() == 1)),
        damaged: run.damaged,
        ..event
    }
}
