//! Bodies of answers (`http-api` §2 to §6 and §9).

use super::fields::Spelling;
use crate::backend::{
    InstanceAnswer, ListenerInfo, ListenerStatus, QueryAnswer, RankAnswer, WorkerInfo,
};
use crate::registry::{InstanceName, Unregistered};
use kvmirror_core::event::Tier;
use kvmirror_core::router::{Trust, TrustReason};
use serde_json::{Map, Value, json};

pub(crate) fn registered(spelling: Spelling, name: &InstanceName) -> Value {
    let status = match spelling {
        Spelling::D => "ok",
        Spelling::M => "registered successfully",
    };
    json!({ "status": status, "instance_id": name.to_json() })
}

pub(crate) fn unregistered(spelling: Spelling, done: &Unregistered) -> Value {
    let status = match spelling {
        Spelling::D => "ok",
        Spelling::M => "unregistered successfully",
    };
    let removed: Vec<String> = done
        .removed
        .iter()
        .map(|facts| {
            let registration = &facts.registration;
            format!("{}|{}|{}", registration.instance, registration.tenant, registration.rank)
        })
        .collect();
    json!({ "status": status, "removed_instances": removed })
}

/// Renders the rows of a query. Ranks below `min_trust`, or at a level that never answers, show
/// their trust only, whatever the backend says of them.
pub(crate) fn answer(answer: &QueryAnswer, min_trust: Trust) -> Value {
    let mut instances = Map::new();
    let mut scores = Map::new();
    for instance in &answer.instances {
        let key = instance.name.as_str().to_owned();
        let (row, score) = row(instance, min_trust);
        // Clients read presence in scores as a hit.
        if !score.is_empty() {
            scores.insert(key.clone(), Value::Object(score));
        }
        instances.insert(key, row);
    }
    json!({ "instances": instances, "scores": scores, "frequencies": [] })
}

/// Ends of the walk of one rank, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ends {
    gpu: u64,
    cpu: u64,
    disk: u64,
}

impl Ends {
    fn of(matched: [u32; 4], block_size: u32) -> Self {
        let [device, host, disk, external] = matched.map(u64::from);
        let tokens = |blocks: u64| blocks.saturating_mul(block_size.into());
        Self {
            gpu: tokens(device),
            cpu: tokens(device + host),
            disk: tokens(device + host + disk + external),
        }
    }

    /// Each number on its own: they may come from different ranks.
    fn or_larger(self, other: Self) -> Self {
        Self {
            gpu: self.gpu.max(other.gpu),
            cpu: self.cpu.max(other.cpu),
            disk: self.disk.max(other.disk),
        }
    }
}

fn row(instance: &InstanceAnswer, min_trust: Trust) -> (Value, Map<String, Value>) {
    let mut best = Ends::default();
    let mut dp = Map::new();
    let mut rank_matches = Map::new();
    let mut ranks = Map::new();
    let mut scores = Map::new();
    for rank in &instance.ranks {
        let key = rank.rank.to_string();
        let answering = rank.matched.filter(|_| rank.trust.answers() && rank.trust >= min_trust);
        ranks.insert(key.clone(), rank_row(rank, answering));
        let Some(matched) = answering else { continue };
        let ends = Ends::of(matched, instance.block_size.get());
        best = best.or_larger(ends);
        if ends.gpu > 0 {
            scores.insert(key.clone(), ends.gpu.into());
        }
        dp.insert(key.clone(), ends.gpu.into());
        let numbers = json!({ "gpu": ends.gpu, "cpu": ends.cpu, "disk": ends.disk });
        rank_matches.insert(key, numbers);
    }
    let row = json!({
        "longest_matched": best.disk,
        "gpu": best.gpu,
        "cpu": best.cpu,
        "disk": best.disk,
        "dp": dp,
        "rank_matches": rank_matches,
        "block_size": instance.block_size,
        "ranks": ranks,
    });
    (row, scores)
}

fn rank_row(rank: &RankAnswer, answering: Option<[u32; 4]>) -> Value {
    let mut row = Map::new();
    trust(&mut row, rank.trust, rank.reason);
    if let Some(matched) = answering {
        row.insert("cursor".into(), rank.cursor.into());
        row.insert("age_ms".into(), rank.age_ms.into());
        let blocks: Map<String, Value> = Tier::ALL
            .into_iter()
            .map(|tier| (tier.name().to_owned(), matched[tier.index()].into()))
            .collect();
        row.insert("matched_blocks".into(), Value::Object(blocks));
    }
    Value::Object(row)
}

fn trust(row: &mut Map<String, Value>, trust: Trust, reason: Option<TrustReason>) {
    row.insert("trust".into(), trust.name().into());
    if let Some(reason) = reason.filter(|_| trust != Trust::Exact) {
        row.insert("reason".into(), reason.name().into());
    }
}

pub(crate) fn workers(workers: &[WorkerInfo]) -> Value {
    workers.iter().map(worker).collect()
}

fn worker(worker: &WorkerInfo) -> Value {
    let status = worker.listeners.iter().map(|listener| listener.state.status).min();
    let endpoints: Map<String, Value> = worker
        .listeners
        .iter()
        .map(|listener| (listener.rank.to_string(), listener.endpoint.as_str().into()))
        .collect();
    let listeners: Map<String, Value> =
        worker.listeners.iter().map(|entry| (entry.rank.to_string(), listener(entry))).collect();
    json!({
        "instance_id": worker.name.to_json(),
        "source": "zmq",
        "status": status.unwrap_or(ListenerStatus::Paused).name(),
        "model_name": worker.model,
        "routing_group": worker.tenant,
        "block_size": worker.block_size,
        "endpoints": endpoints,
        "listeners": listeners,
        "tenant_id": worker.tenant,
        "worker_id": worker.worker.0,
        "type": worker.kind.name(),
        "additional_salt": worker.salt,
    })
}

fn listener(listener: &ListenerInfo) -> Value {
    let state = &listener.state;
    let mut row = Map::new();
    row.insert("endpoint".into(), listener.endpoint.as_str().into());
    row.insert("status".into(), state.status.name().into());
    if let Some(error) = &state.last_error {
        row.insert("last_error".into(), error.as_str().into());
    }
    row.insert("replay_endpoint".into(), listener.replay_endpoint.as_deref().into());
    trust(&mut row, state.trust, state.reason);
    row.insert("cursor".into(), state.cursor.into());
    row.insert("age_ms".into(), state.age_ms.into());
    Value::Object(row)
}

#[cfg(test)]
mod tests;
