//! Reading truth files: what an engine itself held and served while a capture was recorded.
//!
//! Hashes are numbers up to 64 bits, signed or not, or the hex text of a longer hash, of which the
//! low 64 bits count; either way they compare with the hashes of events (`wire.md` §5).

use crate::capture::open_plain_or_gzip;
use core::fmt;
use kvmirror_core::event::Tier;
use kvmirror_core::id::BlockHash;
use kvmirror_core::index::{Duplicates, ResidentBlock};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A truth file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Tokens per block, where the file says it.
    pub block_size: Option<NonZeroU32>,
    /// The states that were read from the engine's own table, in the order of the file.
    pub checkpoints: Vec<Checkpoint>,
    /// The requests the engine served, in order.
    pub requests: Vec<TruthRequest>,
    /// End states by rank, of captures of several ranks. They are what a set of the events gives,
    /// not an engine's table.
    pub ranks: Vec<(u32, Checkpoint)>,
}

/// A block's place: hash, tier, group.
pub type Place = (BlockHash, Tier, u32);

/// What an engine held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The moment: every message up to this sequence has been published, none after it.
    pub after_seq: u64,
    /// Changes the engine had made by then and published only later: the table is ahead of the
    /// stream when this is not 0.
    pub unpublished: u64,
    /// The blocks, with the number of copies where the file says it.
    pub blocks: BTreeMap<Place, Option<u32>>,
}

/// A request the engine served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRequest {
    /// Its name.
    pub id: String,
    /// Its prompt.
    pub prompt: Vec<u32>,
    /// Its LoRA name; empty = base model.
    pub lora: String,
    /// Its cache salt; empty = none.
    pub salt: String,
    /// What had been published when it began. `None` where requests overlapped, so that no moment
    /// is right.
    pub began: Option<Began>,
    /// Prompt tokens the engine took from its cache.
    pub cached_tokens: Option<u64>,
    /// Whether it made the engine announce cache hits as stores (P30).
    pub reports_hits: bool,
}

/// When a request began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// Before the first message.
    First,
    /// After the message with this sequence.
    After(u64),
}

/// Why a truth file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TruthError {
    /// It cannot be opened.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no truth file, or a damaged one.
    #[error("{}:{line}: not a truth file: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// How a mirror differs from a [`Checkpoint`]; all lists ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The engine has them, the mirror does not.
    pub missing: Vec<Place>,
    /// The mirror has them, the engine does not.
    pub extra: Vec<Place>,
    /// Both have them, in different numbers of copies.
    pub copies: Vec<Place>,
}

impl Difference {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.copies.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, extra, copies } = self;
        let (m, e, c) = (missing.len(), extra.len(), copies.len());
        write!(f, "{m} missing, {e} extra, {c} with another number of copies")
    }
}

impl Truth {
    /// Reads a truth file, plain or gzip.
    ///
    /// # Errors
    /// [`TruthError`] when it cannot be opened or is no truth file.
    pub fn read(path: &Path) -> Result<Self, TruthError> {
        let input = open_plain_or_gzip(path)
            .map_err(|source| TruthError::Open { path: path.to_owned(), source })?;
        Self::from_reader(input, path)
    }

    /// Reads a truth that is at hand; `path` names it in errors.
    ///
    /// # Errors
    /// [`TruthError::Content`] when it is no truth file.
    pub fn from_reader(input: impl io::Read, path: &Path) -> Result<Self, TruthError> {
        let file: File = serde_json::from_reader(input).map_err(|source| TruthError::Content {
            path: path.to_owned(),
            line: source.line().max(1),
            source,
        })?;
        Ok(file.into())
    }

    /// How the source's repeated stores must be read: as a set when a request made the engine
    /// announce cache hits as stores, else counted (P30).
    pub fn duplicates(&self) -> Duplicates {
        if self.requests.iter().any(|request| request.reports_hits) {
            Duplicates::Set
        } else {
            Duplicates::Counted
        }
    }
}

impl Checkpoint {
    /// Whether everything that led to this state had been published, so that a mirror can know it.
    pub const fn is_published(&self) -> bool {
        self.unpublished == 0
    }

