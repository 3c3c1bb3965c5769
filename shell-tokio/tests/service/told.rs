//! What is wrong with a source is told where a person looks.

use crate::{capture, plan, row_when, service};
use kvmirror_core::id::EventId;
use kvmirror_tokio::player::{Player, Speed};
use kvmirror_tokio::serve::Service;
use kvmirror_tokio::transport::zeromq::ZeroMq;
use serde_json::{Value, json};

async fn last_error(service: &Service) -> Value {
    let url = format!("http://{}/workers", service.address);
    let workers: Value = reqwest::get(url).await.expect("an answer").json().await.expect("JSON");
    workers[0]["listeners"]["0"]["last_error"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_size_that_is_not_the_engines() {
    let mut plan = plan(capture("vllm-0.32.0/evict.jsonl"));
    plan.speed = Speed::Unpaced;
    let player = Player::start(ZeroMq, plan).await.expect("free ports");
    let service = service().await;
    let played = &player.ranks()[0];
    let body = json!({
        "instance_id": "a", "endpoint": played.publish.to_string(), "model": "m", "block_size": 16,
        "replay_endpoint": played.replay.as_ref().map(ToString::to_string),
    });
    crate::post(&service, "/register", body).await;
    player.release();
    row_when(&service, "the end", |row| row.cursor == Some(EventId(279))).await;
    let error = last_error(&service).await;
    assert!(error.as_str().is_some_and(|text| text.contains("block size")), "{error}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_address_that_nobody_listens_at() {
    let player =
        Player::start(ZeroMq, plan(capture("vllm-0.32.0/evict.jsonl"))).await.expect("free");
    let service = service().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = closed.local_addr().expect("bound");
    drop(closed);
    let body = json!({
        "instance_id": "a", "endpoint": player.ranks()[0].publish.to_string(), "model": "m",
        "block_size": 32, "replay_endpoint": format!("tcp://{nobody}"),
    });
    crate::post(&service, "/register", body).await;
    let started = std::time::Instant::now();
    loop {
        let error = last_error(&service).await;
        if error.as_str().is_some_and(|text| text.contains("replay socket")) {
            break;
        }
        assert!(started.elapsed() < crate::PATIENCE, "never told: {error}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    service.stop().await;
}
