//! A membership snapshot in a trace: what the membership machine says and the router machine reads.

use super::number::{U64, is_false};
use super::targets::Targets;
use crate::id::{BootId, EventId, Generation, PublisherId, RankKey, SnapshotId, TargetId};
use crate::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One rank of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RankLine {
    pub(super) worker: U64,
    pub(super) rank: u32,
    pub(super) generation: U64,
    pub(super) status: StatusLine,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StatusLine {
    Missing,
    LiveOnly(SourceLine),
    Recoverable(RecoverableLine),
    Ambiguous { publishers: Vec<U64> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceLine {
    pub(super) publisher: U64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) engine: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_id: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<U64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecoverableLine {
    pub(super) publisher: U64,
    pub(super) target: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) engine: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_id: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<U64>,
}

/// The `membership` input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MembershipLine {
    pub(super) ranks: Vec<RankLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ready: Option<Vec<ReadyLine>>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) suspect: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<SinceLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadyLine {
    pub(super) publisher: U64,
    pub(super) generation: U64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SinceLine {
    pub(super) predecessor: U64,
    pub(super) changed: Vec<(U64, u32)>,
}

/// The first id of a stream where a trace does not say.
const fn default_first_id(kind: SourceKind) -> EventId {
    match kind {
        SourceKind::Agent => EventId(1),
        SourceKind::Engine => EventId(0),
    }
}

/// A source as a line describes it.
pub(super) fn source(
    publisher: U64,
    target: Option<TargetId>,
    engine: bool,
    first_id: Option<U64>,
    boot: Option<U64>,
) -> Source {
    let kind = if engine { SourceKind::Engine } else { SourceKind::Agent };
    Source {
        publisher: PublisherId(publisher.0),
        target,
        kind,
        first_id: first_id.map_or_else(|| default_first_id(kind), |id| EventId(id.0)),
        boot: boot.map(|boot| BootId(boot.0)),
    }
}

impl StatusLine {
    fn read(&self, targets: &mut Targets) -> RankStatus {
        RankStatus::Active(match self {
            Self::Missing => return RankStatus::Missing,
            Self::Ambiguous { .. } => return RankStatus::Ambiguous,
            Self::LiveOnly(line) => {
                source(line.publisher, None, line.engine, line.first_id, line.boot)
            }
            Self::Recoverable(line) => {
                let target = Some(targets.id(&line.target));
                source(line.publisher, target, line.engine, line.first_id, line.boot)
            }
        })
    }

    fn of(status: &RankStatus, ambiguous: &[PublisherId], targets: &Targets) -> Self {
        let source = match status {
            RankStatus::Missing => return Self::Missing,
            RankStatus::Ambiguous => {
                let publishers = ambiguous.iter().map(|publisher| U64(publisher.0)).collect();
                return Self::Ambiguous { publishers };
            }
            RankStatus::Active(source) => source,
        };
        let publisher = U64(source.publisher.0);
        let engine = source.kind == SourceKind::Engine;
        let first_id = Some(source.first_id)
            .filter(|id| *id != default_first_id(source.kind))
            .map(|id| U64(id.0));
        let boot = source.boot.map(|boot| U64(boot.0));
        match source.target {
            None => Self::LiveOnly(SourceLine { publisher, engine, first_id, boot }),
            Some(target) => {
                let target = targets.name(target);
                Self::Recoverable(RecoverableLine { publisher, target, engine, first_id, boot })
            }
        }
    }
}

impl RankLine {
    /// The line of one rank; `ambiguous` are the publishers involved if it is ambiguous.
    pub(super) fn of(rank: &MemberRank, ambiguous: &[PublisherId], targets: &Targets) -> Self {
        Self {
            worker: U64(rank.key.worker.0),
            rank: rank.key.rank.0,
            generation: U64(rank.generation.0),
            status: StatusLine::of(&rank.status, ambiguous, targets),
        }
    }
}

impl MembershipLine {
    /// The snapshot it means.
    pub(super) fn read(&self, targets: &mut Targets) -> Result<Membership, String> {
        let mut ranks = Vec::with_capacity(self.ranks.len());
        let ready = self.ready.as_ref().map(|ready| {
            let exact = ready.iter().map(|entry| (entry.publisher, entry.generation));
            exact.collect::<alloc::collections::BTreeSet<_>>()
        });
        for line in &self.ranks {
            let status = line.status.read(targets);
            let is_ready = match (&ready, &status) {
                (Some(ready), RankStatus::Active(source)) => {
                    ready.contains(&(U64(source.publisher.0), line.generation))
                }
                (None, _) | (_, RankStatus::Missing | RankStatus::Ambiguous) => true,
            };
            ranks.push(MemberRank {
                key: RankKey::new(line.worker.0, line.rank),
                generation: Generation(line.generation.0),
                status,
                ready: is_ready,
            });
        }
        let since = self.since.as_ref().map(|since| {
            let changed = since.changed.iter().map(|(worker, rank)| RankKey::new(worker.0, *rank));
            (SnapshotId(since.predecessor.0), changed.collect())
        });
        let id = self.id.map(|id| SnapshotId(id.0));
        Membership::restored(ranks, self.suspect, id, since).map_err(|error| format!("{error}"))
    }

    /// The line that means `membership`.
    pub(super) fn of(membership: &Membership, targets: &Targets) -> Self {
        let active = |rank: &MemberRank| match rank.status {
            RankStatus::Active(source) => Some(source),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        };
        let gated = membership.ranks().any(|rank| !rank.ready && active(rank).is_some());
        let ready = membership.ranks().filter(|rank| rank.ready).filter_map(|rank| {
            let publisher = U64(active(rank)?.publisher.0);
            Some(ReadyLine { publisher, generation: U64(rank.generation.0) })
        });
        Self {
            ranks: membership.ranks().map(|rank| RankLine::of(rank, &[], targets)).collect(),
            ready: gated.then(|| ready.collect()),
            suspect: membership.suspect(),
            id: membership.id().map(|id| U64(id.0)),
            since: membership.since().map(|(predecessor, changed)| SinceLine {
                predecessor: U64(predecessor.0),
                changed: changed.iter().map(|key| (U64(key.worker.0), key.rank.0)).collect(),
            }),
        }
    }
}
