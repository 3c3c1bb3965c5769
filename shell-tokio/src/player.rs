//! Publishing a capture exactly as an engine does: a PUB per rank, and beside it a replay socket
//! with a ring of recent messages.
//!
//! Each rank is one task, because an engine's publisher is one thread: it publishes, and between
//! messages looks at replay requests every [`PlayPlan::replay_poll`]. As with a real engine, who
//! subscribes late has missed what came before, and the ring answers for it.
//!
//! Closing a publisher waits [`PlayPlan::flush`] first: the `zeromq` crate has no linger and drops
//! what it has not yet handed to its subscribers' queues. A subscriber slower than that at a restart
//! loses the rest, as it would with a killed engine.

pub mod args;
pub mod command;
mod faults;
mod life;
mod rank;
mod ring;

pub use faults::DropRule;

use crate::capture::RankStream;
use crate::transport::{Endpoint, EndpointError, Transport, TransportError};
use rank::{Bound, RankPlayer};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How fast a capture is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As captured, this many times faster. Deadlines are kept from the start, so that a late
    /// message does not delay the ones after it.
    Paced(f64),
    /// As fast as it goes.
    Unpaced,
}

/// How replies look; see the captures of each engine version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayLayout {
    /// `["", topic, seq, payload]`, the newer engines.
    #[default]
    WithTopic,
    /// `["", seq, payload]`, the older ones.
    WithoutTopic,
}

/// What to play, where and with which faults.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayPlan {
    /// The ranks of the capture. One rank alone is published at the addresses as they are; of
    /// several, rank r at port + r.
    pub streams: Vec<RankStream>,
    /// Address of the publisher. Port 0 takes free ports (see [`PlayerHandle::ranks`]).
    pub publish: Endpoint,
    /// Address of the replay socket; `None` = an engine without one.
    pub replay: Option<Endpoint>,
    /// Pace.
    pub speed: Speed,
    /// At the end, start a new life with the first message.
    pub repeat: bool,
    /// Messages that the ring holds; 0 = it answers every request with the end marker only.
    pub ring: usize,
    /// Numbered messages that are lost on the way; they stay in the ring.
    pub drop: DropRule,
    /// Every Nth message is lost before it is numbered: no gap shows, the ring has it not.
    pub lose: Option<NonZeroU64>,
    /// Seed of [`DropRule::Probability`].
    pub seed: u64,
    /// After this sequence (or the first one beyond it) a new life begins, once per rank.
    pub restart_at: Option<u64>,
    /// How often replay requests are looked at.
    pub replay_poll: Duration,
    /// How long replay is served after the last message; `None` = until stopped.
    pub linger: Option<Duration>,
    /// How replies look.
    pub layout: ReplayLayout,
    /// How long the sockets are closed between two lives.
    pub pause: Duration,
    /// Time for queued messages to leave before a socket closes.
    pub flush: Duration,
    /// Bind and serve replay, but publish only after [`PlayerHandle::release`].
    pub hold: bool,
}

impl PlayPlan {
    /// A plan without faults and with the defaults of `kvmirror play`.
    pub const fn new(
        streams: Vec<RankStream>,
        publish: Endpoint,
        replay: Option<Endpoint>,
    ) -> Self {
        Self {
            streams,
            publish,
            replay,
            speed: Speed::Paced(1.0),
            repeat: false,
            ring: 10_000,
            drop: DropRule::Never,
            lose: None,
            seed: 0,
            restart_at: None,
            replay_poll: Duration::from_millis(100),
            linger: None,
            layout: ReplayLayout::WithTopic,
            pause: Duration::from_millis(200),
            flush: Duration::from_millis(100),
            hold: false,
        }
    }
}

/// What keeps a capture from being played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// No message in the plan.
    #[error("nothing to play: the capture holds no message")]
    Nothing,
    /// An address does not go with the ranks.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A socket could not be bound, or a message not be published.
    #[error("rank {rank}: {error}")]
    Transport {
        /// The rank.
        rank: u32,
        /// What went wrong.
        error: TransportError,
    },
    /// A rank's task ended abnormally.
    #[error("a rank's task ended abnormally: {0}")]
    Task(String),
}

/// Where a rank is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedRank {
    /// The rank.
    pub rank: u32,
    /// Its publisher.
    pub publish: Endpoint,
    /// Its replay socket.
    pub replay: Option<Endpoint>,
}

/// What was done so far, over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayProgress {
    /// Messages handed to the publisher.
    pub published: u64,
    /// Numbered messages dropped on the way.
    pub dropped: u64,
    /// Messages lost before numbering.
    pub lost: u64,
    /// Lives begun; a rank has at least one.
    pub lives: u64,
    /// Replay requests answered.
    pub requests: u64,
    /// Replay requests ignored as malformed.
    pub malformed_requests: u64,
    /// Messages sent in replies.
    pub replayed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) published: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) lives: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) malformed_requests: AtomicU64,
    pub(crate) replayed: AtomicU64,
}

