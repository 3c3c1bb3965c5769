//! `kvmirror mirror`.

use super::{CommandError, Pace, counted, exit_code, json_line};
use crate::capture::CaptureReader;
use crate::offline::{OfflineOptions, Snapshot, mirror_capture};
use crate::ui::Ui;
use clap::{Args, ValueEnum};
use kvmirror_core::event::SkipReason;
use kvmirror_core::index::{Duplicates, ResidentBlock};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a capture through the mirror and print what it then holds.
///
/// Every rank of the capture is followed by the same machine that follows live engines, as a source
/// that cannot be asked for what is missing: a new engine life is noticed where the sequence starts
/// over, repeated messages are left out, a gap empties the rank and makes it partial.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_long_help = HELP)]
pub struct MirrorArgs {
    /// Capture to read: JSON Lines, plain or gzip.
    #[arg(value_name = "FILE")]
    pub capture: PathBuf,

    /// Also print the state once every message up to this sequence is applied, in each life that
    /// reaches it. May be given more than once.
    #[arg(long, value_name = "SEQ")]
    pub at: Vec<u64>,

    /// How a block that is stored again is read: "counted" adds a copy, which a remove takes;
    /// "set" is for engines that announce cache hits as stores.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = DuplicatesArg::Counted)]
    pub duplicates: DuplicatesArg,

    /// Tokens per block; stores with another size are held but never matched
    /// [default: what each store says].
    #[arg(long, value_name = "N")]
    pub block_size: Option<NonZeroU32>,

    /// Print one JSON object per state instead of a readable summary.
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
JSON, one object per rank, life and state, in the order in which the capture reaches them:
  {\"rank\",\"life\",\"after_seq\",\"blocks\":[{\"hash\",\"tier\",\"group\",\"domain\"}],\"events\":{KIND:COUNT},
  \"skipped\":{REASON:COUNT},\"trust\"}
  life        engine lives of the rank, from 1
  after_seq   the SEQ of --at, or the last sequence of the life
  blocks      ascending by hash, tier, group, domain; an event without a group is in group 0
  events      stored, removed, cleared and skipped events since the life began
  skipped     reasons of the skipped events, those that occurred
  trust       exact, or why not: partial where messages before or in between are missing

Exit codes: 0 all messages were read, 1 some could not be read, 2 wrong arguments or an unreadable
file.";

/// [`Duplicates`] on the command line.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicatesArg {
    /// Every store adds a copy.
    Counted,
    /// A block is there or not.
    Set,
}

impl From<DuplicatesArg> for Duplicates {
    fn from(arg: DuplicatesArg) -> Self {
        match arg {
            DuplicatesArg::Counted => Self::Counted,
            DuplicatesArg::Set => Self::Set,
        }
    }
}

#[derive(Serialize)]
struct StateLine {
    rank: u32,
    life: u64,
    after_seq: u64,
    blocks: Vec<BlockLine>,
    events: EventsLine,
    skipped: BTreeMap<&'static str, u64>,
    trust: &'static str,
}

#[derive(Serialize)]
struct BlockLine {
    hash: u64,
    tier: &'static str,
    group: u32,
    domain: &'static str,
}

#[derive(Serialize)]
struct EventsLine {
    stored: u64,
    removed: u64,
    cleared: u64,
    skipped: u64,
}

impl From<&ResidentBlock> for BlockLine {
    fn from(block: &ResidentBlock) -> Self {
        let (tier, domain) = (block.tier.name(), block.domain.name());
        Self { hash: block.hash.0, tier, group: block.group, domain }
    }
}

impl From<&Snapshot> for StateLine {
    fn from(state: &Snapshot) -> Self {
        let events = &state.events;
        let reasons = SkipReason::ALL.into_iter().map(SkipReason::name).zip(events.reasons);
        Self {
            rank: state.rank,
            life: state.life,
            after_seq: state.after_seq,
            blocks: state.blocks.iter().map(BlockLine::from).collect(),
            events: EventsLine {
                stored: events.stored,
                removed: events.removed,
                cleared: events.cleared,
                skipped: events.skipped,
            },
            skipped: reasons.filter(|(_, count)| *count > 0).collect(),
            trust: state.trust.name(),
        }
    }
}

/// The readable form: how much is where, not each block.
fn write_summary(state: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    let Snapshot { rank, life, after_seq, trust, reason, blocks, events } = state;
    write!(out, "rank {rank} life {life} after seq {after_seq}: {}", trust.name())?;
    if let Some(reason) = reason {
        write!(out, " ({})", reason.name())?;
    }
    writeln!(out, ", {}", counted(blocks.len(), "block"))?;
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for block in blocks {
        *places.entry((block.tier, block.group, block.domain)).or_default() += 1;
    }
    for ((tier, group, domain), count) in places {
        writeln!(out, "  {count} in {}, group {group}, {}", tier.name(), domain.name())?;
    }
    write!(out, "  events: {} stored, {} removed, ", events.stored, events.removed)?;
    writeln!(out, "{} cleared, {} skipped", events.cleared, events.skipped)?;
    for (reason, count) in SkipReason::ALL.into_iter().zip(events.reasons) {
        if count > 0 {
            writeln!(out, "  skipped as {}: {count}", reason.name())?;
        }
    }
    Ok(())
}

/// Runs a capture through the mirror and prints its states.
///
/// # Errors
/// When the capture cannot be read or the result cannot be written.
pub fn run<W: Write>(
    args: &MirrorArgs,
    out: &mut impl Write,
    ui: &mut Ui<W>,
) -> Result<ExitCode, CommandError> {
    let options =
        OfflineOptions { block_size: args.block_size, duplicates: args.duplicates.into() };
    let mut pace = Pace::start();
    // The messages and their states both report here, in turns.
    let shared = RefCell::new(&mut *ui);
    let messages =
        CaptureReader::open(&args.capture)?.inspect(|_| pace.message(&mut **shared.borrow_mut()));
    let result = mirror_capture(messages, options, &args.at, |state| {
        Pace::hide(&mut **shared.borrow_mut());
        if args.json {
            json_line(out, &StateLine::from(&state))?;
        } else {
            write_summary(&state, out)?;
        }
        Ok::<(), CommandError>(())
    });
    Pace::hide(ui);
    let outcome = result?;
    out.flush()?;
    if outcome.messages == 0 {
        ui.line("no message in the capture");
    }
    for seq in &outcome.unreached {
        ui.line(&format!(
            "no rank has a state at sequence {seq}: none began before it and reached it"
        ));
    }
    for (count, what) in [
        (outcome.unreadable, "could not be read"),
        (outcome.foreign, "were left out: their rank is not where a capture's rank is looked for"),
    ] {
        if count > 0 {
            ui.line(&format!("{count} of {} messages {what}", outcome.messages));
        }
    }
    Ok(exit_code(outcome.unreadable == 0))
}
