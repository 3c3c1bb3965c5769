//! Whether one step's outputs are what its `out` lines expect.

use super::bindings::Bindings;
use super::expected::{Expected, Kind};
use super::lanes::{Lane, Lanes, Unit};
use super::number::IdRef;
use super::output::Output;
use super::subset::{Strictness, compare as compare_fields};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How outputs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By the rules of the format.
    Check,
    /// Line by line, every field.
    Exact {
        /// Ops cannot be seen under this host: a line may leave them out.
        hidden_ops: bool,
    },
    /// Not at all: labels are bound as well as can be.
    Bind,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// Where its input stands.
    pub(super) line: usize,
    pub(super) expected: &'a [Expected],
    pub(super) got: &'a [Output],
}

/// What differs first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) line: usize,
    pub(super) message: String,
    pub(super) expected: Option<String>,
    pub(super) got: Option<String>,
}

/// Compares one step and binds its labels.
pub(super) fn compare(step: Step<'_>, bindings: &mut Bindings, how: How) -> Result<(), Difference> {
    match how {
        How::Check => by_lanes(step, bindings),
        How::Exact { hidden_ops } => by_lines(step, bindings, hidden_ops),
        How::Bind => {
            bind(step, bindings);
            Ok(())
        }
    }
}

fn by_lanes(step: Step<'_>, bindings: &mut Bindings) -> Result<(), Difference> {
    let mut lanes = Lanes::of(step, bindings);
    for wanted in wanted_units(step, bindings)? {
        let missing = |message: String| Difference {
            line: wanted.line(),
            message,
            expected: Some(wanted.text()),
            got: None,
        };
        let Some(lane) = wanted.lane.or_else(|| find_lane(&wanted, &lanes, bindings)) else {
            return Err(missing(format!("no such {} came", wanted.kind().name())));
        };
        let Some(unit) = lanes.next(lane) else {
            return Err(missing(format!("nothing more came of {lane}")));
        };
        wanted.meets(&unit, bindings).map_err(|message| Difference {
            line: wanted.line(),
            message: format!("{lane}: {message}"),
            expected: Some(wanted.text()),
            got: Some(unit.text(step.got)),
        })?;
    }
    match lanes.rest() {
        None => Ok(()),
        Some((lane, unit)) => Err(Difference {
            line: step.line,
            message: format!("{lane}: unexpected {}", unit.kind.name()),
            expected: None,
            got: Some(unit.text(step.got)),
        }),
    }
}

/// The first lane whose next output is what a line without a rank expects; else the first whose
/// next output is of that kind.
fn find_lane(wanted: &Wanted<'_>, lanes: &Lanes, bindings: &Bindings) -> Option<Lane> {
    let heads = || lanes.heads().filter(|(_, unit)| unit.kind == wanted.kind());
    let exact = heads().find(|(_, unit)| wanted.could_meet(unit, bindings));
    exact.or_else(|| heads().next()).map(|(lane, _)| lane)
}

fn by_lines(step: Step<'_>, bindings: &mut Bindings, hidden_ops: bool) -> Result<(), Difference> {
    let with_notes = step.expected.iter().any(|line| line.kind == Kind::Note);
    let mut got = step.got.iter().filter(|output| with_notes || !matches!(output, Output::Note(_)));
    for expected in step.expected {
        let line = Wanted::of(expected, bindings, &[]);
        let Some(output) = got.next() else {
            return Err(Difference {
                line: expected.line,
                message: "nothing more came".into(),
                expected: Some(expected.text.clone()),
                got: None,
            });
        };
        let unit = Unit::of(output, 0);
        line.equals(&unit, bindings, hidden_ops).map_err(|message| Difference {
            line: expected.line,
            message,
            expected: Some(expected.text.clone()),
            got: Some(output.line()),
        })?;
    }
    match got.next() {
        None => Ok(()),
        Some(output) => Err(Difference {
            line: step.line,
            message: "more came than is expected".into(),
            expected: None,
            got: Some(output.line()),
        }),
    }
}

/// Binds each label to the first output of its kind and rank that no line before it took.
fn bind(step: Step<'_>, bindings: &mut Bindings) {
    let mut lanes = Lanes::of(step, bindings);
    // Lines that cannot be joined bind nothing: a trace that is compared says why.
    for wanted in wanted_units(step, bindings).unwrap_or_default() {
        let lane = wanted.lane.or_else(|| find_lane(&wanted, &lanes, bindings));
        if let Some(unit) = lane.and_then(|lane| lanes.next_of(lane, wanted.kind())) {
            let _ = wanted.bind(&unit, bindings);
        }
    }
}

/// Lines that count as one: one line, or adjacent admits of one rank and epoch.
#[derive(Debug)]
struct Wanted<'a> {
    lines: Vec<&'a Expected>,
    /// `None` when the lines do not say.
    lane: Option<Lane>,
    joined: Option<Expected>,
}

