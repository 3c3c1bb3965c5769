//! `kvmirror replay`.

use super::{CommandError, EXIT_FAILED, exit_code, json_line};
use crate::ui::Ui;
use clap::Args;
use kvmirror_core::trace::{MAX_LINE, Mode, Replay, ReplayFailure, TraceError};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

/// Replay traces: feed a machine what a file says, and print or compare what it does.
///
/// A trace is a recording of a live process, a scenario written by hand, or a failure that the
/// simulator found. Without an option the commands are printed as JSON Lines.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_long_help = HELP)]
pub struct ReplayArgs {
    /// Traces to replay: JSON Lines. "-" is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Compare with the "out" lines: fields that a line leaves out may be anything.
    #[arg(long, group = "mode")]
    pub check: bool,

    /// Compare every line and every field.
    #[arg(long, group = "mode")]
    pub exact: bool,

    /// Put what the machine does in the place of each file's "out" lines.
    #[arg(long, group = "mode")]
    pub rewrite: bool,

    /// Print the verdict of --check or --exact as one JSON object.
    #[arg(long, conflicts_with = "rewrite", requires = "mode")]
    pub json: bool,
}

const HELP: &str = "\
--check and --exact report the first mismatch of each file (its line, what was expected, what came,
and the last steps) and end with \"N passed, M failed\". --rewrite keeps comments, blank lines and
inputs as they stand; standard input is rewritten to standard output.

