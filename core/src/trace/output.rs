//! Outputs as lines.

use super::event::TraceEvent;
use super::note::Note;
use super::number::{IdRef, U64, is_false};
use super::ranks::RankLine;
use super::targets::Targets;
use crate::id::RankKey;
use crate::router::{Command, Reply, ResetReason, Run, Scope};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A name that a machine has, or that was read.
pub(super) type Name = Cow<'static, str>;

/// What a machine wants done, or tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Output {
    Reset {
        worker: U64,
        rank: u32,
        epoch: U64,
        reason: Name,
        domain: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        op: Option<IdRef>,
    },
    Admit {
        worker: U64,
        rank: u32,
        epoch: U64,
        ids: Vec<U64>,
        events: Vec<TraceEvent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        op: Option<IdRef>,
    },
    Replace {
        worker: U64,
        rank: u32,
        epoch: U64,
        ids: Vec<U64>,
        events: Vec<TraceEvent>,
        last: U64,
        domain: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        op: Option<IdRef>,
    },
    Query {
        worker: U64,
        rank: u32,
        publisher: U64,
        target: String,
        start: Option<U64>,
        end: Option<U64>,
        query: IdRef,
    },
    Cancel {
        query: IdRef,
    },
    Reply(ReplyLine),
    Note(Note),
    Snapshot {
        endpoint: Name,
        ranks: Vec<RankLine>,
        #[serde(default, skip_serializing_if = "is_false")]
        suspect: bool,
    },
}

/// The answer to an input that asks for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum ReplyLine {
    Fault { worker: U64, rank: u32, disposition: Name },
    TransportLost { publisher: U64, fenced: bool },
}

/// An output as it stands on a line of its own.
#[derive(Serialize)]
struct OutLine<'a> {
    out: &'a Output,
}

impl Output {
    /// The output as a line, without its end.
    pub(super) fn line(&self) -> String {
        // Texts, numbers and lists only: nothing of it can fail to be written.
        serde_json::to_string(&OutLine { out: self }).unwrap_or_default()
    }

    /// The id of a command that is completed by one.
    pub(super) const fn op(&self) -> Option<&IdRef> {
        match self {
            Self::Reset { op, .. } | Self::Admit { op, .. } | Self::Replace { op, .. } => {
                op.as_ref()
            }
            Self::Query { .. }
            | Self::Cancel { .. }
            | Self::Reply(_)
            | Self::Note(_)
            | Self::Snapshot { .. } => None,
        }
    }

    /// The query it sends or cancels.
    pub(super) const fn query(&self) -> Option<&IdRef> {
        match self {
            Self::Query { query, .. } | Self::Cancel { query } => Some(query),
            Self::Reset { .. }
            | Self::Admit { .. }
            | Self::Replace { .. }
            | Self::Reply(_)
            | Self::Note(_)
            | Self::Snapshot { .. } => None,
        }
    }

    /// Both ids, for exchange against labels.
    pub(super) const fn ids_mut(&mut self) -> (Option<&mut Option<IdRef>>, Option<&mut IdRef>) {
        match self {
            Self::Reset { op, .. } | Self::Admit { op, .. } | Self::Replace { op, .. } => {
                (Some(op), None)
            }
            Self::Query { query, .. } | Self::Cancel { query } => (None, Some(query)),
            Self::Reply(_) | Self::Note(_) | Self::Snapshot { .. } => (None, None),
        }
    }

    /// The line of a command; `events` says what a run holds.
    pub(super) fn command<P>(
        command: &Command<P>,
        targets: &Targets,
        mut events: impl FnMut(&Run<P>, &mut Vec<TraceEvent>),
    ) -> Self {
        let mut all = |runs: &[Run<P>]| {
            let mut list = Vec::new();
            for run in runs {
                events(run, &mut list);
            }
            let ids: Vec<U64> = list.iter().map(|event| U64(event.id.0)).collect();
            (ids, list)
        };
        let number = |op: u64| Some(IdRef::Number(op));
        match command {
            Command::Reset { op, rank, epoch, scope, reason } => Self::Reset {
                worker: U64(rank.worker.0),
                rank: rank.rank.0,
                epoch: U64(epoch.0),
                reason: Name::Borrowed(ResetReason::name(*reason)),
                domain: Name::Borrowed(Scope::name(*scope)),
                op: number(op.0),
            },
            Command::Admit { op, rank, epoch, runs } => {
                let (ids, events) = all(runs);
                Self::Admit {
                    worker: U64(rank.worker.0),
                    rank: rank.rank.0,
                    epoch: U64(epoch.0),
                    ids,
                    events,
                    op: number(op.0),
                }
            }
            Command::Replace { op, rank, epoch, scope, runs, last } => {
                let (ids, events) = all(runs);
                Self::Replace {
                    worker: U64(rank.worker.0),
                    rank: rank.rank.0,
                    epoch: U64(epoch.0),
                    ids,
                    events,
                    last: U64(last.0),
                    domain: Name::Borrowed(Scope::name(*scope)),
                    op: number(op.0),
                }
            }
            Command::Query { query, rank, publisher, target, start } => Self::Query {
                worker: U64(rank.worker.0),
                rank: rank.rank.0,
                publisher: U64(publisher.0),
                target: targets.name(*target),
                start: start.map(|start| U64(start.0)),
                end: None,
                query: IdRef::Number(query.0),
            },
            Command::Cancel { query } => Self::Cancel { query: IdRef::Number(query.0) },
        }
    }

    /// The line of a reply.
    pub(super) const fn reply(reply: &Reply) -> Self {
        Self::Reply(match reply {
            Reply::Fault { rank, disposition } => ReplyLine::Fault {
                worker: U64(rank.worker.0),
                rank: rank.rank.0,
                disposition: Name::Borrowed(disposition.name()),
            },
            Reply::TransportLost { publisher, fenced } => {
                ReplyLine::TransportLost { publisher: U64(publisher.0), fenced: *fenced }
            }
        })
    }

    /// The rank whose commands this is ordered among.
    pub(super) const fn rank(&self) -> Option<RankKey> {
        match self {
            Self::Reset { worker, rank, .. }
            | Self::Admit { worker, rank, .. }
            | Self::Replace { worker, rank, .. }
            | Self::Query { worker, rank, .. } => Some(RankKey::new(worker.0, *rank)),
            Self::Cancel { .. } | Self::Reply(_) | Self::Note(_) | Self::Snapshot { .. } => None,
        }
    }
}
