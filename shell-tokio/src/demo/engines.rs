//! The engines of the demo: real captures, their truths, and what goes wrong with each.

use crate::capture::{Capture, CaptureError, CaptureReader};
use crate::player::{DropRule, PlayPlan, Speed};
use crate::transport::Endpoint;
use crate::truth::{Checkpoint, Truth, TruthError};
use flate2::read::GzDecoder;
use kvmirror_core::event::{EventBatch, EventKind, EventView};
use kvmirror_core::id::{BlockHash, EventId};
use kvmirror_core::index::Duplicates;
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use std::io::BufReader;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Why a built-in capture cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The truth.
    #[error(transparent)]
    Truth(#[from] TruthError),
    /// They do not belong together.
    #[error("built-in capture {name}: {what}")]
    Mismatch {
        /// Which.
        name: &'static str,
        /// What is missing.
        what: &'static str,
    },
}

/// What goes wrong with an engine's stream.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// This share of its messages is lost on the way.
    Loss(f64),
    /// It restarts after this sequence and begins anew, and a share is lost as well.
    Restart { after: u64, loss: f64 },
}

struct Script {
    name: &'static str,
    story: &'static str,
    capture: &'static [u8],
    truth: &'static [u8],
    fault: Fault,
}

macro_rules! built_in {
    ($file:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/", $file))
    };
}

const SCRIPTS: [Script; 4] = [
    Script {
        name: "vllm",
        story: "vLLM 0.32 under memory pressure; a fifth of its messages is lost",
        capture: built_in!("vllm-0.32.0-evict.jsonl.gz"),
        truth: built_in!("vllm-0.32.0-evict.truth.json.gz"),
        fault: Fault::Loss(0.2),
    },
    Script {
        name: "vllm-offload",
        story: "vLLM 0.32 with a second tier in host memory; a tenth is lost",
        capture: built_in!("vllm-0.32.0-offload-selfdesc.jsonl.gz"),
        truth: built_in!("vllm-0.32.0-offload-selfdesc.truth.json.gz"),
        fault: Fault::Loss(0.1),
    },
    Script {
        name: "vllm-hybrid",
        story: "vLLM 0.22, sliding-window and full attention groups; a tenth is lost",
        capture: built_in!("vllm-0.22.1-hybrid-swa.jsonl.gz"),
        truth: built_in!("vllm-0.22.1-hybrid-swa.truth.json.gz"),
        fault: Fault::Loss(0.1),
    },
    Script {
        name: "sglang",
        story: "SGLang 0.5 that restarts in the middle; a tenth is lost",
        capture: built_in!("sglang-0.5.23-mix.jsonl.gz"),
        truth: built_in!("sglang-0.5.23-mix.truth.json.gz"),
        fault: Fault::Restart { after: 40, loss: 0.1 },
    },
];

/// One engine of the demo.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) name: &'static str,
    pub(super) story: &'static str,
    pub(super) block_size: NonZeroU32,
    /// The last sequence of its last life.
    pub(super) last: EventId,
    /// What the engine itself held in the end.
    pub(super) table: Checkpoint,
    pub(super) duplicates: Duplicates,
    /// Prompts it served.
    pub(super) prompts: Vec<Vec<u32>>,
    capture: Capture,
    fault: Fault,
}

/// All engines; with `tamper` the first one's stream tells of a block that the engine never had.
pub(super) fn all(tamper: bool) -> Result<Vec<Engine>, EngineError> {
    let mut engines = Vec::with_capacity(SCRIPTS.len());
    for script in &SCRIPTS {
        engines.push(engine(script)?);
    }
    if tamper && let Some(engine) = engines.first_mut() {
        engine.falsify()?;
    }
    Ok(engines)
}

