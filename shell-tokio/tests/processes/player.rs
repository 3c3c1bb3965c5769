//! `kvmirror play` as a child, and what its capture leaves behind.

use crate::process::{Process, free_ports};
use kvmirror_core::event::Tier;
use kvmirror_core::hash::{identity_seed, local_hashes};
use kvmirror_tokio::capture::{Capture, CaptureMessage};
use kvmirror_tokio::offline::{Offline, OfflineOptions};
use kvmirror_tokio::truth::{Checkpoint, Truth, TruthRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(crate) const BLOCK_SIZE: u32 = 32;

/// The addresses of an engine: rank r is at port + r.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    publish: u16,
    replay: u16,
}

impl Ports {
    pub(crate) fn free(ranks: u16) -> Self {
        let first = free_ports(2 * ranks);
        Self { publish: first, replay: first + ranks }
    }

    pub(crate) fn publish(self, rank: u16) -> String {
        format!("tcp://127.0.0.1:{}", self.publish + rank)
    }

    pub(crate) fn replay(self, rank: u16) -> String {
        format!("tcp://127.0.0.1:{}", self.replay + rank)
    }

    /// Plays a capture there; returns once the sockets are bound.
    pub(crate) fn play(self, capture: &str, arguments: &str) -> Process {
        let mut player = Process::start(&format!(
            "play {} --pub {} --replay {} --replay-poll 20 {arguments}",
            data(capture).display(),
            self.publish(0),
            self.replay(0),
        ));
        player.line("publish tcp://");
        player
    }
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/captures")).join(name)
}

/// Messages of a capture of one life.
pub(crate) fn messages_of(capture: &str) -> u64 {
    Capture::read(&data(capture)).expect("a readable capture").len() as u64
}

/// What a mirror of one rank must hold, by the last message it has applied.
pub(crate) struct Expected {
    /// Hashes by sequence.
    tables: BTreeMap<u64, BTreeSet<u64>>,
    /// Every hash that was ever stored.
    pub(crate) ever: BTreeSet<u64>,
    /// The last message.
    pub(crate) last: u64,
    pub(crate) truth: Truth,
    offline: Offline,
    rank: u32,
}

impl Expected {
    /// The last life of a capture's rank, message by message.
    pub(crate) fn of(capture: &str, truth: &str, rank: u32) -> Self {
        let read = Capture::read(&data(capture)).expect("a readable capture");
        let stream = read.ranks.iter().find(|stream| stream.rank == rank).expect("the rank");
        let truth = Truth::read(&data(truth)).expect("a readable truth");
        let mut offline = Offline::new(OfflineOptions::default()).expect("defaults");
        let mut tables = BTreeMap::new();
        let messages: &[CaptureMessage] = stream.lives.last().expect("a life");
        for message in messages {
            offline.step(message).expect("a mirror");
            let blocks = offline.snapshot(rank).expect("followed").blocks;
            let device = blocks.iter().filter(|block| block.tier == Tier::Device);
            tables.insert(message.seq, device.map(|block| block.hash.0).collect());
        }
        let last = messages.last().expect("messages").seq;
        let ever = tables.values().flatten().copied().collect();
        Self { tables, ever, last, truth, offline, rank }
    }

    /// The hashes held once `seq` has been applied.
    pub(crate) fn at(&self, seq: u64) -> &BTreeSet<u64> {
        self.tables.get(&seq).unwrap_or_else(|| panic!("no message {seq} in the capture"))
    }

    /// What the engine itself held in the end, from its own table.
    pub(crate) fn engine_table(&self) -> BTreeSet<u64> {
        let own = self.truth.ranks.iter().find(|(rank, _)| *rank == self.rank).map(|(_, c)| c);
        let checkpoint: &Checkpoint =
            own.or_else(|| self.truth.checkpoints.last()).expect("a checkpoint in the truth");
        assert!(checkpoint.is_published());
        assert_eq!(checkpoint.after_seq, self.last);
        checkpoint.blocks.keys().map(|(hash, _, _)| hash.0).collect()
    }

    /// Leading tokens of a request's prompt that are held in the end.
    pub(crate) fn predicted(&mut self, request: &TruthRequest) -> u64 {
        let mut locals = Vec::new();
        let seed = identity_seed(&request.lora, &request.salt);
        local_hashes(&request.prompt, BLOCK_SIZE, false, seed, &mut locals);
        u64::from(self.offline.device_match(self.rank, &locals)) * u64::from(BLOCK_SIZE)
    }
}