    /// Compares a mirror's blocks, all tiers and groups of them, with this state. Copies are
    /// compared only where the mirror counts them.
    pub fn difference(&self, blocks: &[ResidentBlock], duplicates: Duplicates) -> Difference {
        let mut held: BTreeMap<Place, u32> = BTreeMap::new();
        for block in blocks {
            *held.entry((block.hash, block.tier, block.group)).or_default() += block.copies;
        }
        let mut difference = Difference::default();
        for (&place, &copies) in &self.blocks {
            match (held.remove(&place), copies) {
                (None, _) => difference.missing.push(place),
                (Some(held), Some(copies))
                    if held != copies && duplicates == Duplicates::Counted =>
                {
                    difference.copies.push(place);
                }
                (Some(_), _) => {}
            }
        }
        difference.extra.extend(held.into_keys());
        difference
    }
}

/// The file's own shape, as far as it is used.
#[derive(Deserialize)]
struct File {
    #[serde(alias = "page_size")]
    block_size: Option<NonZeroU32>,
    #[serde(default)]
    checkpoints: Vec<FileCheckpoint>,
    #[serde(default)]
    requests: Vec<FileRequest>,
    #[serde(default)]
    ranks: Vec<FileRank>,
}

#[derive(Deserialize)]
struct FileCheckpoint {
    after_seq: u64,
    #[serde(default)]
    engine_events_not_yet_published: u64,
    /// Hash, group, copies.
    #[serde(default)]
    engine_cached: Vec<(FileHash, u32, u32)>,
    #[serde(default)]
    cpu_tier_cached: Vec<(FileHash, u32)>,
    /// A hash once for each page that has it.
    #[serde(default)]
    tree_hashes: Vec<FileHash>,
}

#[derive(Deserialize)]
struct FileRequest {
    id: String,
    #[serde(alias = "token_ids")]
    prompt_token_ids: Vec<u32>,
    lora: Option<String>,
    salt: Option<String>,
    /// Null is a moment, absent is none.
    #[serde(default, deserialize_with = "began")]
    before_seq: Option<Began>,
    #[serde(alias = "matched_tokens")]
    num_cached_tokens: Option<u64>,
    #[serde(default)]
    full: bool,
}

#[derive(Deserialize)]
struct FileRank {
    last_seq: u64,
    rank_on_wire: Vec<u32>,
    final_set_view: Vec<(FileHash, u32)>,
}

#[derive(Clone, Copy)]
struct FileHash(BlockHash);

fn began<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Began>, D::Error> {
    let seq = Option::<u64>::deserialize(deserializer)?;
    Ok(Some(seq.map_or(Began::First, Began::After)))
}

impl<'de> Deserialize<'de> for FileHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HashVisitor)
    }
}

struct HashVisitor;

