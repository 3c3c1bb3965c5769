//! Recording what the router machine is fed and what it wants, as a trace (`docs/trace-format.md`).

use super::message::MessageRef;
use crate::router::{Effects, Input, Policy};
use crate::time::Timestamp;
use crate::trace::Recorder;
use alloc::string::String;

/// Text kept for a host that does not take it. Beyond it the recording ends.
const KEPT: usize = 64 << 20;

/// Why a recording cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "recording must begin before the mirror's first input; start it right after making the mirror"
)]
pub struct RecordingTooLate;

/// A recording in progress.
#[derive(Debug)]
pub(super) struct Recording {
    recorder: Recorder,
    text: String,
    ended: bool,
}

impl Recording {
    pub(super) fn begin(name: &str, policy: &Policy) -> Self {
        let (recorder, mut text) = (Recorder::new(), String::new());
        recorder.header(name, policy, &mut text);
        Self { recorder, text, ended: false }
    }

    pub(super) fn input(&mut self, now: Timestamp, input: &Input<MessageRef>) {
        if self.text.len() > KEPT && !self.ended {
            self.ended = true;
            self.text.push_str("# the recording ends here: nobody took it in time\n");
        }
        if !self.ended {
            self.recorder.input(now, input, &mut self.text);
        }
    }

    pub(super) fn outputs(&mut self, fx: &Effects<MessageRef>) {
        if !self.ended {
            self.recorder.outputs(fx, &mut self.text);
        }
    }

    pub(super) fn take(&mut self) -> String {
        core::mem::take(&mut self.text)
    }
}