JSON, one object:
  {\"passed\",\"failed\",\"failures\":[{\"file\",\"line\",\"message\",\"expected\",\"got\"}]}
  line        null when the file cannot be read at all
  expected    the line that was not met, or null when nothing was expected
  got         what came in its place as a line, or null when nothing came

The format is described in docs/trace-format.md.

Exit codes: 0 every file was replayed and none differs, 1 some differ, 2 wrong arguments, or a file
that cannot be read, understood or written.";

/// Why a file did not pass.
#[derive(Debug)]
enum Failure {
    /// It differs, or it cannot be understood.
    Replay(ReplayFailure),
    /// It cannot be read.
    Unreadable(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

#[derive(Serialize)]
struct Verdict {
    passed: usize,
    failed: usize,
    failures: Vec<FailureLine>,
}

#[derive(Serialize)]
struct FailureLine {
    file: String,
    line: Option<usize>,
    message: String,
    expected: Option<String>,
    got: Option<String>,
}

impl FailureLine {
    fn new(file: &Path, failure: &Failure) -> Self {
        let file = file.display().to_string();
        match failure {
            Failure::Unreadable(error) => {
                let message = error.to_string();
                Self { file, line: None, message, expected: None, got: None }
            }
            Failure::Replay(ReplayFailure::Trace(TraceError { line, message })) => {
                let (line, message) = (Some(*line), message.clone());
                Self { file, line, message, expected: None, got: None }
            }
            Failure::Replay(ReplayFailure::Mismatch(mismatch)) => Self {
                file,
                line: Some(mismatch.line),
                message: mismatch.message.clone(),
                expected: mismatch.expected.clone(),
                got: mismatch.got.clone(),
            },
        }
    }
}

/// Replays every file.
///
/// # Errors
/// When a file cannot be read, understood or written, or the result cannot be written. Under
/// `--check` and `--exact` such a file is part of the result and of the exit code instead.
pub fn run<W: Write>(
    args: &ReplayArgs,
    out: &mut impl Write,
    ui: &mut Ui<W>,
) -> Result<ExitCode, CommandError> {
    if args.check {
        return compare(args, Mode::Check, out);
    }
    if args.exact {
        return compare(args, Mode::Exact, out);
    }
    for file in &args.files {
        if args.rewrite {
            rewrite(file, out, ui)?;
        } else {
            print(file, Mode::Print, out)?;
        }
    }
    out.flush()?;
    Ok(exit_code(true))
}

fn compare(args: &ReplayArgs, mode: Mode, out: &mut impl Write) -> Result<ExitCode, CommandError> {
    let mut verdict = Verdict { passed: 0, failed: 0, failures: Vec::new() };
    let mut understood = true;
    for file in &args.files {
        let Err(failure) = replay(file, mode, |_| Ok(())) else {
            verdict.passed += 1;
            continue;
        };
        verdict.failed += 1;
        understood &= matches!(failure, Failure::Replay(ReplayFailure::Mismatch(_)));
        if args.json {
            verdict.failures.push(FailureLine::new(file, &failure));
            continue;
        }
        match failure {
            Failure::Unreadable(error) => writeln!(out, "{}: {error}\n", file.display())?,
            Failure::Replay(failure) => writeln!(out, "{}:{failure}\n", file.display())?,
        }
    }
    if args.json {
        json_line(out, &verdict)?;
    } else {
        writeln!(out, "{} passed, {} failed", verdict.passed, verdict.failed)?;
    }
    out.flush()?;
    Ok(if understood { exit_code(verdict.failed == 0) } else { ExitCode::from(EXIT_FAILED) })
}

/// Prints what comes of one file.
fn print(file: &Path, mode: Mode, out: &mut impl Write) -> Result<(), CommandError> {
    // A reader that has gone is no fault of the file.
    let mut lost = None;
    let result = replay(file, mode, |text| {
        out.write_all(text.as_bytes()).map_err(|error| {
            let kind = error.kind();
            lost = Some(error);
            io::Error::from(kind)
        })
    });
    match (lost, result) {
        (Some(error), _) => Err(error.into()),
        (None, result) => result.map_err(|failure| command_error(file, failure)),
    }
}

/// Replaces the `out` lines of one file. The file is replaced as a whole, or not at all.
fn rewrite<W: Write>(
    file: &Path,
    out: &mut impl Write,
    ui: &mut Ui<W>,
) -> Result<(), CommandError> {
    if is_stdin(file) {
        return print(file, Mode::Rewrite, out);
    }
    let of_file = |error| CommandError::File { file: file.to_owned(), error };
    // A link stays a link.
    let place = fs::canonicalize(file).map_err(of_file)?;
    let before = fs::read(&place).map_err(of_file)?;
    let mut text = String::new();
    let replayed = replay_lines(before.as_slice(), Mode::Rewrite, |more| {
        text.push_str(more);
        Ok(())
    });
    replayed.map_err(|failure| command_error(file, failure))?;
    if text.as_bytes() == before {
        ui.line(&format!("{}: unchanged", file.display()));
        return Ok(());
    }
    replace(&place, &text).map_err(of_file)?;
    ui.line(&format!("{}: rewritten", file.display()));
    Ok(())
}

fn replace(place: &Path, text: &str) -> io::Result<()> {
    let mut name = place.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!(".{}.tmp", process::id()));
    let beside = place.with_file_name(name);
    let written = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, fs::metadata(place)?.permissions()))
        .and_then(|()| fs::rename(&beside, place));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn command_error(file: &Path, failure: Failure) -> CommandError {
    let file = file.to_owned();
    match failure {
        Failure::Unreadable(error) => CommandError::File { file, error },
        Failure::Replay(ReplayFailure::Trace(error)) => CommandError::Trace { file, error },
        Failure::Replay(ReplayFailure::Mismatch(mismatch)) => {
            CommandError::Mismatch(format!("{}:{mismatch}", file.display()))
        }
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Replays one file line by line; `take` takes what is printed.
fn replay(
    file: &Path,
    mode: Mode,
    take: impl FnMut(&str) -> io::Result<()>,
) -> Result<(), Failure> {
    if is_stdin(file) {
        replay_lines(io::stdin().lock(), mode, take)
    } else {
        replay_lines(BufReader::new(File::open(file)?), mode, take)
    }
}

fn replay_lines(
    mut reader: impl BufRead,
    mode: Mode,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut replay = Replay::new(mode);
    let mut line = Vec::new();
    let mut number = 0;
    // A line that is longer is cut, and refused for its length.
    let most = MAX_LINE as u64 + 2;
    loop {
        line.clear();
        if (&mut reader).take(most).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        let text = std::str::from_utf8(&line).map_err(|_| {
            let message = "the line is not UTF-8".to_owned();
            Failure::Replay(TraceError { line: number, message }.into())
        })?;
        replay.line(text).map_err(Failure::Replay)?;
        take(&replay.take_text())?;
    }
    replay.finish().map_err(Failure::Replay)?;
    take(&replay.take_text())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_is_refused_without_being_read_whole() {
        let reader = BufReader::new(io::repeat(b' '));
        let failure = replay_lines(reader, Mode::Check, |_| Ok(())).unwrap_err();
        let Failure::Replay(failure) = failure else { panic!("{failure:?}") };
        assert!(failure.to_string().starts_with("1: the line is longer"), "{failure}");
    }

    #[test]
    fn a_line_that_is_not_utf_8_is_refused() {
        let failure = replay_lines(&b"# fine\n\xff\n"[..], Mode::Check, |_| Ok(())).unwrap_err();
        let Failure::Replay(failure) = failure else { panic!("{failure:?}") };
        assert_eq!(failure.to_string(), "2: the line is not UTF-8");
    }
}
