//! Outputs of one step by what they are ordered among.

use super::bindings::Bindings;
use super::compare::{Step, rank_in};
use super::expected::{Expected, Kind};
use super::number::IdRef;
use super::output::Output;
use super::subset;
use crate::id::RankKey;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde_json::{Map, Value};

/// What an output is ordered among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The commands of one rank; `None` for those of a query that was never sent.
    Commands(Option<RankKey>),
    /// The diagnostics of one rank, or those of none.
    Notes(Option<RankKey>),
    /// The replies.
    Replies,
    /// The snapshots.
    Snapshots,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(Some(rank)) => write!(f, "rank {rank}"),
            Self::Commands(None) => f.write_str("no known rank"),
            Self::Notes(Some(rank)) => write!(f, "notes of rank {rank}"),
            Self::Notes(None) => f.write_str("notes of no rank"),
            Self::Replies => f.write_str("replies"),
            Self::Snapshots => f.write_str("snapshots"),
        }
    }
}

impl Lane {
    /// The lane of a line; `None` when it does not say. `before` are the lines of its step before it.
    pub(super) fn expected(
        line: &Expected,
        bindings: &Bindings,
        before: &[Expected],
    ) -> Option<Self> {
        let rank = || line.rank().map(Some);
        match line.kind {
            Kind::Admit | Kind::Query | Kind::Replace | Kind::Reset => rank().map(Self::Commands),
            Kind::Cancel => {
                let query = line.query.as_ref()?;
                let rank = bindings.rank_of(query).or_else(|| rank_in(before, query));
                rank.map(Some).map(Self::Commands)
            }
            Kind::Note => rank().map(Self::Notes),
            Kind::Reply => Some(Self::Replies),
            Kind::Snapshot => Some(Self::Snapshots),
        }
    }

    const fn got(unit: &Unit, rank: Option<RankKey>) -> Self {
        match unit.kind {
            Kind::Admit | Kind::Cancel | Kind::Query | Kind::Replace | Kind::Reset => {
                Self::Commands(rank)
            }
            Kind::Note => Self::Notes(rank),
            Kind::Reply => Self::Replies,
            Kind::Snapshot => Self::Snapshots,
        }
    }
}

/// One output, or adjacent admits of one rank and epoch.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    /// All fields but `op` and `query`.
    pub(super) fields: Map<String, Value>,
    pub(super) ops: Vec<u64>,
    pub(super) query: Option<u64>,
    /// Which outputs of the step it is made of.
    parts: Vec<usize>,
}

impl Unit {
    pub(super) fn of(output: &Output, index: usize) -> Self {
        let (kind, fields) = fields(output);
        let number = |id: &IdRef| match id {
            IdRef::Number(number) => Some(*number),
            IdRef::Label(_) => None,
        };
        Self {
            kind,
            fields,
            ops: output.op().and_then(number).into_iter().collect(),
            query: output.query().and_then(number),
            parts: alloc::vec![index],
        }
    }

    /// Its outputs as lines.
    pub(super) fn text(&self, got: &[Output]) -> String {
        let outputs = self.parts.iter().filter_map(|index| got.get(*index));
        let lines: Vec<String> = outputs.map(Output::line).collect();
        lines.join("\n            ")
    }

    /// Joins `next` if both are admits of one epoch; else gives it back.
    fn join(&mut self, mut next: Self) -> Option<Self> {
        let admits = self.kind == Kind::Admit && next.kind == Kind::Admit;
        if !admits || self.fields.get("epoch") != next.fields.get("epoch") {
            return Some(next);
        }
        for key in ["ids", "events"] {
            if let (Some(Value::Array(all)), Some(Value::Array(more))) =
                (self.fields.get_mut(key), next.fields.get_mut(key))
            {
                all.append(more);
            }
        }
        self.ops.append(&mut next.ops);
        self.parts.append(&mut next.parts);
        None
    }
}

