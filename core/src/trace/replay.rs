//! The replayer: takes a trace line by line, feeds its inputs and compares what comes of them.

use super::bindings::Bindings;
use super::compare::{Difference, How, Step, compare};
use super::error::{Mismatch, ReplayFailure, TraceError};
use super::expected::Expected;
use super::header::{Header, Host};
use super::machine::Machine;
use super::number::json_error;
use super::output::Output;
use super::text::cut;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Longest line that is read, in bytes.
pub const MAX_LINE: usize = 16 << 20;
/// Most deadlines that one step may fire.
pub const MAX_FIRED: usize = 1 << 20;
/// Steps that a mismatch shows.
const RECENT: usize = 5;
/// How much of a line a mismatch shows, in bytes.
const SHOWN: usize = 2_000;

/// What a replay is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Print what comes.
    Print,
    /// Compare what comes by the rules of the format.
    Check,
    /// Compare every line and every field.
    Exact,
    /// Print the trace with what comes in place of its `out` lines.
    Rewrite,
}

/// Replays one trace. Feed it every line, then [`Replay::finish`].
///
/// It keeps one step, and for each query and publisher a few numbers; never the whole trace.
#[derive(Debug)]
pub struct Replay {
    mode: Mode,
    line: usize,
    state: State,
    text: String,
}

#[derive(Debug)]
enum State {
    Start,
    Running(Box<Running>),
    Ended,
}

#[derive(Debug)]
struct Running {
    machine: Box<dyn Machine>,
    how: How,
    host: Host,
    at: u64,
    bindings: Bindings,
    step: Option<OpenStep>,
    recent: VecDeque<Vec<String>>,
}

/// A step whose `out` lines are not all read yet.
#[derive(Debug)]
struct OpenStep {
    line: usize,
    input: String,
    expected: Vec<Expected>,
    got: Vec<Output>,
    /// Comments and blank lines since the input, each with its end.
    between: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    at: Option<u64>,
    #[serde(borrow, rename = "in")]
    input: Option<&'a RawValue>,
    out: Option<Map<String, Value>>,
}

impl Replay {
    /// A replay that waits for its header.
    pub const fn new(mode: Mode) -> Self {
        Self { mode, line: 0, state: State::Start, text: String::new() }
    }

    /// Takes what was printed since the last call: nothing but in [`Mode::Print`] and
    /// [`Mode::Rewrite`].
    pub fn take_text(&mut self) -> String {
        core::mem::take(&mut self.text)
    }

    /// Takes the next line, with or without its end.
    ///
    /// # Errors
    /// The line cannot be read, or the machine did something else than the lines before expect. A
    /// replay that has failed has ended: every further line is refused.
    pub fn line(&mut self, text: &str) -> Result<(), ReplayFailure> {
        self.line = self.line.saturating_add(1);
        let result = self.take_line(text.trim_end_matches(['\n', '\r']));
        if result.is_err() {
            self.state = State::Ended;
        }
        result
    }

    /// Ends the trace: the last step is compared.
    ///
    /// # Errors
    /// The machine did something else than the last step expects, or there is no trace at all.
    pub fn finish(&mut self) -> Result<(), ReplayFailure> {
        match core::mem::replace(&mut self.state, State::Ended) {
            State::Running(mut running) => running.close(self.mode, &mut self.text),
            State::Start => Err(self.error("there is no header: the trace is empty".to_owned())),
            State::Ended => Err(self.error("the replay has ended".to_owned())),
        }
    }

    fn error(&self, message: String) -> ReplayFailure {
        ReplayFailure::Trace(TraceError { line: self.line, message })
    }

    fn take_line(&mut self, text: &str) -> Result<(), ReplayFailure> {
        if text.len() > MAX_LINE {
            return Err(self.error(format!("the line is longer than {MAX_LINE} bytes")));
        }
        let trimmed = text.trim();
        let comment = trimmed.is_empty() || trimmed.starts_with('#');
        match &mut self.state {
            State::Ended => Err(self.error("the replay has ended".to_owned())),
            State::Start | State::Running(_) if comment => {
                self.keep(text);
                Ok(())
            }
            State::Start => {
                let started = Header::read(text).and_then(|header| start(&header, self.mode));
                self.state = State::Running(started.map_err(|message| self.error(message))?);
                self.keep(text);
                Ok(())
            }
            State::Running(running) => {
                let (line, mode) = (self.line, self.mode);
                running.line(line, text, mode, &mut self.text)
            }
        }
    }

    /// Keeps a line that stays as it is.
    fn keep(&mut self, text: &str) {
        if self.mode != Mode::Rewrite {
            return;
        }
        let held = match &mut self.state {
            State::Running(running) => running.step.as_mut().map(|step| &mut step.between),
            State::Start | State::Ended => None,
        };
        let place = held.unwrap_or(&mut self.text);
        place.push_str(text);
        place.push('\n');
    }
}

fn start(header: &Header, mode: Mode) -> Result<Box<Running>, String> {
    let machine = super::machines::machine(header)?;
    Ok(Running::new(machine, header.host, mode))
}

