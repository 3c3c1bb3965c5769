//! `kvmirror decode`.

use super::{CommandError, Pace, counted, exit_code, json_line};
use crate::capture::{CaptureMessage, CaptureReader};
use crate::ui::Ui;
use clap::Args;
use kvmirror_core::event::{BatchRank, EventBatch, EventKind, EventRecord, EventView, SkipReason};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what the messages of a capture say.
///
/// Reads a capture and prints its messages in order. Lines with one payload ("seq" and "hex") and
/// lines with a whole replay ("replies") are read too; a replay's end marker is left out. Nothing is
/// interpreted across messages, and the block size is the one each event names.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_long_help = HELP)]
pub struct DecodeArgs {
    /// Capture to read: JSON Lines, plain or gzip.
    #[arg(value_name = "FILE")]
    pub capture: PathBuf,

    /// Print one JSON object per message instead of one readable line per event.
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
JSON, one object per message:
  {\"seq\",\"rank\",\"ts\",\"events\":[{\"kind\",\"hashes\",\"parent\",\"tokens\",\"block_size\",\"tier\",\"group\",
  \"domain\",\"lora\",\"salt\",\"reason\"}]}
  kind        stored, removed, cleared or skipped
  hashes      the engine's block hashes as unsigned 64-bit numbers; of longer ones the low 64 bits
  parent      hash of the block before the first one, or null
  tokens      number of tokens that came with the event
  tier        device, host, disk or external; a clear takes blocks of every tier and says device, and
              so does a skipped event whose tier could not be read
  domain      worker (dies with the engine) or cache_owner (outlives it)
  reason      of a skipped event, why it would not be applied
  rank, parent, group, lora, salt and reason are null where the message does not have them.
  A message that cannot be read is {\"seq\",\"error\"}. One that breaks off has what came before, and
  \"error\" as its last key.

Exit codes: 0 all messages were read, 1 some could not be read (whole), 2 wrong arguments or an
unreadable file.";

#[derive(Serialize)]
struct MessageLine<'a> {
    seq: u64,
    rank: Option<u32>,
    ts: f64,
    events: Vec<EventLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct ErrorLine {
    seq: u64,
    error: String,
}

#[derive(Serialize)]
struct EventLine<'a> {
    kind: &'static str,
    hashes: Vec<u64>,
    parent: Option<u64>,
    tokens: u32,
    block_size: u32,
    tier: &'static str,
    group: Option<u32>,
    domain: &'static str,
    lora: Option<&'a str>,
    salt: Option<&'a str>,
    reason: Option<&'static str>,
}

impl<'a> EventLine<'a> {
    fn new(record: &EventRecord, view: EventView<'a>) -> Self {
        let (kind, reason) = match (record.skip, record.kind) {
            (Some(reason), _) => ("skipped", Some(reason.name())),
            (None, EventKind::Unreadable) => ("skipped", Some(SkipReason::UnknownEvent.name())),
            (None, EventKind::Stored) => ("stored", None),
            (None, EventKind::Removed) => ("removed", None),
            (None, EventKind::Cleared) => ("cleared", None),
        };
        Self {
            kind,
            hashes: view.hashes(record).iter().map(|hash| hash.0).collect(),
            parent: record.parent.map(|hash| hash.0),
            tokens: record.token_count,
            block_size: record.block_size,
            tier: record.tier.name(),
            group: record.group,
            domain: record.domain.name(),
            lora: view.text(record.lora),
            salt: view.text(record.salt),
            reason,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}", self.kind)?;
        if let Some(reason) = self.reason {
            write!(out, " ({reason})")?;
        }
        if !self.hashes.is_empty() {
            write!(out, " {} {:?}", counted(self.hashes.len(), "block"), self.hashes)?;
        }
        if let Some(parent) = self.parent {
            write!(out, " after {parent}")?;
        }
        if self.tokens > 0 {
            write!(
                out,
                ", {} in blocks of {}",
                counted(self.tokens as usize, "token"),
                self.block_size
            )?;
        }
        if self.kind != "cleared" {
            write!(out, ", {}", self.tier)?;
        }
        if let Some(group) = self.group {
            write!(out, ", group {group}")?;
        }
        write!(out, ", {}", self.domain)?;
        for (what, text) in [("lora", self.lora), ("salt", self.salt)] {
            if let Some(text) = text {
                write!(out, ", {what} {text:?}")?;
            }
        }
        writeln!(out)
    }
}

impl MessageLine<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { seq, rank, ts, events, error } = self;
        let rank = rank.map(|rank| format!(" rank {rank}")).unwrap_or_default();
        let head = format!("seq {seq}{rank} at {ts}:");
        for event in events {
            write!(out, "{head} ")?;
            event.write(out)?;
        }
        match error {
            Some(error) => writeln!(out, "{head} {error}"),
            None if events.is_empty() => writeln!(out, "{head} no events"),
            None => Ok(()),
        }
    }
}

/// Prints what the messages of a capture say.
///
/// # Errors
/// When the capture cannot be read or the result cannot be written. Messages that cannot be decoded
/// are part of the result and of the exit code.
pub fn run<W: Write>(
    args: &DecodeArgs,
    out: &mut impl Write,
    ui: &mut Ui<W>,
) -> Result<ExitCode, CommandError> {
    let mut decoder = Decoder::new(Limits::default());
    let mut batch = EventBatch::default();
    let mut pace = Pace::start();
    let (mut messages, mut damaged) = (0_u64, 0_u64);
    for message in CaptureReader::open(&args.capture)? {
        let message = message.inspect_err(|_| Pace::hide(ui))?;
        let whole = write_message(&message, args.json, &mut decoder, &mut batch, out)?;
        messages += 1;
        damaged += u64::from(!whole);
        pace.message(ui);
    }
    Pace::hide(ui);
    out.flush()?;
    if damaged > 0 {
        ui.line(&format!("{damaged} of {messages} messages could not be read whole"));
    }
    Ok(exit_code(damaged == 0))
}

/// Prints one message; whether it could be read whole.
fn write_message(
    message: &CaptureMessage,
    json: bool,
    decoder: &mut Decoder,
    batch: &mut EventBatch,
    out: &mut impl Write,
) -> io::Result<bool> {
    let seq = message.seq;
    if let Err(error) = decoder.decode(&message.payload, &SourceIdentity::default(), batch) {
        let line = ErrorLine { seq, error: error.to_string() };
        if json {
            json_line(out, &line)?;
        } else {
            writeln!(out, "seq {seq}: {}", line.error)?;
        }
        return Ok(false);
    }
    let view = EventView { payload: &message.payload, batch };
    let line = MessageLine {
        seq,
        rank: match batch.rank {
            BatchRank::Named(rank) => Some(rank.0),
            BatchRank::Absent => None,
        },
        ts: batch.ts,
        events: batch.records.iter().map(|record| EventLine::new(record, view)).collect(),
        error: batch.cut.then(|| {
            let read = counted(batch.records.len(), "event");
            format!("the message breaks off; {read} could be read before that")
        }),
    };
    if json {
        json_line(out, &line)?;
    } else {
        line.write(out)?;
    }
    Ok(!batch.cut)
}