impl Counters {
    fn read(&self) -> PlayProgress {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PlayProgress {
            published: get(&self.published),
            dropped: get(&self.dropped),
            lost: get(&self.lost),
            lives: get(&self.lives),
            requests: get(&self.requests),
            malformed_requests: get(&self.malformed_requests),
            replayed: get(&self.replayed),
        }
    }
}

/// How far a player may go; only ever moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gate {
    Hold,
    Go,
    Stop,
}

/// Starts players.
#[derive(Clone, Copy, Debug)]
pub struct Player;

/// A running player. Dropping it kills its sockets at once, like a killed engine.
#[derive(Debug)]
pub struct PlayerHandle {
    ranks: Vec<PlayedRank>,
    counters: Arc<Counters>,
    gate: watch::Sender<Gate>,
    /// Ranks that still have messages to publish.
    playing: watch::Receiver<usize>,
    tasks: JoinSet<Result<(), PlayError>>,
}

impl Player {
    /// Binds every socket of `plan` and starts to play.
    ///
    /// # Errors
    /// When the plan is empty, a rank's port is out of range, or a socket cannot be bound; nothing
    /// keeps running then.
    pub async fn start<T: Transport>(
        transport: T,
        plan: PlayPlan,
    ) -> Result<PlayerHandle, PlayError> {
        let mut plan = plan;
        let mut streams = std::mem::take(&mut plan.streams);
        streams.retain(|stream| !stream.is_empty());
        if streams.is_empty() {
            return Err(PlayError::Nothing);
        }
        let timeline = life::Timeline::of(&streams);
        let plan = Arc::new(plan);
        let counters = Arc::new(Counters::default());
        let first_gate = if plan.hold { Gate::Hold } else { Gate::Go };
        let (gate, gate_seen) = watch::channel(first_gate);
        let (left, playing) = watch::channel(streams.len());
        let left = Arc::new(left);
        let several = streams.len() > 1;

        // All are bound before any plays: a start either works or leaves nothing behind.
        let mut players = Vec::with_capacity(streams.len());
        for stream in streams {
            let offset = if several { stream.rank } else { 0 };
            let publish = plan.publish.with_port_offset(offset)?;
            let replay =
                plan.replay.as_ref().map(|replay| replay.with_port_offset(offset)).transpose()?;
            let bound = Bound::bind(&transport, &publish, replay.as_ref())
                .await
                .map_err(|error| PlayError::Transport { rank: stream.rank, error })?;
            players.push(RankPlayer::new(
                transport.clone(),
                Arc::clone(&plan),
                stream,
                timeline,
                bound,
                rank::Links {
                    counters: Arc::clone(&counters),
                    gate: gate_seen.clone(),
                    left: Arc::clone(&left),
                },
            ));
        }
        let ranks = players.iter().map(RankPlayer::addresses).collect();
        let mut tasks = JoinSet::new();
        for player in players {
            tasks.spawn(player.run());
        }
        Ok(PlayerHandle { ranks, counters, gate, playing, tasks })
    }
}

impl PlayerHandle {
    /// Where each rank is published, ascending.
    pub fn ranks(&self) -> &[PlayedRank] {
        &self.ranks
    }

    /// What was done so far.
    pub fn progress(&self) -> PlayProgress {
        self.counters.read()
    }

    /// Lets a held player publish.
    pub fn release(&self) {
        self.raise(Gate::Go);
    }

    /// Asks the player to close its sockets and end; see [`PlayerHandle::wait`].
    pub fn stop(&self) {
        self.raise(Gate::Stop);
    }

    /// Whether every rank has published its last message, or has failed.
    pub fn has_played(&self) -> bool {
        *self.playing.borrow() == 0 || self.playing.has_changed().is_err()
    }

    /// Waits until every rank has published its last message (with [`PlayPlan::repeat`]: for ever),
    /// or has failed.
    pub async fn played(&self) {
        // An error means that all ranks have ended.
        let _ = self.playing.clone().wait_for(|left| *left == 0).await;
    }

    /// Waits until every rank has ended: stopped, or lingered long enough.
    ///
    /// # Errors
    /// The first rank's that failed; the others are stopped then.
    pub async fn wait(mut self) -> Result<PlayProgress, PlayError> {
        self.joined().await?;
        Ok(self.counters.read())
    }

    /// [`PlayerHandle::wait`] on a borrowed handle; cancel-safe.
    ///
    /// # Errors
    /// As [`PlayerHandle::wait`].
    pub async fn joined(&mut self) -> Result<(), PlayError> {
        while let Some(joined) = self.tasks.join_next().await {
            let outcome = joined.unwrap_or_else(|error| Err(PlayError::Task(error.to_string())));
            if outcome.is_err() {
                self.stop();
                return outcome;
            }
        }
        Ok(())
    }

    fn raise(&self, to: Gate) {
        self.gate.send_if_modified(|gate| {
            let raised = *gate < to;
            *gate = to.max(*gate);
            raised
        });
    }
}