fn engine(script: &Script) -> Result<Engine, EngineError> {
    let name = script.name;
    let mismatch = |what| EngineError::Mismatch { name, what };
    let path = PathBuf::from(format!("built-in capture {name}"));
    let unpacked = BufReader::new(GzDecoder::new(script.capture));
    let reader = CaptureReader::new(path.clone(), Box::new(unpacked));
    let capture = Capture::from_messages(reader.collect::<Result<Vec<_>, _>>()?);
    let truth = Truth::from_reader(BufReader::new(GzDecoder::new(script.truth)), &path)?;
    let last = capture
        .ranks
        .first()
        .and_then(|rank| rank.lives.last())
        .and_then(|life| life.last())
        .map(|message| message.seq)
        .ok_or_else(|| mismatch("no message"))?;
    let table = truth.checkpoints.last().filter(|table| table.after_seq == last).cloned();
    Ok(Engine {
        name,
        story: script.story,
        block_size: truth.block_size.ok_or_else(|| mismatch("no block size"))?,
        last: EventId(last),
        table: table.ok_or_else(|| mismatch("no table of its end"))?,
        duplicates: truth.duplicates(),
        prompts: truth.requests.into_iter().map(|request| request.prompt).collect(),
        capture,
        fault: script.fault,
    })
}

impl Engine {
    /// The plan that plays it within `seconds`, on free loopback ports, held until released.
    pub(super) fn plan(&self, seconds: f64, seed: u64) -> PlayPlan {
        let streams = self.capture.ranks.clone();
        let mut plan = PlayPlan::new(streams, Endpoint::loopback(0), Some(Endpoint::loopback(0)));
        let (loss, share) = match self.fault {
            Fault::Loss(loss) => (loss, 1.0),
            Fault::Restart { after, loss } => {
                plan.restart_at = Some(after);
                // Part of the stream is played twice.
                (loss, 1.0 + as_share(after, self.last.0))
            }
        };
        plan.drop = DropRule::Probability(loss);
        plan.seed = seed;
        plan.hold = true;
        plan.speed = match self.length() {
            Some(length) if seconds > 0.0 => Speed::Paced(length.as_secs_f64() * share / seconds),
            Some(_) | None => Speed::Unpaced,
        };
        plan
    }

    /// How long the capture took to record.
    fn length(&self) -> Option<Duration> {
        let times = |first: bool| {
            let messages = self.capture.ranks.iter().flat_map(|rank| rank.lives.iter().flatten());
            let times = messages.filter_map(|message| message.t_ns);
            if first { times.min() } else { times.max() }
        };
        let (first, last) = (times(true)?, times(false)?);
        (last > first).then(|| Duration::from_nanos(last - first))
    }

    /// Changes one bit of a block hash that the engine's table has, in the message that tells of it
    /// last: a store that names it once and as its own block.
    fn falsify(&mut self) -> Result<(), EngineError> {
        let messages =
            self.capture.ranks.iter_mut().flat_map(|rank| rank.lives.iter_mut().flatten());
        let mut messages: Vec<_> = messages.collect();
        for (hash, ..) in self.table.blocks.keys() {
            let written = hash.0.to_be_bytes();
            let places = |payload: &[u8]| -> Vec<usize> {
                let windows = payload.windows(8).enumerate();
                windows.filter(|(_, bytes)| *bytes == written).map(|(at, _)| at).collect()
            };
            let last =
                messages.iter_mut().rev().find(|message| !places(&message.payload).is_empty());
            let Some(message) = last else { continue };
            if let [at] = places(&message.payload)[..]
                && stores(&message.payload, *hash)
            {
                let mut payload = message.payload.to_vec();
                payload[at + 7] ^= 1;
                message.payload = payload.into();
                return Ok(());
            }
        }
        Err(EngineError::Mismatch { name: self.name, what: "no block to falsify" })
    }
}

/// Whether a payload's events store this block.
fn stores(payload: &[u8], hash: BlockHash) -> bool {
    let mut events = EventBatch::default();
    let identity = SourceIdentity::default();
    let read = Decoder::new(Limits::default()).decode(payload, &identity, &mut events);
    let view = EventView { payload, batch: &events };
    read.is_ok()
        && events
            .records
            .iter()
            .any(|record| record.kind == EventKind::Stored && view.hashes(record).contains(&hash))
}

#[expect(clippy::cast_precision_loss, reason = "sequences of captures are small")]
fn as_share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
