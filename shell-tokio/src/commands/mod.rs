//! The commands: each an argument struct and a `run` that writes its result to one stream and its
//! progress to another.

pub mod decode;
pub mod mirror;
pub mod predict;
pub mod replay;
pub mod serve;

use crate::capture::CaptureError;
use crate::offline::OfflineError;
use crate::truth::TruthError;
use crate::ui::Ui;
use kvmirror_core::trace::TraceError;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Exit code of a command that did its work and found something wrong: messages that cannot be read,
/// predictions that differ.
pub const EXIT_FOUND: u8 = 1;
/// Exit code of a command that could not do its work: wrong arguments, files that cannot be read.
pub const EXIT_FAILED: u8 = 2;

/// Why an offline command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The capture cannot be used.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// The truth file cannot be read.
    #[error(transparent)]
    Truth(#[from] TruthError),
    /// The files do not belong together, or not to this command.
    #[error("{0}")]
    Mismatch(String),
    /// A trace cannot be understood.
    #[error("{}:{error}", file.display())]
    Trace {
        /// Which.
        file: PathBuf,
        /// Where and why.
        error: TraceError,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

impl From<CaptureError> for CommandError {
    fn from(error: CaptureError) -> Self {
        Self::Offline(error.into())
    }
}

impl CommandError {
    /// Whether whoever reads the result has gone, which ends a command quietly.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Success, or [`EXIT_FOUND`].
fn exit_code(all_fine: bool) -> ExitCode {
    if all_fine { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) }
}

/// One JSON object on a line of its own.
fn json_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// `1 block`, `2 blocks`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Shows how far a long file is, on terminals only.
#[derive(Debug)]
struct Pace {
    messages: u64,
    shown: Instant,
}

impl Pace {
    const EVERY: Duration = Duration::from_millis(200);
    /// Messages between two looks at the clock.
    const STRIDE: u64 = 256;

    fn start() -> Self {
        Self { messages: 0, shown: Instant::now() }
    }

    fn message<W: Write>(&mut self, ui: &mut Ui<W>) {
        self.messages += 1;
        if ui.is_terminal()
            && self.messages.is_multiple_of(Self::STRIDE)
            && self.shown.elapsed() >= Self::EVERY
        {
            ui.progress(&format!("{} messages", self.messages));
            self.shown = Instant::now();
        }
    }

    /// Takes the progress off the terminal, so that a result can be written there.
    fn hide<W: Write>(ui: &mut Ui<W>) {
        if ui.is_terminal() {
            ui.progress("");
        }
    }
}
