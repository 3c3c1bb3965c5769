//! An engine that is killed and started again at the same addresses.

use crate::player::{Expected, Ports};
use crate::serve::Serve;
use std::collections::BTreeSet;

const EVICT: &str = "vllm-0.32.0/evict.jsonl";
const SEQUENTIAL: &str = "vllm-0.32.0/sequential.jsonl";

fn evict() -> Expected {
    Expected::of(EVICT, "vllm-0.32.0/evict.truth.json", 0)
}

fn sequential() -> Expected {
    Expected::of(SEQUENTIAL, "vllm-0.32.0/sequential.truth.json", 0)
}

/// Asks for one hash after the other until the rank is exact at the end; an exact answer on the way
/// must be the one of its cursor. Gives the number of exact answers that were checked.
async fn samples_until_the_end(serve: &Serve, expected: &Expected, hashes: &BTreeSet<u64>) -> u64 {
    let mut checked = 0;
    loop {
        for &hash in hashes {
            let sample = serve.sample(0, hash).await;
            let (true, Some(cursor)) = (sample.trust == "exact", sample.cursor) else { continue };
            assert_eq!(sample.held, expected.at(cursor).contains(&hash), "{hash}: {sample:?}");
            checked += 1;
        }
        let row = serve.row(0).await.expect("followed");
        if row.is_exact_at(expected.last) {
            return checked;
        }
    }
}

/// Kills the first player in the middle and lets the second one, playing `then`, take its place.
async fn killed_in_the_middle(then: &str, mut expected: Expected, arguments: &str) {
    let first = evict();
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    let player = ports.play(EVICT, "--speed 2 --drop 0.1 --seed 4");
    serve.follow(ports, 0).await;
    serve
        .row_when(0, "the middle", |row| {
            row.cursor.is_some_and(|cursor| cursor > 100 && cursor < first.last)
        })
        .await;
    player.kill();
    let lost = serve.row_when(0, "the loss", |row| row.trust != "exact").await;
    assert_eq!(lost.trust, "suspect", "{lost:?}");
    let _player = ports.play(then, arguments);
    let hashes: BTreeSet<u64> = first.ever.union(&expected.ever).copied().collect();
    let checked = samples_until_the_end(&serve, &expected, &hashes).await;
    assert!(checked > 0);
    serve.ends_equal(0, &mut expected).await;
    // Nothing of the first life is left.
    for hash in first.ever.difference(&expected.ever) {
        assert!(!serve.sample(0, *hash).await.held, "{hash}");
    }
    assert_eq!(serve.metric("kvmirror_blocks").await, expected.engine_table().len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_capture_again() {
    killed_in_the_middle(EVICT, evict(), "--speed 1 --drop 0.1 --seed 9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_life_is_ahead_of_the_old_one_when_it_is_met() {
    killed_in_the_middle(EVICT, evict(), "--speed 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_capture() {
    killed_in_the_middle(SEQUENTIAL, sequential(), "--speed 5 --drop 0.1 --seed 2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_capture_that_is_ahead_when_it_is_met() {
    killed_in_the_middle(SEQUENTIAL, sequential(), "--speed 0").await;
}
