//! Metrics as Prometheus text (exposition format 0.0.4).
//!
//! | metric | type | labels | what |
//! |---|---|---|---|
//! | `kvmirror_ranks` | gauge | `trust` | followed ranks by trust, every level always present |
//! | `kvmirror_messages_total` | counter | | live messages received |
//! | `kvmirror_events_total` | counter | `kind` | applied events: `stored`, `removed`, `cleared`; and messages that could not be read at all: `unreadable` |
//! | `kvmirror_events_skipped_total` | counter | `reason` | events counted instead of applied (B22) |
//! | `kvmirror_blocks_unplaced_total` | counter | `reason` | stored blocks that are resident, but can never be matched by tokens (P26 to P28 of the field reports) |
//! | `kvmirror_orphans_total` | counter | | stores whose parent was resident nowhere on their rank (B37) |
//! | `kvmirror_gaps_total` | counter | | holes noticed in a stream |
//! | `kvmirror_recoveries_total` | counter | `outcome` | finished recoveries |
//! | `kvmirror_new_lives_total` | counter | | sources that began a new life |
//! | `kvmirror_discarded_total` | counter | `reason` | messages discarded, duplicates included |
//! | `kvmirror_ingress_overflow_total` | counter | | messages dropped because a reader's queue was full |
//! | `kvmirror_blocks` | gauge | `tier` | resident blocks, summed over ranks, every tier always present |
//! | `kvmirror_queries_total` | counter | | prefix queries answered |
//! | `kvmirror_http_requests_total` | counter | `path`, `code` | answered HTTP requests; written by [`crate::http`] |
//!
//! Names and labels are stable. The text is in a fixed order.

use core::fmt::Write as _;
use kvmirror_core::event::{Placement, SkipReason, Tier};
use kvmirror_core::router::Trust;
use std::collections::BTreeMap;

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows while the process lives.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Writes families and samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    text: String,
    family: &'static str,
}

impl Writer {
    /// Starts a family; its samples follow.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.family = name;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// One sample of the family begun last.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        let mut rendered = String::new();
        for (name, text) in labels {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let comma = if rendered.is_empty() { "" } else { "," };
            rendered.push_str(comma);
            rendered.push_str(name);
            rendered.push_str("=\"");
            rendered.push_str(&escaped);
            rendered.push('"');
        }
        let family = self.family;
        if rendered.is_empty() {
            self.line(format_args!("{family} {value}"));
        } else {
            self.line(format_args!("{family}{{{rendered}}} {value}"));
        }
    }

    /// The text so far.
    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: core::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }
}

/// Everything that is counted outside the HTTP surface, at one moment.
///
/// Codes of the open label sets are the stable snake_case names of whoever counts; the maps keep
/// the text in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Ranks by trust, in the order of [`Trust::ALL`].
    pub ranks: [u64; Trust::ALL.len()],
    /// Live messages received.
    pub messages: u64,
    /// Stored events.
    pub stored: u64,
    /// Removed events.
    pub removed: u64,
    /// Cleared events.
    pub cleared: u64,
    /// Messages that could not be read at all.
    pub unreadable: u64,
    /// Skipped events, in the order of [`SkipReason::ALL`].
    pub skipped: [u64; SkipReason::ALL.len()],
    /// Stored blocks without position, in the order of [`Placement::UNPLACED`].
    pub unplaced: [u64; Placement::UNPLACED.len()],
    /// Stores without a resident parent.
    pub orphans: u64,
    /// Holes noticed.
    pub gaps: u64,
    /// Finished recoveries by outcome.
    pub recoveries: BTreeMap<&'static str, u64>,
    /// New lives of sources.
    pub new_lives: u64,
    /// Discarded events by reason.
    pub discarded: BTreeMap<&'static str, u64>,
    /// Messages dropped at a full queue.
    pub ingress_overflow: u64,
    /// Resident blocks, in the order of [`Tier::ALL`].
    pub blocks: [u64; Tier::ALL.len()],
    /// Queries answered.
    pub queries: u64,
}

impl Snapshot {
    /// Counts one rank of this trust.
    pub fn count_rank(&mut self, trust: Trust) {
        for (level, count) in Trust::ALL.into_iter().zip(&mut self.ranks) {
            *count += u64::from(level == trust);
        }
    }
}

