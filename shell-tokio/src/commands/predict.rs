//! `kvmirror predict`.

use super::{CommandError, Pace, counted, exit_code, json_line};
use crate::capture::{CaptureMessage, CaptureReader};
use crate::offline::{Offline, OfflineError, OfflineOptions};
use crate::truth::{Began, Truth, TruthRequest};
use crate::ui::Ui;
use clap::Args;
use kvmirror_core::hash::{identity_seed, local_hashes};
use kvmirror_core::id::LocalHash;
use serde::Serialize;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

/// Predict what an engine served from its cache, and compare with what it did.
///
/// For each request of the truth file that began at a known moment, the mirror of the capture at
/// that moment says how many leading blocks of the prompt the engine's device held under the same
/// LoRA and salt. At least one prompt token is always computed, so the prediction is at most
/// (prompt tokens - 1) / block size blocks. It is compared with the number of cached tokens that the
/// engine reported.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_long_help = HELP)]
pub struct PredictArgs {
    /// Capture to read: JSON Lines, plain or gzip. Of one rank and one engine life.
    pub capture: PathBuf,

    /// The capture's truth file: JSON, plain or gzip. Its requests need "before_seq".
    pub truth: PathBuf,

    /// Print JSON instead of readable lines.
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
JSON, one object per request in the order of the truth file, then one with the counts:
  {\"request\",\"predicted_tokens\",\"engine_tokens\"}
  {\"requests\",\"equal\",\"different\"}
Without --json, only the requests that differ and the counts.

Exit codes: 0 every prediction is right, 1 some differ, 2 wrong arguments, or files that are
unreadable or do not belong together.";

#[derive(Serialize)]
struct RequestLine<'a> {
    request: &'a str,
    predicted_tokens: u64,
    engine_tokens: u64,
}

#[derive(Serialize)]
struct CountsLine {
    requests: usize,
    equal: usize,
    different: usize,
}

/// A prediction beside what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The request's name.
    pub request: String,
    /// Tokens the mirror said would come from the cache.
    pub predicted_tokens: u64,
    /// Tokens that did.
    pub engine_tokens: u64,
}

/// A request with what its prediction needs.
struct Asked<'a> {
    request: &'a TruthRequest,
    began: Began,
    engine_tokens: u64,
    predicted_tokens: u64,
}

/// Predicts every request of `truth` that began at a known moment, in the order of the file.
///
/// # Errors
/// When the capture cannot be read, holds several ranks or lives, ends before a request began, or
/// when there is nothing to predict.
pub fn predictions(
    messages: impl IntoIterator<Item = Result<CaptureMessage, crate::capture::CaptureError>>,
    truth: &Truth,
) -> Result<Vec<Prediction>, CommandError> {
    let block_size =
        truth.block_size.ok_or_else(|| mismatch("the truth file names no block size"))?;
    let mut asked = asked(truth)?;
    // In order of time; the sort is stable, and the file's order comes back at the end.
    let mut by_time: Vec<&mut Asked<'_>> = asked.iter_mut().collect();
    by_time.sort_by_key(|asked| match asked.began {
        Began::First => None,
        Began::After(seq) => Some(seq),
    });
    let mut waiting = by_time.into_iter().peekable();
    let options = OfflineOptions { duplicates: truth.duplicates(), ..OfflineOptions::default() };
    let mut offline = Offline::new(options)?;
    let mut stream = Stream::default();
    for message in messages {
        let message = message.map_err(OfflineError::from)?;
        stream.next(&message)?;
        while let Some(due) = waiting.next_if(|asked| asked.began.is_before(message.seq)) {
            due.predict(&mut offline, &mut stream, block_size);
        }
        if offline.step(&message)?.ended.is_some() {
            return Err(mismatch("the capture holds several engine lives; predict needs one"));
        }
    }
    for due in waiting {
        if let (Began::After(seq), last) = (due.began, stream.last)
            && last.is_none_or(|last| last < seq)
        {
            let last = last.map_or_else(|| "is empty".to_owned(), |last| format!("ends at {last}"));
            return Err(mismatch(&format!(
                "request {} began after sequence {seq}, but the capture {last}; do the files belong together?",
                due.request.id
            )));
        }
        due.predict(&mut offline, &mut stream, block_size);
    }
    let result = asked.into_iter().map(|asked| Prediction {
        request: asked.request.id.clone(),
        predicted_tokens: asked.predicted_tokens,
        engine_tokens: asked.engine_tokens,
    });
    Ok(result.collect())
}

