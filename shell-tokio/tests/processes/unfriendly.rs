//! Engines that come late, stop for a while, or do not answer.

use crate::player::{Expected, Ports};
use crate::process::{LOOK, PATIENCE};
use crate::serve::Serve;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const EVICT: &str = "vllm-0.32.0/evict.jsonl";

fn evict() -> Expected {
    Expected::of(EVICT, "vllm-0.32.0/evict.truth.json", 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_appears_after_its_registration() {
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    serve.follow(ports, 0).await;
    let row = serve.row(0).await.expect("followed");
    assert_eq!((row.trust.as_str(), row.status.as_str()), ("missing", "pending"));
    let _player = ports.play(EVICT, "--speed 2 --drop 0.2 --seed 6");
    serve.ends_equal(0, &mut evict()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stands_still_for_two_seconds() {
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    let player = ports.play(EVICT, "--speed 2 --drop 0.2 --seed 8");
    serve.follow(ports, 0).await;
    serve.row_when(0, "the middle", |row| row.cursor > Some(80)).await;
    player.signal("STOP");
    // The standstill itself, not a wait for something.
    tokio::time::sleep(Duration::from_secs(2)).await;
    player.signal("CONT");
    serve.ends_equal(0, &mut evict()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_away_for_two_seconds() {
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    let player = ports.play(EVICT, "--speed 2");
    serve.follow(ports, 0).await;
    serve.row_when(0, "the middle", |row| row.cursor > Some(80)).await;
    player.kill();
    let away = Instant::now();
    serve.row_when(0, "the loss", |row| row.trust != "exact").await;
    while away.elapsed() < Duration::from_secs(2) {
        let row = serve.row(0).await.expect("followed");
        assert_ne!(row.trust, "exact", "{row:?}");
        tokio::time::sleep(LOOK).await;
    }
    let _player = ports.play(EVICT, "--speed 2 --drop 0.1 --seed 3");
    serve.ends_equal(0, &mut evict()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_socket_that_never_answers_hurts_only_its_rank() {
    let hole = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mute = format!("tcp://{}", hole.local_addr().expect("an address"));
    let accepting = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = hole.accept().await {
            kept.push(stream);
        }
    });
    let ports = Ports::free(2);
    let serve = Serve::start(&[]);
    serve.register(1, &ports.publish(1), &mute).await;
    serve.follow(ports, 0).await;
    let capture = "vllm-0.32.0/dp2.jsonl";
    let _player = ports.play(capture, "--speed 2 --drop 0.2 --seed 3");
    let mut expected = Expected::of(capture, "vllm-0.32.0/dp2.truth.json", 0);
    serve.ends_equal(0, &mut expected).await;
    let other = serve.row(1).await.expect("followed");
    assert_ne!(other.trust, "exact", "{other:?}");
    serve.is_equal(0, &mut expected).await;
    accepting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_again_and_again_leaves_nothing_behind() {
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    let _player = ports.play(EVICT, "--speed 0");
    for cycle in 0..20 {
        serve.follow(ports, 0).await;
        if cycle % 2 == 0 {
            let started = Instant::now();
            while serve.metric("kvmirror_blocks").await == 0 {
                assert!(started.elapsed() < PATIENCE, "no blocks");
                tokio::time::sleep(LOOK).await;
            }
        }
        let (status, body) = serve.post("/unregister", &json!({"instance_id": "engine"})).await;
        assert!(status.is_success(), "{body}");
        assert!(serve.row(0).await.is_none());
        assert_eq!(serve.metric("kvmirror_blocks").await, 0);
        assert_eq!(serve.metric("kvmirror_ranks").await, 0);
        let (status, body) = serve.post("/unregister", &json!({"instance_id": "engine"})).await;
        assert_eq!(status.as_u16(), 404, "{body}");
    }
    serve.follow(ports, 0).await;
    serve.ends_equal(0, &mut evict()).await;
}
