//! `out` lines as they stand in a trace: some of the fields of an output.

use super::number::IdRef;
use crate::id::RankKey;
use alloc::format;
use alloc::string::{String, ToString};
use serde_json::{Map, Value};

/// Kinds of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Admit,
    Cancel,
    Note,
    Query,
    Replace,
    Reply,
    Reset,
    Snapshot,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Admit,
        Self::Cancel,
        Self::Note,
        Self::Query,
        Self::Replace,
        Self::Reply,
        Self::Reset,
        Self::Snapshot,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Cancel => "cancel",
            Self::Note => "note",
            Self::Query => "query",
            Self::Replace => "replace",
            Self::Reply => "reply",
            Self::Reset => "reset",
            Self::Snapshot => "snapshot",
        }
    }

    /// Every field that such an output can have; `None` = any.
    const fn fields(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Admit => &["worker", "rank", "epoch", "ids", "events", "op"],
            Self::Cancel => &["query"],
            Self::Note => return None,
            Self::Query => &["worker", "rank", "publisher", "target", "start", "end", "query"],
            Self::Replace => &["worker", "rank", "epoch", "ids", "events", "last", "domain", "op"],
            Self::Reply => &["worker", "rank", "disposition", "publisher", "fenced"],
            Self::Reset => &["worker", "rank", "epoch", "reason", "domain", "op"],
            Self::Snapshot => &["endpoint", "ranks", "suspect"],
        })
    }
}

/// One `out` line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    /// Where it stands.
    pub(super) line: usize,
    /// As it stands.
    pub(super) text: String,
    pub(super) kind: Kind,
    /// All fields but `op` and `query`.
    pub(super) fields: Map<String, Value>,
    pub(super) op: Option<IdRef>,
    pub(super) query: Option<IdRef>,
}

impl Expected {
    /// Reads what stands behind `out`; the error says what is wrong.
    pub(super) fn read(line: usize, text: &str, out: Map<String, Value>) -> Result<Self, String> {
        let mut out = out.into_iter();
        let (Some((name, value)), None) = (out.next(), out.next()) else {
            return Err("`out` has exactly one output, as {\"out\":{\"reset\":{…}}}".to_string());
        };
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) else {
            return Err(format!("unknown output `{name}`, expected one of {}", names()));
        };
        let Value::Object(mut fields) = value else {
            return Err(format!("`{name}` is followed by an object with its fields"));
        };
        if let Some(known) = kind.fields()
            && let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str()))
        {
            return Err(format!(
                "`{name}` has no field `{unknown}`, expected one of `{}`",
                known.join("`, `")
            ));
        }
        let mut id = |key: &str| {
            let id = fields.remove(key).map(serde_json::from_value).transpose();
            id.map_err(|_| format!("`{key}` is a label or an unsigned 64-bit number"))
        };
        let (op, query) = (id("op")?, id("query")?);
        Ok(Self { line, text: text.to_string(), kind, fields, op, query })
    }

    /// The rank it names, if it names one whole.
    pub(super) fn rank(&self) -> Option<RankKey> {
        let worker = super::subset::number(self.fields.get("worker")?)?;
        let rank = super::subset::number(self.fields.get("rank")?)?;
        Some(RankKey::new(worker, u32::try_from(rank).ok()?))
    }
}

fn names() -> String {
    let names = Kind::ALL.map(|kind| format!("`{}`", kind.name()));
    names.join(", ")
}
