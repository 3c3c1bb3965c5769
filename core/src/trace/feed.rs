//! Lines turned into inputs of the router machine: what a line leaves out is filled in from what
//! was fed and emitted before.

use super::bindings::Bindings;
use super::event::TraceEvent;
use super::input::{Answer, FlawName, ResponseLine, RouterInput};
use super::number::IdRef;
use super::payload::{EventPayload, cut, cut_at, origin};
use super::targets::Targets;
use crate::id::{BootId, Epoch, EventId, OpId, PublisherId, QueryId, RankKey};
use crate::membership::{Membership, RankStatus, SourceKind};
use crate::router::{
    Command, Completion, Flaw, Input, LiveBatch, Origin, QueryFailure, RecoveryOutcome,
    RecoveryResponse, Run, SourceRejection, TargetFault, TransportChange, Watermark,
};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What is known of one trace's sources, queries and targets. Grows with the number of different
/// publishers and queries of the trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    targets: Targets,
    /// Where membership last placed each publisher, and its kind.
    sources: BTreeMap<PublisherId, (RankKey, SourceKind)>,
    queries: BTreeMap<QueryId, (RankKey, SourceKind)>,
}

impl Known {
    pub(super) const fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Remembers whom a query asks.
    pub(super) fn command<P>(&mut self, command: &Command<P>) {
        match command {
            Command::Query { query, rank, publisher, .. } => {
                let kind = self.sources.get(publisher).map(|(_, kind)| *kind).unwrap_or_default();
                self.queries.insert(*query, (*rank, kind));
            }
            Command::Admit { .. }
            | Command::Cancel { .. }
            | Command::Replace { .. }
            | Command::Reset { .. } => {}
        }
    }

    /// The input that `line` means; `None` for one that only moves time.
    pub(super) fn input(
        &mut self,
        line: RouterInput,
        bindings: &Bindings,
    ) -> Result<Option<Input<EventPayload>>, String> {
        Ok(Some(match line {
            RouterInput::Membership(line) => {
                let membership = line.read(&mut self.targets)?;
                self.place(&membership);
                Input::Membership(membership)
            }
            RouterInput::MembershipEnded(_) => Input::MembershipEnded,
            RouterInput::Live(line) => {
                let publisher = PublisherId(line.publisher.0);
                let source = self.sources.get(&publisher).copied();
                let (origin, runs) = cut_from(line.events, line.runs, source, line.foreign)?;
                let seq = line.seq.map(|seq| seq.0);
                Input::Live(LiveBatch { publisher, seq, origin, runs: runs.into() })
            }
            RouterInput::Watermark(line) => Input::Watermark(Watermark {
                publisher: PublisherId(line.publisher.0),
                last: line.last.map(|last| EventId(last.0)),
                boot: line.boot.map(|boot| BootId(boot.0)),
            }),
            RouterInput::Response(line) => Input::Recovery(self.response(line, bindings)?),
            RouterInput::Done(line) => Input::Completion(Completion {
                op: OpId(bindings.op(&line.op)?),
                ok: line.error.is_none(),
                flaw: line.flaw.map(|flaw| match flaw {
                    FlawName::Capacity => Flaw::Capacity,
                    FlawName::Orphan => Flaw::Orphan,
                }),
            }),
            RouterInput::TransportLost(line) => {
                Input::Transport(PublisherId(line.publisher.0), TransportChange::Lost)
            }
            RouterInput::TransportBack(line) => {
                Input::Transport(PublisherId(line.publisher.0), TransportChange::Back)
            }
            RouterInput::TargetFault(line) => Input::TargetFault(TargetFault {
                rank: RankKey::new(line.worker.0, line.rank),
                epoch: Epoch(line.epoch.0),
                barrier_failed: line.barrier_failed,
            }),
            RouterInput::RejectSource(line) => Input::SourceRejection(SourceRejection {
                rank: RankKey::new(line.worker.0, line.rank),
                epoch: Epoch(line.epoch.0),
            }),
            RouterInput::Tick(_) => Input::Timeout,
            RouterInput::Shutdown(_) => Input::Shutdown,
        }))
    }

    fn place(&mut self, membership: &Membership) {
        for rank in membership.ranks() {
            match rank.status {
                RankStatus::Active(source) => {
                    self.sources.insert(source.publisher, (rank.key, source.kind));
                }
                RankStatus::Missing | RankStatus::Ambiguous => {}
            }
        }
    }

    fn response(
        &self,
        line: ResponseLine,
        bindings: &Bindings,
    ) -> Result<RecoveryResponse<EventPayload>, String> {
        let query = QueryId(bindings.query(&line.query)?);
        let asked = self.queries.get(&query).copied();
        let mut origin = if line.foreign { Origin::Foreign } else { Origin::Own };
        let mut runs = |events, lengths| {
            let (found, runs) = cut_from(events, lengths, asked, line.foreign)?;
            origin = found;
            Ok::<_, String>(runs)
        };
        let outcome = match line.answer {
            Answer::Events(events) => RecoveryOutcome::Events {
                runs: runs(events.events, events.runs)?,
                last: events.last.map(|last| EventId(last.0)),
                complete: events.complete,
            },
            Answer::Snapshot(snapshot) => RecoveryOutcome::Snapshot {
                runs: runs(snapshot.events, snapshot.runs)?,
                last: EventId(snapshot.last.0),
            },
            Answer::SnapshotFailed(failed) => {
                RecoveryOutcome::SnapshotFailed { last: EventId(failed.last.0) }
            }
            Answer::TooNew(too_new) => {
                RecoveryOutcome::TooNew { newest: too_new.newest.map(|newest| EventId(newest.0)) }
            }
            Answer::InvalidRange(_) => RecoveryOutcome::InvalidRange,
            Answer::Error(_) => RecoveryOutcome::Failed(QueryFailure::Refused),
            Answer::Failed(_) => RecoveryOutcome::Failed(QueryFailure::Transport),
            Answer::Unreadable(_) => RecoveryOutcome::Failed(QueryFailure::Unreadable),
        };
        let boot = line.boot.map(|boot| BootId(boot.0));
        Ok(RecoveryResponse { query, origin, boot, outcome })
    }
}

/// What an unknown source sends cannot be judged: the machine does not listen to it anyway.
fn cut_from(
    events: Vec<TraceEvent>,
    lengths: Option<Vec<u32>>,
    source: Option<(RankKey, SourceKind)>,
    foreign: bool,
) -> Result<(Origin, Vec<Run<EventPayload>>), String> {
    let found = match source {
        _ if foreign => Origin::Foreign,
        Some((rank, _)) => origin(&events, rank),
        None => Origin::Own,
    };
    let kind = source.map(|(_, kind)| kind).unwrap_or_default();
    let runs = match lengths {
        Some(lengths) => cut_at(events, &lengths, kind)?,
        None => cut(events, kind),
    };
    Ok((found, runs))
}

/// What is wrong with an id that nothing has bound.
pub(super) fn unbound(what: &str, id: &IdRef) -> String {
    alloc::format!(
        "no line before this one binds the {what} label {id}; the first `out` line that carries it does"
    )
}
