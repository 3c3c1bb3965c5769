//! Inputs of the router machine as lines.

use super::event::TraceEvent;
use super::number::{IdRef, U64, is_false};
use super::ranks::MembershipLine;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

const fn yes() -> bool {
    true
}

/// `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// An input of the router machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RouterInput {
    Membership(MembershipLine),
    MembershipEnded(Nothing),
    Live(LiveLine),
    Watermark(WatermarkLine),
    Response(ResponseLine),
    Done(DoneLine),
    TransportLost(PublisherLine),
    TransportBack(PublisherLine),
    TargetFault(TargetFaultLine),
    RejectSource(RejectSourceLine),
    Tick(Nothing),
    Shutdown(Nothing),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveLine {
    pub(super) publisher: U64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<U64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) foreign: bool,
    pub(super) events: Vec<TraceEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) runs: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatermarkLine {
    pub(super) publisher: U64,
    pub(super) last: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<U64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublisherLine {
    pub(super) publisher: U64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetFaultLine {
    pub(super) worker: U64,
    pub(super) rank: u32,
    pub(super) epoch: U64,
    #[serde(default)]
    pub(super) barrier_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectSourceLine {
    pub(super) worker: U64,
    pub(super) rank: u32,
    pub(super) epoch: U64,
}

/// What only a target can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FlawName {
    Capacity,
    Orphan,
}

/// `done`: exactly one of `ok: true` and `error`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DoneLine {
    pub(super) op: IdRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flaw: Option<FlawName>,
}

impl<'de> Deserialize<'de> for DoneLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            op: IdRef,
            ok: Option<bool>,
            error: Option<String>,
            flaw: Option<FlawName>,
        }
        let Form { op, ok, error, flaw } = Form::deserialize(deserializer)?;
        match (ok, &error) {
            (Some(true), None) | (None, Some(_)) => {}
            (Some(_), _) | (None, None) => {
                return Err(D::Error::custom("`done` has either `ok` true or `error` with a text"));
            }
        }
        if flaw.is_some() && error.is_some() {
            return Err(D::Error::custom("only a command that took effect can have a `flaw`"));
        }
        Ok(Self { op, ok, error, flaw })
    }
}

/// `response`: a query and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResponseLine {
    pub(super) query: IdRef,
    pub(super) boot: Option<U64>,
    pub(super) foreign: bool,
    pub(super) answer: Answer,
}

/// What a response says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Events(EventsLine),
    Snapshot(SnapshotLine),
    SnapshotFailed(SnapshotFailedLine),
    TooNew(TooNewLine),
    InvalidRange(InvalidRangeLine),
    /// The source answered that it cannot.
    Error(String),
    /// The transport delivered no answer.
    Failed(String),
    /// The answer could not be read.
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsLine {
    pub(super) events: Vec<TraceEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) runs: Option<Vec<u32>>,
    pub(super) last: Option<U64>,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub(super) complete: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotLine {
    pub(super) events: Vec<TraceEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) runs: Option<Vec<u32>>,
    pub(super) last: U64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotFailedLine {
    pub(super) last: U64,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TooNewLine {
    pub(super) start: Option<U64>,
    pub(super) end: Option<U64>,
    pub(super) newest: Option<U64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvalidRangeLine {
    pub(super) start: Option<U64>,
    pub(super) end: Option<U64>,
}

impl<'de> Deserialize<'de> for ResponseLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            query: IdRef,
            boot: Option<U64>,
            #[serde(default)]
            foreign: bool,
            events: Option<EventsLine>,
            snapshot: Option<SnapshotLine>,
            snapshot_failed: Option<SnapshotFailedLine>,
            too_new: Option<TooNewLine>,
            invalid_range: Option<InvalidRangeLine>,
            error: Option<String>,
            failed: Option<String>,
            unreadable: Option<String>,
        }
        let form = Form::deserialize(deserializer)?;
        let answers = [
            form.events.map(Answer::Events),
            form.snapshot.map(Answer::Snapshot),
            form.snapshot_failed.map(Answer::SnapshotFailed),
            form.too_new.map(Answer::TooNew),
            form.invalid_range.map(Answer::InvalidRange),
            form.error.map(Answer::Error),
            form.failed.map(Answer::Failed),
            form.unreadable.map(Answer::Unreadable),
        ];
        let mut given = answers.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(answer), None) => {
                Ok(Self { query: form.query, boot: form.boot, foreign: form.foreign, answer })
            }
            (None, _) | (_, Some(_)) => Err(D::Error::custom(
                "`response` has exactly one of `events`, `snapshot`, `snapshot_failed`, `too_new`, \
                 `invalid_range`, `error`, `failed` and `unreadable`",
            )),
        }
    }
}

impl Serialize for ResponseLine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            query: &'a IdRef,
            #[serde(skip_serializing_if = "Option::is_none")]
            boot: Option<U64>,
            #[serde(skip_serializing_if = "is_false")]
            foreign: bool,
            #[serde(flatten)]
            answer: &'a Answer,
        }
        let Self { query, boot, foreign, answer } = self;
        Form { query, boot: *boot, foreign: *foreign, answer }.serialize(serializer)
    }
}
