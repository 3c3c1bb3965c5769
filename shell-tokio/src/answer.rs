//! From the registry and one rank's state to the rows of an answer. Pure: whoever follows the ranks
//! supplies only what it alone knows.

use crate::backend::{
    InstanceAnswer, ListenerInfo, ListenerState, Query, QueryAnswer, RankAnswer, WorkerInfo,
};
use crate::registry::{RankFacts, Registry, WorkerFilter};
use kvmirror_core::id::WorkerId;
use kvmirror_core::router::{Trust, TrustReason};

/// What a follower knows of one rank at the time of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankState {
    /// Trust at `cursor`.
    pub trust: Trust,
    /// Why it is not `exact`.
    pub reason: Option<TrustReason>,
    /// As in [`RankAnswer::cursor`].
    pub cursor: Option<u64>,
    /// As in [`RankAnswer::age_ms`].
    pub age_ms: Option<u64>,
    /// As in [`RankAnswer::matched`]; a rank that holds nothing of the prompt answers zeros.
    pub matched: Option<[u32; 4]>,
}

/// Assembles the answer to `query`: every registered rank of every selected instance, with
/// `state` asked once per rank, by worker and rank within ascending domains.
pub fn answer(
    registry: &Registry,
    query: &Query,
    mut state: impl FnMut(&RankFacts) -> RankState,
) -> QueryAnswer {
    let wanted = query.instance.as_ref().map(|name| registry.worker(name, &query.tenant));
    let mut instances: Vec<(WorkerId, InstanceAnswer)> = Vec::new();
    let domains =
        registry.matching(&query.model, &query.tenant, query.block_size, query.salt.as_deref());
    for facts in domains.flat_map(|domain| registry.in_domain(domain)) {
        if wanted.is_some_and(|wanted| wanted != Some(facts.worker)) {
            continue;
        }
        let row = row(facts, query.min_trust, state(facts));
        match instances.last_mut() {
            Some((worker, last)) if *worker == facts.worker => last.ranks.push(row),
            Some(_) | None => instances.push((
                facts.worker,
                InstanceAnswer {
                    name: facts.registration.instance.clone(),
                    block_size: facts.registration.block_size,
                    ranks: vec![row],
                },
            )),
        }
    }
    QueryAnswer {
        known: registry.is_known(&query.model, &query.tenant),
        instances: instances.into_iter().map(|(_, instance)| instance).collect(),
    }
}

fn row(facts: &RankFacts, min_trust: Trust, state: RankState) -> RankAnswer {
    let answers = state.trust.answers() && state.trust >= min_trust;
    RankAnswer {
        rank: facts.registration.rank,
        trust: state.trust,
        reason: state.reason,
        cursor: state.cursor,
        age_ms: state.age_ms,
        matched: state.matched.filter(|_| answers),
    }
}

/// Lists the workers that `filter` selects, with `state` asked once per rank.
pub fn workers(
    registry: &Registry,
    filter: &WorkerFilter,
    mut state: impl FnMut(&RankFacts) -> ListenerState,
) -> Vec<WorkerInfo> {
    registry
        .workers(filter)
        .filter_map(|worker| {
            let first = &registry.ranks_of(worker).next()?.registration;
            let listeners = registry.ranks_of(worker).map(|facts| ListenerInfo {
                rank: facts.registration.rank,
                endpoint: facts.registration.endpoint.to_string(),
                replay_endpoint: facts
                    .registration
                    .replay_endpoint
                    .as_ref()
                    .map(ToString::to_string),
                state: state(facts),
            });
            Some(WorkerInfo {
                name: first.instance.clone(),
                worker,
                kind: first.kind,
                model: first.model.clone(),
                tenant: first.tenant.clone(),
                salt: first.salt.clone(),
                block_size: first.block_size,
                listeners: listeners.collect(),
            })
        })
        .collect()
}
