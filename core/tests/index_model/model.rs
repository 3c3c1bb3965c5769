//! The naive model of one rank.

use crate::events::Ev;
use kvmirror_core::event::{ResidencyDomain, SpecKind, Tier};
use kvmirror_core::id::BlockHash;
use kvmirror_core::index::{Applied, ResetScope, ResidentBlock};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Where = (Tier, u32, ResidencyDomain);
pub(crate) type Path = Vec<u64>;

pub(crate) const WORKER: ResidencyDomain = ResidencyDomain::Worker;
pub(crate) const OWNER: ResidencyDomain = ResidencyDomain::CacheOwner;

#[derive(Clone, Debug, Default)]
pub(crate) struct Fact {
    pub(crate) copies: BTreeMap<Where, u32>,
    pub(crate) claim: Option<(Option<u64>, u64)>,
    pub(crate) ambiguous: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ModelRank {
    pub(crate) domain: usize,
    pub(crate) counted: bool,
    pub(crate) facts: BTreeMap<u64, Fact>,
    pub(crate) kinds: BTreeMap<u32, SpecKind>,
    pub(crate) used: BTreeSet<Where>,
}

impl ModelRank {
    pub(crate) fn empty_like(&self) -> Self {
        Self { domain: self.domain, counted: self.counted, ..Self::default() }
    }

    pub(crate) fn path(&self, hash: u64) -> Option<Path> {
        let mut locals = Vec::new();
        let (mut at, mut steps) = (hash, 0);
        loop {
            let (parent, local) = self.facts.get(&at)?.claim?;
            locals.push(local);
            steps += 1;
            match parent {
                None => break,
                Some(_) if steps > self.facts.len() => return None,
                Some(parent) => at = parent,
            }
        }
        locals.reverse();
        Some(locals)
    }

    pub(crate) fn store(
        &mut self,
        hash: u64,
        at: Where,
        claim: Option<(Option<u64>, u64)>,
        out: &mut Applied,
    ) {
        let old = self.path(hash);
        let counted = self.counted;
        let fact = self.facts.entry(hash).or_default();
        match fact.copies.get_mut(&at) {
            None => {
                fact.copies.insert(at, 1);
                out.stored += 1;
            }
            Some(copies) => {
                *copies += u32::from(counted);
                out.duplicates += 1;
            }
        }
        let Some(claim) = claim else { return };
        if fact.ambiguous {
            return;
        }
        let held = fact.claim;
        if let Some(parent) = claim.0
            && self.facts.get(&parent).is_some_and(|parent| parent.ambiguous)
        {
            return;
        }
        let new = match claim.0 {
            None => Some(vec![claim.1]),
            Some(parent) => self.path(parent).map(|mut path| {
                path.push(claim.1);
                path
            }),
        };
        let fact = self.facts.get_mut(&hash).unwrap();
        match (old, new) {
            (Some(old), Some(new)) => fact.ambiguous = old != new,
            (Some(_), None) => {}
            (None, Some(_)) => fact.claim = Some(claim),
            (None, None) => match held {
                None => fact.claim = Some(claim),
                Some(held) if held == claim => {}
                Some(_) => {
                    fact.claim = None;
                    fact.ambiguous = true;
                }
            },
        }
    }

    pub(crate) fn prune(&mut self) {
        loop {
            let needed: BTreeSet<u64> = self
                .facts
                .iter()
                .filter(|(hash, _)| self.path(**hash).is_some())
                .filter_map(|(_, fact)| fact.claim?.0)
                .collect();
            let placed: BTreeSet<u64> =
                self.facts.keys().copied().filter(|hash| self.path(*hash).is_some()).collect();
            let before = self.facts.len();
            self.facts.retain(|hash, fact| {
                if fact.copies.is_empty() {
                    fact.ambiguous = false;
                }
                !fact.copies.is_empty() || (placed.contains(hash) && needed.contains(hash))
            });
            if self.facts.len() == before {
                return;
            }
        }
    }