/// The units of a step's lines, in order of their first lines.
fn wanted_units<'a>(step: Step<'a>, bindings: &Bindings) -> Result<Vec<Wanted<'a>>, Difference> {
    let mut units: Vec<Wanted<'a>> = Vec::new();
    let mut last_of: BTreeMap<Lane, usize> = BTreeMap::new();
    for (index, line) in step.expected.iter().enumerate() {
        let before = step.expected.get(..index).unwrap_or_default();
        let unit = Wanted::of(line, bindings, before);
        let previous = unit.lane.and_then(|lane| last_of.get(&lane).copied());
        if let Some(previous) = previous.and_then(|index| units.get_mut(index))
            && previous.takes(line)?
        {
            continue;
        }
        if let Some(lane) = unit.lane {
            last_of.insert(lane, units.len());
        }
        units.push(unit);
    }
    Ok(units)
}

impl<'a> Wanted<'a> {
    fn of(line: &'a Expected, bindings: &Bindings, before: &[Expected]) -> Self {
        Self {
            lines: alloc::vec![line],
            lane: Lane::expected(line, bindings, before),
            joined: None,
        }
    }

    fn first(&self) -> Option<&Expected> {
        self.joined.as_ref().or_else(|| self.lines.first().copied())
    }

    fn kind(&self) -> Kind {
        self.first().map_or(Kind::Note, |line| line.kind)
    }

    fn line(&self) -> usize {
        self.lines.first().map_or(0, |line| line.line)
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.text.as_str()).collect();
        lines.join("\n            ")
    }

    /// Joins `line` to this unit if both are admits of one epoch.
    fn takes(&mut self, line: &'a Expected) -> Result<bool, Difference> {
        let Some(first) = self.first() else { return Ok(false) };
        let admits = first.kind == Kind::Admit && line.kind == Kind::Admit;
        if !admits || first.fields.get("epoch") != line.fields.get("epoch") {
            return Ok(false);
        }
        let mut joined = first.clone();
        for key in ["ids", "events"] {
            match (joined.fields.get_mut(key), line.fields.get(key)) {
                (None, None) => {}
                (Some(serde_json::Value::Array(all)), Some(serde_json::Value::Array(more))) => {
                    all.extend_from_slice(more);
                }
                (_, _) => {
                    return Err(Difference {
                        line: line.line,
                        message: format!(
                            "adjacent admits of one rank count as one: give `{key}` as a list in \
                             all of them or in none"
                        ),
                        expected: Some(line.text.clone()),
                        got: None,
                    });
                }
            }
        }
        self.joined = Some(joined);
        self.lines.push(line);
        Ok(true)
    }

    /// Whether `unit` has what the lines expect; binds their labels.
    fn meets(&self, unit: &Unit, bindings: &mut Bindings) -> Result<(), String> {
        self.same_kind(unit)?;
        if let Some(first) = self.first() {
            compare_fields(&first.fields, &unit.fields, Strictness::Subset)?;
        }
        self.bind(unit, bindings)
    }

    fn could_meet(&self, unit: &Unit, bindings: &Bindings) -> bool {
        self.meets(unit, &mut bindings.clone()).is_ok()
    }

    /// Whether `unit` has exactly what the line expects; binds its labels.
    fn equals(&self, unit: &Unit, bindings: &mut Bindings, hidden_ops: bool) -> Result<(), String> {
        self.same_kind(unit)?;
        if let Some(first) = self.first() {
            compare_fields(&first.fields, &unit.fields, Strictness::Equal)?;
            if first.op.is_none() && !unit.ops.is_empty() && !hidden_ops {
                return Err("`op` is not given".into());
            }
            if first.query.is_none() && unit.query.is_some() {
                return Err("`query` is not given".into());
            }
        }
        self.bind(unit, bindings)
    }

    fn same_kind(&self, unit: &Unit) -> Result<(), String> {
        if self.kind() == unit.kind {
            return Ok(());
        }
        Err(format!("a {} came, expected a {}", unit.kind.name(), self.kind().name()))
    }

    /// Binds the ids. Where the lines are fewer than the commands they stand for, the last ones are
    /// paired; where they are more, those that are over stand for the last command.
    fn bind(&self, unit: &Unit, bindings: &mut Bindings) -> Result<(), String> {
        let (lines, ops) = (self.lines.len(), unit.ops.len());
        let skipped = ops.saturating_sub(lines);
        for (index, line) in self.lines.iter().enumerate() {
            if let Some(op) = &line.op {
                let paired = (index + skipped).min(ops.saturating_sub(1));
                let number = *unit.ops.get(paired).ok_or("`op` is missing")?;
                let bound = bindings.ops.bind(op, number, lines > ops);
                bound.map_err(|message| format!("`op` {message}"))?;
            }
            if let Some(query) = &line.query {
                let number = unit.query.ok_or("`query` is missing")?;
                let bound = bindings.queries.bind(query, number, false);
                bound.map_err(|message| format!("`query` {message}"))?;
            }
        }
        Ok(())
    }
}

/// The rank of the query that an earlier line of the same step sends under the same label.
pub(super) fn rank_in(before: &[Expected], query: &IdRef) -> Option<crate::id::RankKey> {
    let sent = |line: &&Expected| line.kind == Kind::Query && line.query.as_ref() == Some(query);
    before.iter().find(sent)?.rank()
}