impl Visitor<'_> for HashVisitor {
    type Value = FileHash;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block hash: an integer of 64 bits, or hex text of at least 8 bytes")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<FileHash, E> {
        Ok(FileHash(BlockHash(number)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<FileHash, E> {
        Ok(FileHash(BlockHash(number.cast_unsigned())))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<FileHash, E> {
        let bad = || E::invalid_value(de::Unexpected::Str(text), &self);
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let low = text.len().checked_sub(16).and_then(|start| text.get(start..)).ok_or_else(bad)?;
        u64::from_str_radix(low, 16).map(|low| FileHash(BlockHash(low))).map_err(|_| bad())
    }
}

impl From<File> for Truth {
    fn from(file: File) -> Self {
        let ranks = file.ranks.into_iter().map(|rank| {
            let blocks = rank.final_set_view.into_iter();
            let checkpoint = Checkpoint {
                after_seq: rank.last_seq,
                unpublished: 0,
                blocks: blocks.map(|(hash, group)| ((hash.0, Tier::Device, group), None)).collect(),
            };
            (rank.rank_on_wire.first().copied().unwrap_or(0), checkpoint)
        });
        Self {
            block_size: file.block_size,
            ranks: ranks.collect(),
            checkpoints: file.checkpoints.into_iter().map(Checkpoint::from).collect(),
            requests: file.requests.into_iter().map(TruthRequest::from).collect(),
        }
    }
}

impl From<FileCheckpoint> for Checkpoint {
    fn from(file: FileCheckpoint) -> Self {
        let mut blocks: BTreeMap<Place, Option<u32>> = BTreeMap::new();
        for (hash, group, copies) in file.engine_cached {
            blocks.insert((hash.0, Tier::Device, group), Some(copies));
        }
        for (hash, group) in file.cpu_tier_cached {
            blocks.insert((hash.0, Tier::Host, group), None);
        }
        for hash in file.tree_hashes {
            let pages = blocks.entry((hash.0, Tier::Device, 0)).or_insert(Some(0));
            *pages = pages.map(|pages| pages + 1);
        }
        Self {
            after_seq: file.after_seq,
            unpublished: file.engine_events_not_yet_published,
            blocks,
        }
    }
}

impl From<FileRequest> for TruthRequest {
    fn from(file: FileRequest) -> Self {
        Self {
            id: file.id,
            prompt: file.prompt_token_ids,
            lora: file.lora.unwrap_or_default(),
            salt: file.salt.unwrap_or_default(),
            began: file.before_seq,
            cached_tokens: file.num_cached_tokens,
            reports_hits: file.full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvmirror_core::event::ResidencyDomain;

    fn truth(text: &str) -> Result<Truth, String> {
        serde_json::from_str::<File>(text).map(Truth::from).map_err(|error| error.to_string())
    }

    #[test]
    fn hashes_keep_all_their_bits() {
        let text = r#"{"checkpoints":[{"after_seq":3,"tree_hashes":[-1,18446744073709551614,-1],
            "engine_cached":[["00000000000000000000000000000000ffffffffffffff00",1,2]],
            "cpu_tier_cached":[[9007199254740993,0]]}]}"#;
        let blocks = &truth(text).unwrap().checkpoints[0].blocks;
        let expected = BTreeMap::from([
            ((BlockHash(u64::MAX), Tier::Device, 0), Some(2)),
            ((BlockHash(u64::MAX - 1), Tier::Device, 0), Some(1)),
            ((BlockHash(0xffff_ffff_ffff_ff00), Tier::Device, 1), Some(2)),
            ((BlockHash(9_007_199_254_740_993), Tier::Host, 0), None),
        ]);
        assert_eq!(*blocks, expected);
        for bad in ["1.5", "\"xyz\"", "\"ff\"", "null", "36893488147419103232"] {
            let text = format!(r#"{{"checkpoints":[{{"after_seq":3,"tree_hashes":[{bad}]}}]}}"#);
            assert!(truth(&text).unwrap_err().contains("block hash"), "{bad}");
        }
    }

    #[test]
    fn a_null_moment_is_not_an_absent_one() {
        let text = r#"{"page_size":4,"requests":[
            {"id":"a","prompt_token_ids":[1],"before_seq":null,"num_cached_tokens":0},
            {"id":"b","prompt_token_ids":[1],"before_seq":7,"lora":"l","salt":"s","full":true},
            {"id":"c","token_ids":[1],"matched_tokens":3}]}"#;
        let truth = truth(text).unwrap();
        let began: Vec<Option<Began>> = truth.requests.iter().map(|r| r.began).collect();
        assert_eq!(began, [Some(Began::First), Some(Began::After(7)), None]);
        assert_eq!(truth.requests[2].cached_tokens, Some(3));
        assert_eq!(truth.block_size, NonZeroU32::new(4));
        assert_eq!(truth.duplicates(), Duplicates::Set);
    }

    #[test]
    fn every_kind_of_difference_is_told() {
        let place = |hash| (BlockHash(hash), Tier::Device, 0);
        let blocks = [(1, Some(1)), (2, Some(1)), (3, Some(2))];
        let blocks = blocks.map(|(hash, copies)| (place(hash), copies)).into();
        let checkpoint = Checkpoint { after_seq: 0, unpublished: 0, blocks };
        let held = [2, 3, 4].map(|hash| ResidentBlock {
            hash: BlockHash(hash),
            tier: Tier::Device,
            group: 0,
            domain: ResidencyDomain::Worker,
            copies: 1,
        });
        let (missing, extra) = (vec![place(1)], vec![place(4)]);
        let counted = checkpoint.difference(&held, Duplicates::Counted);
        let copies = vec![place(3)];
        assert_eq!(counted, Difference { missing: missing.clone(), extra: extra.clone(), copies });
        let set = checkpoint.difference(&held, Duplicates::Set);
        assert_eq!(set, Difference { missing, extra, copies: Vec::new() });
    }
}