/// Renders a snapshot.
pub fn render(snapshot: &Snapshot) -> String {
    let mut w = Writer::default();
    w.family("kvmirror_ranks", Kind::Gauge, "Followed ranks by trust.");
    for (trust, count) in Trust::ALL.into_iter().zip(snapshot.ranks) {
        w.sample(&[("trust", trust.name())], count);
    }
    single(&mut w, "kvmirror_messages_total", "Live messages received.", snapshot.messages);
    w.family("kvmirror_events_total", Kind::Counter, "Events by kind.");
    for (kind, count) in [
        ("stored", snapshot.stored),
        ("removed", snapshot.removed),
        ("cleared", snapshot.cleared),
        ("unreadable", snapshot.unreadable),
    ] {
        w.sample(&[("kind", kind)], count);
    }
    w.family(
        "kvmirror_events_skipped_total",
        Kind::Counter,
        "Events counted instead of applied, by reason.",
    );
    for (reason, count) in SkipReason::ALL.into_iter().zip(snapshot.skipped) {
        w.sample(&[("reason", reason.name())], count);
    }
    w.family(
        "kvmirror_blocks_unplaced_total",
        Kind::Counter,
        "Stored blocks that tokens never match, by reason.",
    );
    for (reason, count) in Placement::UNPLACED.into_iter().zip(snapshot.unplaced) {
        w.sample(&[("reason", reason.name())], count);
    }
    single(
        &mut w,
        "kvmirror_orphans_total",
        "Stores whose parent was resident nowhere on their rank.",
        snapshot.orphans,
    );
    single(&mut w, "kvmirror_gaps_total", "Holes noticed in a stream.", snapshot.gaps);
    w.family("kvmirror_recoveries_total", Kind::Counter, "Finished recoveries by outcome.");
    for (outcome, count) in &snapshot.recoveries {
        w.sample(&[("outcome", outcome)], *count);
    }
    single(
        &mut w,
        "kvmirror_new_lives_total",
        "Sources that began a new life.",
        snapshot.new_lives,
    );
    w.family("kvmirror_discarded_total", Kind::Counter, "Messages discarded, by reason.");
    for (reason, count) in &snapshot.discarded {
        w.sample(&[("reason", reason)], *count);
    }
    single(
        &mut w,
        "kvmirror_ingress_overflow_total",
        "Messages dropped because a queue was full.",
        snapshot.ingress_overflow,
    );
    w.family("kvmirror_blocks", Kind::Gauge, "Resident blocks by tier, summed over ranks.");
    for (tier, count) in Tier::ALL.into_iter().zip(snapshot.blocks) {
        w.sample(&[("tier", tier.name())], count);
    }
    single(&mut w, "kvmirror_queries_total", "Prefix queries answered.", snapshot.queries);
    w.finish()
}

fn single(writer: &mut Writer, name: &'static str, help: &str, value: u64) {
    writer.family(name, Kind::Counter, help);
    writer.sample(&[], value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_help_are_escaped() {
        let mut writer = Writer::default();
        writer.family("x_total", Kind::Counter, "a\\b\nc");
        writer.sample(&[("path", "q\"\\\n"), ("code", "200")], 3);
        writer.sample(&[], 4);
        assert_eq!(
            writer.finish(),
            "# HELP x_total a\\\\b\\nc\n# TYPE x_total counter\n\
             x_total{path=\"q\\\"\\\\\\n\",code=\"200\"} 3\nx_total 4\n"
        );
    }

    #[test]
    fn every_documented_metric_is_written_once() {
        let snapshot = Snapshot {
            ranks: [1, 0, 2, 0, 0, 0, 3],
            stored: 5,
            orphans: 12,
            recoveries: BTreeMap::from([("replayed", 6)]),
            discarded: BTreeMap::from([("foreign", 7)]),
            blocks: [8, 9, 10, 11],
            ..Snapshot::default()
        };
        let text = render(&snapshot);
        for line in [
            "kvmirror_ranks{trust=\"exact\"} 1",
            "kvmirror_ranks{trust=\"missing\"} 3",
            "kvmirror_messages_total 0",
            "kvmirror_events_total{kind=\"stored\"} 5",
            "kvmirror_events_skipped_total{reason=\"unknown_event\"} 0",
            "kvmirror_blocks_unplaced_total{reason=\"token_less\"} 0",
            "kvmirror_orphans_total 12",
            "kvmirror_gaps_total 0",
            "kvmirror_recoveries_total{outcome=\"replayed\"} 6",
            "kvmirror_new_lives_total 0",
            "kvmirror_discarded_total{reason=\"foreign\"} 7",
            "kvmirror_ingress_overflow_total 0",
            "kvmirror_blocks{tier=\"external\"} 11",
            "kvmirror_queries_total 0",
        ] {
            assert_eq!(text.lines().filter(|written| *written == line).count(), 1, "{line}");
        }
        let helps = text.lines().filter(|line| line.starts_with("# HELP")).count();
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!((helps, types), (13, 13));
    }
}
