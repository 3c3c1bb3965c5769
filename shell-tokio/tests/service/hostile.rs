//! Replay sockets that answer wrongly: the rank is never exact with less than the engine holds, the
//! socket is not hammered, and nobody else is hurt.

use bytes::Bytes;
use kvmirror_core::id::RankKey;
use kvmirror_core::router::Trust;
use kvmirror_tokio::config::ServeConfig;
use kvmirror_tokio::follower::RankRow;
use kvmirror_tokio::serve::Service;
use kvmirror_tokio::transport::zeromq::{ZeroMq, ZmqPublisher};
use kvmirror_tokio::transport::{Endpoint, Frames, Publisher, Server, Transport};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Messages the engine has published.
const COUNT: u64 = 20;

/// Those that arrive live.
const LIVE: [u64; 5] = [0, 1, 2, 10, COUNT - 1];

const END: u64 = u64::MAX;

/// How a socket answers a question for everything from an id on.
type Script = fn(u64) -> Vec<Frames>;

/// A store of one block that continues the one before.
fn store(seq: u64, rank: i8) -> Bytes {
    let mut bytes = b"\x93\xcb\x3f\xf0\0\0\0\0\0\0\x91\x97\xabBlockStored\x91\xcf".to_vec();
    bytes.extend((1_000 + seq).to_be_bytes());
    match seq {
        0 => bytes.push(0xc0),
        _ => {
            bytes.push(0xcf);
            bytes.extend((999 + seq).to_be_bytes());
        }
    }
    bytes.extend(b"\xdc\0\x20");
    bytes.extend([u8::try_from(seq % 100).expect("small"); 32]);
    bytes.extend(b"\x20\xc0\xa3GPU\xd0");
    bytes.extend(rank.to_be_bytes());
    bytes.into()
}

fn reply(seq: u64, payload: Bytes) -> Frames {
    vec![Bytes::new(), Bytes::copy_from_slice(&seq.to_be_bytes()), payload]
}

fn message(seq: u64) -> Frames {
    reply(seq, store(seq, 0))
}

fn end() -> Frames {
    reply(END, Bytes::new())
}

fn honest(start: u64) -> Vec<Frames> {
    (start..COUNT).map(message).chain([end()]).collect()
}

fn backwards(start: u64) -> Vec<Frames> {
    (start..COUNT).rev().map(message).chain([end()]).collect()
}

fn doubled(start: u64) -> Vec<Frames> {
    (start..COUNT).flat_map(|seq| [message(seq), message(seq)]).chain([end()]).collect()
}

fn full_of_holes(start: u64) -> Vec<Frames> {
    (start..COUNT).filter(|seq| seq % 3 != 0).map(message).chain([end()]).collect()
}

fn foreign(start: u64) -> Vec<Frames> {
    (start..COUNT).map(|seq| reply(seq, store(seq, 5))).chain([end()]).collect()
}

fn of_a_negative_rank(start: u64) -> Vec<Frames> {
    (start..COUNT).map(|seq| reply(seq, store(seq, -1))).chain([end()]).collect()
}

fn unreadable(start: u64) -> Vec<Frames> {
    let payload = Bytes::from_static(b"\xc1");
    (start..COUNT).map(|seq| reply(seq, payload.clone())).chain([end()]).collect()
}

fn empty(_: u64) -> Vec<Frames> {
    vec![end()]
}

fn ended_at_once(start: u64) -> Vec<Frames> {
    [end()].into_iter().chain(honest(start)).collect()
}

fn far_ahead(start: u64) -> Vec<Frames> {
    (start..COUNT).map(message).chain([message(1 << 63), end()]).collect()
}

fn half_an_end(_: u64) -> Vec<Frames> {
    vec![reply(END, Bytes::from_static(b"x"))]
}

fn no_frames_to_speak_of(_: u64) -> Vec<Frames> {
    vec![vec![Bytes::new()], vec![Bytes::new(); 9]]
}

fn nothing(_: u64) -> Vec<Frames> {
    Vec::new()
}

/// An engine of one rank.
struct Engine {
    publisher: ZmqPublisher,
    replay: Endpoint,
    asked: Arc<AtomicU64>,
    answering: JoinHandle<()>,
}

impl Engine {
    async fn start(script: Script) -> Self {
        let publisher = ZeroMq.publish(&Endpoint::loopback(0)).await.expect("a free port");
        let mut server = ZeroMq.serve(&Endpoint::loopback(0)).await.expect("a free port");
        let replay = server.local().clone();
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let answering = tokio::spawn(async move {
            while let Ok((peer, frames)) = server.recv().await {
                count.fetch_add(1, Ordering::Relaxed);
                let start = frames.last().and_then(|start| start.as_ref().try_into().ok());
                for frames in script(u64::from_be_bytes(start.expect("8 bytes"))) {
                    // An asker that has heard enough has gone.
                    let _ = server.send(&peer, frames).await;
                }
            }
        });
        Self { publisher, replay, asked, answering }
    }