/// The requests with a known moment.
fn asked(truth: &Truth) -> Result<Vec<Asked<'_>>, CommandError> {
    let mut asked = Vec::new();
    for request in &truth.requests {
        let Some(began) = request.began else { continue };
        let engine_tokens = request.cached_tokens.ok_or_else(|| {
            mismatch(&format!("request {} does not say its cached tokens", request.id))
        })?;
        asked.push(Asked { request, began, engine_tokens, predicted_tokens: 0 });
    }
    if asked.is_empty() {
        return Err(mismatch(
            "no request of the truth file has \"before_seq\"; only captures of one request at a time have it",
        ));
    }
    Ok(asked)
}

fn mismatch(what: &str) -> CommandError {
    CommandError::Mismatch(what.to_owned())
}

/// The one rank that the capture must be of, and a buffer.
#[derive(Default)]
struct Stream {
    rank: Option<u32>,
    last: Option<u64>,
    locals: Vec<LocalHash>,
}

impl Stream {
    fn next(&mut self, message: &CaptureMessage) -> Result<(), CommandError> {
        let rank = message.rank.unwrap_or(0);
        if *self.rank.get_or_insert(rank) != rank {
            return Err(mismatch("the capture holds several ranks; predict needs one"));
        }
        self.last = self.last.max(Some(message.seq));
        Ok(())
    }
}

impl Began {
    /// Whether it lies before the message with this sequence.
    const fn is_before(self, seq: u64) -> bool {
        match self {
            Self::First => true,
            Self::After(after) => after < seq,
        }
    }
}

impl Asked<'_> {
    fn predict(&mut self, offline: &mut Offline, stream: &mut Stream, block_size: NonZeroU32) {
        let TruthRequest { prompt, lora, salt, .. } = self.request;
        let seed = identity_seed(lora, salt);
        local_hashes(prompt, block_size.get(), false, seed, &mut stream.locals);
        let held = offline.device_match(stream.rank.unwrap_or(0), &stream.locals);
        let size = u64::from(block_size.get());
        let most = (prompt.len() as u64).saturating_sub(1) / size;
        self.predicted_tokens = u64::from(held).min(most) * size;
    }
}

/// Predicts, prints and compares.
///
/// # Errors
/// When a file cannot be read, the files do not belong together, or the result cannot be written.
pub fn run<W: Write>(
    args: &PredictArgs,
    out: &mut impl Write,
    ui: &mut Ui<W>,
) -> Result<ExitCode, CommandError> {
    let truth = Truth::read(&args.truth)?;
    let mut pace = Pace::start();
    let messages = CaptureReader::open(&args.capture)?.inspect(|_| pace.message(ui));
    let result = predictions(messages, &truth);
    Pace::hide(ui);
    let predictions = result?;
    let mut equal = 0;
    for prediction in &predictions {
        let Prediction { request, predicted_tokens, engine_tokens } = prediction;
        let (predicted_tokens, engine_tokens) = (*predicted_tokens, *engine_tokens);
        equal += usize::from(predicted_tokens == engine_tokens);
        if args.json {
            json_line(out, &RequestLine { request, predicted_tokens, engine_tokens })?;
        } else if predicted_tokens != engine_tokens {
            writeln!(
                out,
                "{request}: predicted {predicted_tokens}, the engine took {engine_tokens}"
            )?;
        }
    }
    let (requests, different) = (predictions.len(), predictions.len() - equal);
    if args.json {
        json_line(out, &CountsLine { requests, equal, different })?;
    } else {
        let requests = counted(requests, "request");
        writeln!(out, "{requests}: {equal} predicted exactly, {different} different")?;
    }
    out.flush()?;
    Ok(exit_code(different == 0))
}
