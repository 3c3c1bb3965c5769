//! The end of the demo: each mirror beside the engine's own table.

use super::engines::Engine;
use crate::follower::RankRow;
use core::fmt;
use kvmirror_core::index::ResidentBlock;
use kvmirror_core::router::Trust;
use serde::Serialize;

/// The verdict over all ranks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Proof {
    ranks: Vec<RankProof>,
    /// Whether every engine has its rank and every rank is exact and equal.
    pub(super) equal: bool,
}

/// The verdict over one rank.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RankProof {
    instance: String,
    rank: u32,
    trust: &'static str,
    cursor: Option<u64>,
    blocks: usize,
    engine_blocks: usize,
    missing: usize,
    extra: usize,
    gaps: u64,
    healed: u64,
    new_lives: u64,
    equal: bool,
}

impl RankProof {
    pub(super) fn of(row: &RankRow, engine: &Engine, blocks: &[ResidentBlock]) -> Self {
        let difference = engine.table.difference(blocks, engine.duplicates);
        let level = row.trust == Trust::Exact && row.cursor == Some(engine.last);
        Self {
            instance: row.instance.clone(),
            rank: row.key.rank.0,
            trust: row.trust.name(),
            cursor: row.cursor.map(|cursor| cursor.0),
            blocks: blocks.len(),
            engine_blocks: engine.table.blocks.len(),
            missing: difference.missing.len(),
            extra: difference.extra.len(),
            gaps: row.counts.gaps,
            healed: row.counts.healed,
            new_lives: row.counts.new_lives,
            equal: level && difference.is_empty(),
        }
    }
}

impl Proof {
    pub(super) fn of(ranks: Vec<RankProof>, engines: usize) -> Self {
        let equal = ranks.len() == engines && ranks.iter().all(|rank| rank.equal);
        Self { ranks, equal }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rank in &self.ranks {
            let verdict = if rank.equal { "equal" } else { "NOT EQUAL" };
            write!(
                f,
                "{:<14} mirror {} entries, engine's own table {} entries",
                rank.instance, rank.blocks, rank.engine_blocks
            )?;
            if rank.missing + rank.extra > 0 {
                write!(f, ", {} missing, {} extra", rank.missing, rank.extra)?;
            }
            writeln!(f, ", {} at {}: {verdict}", rank.trust, Cursor(rank.cursor))?;
        }
        let equal = self.ranks.iter().filter(|rank| rank.equal).count();
        let verdict = if self.equal { "proved" } else { "FAILED" };
        writeln!(f, "{verdict}: {equal} of {} mirrors equal their engines", self.ranks.len())
    }
}

struct Cursor(Option<u64>);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cursor) => write!(f, "message {cursor}"),
            None => f.write_str("no message"),
        }
    }
}
