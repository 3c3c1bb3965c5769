//! Diagnostics as lines.

use super::number::U64;
use super::output::Name;
use crate::id::{EventId, RankKey};
use crate::router::{Notice, QueryFailure};
use alloc::collections::BTreeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A diagnostic: its kind, then its fields by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    kind: Name,
    #[serde(flatten)]
    fields: BTreeMap<Name, Value>,
}

impl Note {
    fn new(kind: &'static str) -> Self {
        Self { kind: Name::Borrowed(kind), fields: BTreeMap::new() }
    }

    fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.insert(Name::Borrowed(key), value.into());
        self
    }

    fn of_rank(kind: &'static str, rank: RankKey) -> Self {
        Self::new(kind).with("worker", number(rank.worker.0)).with("rank", rank.rank.0)
    }

    /// The note of a notice.
    pub(super) fn of(notice: &Notice) -> Self {
        match *notice {
            Notice::InitialRecoveryComplete { rank } => {
                Self::of_rank("initial_recovery_complete", rank)
            }
            Notice::Gap { rank, expected, got } => Self::of_rank("gap", rank)
                .with("expected", number(expected.0))
                .with("got", number(got.0)),
            Notice::NewLife { rank, cursor } => {
                Self::of_rank("new_life", rank).with("cursor", cursor.map(|EventId(id)| number(id)))
            }
            Notice::Skipped { rank, first, last } => Self::of_rank("skipped", rank)
                .with("first", number(first.0))
                .with("last", number(last.0)),
            Notice::Discarded { publisher, reason, messages } => Self::new("discarded")
                .with("publisher", number(publisher.0))
                .with("reason", reason.name())
                .with("messages", number(messages)),
            Notice::Recovered { rank, end } => {
                Self::of_rank("recovered", rank).with("end", end.name())
            }
            Notice::Trust { rank, from, to, reason } => Self::of_rank("trust", rank)
                .with("from", from.name())
                .with("to", to.name())
                .with("reason", reason.map(|reason| reason.name())),
            Notice::Reset { rank, cause } => {
                Self::of_rank("reset", rank).with("cause", cause.name())
            }
            Notice::QueryFailed { rank, attempt, failure } => Self::of_rank("query_failed", rank)
                .with("attempt", attempt)
                .with("failure", failure.map(failure_name)),
            Notice::Refused { rank } => Self::of_rank("refused", rank),
            Notice::TransportGap { rank, expected, got } => Self::of_rank("transport_gap", rank)
                .with("expected", number(expected))
                .with("got", number(got)),
        }
    }
}

fn number(number: u64) -> Value {
    serde_json::to_value(U64(number)).unwrap_or_default()
}

const fn failure_name(failure: QueryFailure) -> &'static str {
    match failure {
        QueryFailure::Transport => "transport",
        QueryFailure::Refused => "refused",
        QueryFailure::Unreadable => "unreadable",
    }
}
