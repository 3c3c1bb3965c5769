//! The embedded target: which rank holds which block, and who holds the longest prefix.
//!
//! # What it promises
//!
//! * **Exact.** A block is resident from its store until its last copy is removed, cleared or reset;
//!   nothing else takes it away, and nothing is evicted here. A match is never longer than what the
//!   rank holds.
//! * **Position and residency are two things.** Residency goes by the engine's hash alone. A
//!   position is where the block is in the tree of token content; a block gets one only when events
//!   say so without contradiction. Blocks without one are listed, counted and removable, and are
//!   never matched by content.
//! * **Ranks are independent.** What one rank's events do to its answers does not depend on any
//!   other rank; a clear, reset or removal of one changes no other (S7). Positions are shared
//!   between ranks, knowledge is not.
//! * **Domains are walls.** No answer crosses an index domain (B19).
//! * **Bounded.** [`IndexLimits`] and the two fixed limits of [`Applied::over_groups`] bound
//!   everything that a peer controls; work is proportional to what a call touches; when everything
//!   is removed, nothing is left.
//! * **Deterministic.** The same calls give the same answers; no hash table's order shows.
//!
//! # How it is built
//!
//! ```text
//! rank ── entries: engine hash ─▶ copies per (lane, residency domain), position ─┐
//!   │       lanes: (tier, group) pairs, and which of them decide a match         │
//!   └─ held aside: blocks that wait for a parent's position                      ▼
//! domain ── nodes: sequence hash ─▶ node {parent, local hash, salt, holders: (rank, lanes)…}
//! ```
//!
//! A find goes down the nodes and narrows the set of ranks by the holder lists. Each file states the
//! invariants of what it owns: `rank` entries, `node` positions, `lanes` attention groups, `held`
//! orphans; `apply` reads events, `place` decides positions.
//!
//! # Reading while writing
//!
//! Queries take `&self` and the caller's buffers; changes take `&mut self`. A [`Index::replace`]
//! fills a second, hidden rank first and then exchanges the two, so whoever reads between two calls
//! sees the old state or the new one (B11).

mod applied;
mod apply;
mod domain;
mod entries;
mod error;
mod find;
mod held;
mod lanes;
mod limits;
mod list;
mod node;
mod place;
mod rank;
mod salt;
#[cfg(test)]
mod tests;

pub use applied::Applied;
pub use domain::DomainId;
pub use error::IndexError;
pub use find::{FindScratch, Match};
pub use limits::{Duplicates, IndexLimits, ResetScope};
pub use list::{IndexStats, ResidentBlock};

use crate::event::EventView;
use crate::id::RankKey;
use crate::wire::SourceIdentity;
use alloc::boxed::Box;
use alloc::vec::Vec;
use apply::{Scratch, Writer};
use domain::Domains;
use hashbrown::HashMap;
use node::Nodes;
use rank::Rank;
use rustc_hash::FxBuildHasher;

/// What a find needs of a rank, side by side for all ranks.
#[derive(Clone, Copy, Debug)]
struct RankFacts {
    key: RankKey,
    required: [u64; 4],
    show: Show,
}

/// Whether a rank number appears in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// The number of a rank.
    Yes,
    /// A rank that is being filled, or a number nobody has.
    No,
}

/// The index. See the [module](self).
#[derive(Clone, Debug)]
pub struct Index {
    limits: IndexLimits,
    domains: Domains,
    nodes: Nodes,
    /// By rank number; numbers are used again.
    ranks: Vec<Option<Box<Rank>>>,
    /// By rank number, as `ranks`.
    facts: Vec<RankFacts>,
    free: Vec<u32>,
    numbers: HashMap<RankKey, u32, FxBuildHasher>,
    /// Entries of all ranks, remembered ones included.
    entries: u64,
    scratch: Scratch,
}

impl Index {
    /// An empty index.
    pub fn new(limits: IndexLimits) -> Self {
        Self {
            limits,
            domains: Domains::default(),
            nodes: Nodes::default(),
            ranks: Vec::new(),
            facts: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::default(),
            entries: 0,
            scratch: Scratch::default(),
        }
    }

    /// Opens an index domain (B19).
    pub fn open_domain(&mut self) -> DomainId {
        self.domains.open()
    }

    /// Closes a domain: it takes no more ranks, still answers for those it has, and is gone with the
    /// last of them.
    ///
    /// # Errors
    ///
    /// [`IndexError::UnknownDomain`] when it is not open.
    pub fn close_domain(&mut self, domain: DomainId) -> Result<(), IndexError> {
        if self.domains.close(domain) { Ok(()) } else { Err(IndexError::UnknownDomain { domain }) }
    }

    /// Adds an empty rank to a domain. `identity` is what its events are hashed with when a store
    /// inherits a salt (`wire.md` §6.1).
    ///
    /// # Errors
    ///
    /// [`IndexError::RankExists`], [`IndexError::UnknownDomain`]; nothing changes then.
    pub fn add_rank(
        &mut self,
        rank: RankKey,
        domain: DomainId,
        identity: SourceIdentity,
        duplicates: Duplicates,
    ) -> Result<(), IndexError> {
        if self.numbers.contains_key(&rank) {
            return Err(IndexError::RankExists { rank });
        }
        if !self.domains.is_open(domain) {
            return Err(IndexError::UnknownDomain { domain });
        }
        let number = self.install(Rank::new(rank, domain, identity, duplicates));
        self.facts[number as usize].show = Show::Yes;
        self.numbers.insert(rank, number);
        Ok(())
    }

