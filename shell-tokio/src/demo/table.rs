//! The live table: rewritten in place on a terminal, a block of lines elsewhere.

use crate::follower::RankRow;
use std::io::{self, Write};

#[derive(Debug)]
pub(super) struct Table {
    terminal: bool,
    /// Lines on the terminal that the next table replaces.
    shown: usize,
    /// What the last table said.
    said: Vec<RankRow>,
}

impl Table {
    pub(super) const fn new(terminal: bool) -> Self {
        Self { terminal, shown: 0, said: Vec::new() }
    }

    pub(super) fn show(&mut self, rows: &[RankRow], out: &mut impl Write) -> io::Result<()> {
        let heard = |row: &RankRow| (row.key, row.trust, row.cursor);
        if !self.terminal && rows.iter().map(heard).eq(self.said.iter().map(heard)) {
            return Ok(());
        }
        self.said = rows.to_vec();
        if self.terminal && self.shown > 0 {
            // Up to the first line of the table, then clear from there to the end.
            write!(out, "\x1b[{}A\x1b[J", self.shown)?;
        }
        writeln!(
            out,
            "{:<16} {:<12} {:<18} {:>7} {:>5} {:>7} {:>5} {:>10} {:>6}",
            "rank", "trust", "reason", "cursor", "lag", "blocks", "gaps", "recoveries", "lives"
        )?;
        for row in rows {
            let cursor = row.cursor.map_or_else(|| "-".to_owned(), |cursor| cursor.to_string());
            writeln!(
                out,
                "{:<16} {:<12} {:<18} {:>7} {:>5} {:>7} {:>5} {:>10} {:>6}",
                format!("{}/{}", row.instance, row.key.rank),
                row.trust.name(),
                row.reason.map_or("", |reason| reason.name()),
                cursor,
                row.lag,
                row.blocks,
                row.counts.gaps,
                row.counts.healed,
                row.counts.new_lives + 1,
            )?;
        }
        self.shown = rows.len() + 1;
        if !self.terminal {
            writeln!(out)?;
        }
        out.flush()
    }
}