    pub(crate) fn apply(&mut self, event: &Ev, number: u64, out: &mut Applied) {
        match event {
            Ev::Store { chain, spot, spec, parent, positioned } => {
                let group = spot.group.unwrap_or(0);
                if let Some(kind) = spec {
                    self.kinds.insert(group, *kind);
                }
                if let Some(parent) = parent {
                    let fact = self.facts.get(parent);
                    if fact.is_none_or(|fact| fact.copies.is_empty()) {
                        out.orphans += 1;
                        out.first_orphan = out.first_orphan.or(Some(number));
                        out.remembered_parents += u64::from(fact.is_some());
                    }
                }
                if chain.is_empty() {
                    return;
                }
                let at = (spot.tier, group, spot.domain);
                self.used.insert(at);
                let mut above = *parent;
                for &(hash, local) in chain {
                    self.store(hash, at, positioned.then_some((above, local)), out);
                    above = Some(hash);
                }
            }
            Ev::Remove { hashes, spot } => {
                let at = (spot.tier, spot.group.unwrap_or(0), spot.domain);
                for hash in hashes {
                    let counted = self.counted;
                    let copies = self.facts.get_mut(hash).and_then(|fact| fact.copies.get_mut(&at));
                    match copies {
                        None => out.unknown_removed += 1,
                        Some(copies) => {
                            out.removed += 1;
                            *copies -= 1;
                            if *copies == 0 || !counted {
                                self.facts.get_mut(hash).unwrap().copies.remove(&at);
                            }
                        }
                    }
                    self.prune();
                }
            }
            Ev::Clear { domain } => out.cleared += self.clear(*domain),
        }
    }

    pub(crate) fn clear(&mut self, domain: ResidencyDomain) -> u64 {
        let mut gone = 0;
        for fact in self.facts.values_mut() {
            let before = fact.copies.len();
            fact.copies.retain(|at, _| at.2 != domain);
            gone += (before - fact.copies.len()) as u64;
        }
        self.prune();
        gone
    }

    pub(crate) fn reset(&mut self, scope: ResetScope) {
        let domains: &[ResidencyDomain] = match scope {
            ResetScope::All => &[WORKER, OWNER],
            ResetScope::Worker => &[WORKER],
            ResetScope::CacheOwner => &[OWNER],
        };
        for domain in domains {
            self.clear(*domain);
            self.used.retain(|at| at.2 != *domain);
        }
        if scope != ResetScope::CacheOwner {
            self.kinds.clear();
        }
    }

    pub(crate) fn decides(&self, group: u32) -> bool {
        self.kinds.get(&group).map_or(group == 0, |kind| *kind == SpecKind::MainAttention)
    }

    pub(crate) fn counts_in(&self, tier: Tier, held: &BTreeSet<(Tier, u32)>) -> bool {
        let mut needed =
            self.used.iter().filter(|at| at.0 == tier && self.decides(at.1)).peekable();
        needed.peek().is_some() && needed.all(|at| held.contains(&(at.0, at.1)))
    }

    pub(crate) fn walk(&self, blocks: impl Iterator<Item = BTreeSet<(Tier, u32)>>) -> [u32; 4] {
        let (mut matched, mut tier) = ([0; 4], 0);
        for held in blocks {
            while tier < 4 && !self.counts_in(Tier::ALL[tier], &held) {
                tier += 1;
            }
            if tier == 4 {
                break;
            }
            matched[tier] += 1;
        }
        matched
    }

    pub(crate) fn find(&self, locals: &[u64]) -> [u32; 4] {
        self.walk((1..=locals.len()).map(|depth| {
            let here = self.facts.iter().filter(|(hash, fact)| {
                !fact.ambiguous && self.path(**hash).as_deref() == Some(&locals[..depth])
            });
            here.flat_map(|(_, fact)| fact.copies.keys().map(|at| (at.0, at.1))).collect()
        }))
    }

    pub(crate) fn find_engine(&self, hashes: &[u64]) -> [u32; 4] {
        self.walk(hashes.iter().map(|hash| {
            let fact = self.facts.get(hash).into_iter();
            fact.flat_map(|fact| fact.copies.keys().map(|at| (at.0, at.1))).collect()
        }))
    }

    pub(crate) fn blocks(&self) -> Vec<ResidentBlock> {
        let all = self.facts.iter().flat_map(|(hash, fact)| {
            fact.copies.iter().map(|(at, copies)| ResidentBlock {
                hash: BlockHash(*hash),
                tier: at.0,
                group: at.1,
                domain: at.2,
                copies: *copies,
            })
        });
        all.collect()
    }
}