    async fn publish(&mut self, seq: u64) {
        let mut frames = message(seq);
        frames[0] = Bytes::from_static(b"kv");
        self.publisher.send(frames).await.expect("sent");
    }

    async fn register(&self, service: &Service, name: &str) {
        let publish = self.publisher.local().to_string();
        crate::register(service, name, 0, &publish, &self.replay.to_string()).await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

async fn hasty_service() -> Service {
    let mut config = ServeConfig::default();
    config.listen.set_port(0);
    config.follow.probe_interval = Duration::from_millis(100);
    config.follow.recovery_attempts = 3;
    config.follow.recovery_backoff = Duration::from_millis(20);
    config.follow.recovery_idle = Duration::from_millis(200);
    Service::start(&config).await.expect("a free port")
}

async fn row(service: &Service, name: &str) -> RankRow {
    let rows = service.follower.ranks().await.expect("running");
    rows.into_iter().find(|row| row.instance == name).expect("followed")
}

async fn row_when(
    service: &Service,
    name: &str,
    what: &str,
    done: impl Fn(&RankRow) -> bool,
) -> RankRow {
    let started = Instant::now();
    loop {
        let row = row(service, name).await;
        if done(&row) {
            return row;
        }
        assert!(started.elapsed() < crate::PATIENCE, "{name}: {what} did not come: {row:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn held(service: &Service, key: RankKey) -> Vec<u64> {
    let blocks = service.follower.blocks(key).await.expect("running");
    blocks.iter().map(|block| block.hash.0 - 1_000).collect()
}

/// An exact rank holds everything, unless nothing has been heard yet and an empty replay says that
/// nothing was published.
async fn never_wrong(service: &Service, name: &str) {
    let now = row(service, name).await;
    let fresh = now.cursor.is_none() && now.counts.gaps == 0;
    if now.trust == Trust::Exact && !fresh {
        // Every message of the engine was one block.
        let cursor = now.cursor.map_or(0, |cursor| cursor.0 + 1);
        let held = held(service, now.key).await;
        let after = row(service, name).await;
        if (after.cursor, after.trust, after.counts) != (now.cursor, now.trust, now.counts) {
            // The two do not belong together.
            return;
        }
        assert!(held.len() as u64 >= cursor && cursor > 0, "{name}: {now:?} holds {held:?}");
    }
}

/// Lets the engine publish and looks on until the rank no longer claims to be catching up.
async fn settles(name: &str, script: Script) {
    let service = hasty_service().await;
    let (mut engine, mut friend) = (Engine::start(script).await, Engine::start(honest).await);
    engine.register(&service, name).await;
    friend.register(&service, "friend").await;
    let began = Instant::now();
    row_when(&service, name, "an answer or none", |row| row.trust > Trust::Missing).await;
    row_when(&service, "friend", "its messages", |row| {
        row.trust == Trust::Exact && row.cursor.map(|cursor| cursor.0) == Some(COUNT - 1)
    })
    .await;
    let settled = |row: &RankRow| row.trust < Trust::CatchingUp && row.recovering.is_none();
    // Published several times: the first ones may come before the subscription.
    for _ in 0..4 {
        for seq in LIVE {
            engine.publish(seq).await;
        }
        let looking = Instant::now();
        while looking.elapsed() < Duration::from_millis(500) {
            never_wrong(&service, name).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let end = row_when(&service, name, "an end", settled).await;
    let asked = engine.asked.load(Ordering::Relaxed);
    let per_second = asked / began.elapsed().as_secs().max(1);
    assert!(per_second <= 30, "{name}: asked {asked} times, {per_second} a second; {end:?}");
    let friendly = row(&service, "friend").await;
    friend.publish(COUNT).await;
    assert_eq!((friendly.trust, friendly.counts.gaps), (Trust::Exact, 0), "{name}");
    row_when(&service, "friend", "the next message", |row| {
        row.trust == Trust::Exact && row.cursor.map(|cursor| cursor.0) == Some(COUNT)
    })
    .await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_answers_are_never_believed() {
    let scripts: [(&str, Script); 12] = [
        ("backwards", backwards),
        ("doubled", doubled),
        ("full of holes", full_of_holes),
        ("foreign", foreign),
        ("negative rank", of_a_negative_rank),
        ("unreadable", unreadable),
        ("empty", empty),
        ("ended at once", ended_at_once),
        ("far ahead", far_ahead),
        ("half an end", half_an_end),
        ("no frames", no_frames_to_speak_of),
        ("nothing", nothing),
    ];
    let all = scripts.map(|(name, script)| tokio::spawn(settles(name, script)));
    for settled in all {
        settled.await.expect("settled");
    }
}
