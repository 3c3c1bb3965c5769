//! The whole service in one process: a player on loopback sockets, the follower and its HTTP API.

mod ending;
mod healing;
mod hostile;
mod told;

use kvmirror_core::id::RankKey;
use kvmirror_core::id::{EventId, PublisherId};
use kvmirror_core::index::{DomainId, Duplicates, ResidentBlock};
use kvmirror_core::mirror::{Mirror, MirrorOptions, SourceFacts};
use kvmirror_core::router::Trust;
use kvmirror_core::time::Timestamp;
use kvmirror_tokio::capture::{Capture, CaptureMessage};
use kvmirror_tokio::config::ServeConfig;
use kvmirror_tokio::follower::RankRow;
use kvmirror_tokio::player::PlayPlan;
use kvmirror_tokio::serve::Service;
use kvmirror_tokio::transport::Endpoint;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How long a condition may take before the test fails. Far above what it takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn capture(name: &str) -> Capture {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/captures");
    Capture::read(&root.join(name)).expect("a readable capture")
}

/// What the messages leave behind, through the pipeline without sockets.
pub(crate) fn left_by(messages: &[CaptureMessage], block_size: u32) -> Vec<ResidentBlock> {
    let mut mirror = Mirror::new(MirrorOptions::default()).expect("defaults");
    let domain: DomainId = mirror.open_domain();
    let (rank, publisher) = (RankKey::new(1, messages[0].rank.unwrap_or(0)), PublisherId(1));
    let mut facts = SourceFacts::live_only(rank, publisher, domain);
    facts.identity.block_size = block_size.try_into().ok();
    facts.duplicates = Duplicates::Counted;
    mirror.add_source(facts, Timestamp(0)).expect("new");
    mirror.transport_up(publisher, Timestamp(0));
    for message in messages {
        mirror.message(publisher, EventId(message.seq), &message.payload, Timestamp(0));
    }
    assert_eq!(mirror.rank(rank).expect("followed").trust, Trust::Exact);
    mirror.index().blocks(rank)
}

/// A plan on free loopback ports that is held until the follower is connected.
pub(crate) fn plan(capture: Capture) -> PlayPlan {
    let mut plan = PlayPlan::new(capture.ranks, Endpoint::loopback(0), Some(Endpoint::loopback(0)));
    plan.hold = true;
    plan.replay_poll = Duration::from_millis(20);
    plan
}

pub(crate) async fn service() -> Service {
    let mut config = ServeConfig::default();
    config.listen.set_port(0);
    config.follow.probe_interval = Duration::from_millis(200);
    Service::start(&config).await.expect("a free port")
}

pub(crate) async fn post(service: &Service, path: &str, body: Value) -> Value {
    let url = format!("http://{}{path}", service.address);
    let answer = reqwest::Client::new().post(url).json(&body).send().await.expect("an answer");
    let status = answer.status();
    let body: Value = answer.json().await.expect("JSON");
    assert!(status.is_success(), "{path}: {status} {body}");
    body
}

pub(crate) async fn register(
    service: &Service,
    name: &str,
    rank: u32,
    publish: &str,
    replay: &str,
) {
    let body = json!({
        "instance_id": name, "endpoint": publish, "replay_endpoint": replay, "model": "m",
        "block_size": 32, "dp_rank": rank,
    });
    post(service, "/register", body).await;
}

/// Waits until `done` holds for the only rank.
pub(crate) async fn row_when(
    service: &Service,
    what: &str,
    done: impl Fn(&RankRow) -> bool,
) -> RankRow {
    let started = std::time::Instant::now();
    loop {
        let rows = service.follower.ranks().await.expect("running");
        let [row] = rows.as_slice() else { panic!("one rank expected: {rows:?}") };
        if done(row) {
            return row.clone();
        }
        assert!(started.elapsed() < PATIENCE, "{what} did not come: {row:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