/// The kind of an output and its fields without ids.
fn fields(output: &Output) -> (Kind, Map<String, Value>) {
    let kind = match output {
        Output::Reset { .. } => Kind::Reset,
        Output::Admit { .. } => Kind::Admit,
        Output::Replace { .. } => Kind::Replace,
        Output::Query { .. } => Kind::Query,
        Output::Cancel { .. } => Kind::Cancel,
        Output::Reply(_) => Kind::Reply,
        Output::Note(_) => Kind::Note,
        Output::Snapshot { .. } => Kind::Snapshot,
    };
    // Texts, numbers and lists only: nothing of it can fail to become a value.
    let whole = serde_json::to_value(output).unwrap_or_default();
    let inner = match whole {
        Value::Object(mut whole) => whole.remove(kind.name()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    };
    let mut fields = match inner {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    fields.remove("op");
    fields.remove("query");
    (kind, fields)
}

/// A step's outputs, each lane in order, with adjacent admits joined.
#[derive(Debug)]
pub(super) struct Lanes {
    units: BTreeMap<Lane, VecDeque<Unit>>,
}

impl Lanes {
    /// Sorts what came. Notes are left out, apart from those of a kind that the step expects.
    pub(super) fn of(step: Step<'_>, bindings: &Bindings) -> Self {
        let notes = expected_notes(step.expected);
        let mut units: BTreeMap<Lane, VecDeque<Unit>> = BTreeMap::new();
        for (index, output) in step.got.iter().enumerate() {
            let unit = Unit::of(output, index);
            if unit.kind == Kind::Note && !notes.wants(&unit) {
                continue;
            }
            let rank = output.rank().or_else(|| match unit.kind {
                Kind::Cancel => bindings.rank_of(output.query()?),
                Kind::Note => note_rank(&unit.fields),
                Kind::Admit
                | Kind::Query
                | Kind::Replace
                | Kind::Reply
                | Kind::Reset
                | Kind::Snapshot => None,
            });
            let lane = units.entry(Lane::got(&unit, rank)).or_default();
            let left = match lane.back_mut() {
                Some(last) => last.join(unit),
                None => Some(unit),
            };
            lane.extend(left);
        }
        Self { units }
    }

    /// Takes the next output of `lane`.
    pub(super) fn next(&mut self, lane: Lane) -> Option<Unit> {
        self.units.get_mut(&lane)?.pop_front()
    }

    /// Takes the next output of `lane` that is of this kind.
    pub(super) fn next_of(&mut self, lane: Lane, kind: Kind) -> Option<Unit> {
        let units = self.units.get_mut(&lane)?;
        let index = units.iter().position(|unit| unit.kind == kind)?;
        units.remove(index)
    }

    /// The next output of each lane.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Lane, &Unit)> {
        self.units.iter().filter_map(|(lane, units)| Some((*lane, units.front()?)))
    }

    /// An output that nothing took.
    pub(super) fn rest(&self) -> Option<(Lane, &Unit)> {
        self.heads().next()
    }
}

fn note_rank(fields: &Map<String, Value>) -> Option<RankKey> {
    let worker = subset::number(fields.get("worker")?)?;
    let rank = subset::number(fields.get("rank")?)?;
    Some(RankKey::new(worker, u32::try_from(rank).ok()?))
}

/// The kinds of note that a step expects.
struct ExpectedNotes {
    kinds: BTreeSet<String>,
    /// A line expects a note without saying which kind.
    any: bool,
}

fn expected_notes(expected: &[Expected]) -> ExpectedNotes {
    let mut notes = ExpectedNotes { kinds: BTreeSet::new(), any: false };
    for line in expected.iter().filter(|line| line.kind == Kind::Note) {
        match line.fields.get("kind").and_then(Value::as_str) {
            Some(kind) => {
                notes.kinds.insert(kind.to_owned());
            }
            None => notes.any = true,
        }
    }
    notes
}

impl ExpectedNotes {
    fn wants(&self, unit: &Unit) -> bool {
        let kind = unit.fields.get("kind").and_then(Value::as_str);
        self.any || kind.is_some_and(|kind| self.kinds.contains(kind))
    }
}
