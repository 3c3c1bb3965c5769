//! The replayer and the comparison, by machines that do what a test says.

mod compare;
mod host;
mod lines;
mod real;
mod recording;
mod replaying;
mod round_trip;
mod strategies;

use super::bindings::Bindings;
use super::machine::{Machine, Refusal};
use super::output::Output;
use super::{Mode, Replay, ReplayFailure};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The output of a line `{"out":…}`, or of what stands behind `out`.
fn output(text: &str) -> Output {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Does for each input what its script says, and nothing by itself.
#[derive(Debug)]
struct Script {
    turns: VecDeque<Vec<Output>>,
}

impl Machine for Script {
    fn deadline(&self) -> Option<u64> {
        None
    }

    fn fire(&mut self, _at: u64, _out: &mut Vec<Output>) -> Result<(), Refusal> {
        Ok(())
    }

    fn input(
        &mut self,
        _text: &str,
        _offset: usize,
        _at: u64,
        _bindings: &Bindings,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        out.extend(self.turns.pop_front().unwrap_or_default());
        Ok(())
    }
}

/// Replays `steps`, whose inputs say nothing: `got` is what comes of each, `expected` its lines.
/// The input of step n (from 0) stands on line 2 + n + the lines before it.
fn run(mode: Mode, manual: bool, steps: &[(&[&str], &[&str])]) -> Result<String, ReplayFailure> {
    let turns = steps.iter().map(|(got, _)| got.iter().map(|text| output(text)).collect());
    let machine = Box::new(Script { turns: turns.collect() });
    let mut replay = Replay::with_machine(machine, mode, manual);
    for (_, expected) in steps {
        replay.line(r#"{"at":0,"in":{"tick":{}}}"#)?;
        for line in *expected {
            replay.line(&alloc::format!("{{\"out\":{line}}}"))?;
        }
    }
    replay.finish()?;
    Ok(replay.take_text())
}

/// Whether the steps are as expected under `--check`; the message if not.
fn check(steps: &[(&[&str], &[&str])]) -> Result<(), String> {
    run(Mode::Check, true, steps).map(drop).map_err(|failure| match failure {
        ReplayFailure::Mismatch(mismatch) => mismatch.message,
        ReplayFailure::Trace(error) => error.to_string(),
    })
}