    /// Removes a rank and everything it holds.
    ///
    /// # Errors
    ///
    /// [`IndexError::UnknownRank`].
    pub fn remove_rank(&mut self, rank: RankKey) -> Result<(), IndexError> {
        let number = self.numbers.remove(&rank).ok_or(IndexError::UnknownRank { rank })?;
        self.uninstall(number);
        Ok(())
    }

    /// Empties a rank as far as `scope` says (S10); counts of copies start afresh. The groups that
    /// decide its matches are those it uses from here on, and for the worker's blocks also what it
    /// learned of its groups is forgotten.
    ///
    /// # Errors
    ///
    /// [`IndexError::UnknownRank`].
    pub fn reset(&mut self, rank: RankKey, scope: ResetScope) -> Result<(), IndexError> {
        let number = self.number(rank)?;
        let cap = self.limits.entry_cap();
        self.write(number, cap, &mut Applied::default(), |writer| writer.reset(scope));
        Ok(())
    }

    /// Applies one batch, event by event, in order. Events that cannot be applied, or only in part,
    /// are counted in what is returned; none of them stops those after it.
    ///
    /// # Errors
    ///
    /// [`IndexError::UnknownRank`]; nothing is applied then.
    pub fn apply(&mut self, rank: RankKey, view: EventView<'_>) -> Result<Applied, IndexError> {
        let number = self.number(rank)?;
        let mut applied = Applied::default();
        let cap = self.limits.entry_cap();
        self.write(number, cap, &mut applied, |writer| writer.apply(view, 0));
        Ok(applied)
    }

    /// Exchanges a rank's whole state, of both residency domains and with what it has learned of its
    /// groups, for what `events` say, at once (B11).
    ///
    /// # Errors
    ///
    /// [`IndexError::UnknownRank`]; `events` is not read then.
    #[expect(single_use_lifetimes, reason = "it cannot be left out inside `impl Trait` yet")]
    pub fn replace<'a>(
        &mut self,
        rank: RankKey,
        events: impl IntoIterator<Item = EventView<'a>>,
    ) -> Result<Applied, IndexError> {
        let old = self.number(rank)?;
        let current = self.ranks[old as usize].as_ref().expect("a numbered rank is there");
        let cap = self.limits.entry_cap() + current.entries.len() as u64;
        let cap = cap.min(IndexLimits::HARD_CAP);
        let shadow = Rank::new(rank, current.domain, current.identity.clone(), current.duplicates);
        let number = self.install(shadow);
        let (mut applied, mut first) = (Applied::default(), 0);
        for view in events {
            self.write(number, cap, &mut applied, |writer| writer.apply(view, first));
            first += view.batch.records.len() as u64;
        }
        self.facts[number as usize].show = Show::Yes;
        self.numbers.insert(rank, number);
        self.uninstall(old);
        Ok(applied)
    }

    /// The domain of a rank.
    pub fn domain_of(&self, rank: RankKey) -> Option<DomainId> {
        self.rank(rank).map(|rank| rank.domain)
    }

    fn number(&self, rank: RankKey) -> Result<u32, IndexError> {
        self.numbers.get(&rank).copied().ok_or(IndexError::UnknownRank { rank })
    }

    fn rank(&self, rank: RankKey) -> Option<&Rank> {
        let number = *self.numbers.get(&rank)?;
        self.ranks[number as usize].as_deref()
    }

    /// The facts of a rank that may be shown.
    fn facts(&self, number: u64) -> Option<&RankFacts> {
        let facts = self.facts.get(usize::try_from(number).ok()?)?;
        match facts.show {
            Show::Yes => Some(facts),
            Show::No => None,
        }
    }

    /// Gives a rank a number, not shown yet.
    fn install(&mut self, rank: Rank) -> u32 {
        self.domains.add_rank(rank.domain);
        let facts = RankFacts { key: rank.key, required: [0; 4], show: Show::No };
        let rank = Some(Box::new(rank));
        if let Some(number) = self.free.pop() {
            self.ranks[number as usize] = rank;
            self.facts[number as usize] = facts;
            return number;
        }
        let number = u32::try_from(self.ranks.len()).expect("a host adds fewer than 2^32 ranks");
        self.ranks.push(rank);
        self.facts.push(facts);
        number
    }

    /// Empties the rank of a number and takes the number back.
    fn uninstall(&mut self, number: u32) {
        self.facts[number as usize].show = Show::No;
        self.write(number, 0, &mut Applied::default(), |writer| writer.reset(ResetScope::All));
        let rank = self.ranks[number as usize].take().expect("a numbered rank is there");
        self.domains.drop_rank(rank.domain);
        self.free.push(number);
    }

    /// Changes one rank.
    fn write(
        &mut self,
        number: u32,
        entry_cap: u64,
        applied: &mut Applied,
        change: impl FnOnce(&mut Writer<'_>),
    ) {
        let rank = self.ranks[number as usize].as_mut().expect("a numbered rank is there");
        let mut writer = Writer {
            number,
            domain: self.domains.of_rank(rank.domain),
            rank,
            nodes: &mut self.nodes,
            scratch: &mut self.scratch,
            entries: &mut self.entries,
            entry_cap,
            limits: self.limits,
            applied,
        };
        change(&mut writer);
        self.facts[number as usize].required = writer.rank.lanes.required();
    }
}
