//! `play` into `serve`: the mirror ends as the engine did.

use crate::player::{Expected, Ports};
use crate::serve::Serve;

fn evict() -> Expected {
    Expected::of("vllm-0.32.0/evict.jsonl", "vllm-0.32.0/evict.truth.json", 0)
}

async fn ends_equal(arguments: &str) -> Serve {
    let mut expected = evict();
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    let _player = ports.play("vllm-0.32.0/evict.jsonl", arguments);
    serve.follow(ports, 0).await;
    serve.ends_equal(0, &mut expected).await;
    serve
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_fifth_of_the_messages_lost() {
    for seed in [1, 7] {
        let serve = ends_equal(&format!("--speed 4 --drop 0.2 --seed {seed}")).await;
        assert!(serve.metric("kvmirror_gaps_total").await > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_restart() {
    let serve = ends_equal("--speed 4 --restart-at 120").await;
    assert_eq!(serve.metric("kvmirror_new_lives_total").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_restart_and_loss() {
    ends_equal("--speed 4 --restart-at 60 --drop 0.3 --seed 5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_fast_as_it_goes() {
    ends_equal("--speed 0 --drop 0.5 --seed 2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ranks_at_two_ports() {
    let (capture, truth) = ("vllm-0.32.0/dp2.jsonl", "vllm-0.32.0/dp2.truth.json");
    let ports = Ports::free(2);
    let serve = Serve::start(&[]);
    let _player = ports.play(capture, "--speed 4 --drop 0.2 --seed 3");
    for rank in [0, 1] {
        serve.follow(ports, rank).await;
    }
    for rank in [0, 1] {
        let mut expected = Expected::of(capture, truth, rank.into());
        serve.ends_equal(rank, &mut expected).await;
    }
}
