//! One event of a trace: what a source said under one id.

use super::number::U64;
use crate::event::Tier;
use crate::id::{BlockHash, EventId, LocalHash, Rank, RankKey, WorkerId};
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes an event counts for beside its hashes, where the trace does not say.
const EVENT_BYTES: u64 = 32;
/// Bytes of one hash.
const HASH_BYTES: u64 = 8;

/// The residency domain an event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceDomain {
    /// What dies with the engine.
    Worker,
    /// What a cache owner keeps.
    CacheOwner,
    /// Both: the clear of a source that knows no domains.
    All,
}

/// What an opaque event clears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OpaqueClear {
    /// Nothing.
    #[default]
    Nothing,
    /// One residency domain; which one is not shown.
    OneDomain,
    /// Everything.
    Everything,
}

impl Serialize for OpaqueClear {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_bool(false),
            Self::OneDomain => serializer.serialize_str(ONE_DOMAIN),
            Self::Everything => serializer.serialize_bool(true),
        }
    }
}

const ONE_DOMAIN: &str = "one_domain";

impl<'de> Deserialize<'de> for OpaqueClear {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "`clear` of an opaque event: true, false or \"one_domain\"")]
        enum Form {
            Flag(bool),
            Name(OneDomain),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum OneDomain {
            OneDomain,
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Flag(false) => Self::Nothing,
            Form::Flag(true) => Self::Everything,
            Form::Name(OneDomain::OneDomain) => Self::OneDomain,
        })
    }
}

/// An event whose content the trace does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// Its size, which counts for the pending budget.
    pub bytes: u64,
    /// Digest of its bytes as they came over the wire.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "digest")]
    pub digest: Option<NonZeroU64>,
    /// What it clears.
    #[serde(default)]
    pub clear: OpaqueClear,
    /// Its bytes as hexadecimal digits, for people and tools; the machines never look inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// What an event does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Blocks were stored, in order.
    Store {
        /// The engine's hash of the block before the first one.
        parent: Option<BlockHash>,
        /// The engine's hash and the token hash of each block.
        blocks: Vec<(BlockHash, LocalHash)>,
    },
    /// Blocks were removed.
    Remove {
        /// The engine's hashes.
        blocks: Vec<BlockHash>,
    },
    /// A whole residency domain, or everything, was removed.
    Clear,
    /// Not shown.
    Opaque(Opaque),
}

/// One event. What a trace leaves out stays left out, so that an event is written as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// Its id in its source's stream.
    pub id: EventId,
    /// What it does.
    pub what: What,
    /// The tier; device when left out.
    pub tier: Option<Tier>,
    /// The residency domain; the worker's when left out.
    pub domain: Option<TraceDomain>,
    /// The worker it names; its source's when left out.
    pub worker: Option<WorkerId>,
    /// The rank it names; its source's when left out.
    pub rank: Option<Rank>,
    /// Its size where its content does not tell. Never set on an opaque event, which has its own.
    pub bytes: Option<u64>,
    /// Digest of its bytes as they came over the wire, where its content does not tell;
    /// `Some(None)` = none is known. Never set on an opaque event, which has its own.
    pub digest: Option<Option<NonZeroU64>>,
    /// Its content could not be read whole.
    pub damaged: bool,
}

impl TraceEvent {
    /// An event that says only what it does.
    pub const fn new(id: EventId, what: What) -> Self {
        Self {
            id,
            what,
            tier: None,
            domain: None,
            worker: None,
            rank: None,
            bytes: None,
            digest: None,
            damaged: false,
        }
    }

    /// Its size for the pending budget, in bytes: as given, else 32, 16 for each stored block and 8
    /// for each removed one.
    pub fn size(&self) -> u64 {
        let hashes = match &self.what {
            What::Opaque(opaque) => return opaque.bytes,
            What::Store { blocks, .. } => 2 * blocks.len() as u64,
            What::Remove { blocks } => blocks.len() as u64,
            What::Clear => 0,
        };
        self.bytes.unwrap_or(EVENT_BYTES + HASH_BYTES * hashes)
    }

    /// Digest of the message, if this event is one: as given, else of what it does. The id, worker
    /// and rank do not enter.
    pub fn digest(&self) -> Option<NonZeroU64> {
        if let What::Opaque(opaque) = &self.what {
            return opaque.digest;
        }
        self.digest.unwrap_or_else(|| {
            let text = serde_json::to_vec(&Said(self)).unwrap_or_default();
            NonZeroU64::new(xxh3_64(&text)).or(Some(NonZeroU64::MIN))
        })
    }

    /// Whether it brings its own digest, so that it cannot be one of several in a run.
    pub(super) const fn has_own_digest(&self) -> bool {
        match &self.what {
            What::Opaque(opaque) => opaque.digest.is_some(),
            What::Store { .. } | What::Remove { .. } | What::Clear => {
                matches!(self.digest, Some(Some(_)))
            }
        }
    }

    /// Whether it names another rank than `own`.
    pub(super) fn is_foreign_to(&self, own: RankKey) -> bool {
        self.worker.is_some_and(|worker| worker != own.worker)
            || self.rank.is_some_and(|rank| rank != own.rank)
    }
}

