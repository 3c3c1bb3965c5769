//! The replay client against servers that misbehave.

use crate::common::{ask, within};
use bytes::Bytes;
use kvmirror_tokio::replay::{ReplayEnd, ReplayLimits, ReplayOutcome, replay};
use kvmirror_tokio::transport::zeromq::ZeroMq;
use kvmirror_tokio::transport::{Endpoint, Frames, Server, Transport, TransportError};
use std::time::Duration;

fn message(seq: u64, payload: &'static [u8]) -> Frames {
    let seq = Bytes::copy_from_slice(&seq.to_be_bytes());
    vec![Bytes::new(), seq, Bytes::from_static(payload)]
}

fn quick() -> ReplayLimits {
    ReplayLimits { idle: Duration::from_millis(200), ..ReplayLimits::default() }
}

/// Asks for everything from 5 on; the server answers one request with `replies` and then keeps its
/// socket open until the outcome is there.
async fn answered_by(replies: Vec<Frames>, limits: ReplayLimits) -> ReplayOutcome {
    let mut server = ZeroMq.serve(&Endpoint::loopback(0)).await.unwrap();
    let at = server.local().clone();
    let asking = tokio::spawn(async move { replay(&ZeroMq, &at, 5, limits).await });
    let (peer, frames) = within("request", server.recv()).await.unwrap();
    assert_eq!(frames, vec![Bytes::new(), Bytes::copy_from_slice(&5_u64.to_be_bytes())]);
    for reply in replies {
        server.send(&peer, reply).await.unwrap();
    }
    within("outcome", asking).await.unwrap()
}

#[tokio::test]
async fn a_replay_that_never_ends_keeps_its_progress() {
    let outcome = answered_by(vec![message(5, b"a"), message(6, b"b")], quick()).await;
    assert_eq!(outcome.end, ReplayEnd::Idle);
    let expected = vec![(5, Bytes::from_static(b"a")), (6, Bytes::from_static(b"b"))];
    assert_eq!(outcome.messages, expected);
}

#[tokio::test]
async fn replies_below_the_start_are_left_out() {
    let replies = vec![message(2, b"x"), message(5, b"a"), message(u64::MAX, b"")];
    let outcome = answered_by(replies, quick()).await;
    assert_eq!(outcome.end, ReplayEnd::EndMarker);
    assert_eq!((outcome.messages.len(), outcome.strays), (1, 1));
}

#[tokio::test]
async fn limits_end_it_before_they_are_exceeded() {
    let replies = || (5..10).map(|seq| message(seq, b"0123456789")).collect::<Vec<_>>();
    let few = answered_by(replies(), ReplayLimits { messages: 3, ..quick() }).await;
    assert_eq!((few.end, few.messages.len()), (ReplayEnd::LimitMessages, 3));
    let small = answered_by(replies(), ReplayLimits { bytes: 25, ..quick() }).await;
    assert_eq!((small.end, small.messages.len()), (ReplayEnd::LimitBytes, 2));
    let total = Duration::from_millis(150);
    let limits = ReplayLimits { total, idle: Duration::from_secs(60), ..quick() };
    let late = answered_by(replies(), limits).await;
    assert_eq!((late.end, late.messages.len()), (ReplayEnd::Total, 5));
}

#[tokio::test]
async fn a_malformed_reply_ends_it_with_what_came_before() {
    let replies = vec![message(5, b"a"), vec![Bytes::new(), Bytes::from_static(b"no")]];
    let outcome = answered_by(replies, quick()).await;
    assert!(matches!(outcome.end, ReplayEnd::Malformed(_)), "{:?}", outcome.end);
    assert_eq!(outcome.messages.len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_fails_it_with_its_progress() {
    let mut server = ZeroMq.serve(&Endpoint::loopback(0)).await.unwrap();
    let at = server.local().clone();
    let limits = ReplayLimits { idle: Duration::from_secs(60), ..ReplayLimits::default() };
    let asking = tokio::spawn(async move { replay(&ZeroMq, &at, 5, limits).await });
    let (peer, _) = within("request", server.recv()).await.unwrap();
    server.send(&peer, message(5, b"a")).await.unwrap();
    server.close(Duration::from_millis(50)).await;
    let outcome = within("outcome", asking).await.unwrap();
    assert!(matches!(outcome.end, ReplayEnd::Failed(_)), "{:?}", outcome.end);
    assert_eq!(outcome.messages.len(), 1);
}

#[tokio::test]
async fn absent_and_silent_servers_time_out() {
    let limits = ReplayLimits { connect: Duration::from_millis(300), ..ReplayLimits::default() };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_at = Endpoint::loopback(silent.local_addr().unwrap().port());
    let absent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let absent_at = Endpoint::loopback(absent.local_addr().unwrap().port());
    drop(absent);
    for at in [silent_at, absent_at] {
        let outcome = within("timeout", replay(&ZeroMq, &at, 0, limits)).await;
        let ReplayEnd::Failed(TransportError::ConnectTimeout { endpoint, .. }) = outcome.end else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(endpoint, at);
    }
}

#[tokio::test]
async fn an_abandoned_replay_closes_its_connection_and_does_not_reach_the_next() {
    let mut server = ZeroMq.serve(&Endpoint::loopback(0)).await.unwrap();
    let at = server.local().clone();
    let first_at = at.clone();
    let abandoned =
        tokio::spawn(async move { replay(&ZeroMq, &first_at, 0, ReplayLimits::default()).await });
    let (old_peer, _) = within("first request", server.recv()).await.unwrap();
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    let next = tokio::spawn(async move { ask(&at, 5).await });
    let (new_peer, _) = within("second request", server.recv()).await.unwrap();
    assert_ne!(old_peer, new_peer);
    // Late answers to the old one; they fail or go nowhere.
    let _ = server.send(&old_peer, message(7, b"old")).await;
    let _ = server.send(&old_peer, message(u64::MAX, b"")).await;
    server.send(&new_peer, message(5, b"new")).await.unwrap();
    server.send(&new_peer, message(u64::MAX, b"")).await.unwrap();
    let outcome = within("outcome", next).await.unwrap();
    assert_eq!(outcome.messages, vec![(5, Bytes::from_static(b"new"))]);
}
