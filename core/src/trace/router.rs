//! The router machine and its host.

use super::bindings::Bindings;
use super::event::TraceEvent;
use super::feed::Known;
use super::header::Host;
use super::input::RouterInput;
use super::machine::{Machine, Refusal};
use super::note::Note;
use super::number::json_error;
use super::output::Output;
use super::payload::EventPayload;
use crate::id::OpId;
use crate::router::{Command, Completion, Effects, Input, Router, Run};
use crate::time::Timestamp;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// Commands that the accepting host completes within one step.
const MAX_COMPLETIONS: usize = 1 << 20;

/// The machine's entry points, so that tests can put another one in its place.
pub(super) trait RouterMachine: fmt::Debug {
    fn handle(
        &mut self,
        input: Input<EventPayload>,
        now: Timestamp,
        fx: &mut Effects<EventPayload>,
    );
    fn next_deadline(&self) -> Option<Timestamp>;
}

impl RouterMachine for Router<EventPayload> {
    fn handle(
        &mut self,
        input: Input<EventPayload>,
        now: Timestamp,
        fx: &mut Effects<EventPayload>,
    ) {
        Self::handle(self, input, now, fx);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        Self::next_deadline(self)
    }
}

/// A router with a host that completes its commands at once, or waits to be told.
#[derive(Debug)]
pub(super) struct RouterHost<M> {
    machine: M,
    host: Host,
    fx: Effects<EventPayload>,
    /// What the accepting host has not completed yet, first in, first out.
    incomplete: VecDeque<OpId>,
    known: Known,
}

impl<M: RouterMachine> RouterHost<M> {
    pub(super) fn new(machine: M, host: Host) -> Self {
        let fx = Effects::new();
        Self { machine, host, fx, incomplete: VecDeque::new(), known: Known::default() }
    }

    fn turn(
        &mut self,
        input: Input<EventPayload>,
        now: Timestamp,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        self.handle(input, now, out);
        let mut completed = 0;
        while let Some(op) = self.incomplete.pop_front() {
            completed += 1;
            if completed > MAX_COMPLETIONS {
                return Err(format!(
                    "the machine does not come to rest: {MAX_COMPLETIONS} commands were completed \
                     within one step"
                ));
            }
            self.handle(Input::Completion(Completion { op, ok: true, flaw: None }), now, out);
        }
        Ok(())
    }

    fn handle(&mut self, input: Input<EventPayload>, now: Timestamp, out: &mut Vec<Output>) {
        self.machine.handle(input, now, &mut self.fx);
        for command in self.fx.drain_commands() {
            self.known.command(&command);
            out.push(Output::command(&command, self.known.targets(), events));
            let op = match command {
                Command::Reset { op, .. }
                | Command::Admit { op, .. }
                | Command::Replace { op, .. } => Some(op),
                Command::Query { .. } | Command::Cancel { .. } => None,
            };
            if self.host == Host::Accept {
                self.incomplete.extend(op);
            }
        }
        out.extend(self.fx.drain_replies().map(|reply| Output::reply(&reply)));
        out.extend(self.fx.drain_notices().map(|notice| Output::Note(Note::of(&notice))));
    }
}

/// The events of a run as they were read.
fn events(run: &Run<EventPayload>, list: &mut Vec<TraceEvent>) {
    list.extend_from_slice(run.payload.events());
}

impl<M: RouterMachine> Machine for RouterHost<M> {
    /// The accepting host completes commands between two deadlines, so it fires them one by one. The
    /// other one only feeds: the machine fires what is due before it takes an input, as it did when it
    /// was recorded.
    fn deadline(&self) -> Option<u64> {
        match self.host {
            Host::Accept => self.machine.next_deadline().map(|deadline| deadline.0),
            Host::Manual => None,
        }
    }

    fn fire(&mut self, at: u64, out: &mut Vec<Output>) -> Result<(), Refusal> {
        self.turn(Input::Timeout, Timestamp(at), out)
    }

    fn input(
        &mut self,
        text: &str,
        offset: usize,
        at: u64,
        bindings: &Bindings,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let line: RouterInput =
            serde_json::from_str(text).map_err(|error| json_error(&error, offset))?;
        match self.known.input(line, bindings)? {
            Some(input) => self.turn(input, Timestamp(at), out),
            None => Ok(()),
        }
    }
}
