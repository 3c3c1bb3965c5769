//! Loss that cannot be healed is admitted.

use crate::player::{Expected, Ports, messages_of};
use crate::process::PATIENCE;
use crate::serve::Serve;
use std::time::Instant;

const EVICT: &str = "vllm-0.32.0/evict.jsonl";

#[tokio::test(flavor = "multi_thread")]
async fn without_replay_a_drop_is_never_exact_and_nothing_is_made_up() {
    let expected = Expected::of(EVICT, "vllm-0.32.0/evict.truth.json", 0);
    let ports = Ports::free(1);
    let serve = Serve::start(&[]);
    serve.register(0, &ports.publish(0), "").await;
    // The 9th, 18th, ... message is lost: 8, 17, ...; the last one, 279, comes.
    let _player = ports.play(EVICT, "--speed 2 --drop-every 9");
    let mut row = serve.row(0).await.expect("followed");
    let started = Instant::now();
    while row.cursor != Some(expected.last) {
        for &hash in &expected.ever {
            let sample = serve.sample(0, hash).await;
            let Some(cursor) = sample.cursor else { continue };
            assert!(!sample.held || expected.at(cursor).contains(&hash), "{hash}: {sample:?}");
            assert!(cursor < 8 || sample.trust != "exact", "{sample:?}");
        }
        row = serve.row(0).await.expect("followed");
        assert!(started.elapsed() < PATIENCE, "{row:?}");
    }
    assert_eq!(row.trust, "partial", "{row:?}");
    let table = expected.engine_table();
    let mut held = 0;
    for &hash in &expected.ever {
        let sample = serve.sample(0, hash).await;
        assert!(!sample.held || table.contains(&hash), "{hash}: {sample:?}");
        held += u64::from(sample.held);
    }
    assert_eq!(serve.metric("kvmirror_blocks").await, held);
    assert!(serve.metric("kvmirror_gaps_total").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn loss_before_numbering_is_not_exact_once_it_shows() {
    // No gap shows, and the replay socket has the same hole; a store without its parent does show.
    for (capture, lose) in [("vllm-0.32.0/prefix.jsonl", 3), (EVICT, 5), (EVICT, 20)] {
        let ports = Ports::free(1);
        let serve = Serve::start(&[]);
        let messages = messages_of(capture);
        let last = messages - messages / lose - 1;
        let _player = ports.play(capture, &format!("--speed 0 --lose {lose}"));
        serve.follow(ports, 0).await;
        let row = serve.row_when(0, "the end", |row| row.cursor == Some(last)).await;
        assert_eq!((row.trust.as_str(), row.reason.as_deref()), ("partial", Some("orphan")));
        assert_eq!(serve.metric("kvmirror_gaps_total").await, 0);
    }
}