impl Running {
    fn new(machine: Box<dyn Machine>, host: Host, mode: Mode) -> Box<Self> {
        let how = match mode {
            Mode::Check => How::Check,
            Mode::Exact => How::Exact { hidden_ops: host == Host::Accept },
            Mode::Print | Mode::Rewrite => How::Bind,
        };
        Box::new(Self {
            machine,
            how,
            host,
            at: 0,
            bindings: Bindings::default(),
            step: None,
            recent: VecDeque::new(),
        })
    }

    fn line(
        &mut self,
        number: usize,
        text: &str,
        mode: Mode,
        printed: &mut String,
    ) -> Result<(), ReplayFailure> {
        let refused = |message| ReplayFailure::Trace(TraceError { line: number, message });
        let line: Line<'_> =
            serde_json::from_str(text).map_err(|error| refused(json_error(&error, 0)))?;
        match (line.at, line.input, line.out) {
            (Some(at), Some(input), None) => {
                self.close(mode, printed)?;
                let mut got = Vec::new();
                let result = self.feed(at, input.get(), offset_in(input.get(), text), &mut got);
                for output in &got {
                    self.bindings.emitted(output);
                }
                result.map_err(refused)?;
                self.step = Some(OpenStep {
                    line: number,
                    input: text.to_owned(),
                    expected: Vec::new(),
                    got,
                    between: String::new(),
                });
                Ok(())
            }
            (None, None, Some(out)) => {
                let expected = Expected::read(number, text, out).map_err(refused)?;
                let Some(step) = &mut self.step else {
                    return Err(refused("an `out` line needs an input before it".to_owned()));
                };
                step.expected.push(expected);
                Ok(())
            }
            (_, _, _) => Err(refused(
                "a line has either `at` and `in`, or `out`; its place is after the header"
                    .to_owned(),
            )),
        }
    }

    fn feed(
        &mut self,
        at: u64,
        input: &str,
        offset: usize,
        got: &mut Vec<Output>,
    ) -> Result<(), String> {
        if at < self.at {
            return Err(format!("`at` is {at}, but the step before it is at {}", self.at));
        }
        let mut fired = 0;
        while let Some(deadline) = self.machine.deadline().filter(|deadline| *deadline <= at) {
            fired += 1;
            if fired > MAX_FIRED {
                return Err(format!(
                    "more than {MAX_FIRED} deadlines fire before this input; make shorter steps"
                ));
            }
            self.at = self.at.max(deadline);
            self.machine.fire(self.at, got)?;
        }
        self.at = at;
        self.machine.input(input, offset, at, &self.bindings, got)
    }

    /// Compares the step that is open, if one is, and prints it.
    fn close(&mut self, mode: Mode, printed: &mut String) -> Result<(), ReplayFailure> {
        let Some(step) = self.step.take() else { return Ok(()) };
        let seen = Step { line: step.line, expected: &step.expected, got: &step.got };
        let result = compare(seen, &mut self.bindings, self.how);
        match mode {
            Mode::Print => {
                for output in &step.got {
                    push_line(printed, &output.line());
                }
            }
            Mode::Rewrite => {
                push_line(printed, &step.input);
                for output in &step.got {
                    push_line(printed, &self.visible(output).line());
                }
                printed.push_str(&step.between);
            }
            Mode::Check | Mode::Exact => self.remember(&step),
        }
        result.map_err(|difference| self.mismatch(difference))
    }

    /// An output as a trace says it: with labels, and without ops that nobody can see.
    fn visible(&self, output: &Output) -> Output {
        let mut output = self.bindings.named(output);
        if self.host == Host::Accept
            && let (Some(op), _) = output.ids_mut()
        {
            *op = None;
        }
        output
    }

    fn remember(&mut self, step: &OpenStep) {
        let mut lines = alloc::vec![format!("{:>5}  {}", step.line, cut(&step.input, SHOWN))];
        let outputs =
            step.got.iter().map(|output| format!("       {}", cut(&output.line(), SHOWN)));
        lines.extend(outputs);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(lines);
    }

    fn mismatch(&mut self, difference: Difference) -> ReplayFailure {
        let Difference { line, message, expected, got } = difference;
        ReplayFailure::Mismatch(Box::new(Mismatch {
            line,
            message,
            expected: expected.map(|text| cut(&text, SHOWN)),
            got: got.map(|text| cut(&text, SHOWN)),
            recent: self.recent.drain(..).flatten().collect(),
        }))
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Where `part`, which was read out of `whole` without a copy, begins.
fn offset_in(part: &str, whole: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Replays a whole trace; what is printed comes back.
///
/// # Errors
/// See [`Replay::line`] and [`Replay::finish`].
pub fn replay(text: &str, mode: Mode) -> Result<String, ReplayFailure> {
    let mut replay = Replay::new(mode);
    text.lines().try_for_each(|line| replay.line(line))?;
    replay.finish()?;
    Ok(replay.take_text())
}

#[cfg(test)]
impl Replay {
    /// A replay of steps alone, by a given machine.
    pub(super) fn with_machine(machine: Box<dyn Machine>, mode: Mode, manual: bool) -> Self {
        let host = if manual { Host::Manual } else { Host::Accept };
        let state = State::Running(Running::new(machine, host, mode));
        Self { mode, line: 1, state, text: String::new() }
    }
}
