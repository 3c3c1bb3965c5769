//! Sources against publishers that are absent, silent, broken or too fast.

use crate::common::{Following, ask, follow, live, made, plan, quick, replay_at, until, within};
use bytes::Bytes;
use kvmirror_core::wire::frames::FrameError;
use kvmirror_tokio::source::SourceEvent;
use kvmirror_tokio::transport::zeromq::ZeroMq;
use kvmirror_tokio::transport::{
    DownReason, Endpoint, Publisher, SubscribeOptions, Transport, TransportError,
};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn message(seq: u64) -> Vec<Bytes> {
    let seq = Bytes::copy_from_slice(&seq.to_be_bytes());
    vec![Bytes::from_static(b"kv"), seq, Bytes::from_static(b"p")]
}

/// Publishes until the source has heard something: then its subscription is known to be in place.
async fn heard(publisher: &mut impl Publisher, following: &mut Following) -> SourceEvent {
    within("first message", async {
        loop {
            publisher.send(message(0)).await.unwrap();
            tokio::select! {
                input = following.events.recv() => return input.unwrap().event,
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    })
    .await
}

async fn bind_again(at: &Endpoint) -> impl Publisher + use<> {
    within("bind", async {
        loop {
            if let Ok(publisher) = ZeroMq.publish(at).await {
                return publisher;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

async fn unreachable_then_up(following: &mut Following) {
    let down = following.next().await;
    assert!(matches!(&down, SourceEvent::Down { reason: DownReason::Unreachable(_) }), "{down:?}");
}

#[tokio::test]
async fn an_absent_publisher_is_reported_once_and_found_later() {
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = Endpoint::loopback(reserved.local_addr().unwrap().port());
    drop(reserved);
    let options = SubscribeOptions { connect_timeout: Duration::from_millis(50), ..quick() };
    let mut following = follow(at.clone(), options, 16);
    unreachable_then_up(&mut following).await;
    let mut publisher = bind_again(&at).await;
    following.expect_up().await;
    assert!(matches!(heard(&mut publisher, &mut following).await, SourceEvent::Message { .. }));
    assert_eq!(following.source.counters().downs(), 1);
}

#[tokio::test]
async fn a_silent_accept_is_given_up_and_tried_again() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = Endpoint::loopback(silent.local_addr().unwrap().port());
    let options = SubscribeOptions { connect_timeout: Duration::from_millis(100), ..quick() };
    let mut following = follow(at.clone(), options, 16);
    let (held, _) = within("accept", silent.accept()).await.unwrap();
    let down = following.next().await;
    let SourceEvent::Down { reason: DownReason::Unreachable(error) } = down else {
        panic!("{down:?}")
    };
    assert!(matches!(error, TransportError::ConnectTimeout { .. }), "{error}");
    drop(silent);
    let mut publisher = bind_again(&at).await;
    following.expect_up().await;
    heard(&mut publisher, &mut following).await;
    drop(held);
}

/// Shakes hands like a PUB and hangs up at once, like an engine in a crash loop.
async fn shake_hands_and_go(mut peer: TcpStream) {
    let mut greeting = [0_u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    peer.write_all(&greeting).await.unwrap();
    peer.read_exact(&mut greeting).await.unwrap();
    let mut ready = vec![4, 25, 5];
    ready.extend(b"READY\x0bSocket-Type\x00\x00\x00\x03PUB");
    ready[1] = u8::try_from(ready.len() - 2).unwrap();
    peer.write_all(&ready).await.unwrap();
    peer.set_zero_linger().unwrap();
}

#[tokio::test]
async fn a_peer_that_dies_after_the_handshake_does_not_leave_the_source_deaf() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = Endpoint::loopback(listener.local_addr().unwrap().port());
    let mut following = follow(at.clone(), quick(), 16);
    for _ in 0..5 {
        let (peer, _) = within("accept", listener.accept()).await.unwrap();
        // A probe of the source hangs up instead of greeting.
        let _ = tokio::spawn(shake_hands_and_go(peer)).await;
    }
    drop(listener);
    let mut publisher = bind_again(&at).await;
    within("a message", async {
        while !matches!(heard(&mut publisher, &mut following).await, SourceEvent::Message { .. }) {}
    })
    .await;
}

#[tokio::test]
async fn silence_rebuilds_the_socket_and_says_so() {
    let mut publisher = ZeroMq.publish(&Endpoint::loopback(0)).await.unwrap();
    let limit = Duration::from_millis(150);
    let options = SubscribeOptions { silence: Some(limit), ..quick() };
    let mut following = follow(publisher.local().clone(), options, 64);
    following.expect_up().await;
    for _ in 0..2 {
        let down = following.next().await;
        assert_eq!(down, SourceEvent::Down { reason: DownReason::Silence(limit) });
        following.expect_up().await;
    }
    let event = heard(&mut publisher, &mut following).await;
    assert!(matches!(event, SourceEvent::Message { .. }), "{event:?}");
}

#[tokio::test]
async fn overload_becomes_a_discontinuity_and_replay_fills_it() {
    let count = 2_000_u64;
    let (player, mut following) = live(plan(made(count, Duration::ZERO)), 8).await;
    until("overflow", || following.source.counters().overflow() > 0).await;
    within("played", player.played()).await;
    let mut next = 0;
    loop {
        match following.next().await {
            SourceEvent::Message { seq, .. } => {
                assert_eq!(seq.0, next, "nothing is missing before it is said");
                next += 1;
            }
            SourceEvent::Down { reason: DownReason::Overflow(dropped) } => {
                assert!(dropped > 0);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    following.expect_up().await;
    let rest = ask(&replay_at(&player, 0), next).await;
    assert_eq!(rest.messages.len() as u64, count - next);
}

#[tokio::test]
async fn bad_frames_are_named_and_their_neighbours_arrive() {
    let mut publisher = ZeroMq.publish(&Endpoint::loopback(0)).await.unwrap();
    let mut following = follow(publisher.local().clone(), quick(), 64);
    following.expect_up().await;
    heard(&mut publisher, &mut following).await;
    publisher.send(vec![Bytes::from_static(b"kv"), Bytes::from_static(b"x")]).await.unwrap();
    publisher.send(message(1)).await.unwrap();
    let mut bad = None;
    loop {
        match following.next().await {
            SourceEvent::Message { seq, .. } if seq.0 == 1 => break,
            SourceEvent::Message { .. } => {}
            SourceEvent::BadFrames { what } => bad = Some(what),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(bad, Some(FrameError::Count { got: 2, .. })), "{bad:?}");
    assert_eq!(following.source.counters().bad_frames(), 1);
}

#[tokio::test]
async fn the_topic_is_a_prefix() {
    let mut publisher = ZeroMq.publish(&Endpoint::loopback(0)).await.unwrap();
    let options = SubscribeOptions { topic: "kv".to_owned(), ..quick() };
    let mut following = follow(publisher.local().clone(), options, 64);
    following.expect_up().await;
    heard(&mut publisher, &mut following).await;
    let mut other = message(7);
    other[0] = Bytes::from_static(b"other");
    publisher.send(other).await.unwrap();
    publisher.send(message(8)).await.unwrap();
    loop {
        let SourceEvent::Message { seq, .. } = following.next().await else { panic!() };
        assert_ne!(seq.0, 7);
        if seq.0 == 8 {
            break;
        }
    }
}

#[tokio::test]
async fn a_peer_that_hangs_up_is_not_hammered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = Endpoint::loopback(listener.local_addr().unwrap().port());
    let backoff = (Duration::from_millis(50), Duration::from_secs(5));
    let following = follow(at, SubscribeOptions { backoff, ..quick() }, 16);
    let begun = Instant::now();
    // One attempt, then three of a probe and an attempt each, after 50, 100 and 200 ms of backoff.
    for _ in 0..7 {
        drop(within("accept", listener.accept()).await.unwrap());
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(350 * 3 / 4), "{took:?}");
    following.source.stop().await;
}

#[tokio::test]
async fn ipc_paths_left_by_a_killed_publisher_are_taken_over_and_live_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("engine.sock");
    let at = Endpoint::parse_bind(&format!("ipc://{}", path.display())).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the stale file of a killed process");
    let mut publisher = ZeroMq.publish(&at).await.unwrap();
    let taken = ZeroMq.publish(&at).await.unwrap_err();
    assert!(matches!(taken, TransportError::Bind { .. }), "{taken}");
    let mut following = follow(at.clone(), quick(), 16);
    following.expect_up().await;
    let event = heard(&mut publisher, &mut following).await;
    assert!(matches!(event, SourceEvent::Message { .. }), "{event:?}");
    std::fs::write(dir.path().join("file"), "kept").unwrap();
    let file = format!("ipc://{}", dir.path().join("file").display());
    assert!(ZeroMq.publish(&Endpoint::parse_bind(&file).unwrap()).await.is_err());
    assert_eq!(std::fs::read_to_string(dir.path().join("file")).unwrap(), "kept");
}

#[tokio::test]
async fn a_source_ends_with_its_receiver() {
    let publisher = ZeroMq.publish(&Endpoint::loopback(0)).await.unwrap();
    let mut following = follow(publisher.local().clone(), quick(), 16);
    following.expect_up().await;
    let Following { source, events } = following;
    drop(events);
    until("the end of the task", || source.is_finished()).await;
}