/// What an event does, in words that do not depend on what was left out.
struct Said<'a>(&'a TraceEvent);

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        what(&self.0.what, &mut map)?;
        map.serialize_entry("tier", self.0.tier.unwrap_or(Tier::Device).name())?;
        map.serialize_entry("domain", &self.0.domain.unwrap_or(TraceDomain::Worker))?;
        map.end()
    }
}

fn what<M: SerializeMap>(what: &What, map: &mut M) -> Result<(), M::Error> {
    match what {
        What::Store { parent, blocks } => {
            let blocks = blocks.iter().map(|(hash, local)| (U64(hash.0), U64(local.0)));
            let store =
                StoreLine { parent: parent.map(|hash| U64(hash.0)), blocks: blocks.collect() };
            map.serialize_entry("store", &store)
        }
        What::Remove { blocks } => {
            let blocks: Vec<U64> = blocks.iter().map(|hash| U64(hash.0)).collect();
            map.serialize_entry("remove", &blocks)
        }
        What::Clear => map.serialize_entry("clear", &true),
        What::Opaque(opaque) => map.serialize_entry("opaque", opaque),
    }
}

impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &U64(self.id.0))?;
        what(&self.what, &mut map)?;
        if let Some(tier) = self.tier {
            map.serialize_entry("tier", tier.name())?;
        }
        if let Some(domain) = self.domain {
            map.serialize_entry("domain", &domain)?;
        }
        if let Some(worker) = self.worker {
            map.serialize_entry("worker", &U64(worker.0))?;
        }
        if let Some(rank) = self.rank {
            map.serialize_entry("rank", &rank.0)?;
        }
        if let Some(bytes) = self.bytes {
            map.serialize_entry("bytes", &bytes)?;
        }
        if let Some(digest) = self.digest {
            map.serialize_entry("digest", &digest.map(|digest| U64(digest.get())))?;
        }
        if self.damaged {
            map.serialize_entry("damaged", &true)?;
        }
        map.end()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreLine {
    parent: Option<U64>,
    blocks: Vec<(U64, U64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TierName {
    Device,
    Host,
    Disk,
    External,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventLine {
    id: U64,
    store: Option<StoreLine>,
    remove: Option<Vec<U64>>,
    clear: Option<bool>,
    opaque: Option<Opaque>,
    tier: Option<TierName>,
    domain: Option<TraceDomain>,
    worker: Option<U64>,
    rank: Option<u32>,
    bytes: Option<u64>,
    // An absent digest is one thing, a digest that is null another.
    #[serde(default, deserialize_with = "present")]
    digest: Option<Option<U64>>,
    #[serde(default)]
    damaged: bool,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<U64>>, D::Error> {
    Option::<U64>::deserialize(deserializer).map(Some)
}

impl EventLine {
    /// What it does, or what is wrong with it.
    fn read(self) -> Result<TraceEvent, &'static str> {
        let what = match (self.store, self.remove, self.clear, self.opaque) {
            (Some(store), None, None, None) => What::Store {
                parent: store.parent.map(|hash| BlockHash(hash.0)),
                blocks: store
                    .blocks
                    .into_iter()
                    .map(|(hash, local)| (BlockHash(hash.0), LocalHash(local.0)))
                    .collect(),
            },
            (None, Some(blocks), None, None) => {
                What::Remove { blocks: blocks.into_iter().map(|hash| BlockHash(hash.0)).collect() }
            }
            (None, None, Some(true), None) => What::Clear,
            (None, None, Some(false), None) => return Err("`clear` of an event must be true"),
            (None, None, None, Some(opaque)) => What::Opaque(opaque),
            _ => return Err("an event has exactly one of `store`, `remove`, `clear` and `opaque`"),
        };
        let opaque = matches!(what, What::Opaque(_));
        if opaque && (self.bytes.is_some() || self.digest.is_some()) {
            return Err("`bytes` and `digest` of an opaque event stand within `opaque`");
        }
        if self.domain == Some(TraceDomain::All) && what != What::Clear {
            return Err("only a clear can have the domain \"all\"");
        }
        let digest = match self.digest {
            None => None,
            Some(None) => Some(None),
            Some(Some(digest)) => {
                Some(Some(NonZeroU64::new(digest.0).ok_or("a digest is never 0")?))
            }
        };
        Ok(TraceEvent {
            id: EventId(self.id.0),
            what,
            tier: self.tier.map(|tier| match tier {
                TierName::Device => Tier::Device,
                TierName::Host => Tier::Host,
                TierName::Disk => Tier::Disk,
                TierName::External => Tier::External,
            }),
            domain: self.domain,
            worker: self.worker.map(|worker| WorkerId(worker.0)),
            rank: self.rank.map(Rank),
            bytes: self.bytes,
            digest,
            damaged: self.damaged,
        })
    }
}

impl<'de> Deserialize<'de> for TraceEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        EventLine::deserialize(deserializer)?.read().map_err(D::Error::custom)
    }
}

mod digest {
    use super::{Deserialize, Deserializer, Error, NonZeroU64, Serialize, Serializer, U64};

    pub(super) fn serialize<S: Serializer>(
        digest: &Option<NonZeroU64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        digest.map(|digest| U64(digest.get())).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NonZeroU64>, D::Error> {
        let digest = Option::<U64>::deserialize(deserializer)?;
        digest
            .map(|digest| {
                NonZeroU64::new(digest.0).ok_or_else(|| D::Error::custom("a digest is never 0"))
            })
            .transpose()
    }
}
