//! Matching a prompt against the index, once per domain it asks.

use crate::backend::{Prompt, Query};
use crate::registry::{DomainKey, Registry};
use kvmirror_core::hash::{identity_seed, local_hashes, sequence_hashes};
use kvmirror_core::id::{LocalHash, RankKey, SequenceHash};
use kvmirror_core::index::{DomainId, FindScratch, Index, Match};
use std::collections::BTreeMap;

/// Buffers that queries share.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    locals: Vec<LocalHash>,
    sequence: Vec<SequenceHash>,
    scratch: FindScratch,
    found: Vec<Match>,
}

impl Matcher {
    /// Blocks that each rank holds of the prompt, per tier. Ranks without a hit are left out.
    ///
    /// `domain_of` gives the index's number of a registry's domain.
    pub(super) fn matches(
        &mut self,
        registry: &Registry,
        index: &Index,
        query: &Query,
        domain_of: impl Fn(crate::registry::DomainId) -> Option<DomainId>,
    ) -> BTreeMap<RankKey, [u32; 4]> {
        let mut matches = BTreeMap::new();
        let selected: Vec<_> = registry
            .matching(&query.model, &query.tenant, query.block_size, query.salt.as_deref())
            .collect();
        for id in selected {
            let (Some(key), Some(domain)) = (registry.domain(id), domain_of(id)) else { continue };
            match &query.prompt {
                Prompt::Tokens { ids, lora, salt } => {
                    self.locals.clear();
                    hash_tokens(key, ids, identity_seed(lora, salt), &mut self.locals);
                    index.find(domain, &self.locals, &mut self.scratch, &mut self.found);
                }
                Prompt::Local(locals) => {
                    self.sequence.clear();
                    sequence_hashes(locals, &mut self.sequence);
                    let sequence = &self.sequence;
                    index.find_sequence(domain, sequence, &mut self.scratch, &mut self.found);
                }
                Prompt::Sequence(sequence) => {
                    index.find_sequence(domain, sequence, &mut self.scratch, &mut self.found);
                }
                Prompt::Engine(hashes) => {
                    self.found.clear();
                    let ranks = registry.in_domain(id).filter(|facts| {
                        query.instance.as_ref().is_some_and(|name| {
                            registry.worker(name, &query.tenant) == Some(facts.worker)
                        })
                    });
                    for facts in ranks {
                        let matched = index.find_engine(facts.key(), hashes);
                        matches.insert(facts.key(), matched);
                    }
                }
            }
            matches.extend(self.found.iter().map(|found| (found.rank, found.matched)));
        }
        matches
    }
}

fn hash_tokens(key: &DomainKey, ids: &[u32], seed: u64, out: &mut Vec<LocalHash>) {
    local_hashes(ids, key.block_size.get(), key.eagle, seed, out);
}
