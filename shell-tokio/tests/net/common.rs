//! What the tests share.

use bytes::Bytes;
use kvmirror_tokio::capture::{Capture, CaptureMessage, RankStream};
use kvmirror_tokio::player::{PlayPlan, Player, PlayerHandle, Speed};
use kvmirror_tokio::replay::{ReplayLimits, ReplayOutcome, replay};
use kvmirror_tokio::source::{SourceConfig, SourceEvent, SourceHandle, SourceInput, spawn_source};
use kvmirror_tokio::transport::zeromq::ZeroMq;
use kvmirror_tokio::transport::{Endpoint, SubscribeOptions};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// Sequence and payload.
pub(crate) type Pair = (u64, Bytes);

/// No condition of these tests takes long; a busy machine gets patience all the same.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(20), future).await {
        Ok(output) => output,
        Err(_) => panic!("not within 20 s: {what}"),
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/captures")).join(name)
}

pub(crate) fn read(name: &str) -> Capture {
    Capture::read(&data(name)).unwrap()
}

/// One rank with `count` messages, one every `every`.
pub(crate) fn made(count: u64, every: Duration) -> Vec<RankStream> {
    let every = u64::try_from(every.as_nanos()).unwrap();
    let message = |seq: u64| CaptureMessage {
        line: seq + 1,
        t_ns: Some(1_000 + seq * every),
        topic: Bytes::from_static(b"kv-events"),
        seq,
        payload: Bytes::from(format!("payload {seq}")),
        rank: None,
    };
    vec![RankStream { rank: 0, lives: vec![(0..count).map(message).collect()] }]
}

pub(crate) fn pairs(life: &[CaptureMessage]) -> Vec<Pair> {
    life.iter().map(|message| (message.seq, message.payload.clone())).collect()
}

/// Unpaced on free loopback ports, with a quick replay poll.
pub(crate) fn plan(streams: Vec<RankStream>) -> PlayPlan {
    let any = Endpoint::loopback(0);
    PlayPlan {
        speed: Speed::Unpaced,
        replay_poll: Duration::from_millis(5),
        ..PlayPlan::new(streams, any.clone(), Some(any))
    }
}

pub(crate) async fn start(plan: PlayPlan) -> PlayerHandle {
    within("start", Player::start(ZeroMq, plan)).await.unwrap()
}

/// Started, and every message published.
pub(crate) async fn played(plan: PlayPlan) -> PlayerHandle {
    let player = start(plan).await;
    within("played", player.played()).await;
    player
}

pub(crate) fn publish_at(player: &PlayerHandle, index: usize) -> Endpoint {
    player.ranks()[index].publish.clone()
}

pub(crate) fn replay_at(player: &PlayerHandle, index: usize) -> Endpoint {
    player.ranks()[index].replay.clone().unwrap()
}

pub(crate) async fn ask(endpoint: &Endpoint, start: u64) -> ReplayOutcome {
    within("replay", replay(&ZeroMq, endpoint, start, ReplayLimits::default())).await
}

/// Short waits, so that outages of these tests are short.
pub(crate) fn quick() -> SubscribeOptions {
    SubscribeOptions {
        connect_timeout: Duration::from_millis(500),
        backoff: (Duration::from_millis(10), Duration::from_millis(100)),
        ..SubscribeOptions::default()
    }
}

pub(crate) struct Following {
    pub(crate) source: SourceHandle,
    pub(crate) events: mpsc::Receiver<SourceInput>,
}

pub(crate) fn follow(endpoint: Endpoint, subscribe: SubscribeOptions, room: usize) -> Following {
    let (out, events) = mpsc::channel(room);
    let source = spawn_source(&ZeroMq, SourceConfig { source: 42, endpoint, subscribe }, out);
    Following { source, events }
}

impl Following {
    pub(crate) async fn next(&mut self) -> SourceEvent {
        let input = within("a source event", self.events.recv()).await.unwrap();
        assert_eq!(input.source, 42);
        input.event
    }

    pub(crate) async fn expect_up(&mut self) {
        assert_eq!(self.next().await, SourceEvent::Up);
    }

    /// Messages up to the one numbered `last`, or what else came first.
    pub(crate) async fn messages_to(&mut self, last: u64) -> Vec<Pair> {
        let mut got = Vec::new();
        loop {
            match self.next().await {
                SourceEvent::Message { seq, payload, .. } => {
                    got.push((seq.0, payload));
                    if seq.0 == last {
                        return got;
                    }
                }
                other => panic!("after {} messages: {other:?}", got.len()),
            }
        }
    }
}

/// A held player, a source that is subscribed to its first rank, then the release. A replay round
/// trip in between gives the publisher time to take the subscription in.
pub(crate) async fn live(mut plan: PlayPlan, room: usize) -> (PlayerHandle, Following) {
    plan.hold = true;
    let player = start(plan).await;
    let mut following = follow(publish_at(&player, 0), quick(), room);
    following.expect_up().await;
    for _ in 0..3 {
        assert!(ask(&replay_at(&player, 0), 0).await.messages.is_empty());
    }
    player.release();
    (player, following)
}
