//! One rank: a publisher and its replay socket, through its lives.

use super::faults::Faults;
use super::life::{Numbering, Pace, Timeline};
use super::ring::{self, Kept, Ring};
use super::{Counters, Gate, PlayError, PlayPlan, PlayedRank};
use crate::capture::{CaptureMessage, RankStream};
use crate::transport::{Endpoint, Publisher, Server, Transport, TransportError};
use bytes::Bytes;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// Unpaced, others get a turn after this many messages, so that subscribers keep up: the publisher
/// loses what they leave lying.
const TURN: u64 = 64;
/// A rebind is tried this often, this many times: 10 s. What may hold the port for a moment is a
/// connection of the previous life, or an outgoing one that was given its number.
const REBIND_EVERY: Duration = Duration::from_millis(50);
const REBIND_TRIES: u32 = 200;

/// The sockets of one life.
pub(super) struct Bound<T: Transport> {
    publisher: T::Publisher,
    server: Option<T::Server>,
}

impl<T: Transport> Bound<T> {
    pub(super) async fn bind(
        transport: &T,
        publish: &Endpoint,
        replay: Option<&Endpoint>,
    ) -> Result<Self, TransportError> {
        let publisher = transport.publish(publish).await?;
        let server = match replay {
            Some(replay) => Some(transport.serve(replay).await?),
            None => None,
        };
        Ok(Self { publisher, server })
    }

    async fn close(self, flush: Duration) {
        self.publisher.close(flush).await;
        if let Some(server) = self.server {
            server.close(Duration::ZERO).await;
        }
    }
}

/// What ties a rank to its handle.
pub(super) struct Links {
    pub(super) counters: Arc<Counters>,
    pub(super) gate: watch::Receiver<Gate>,
    pub(super) left: Arc<watch::Sender<usize>>,
}

/// How a stretch of playing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    Restart,
    Stop,
}

pub(super) struct RankPlayer<T: Transport> {
    transport: T,
    plan: Arc<PlayPlan>,
    stream: Arc<RankStream>,
    timeline: Timeline,
    addresses: PlayedRank,
    /// `None` between two lives.
    bound: Option<Bound<T>>,
    ring: Ring,
    faults: Faults,
    next_poll: Instant,
    sent: u64,
    restart_at: Option<u64>,
    links: Links,
}

impl<T: Transport> RankPlayer<T> {
    pub(super) fn new(
        transport: T,
        plan: Arc<PlayPlan>,
        stream: RankStream,
        timeline: Timeline,
        bound: Bound<T>,
        links: Links,
    ) -> Self {
        let addresses = PlayedRank {
            rank: stream.rank,
            publish: bound.publisher.local().clone(),
            replay: bound.server.as_ref().map(|server| server.local().clone()),
        };
        Self {
            transport,
            timeline,
            addresses,
            bound: Some(bound),
            ring: Ring::new(plan.ring),
            faults: Faults::new(plan.drop, plan.lose, plan.seed, stream.rank),
            next_poll: Instant::now() + plan.replay_poll,
            sent: 0,
            restart_at: plan.restart_at,
            links,
            stream: Arc::new(stream),
            plan,
        }
    }

    pub(super) fn addresses(&self) -> PlayedRank {
        self.addresses.clone()
    }

    pub(super) async fn run(mut self) -> Result<(), PlayError> {
        let outcome = self.play().await;
        self.links.left.send_modify(|left| *left = left.saturating_sub(1));
        if outcome.is_ok() {
            let until = self.plan.linger.map(|linger| Instant::now() + linger);
            self.serve_until(until, false).await;
        }
        if let Some(bound) = self.bound.take() {
            bound.close(self.plan.flush).await;
        }
        outcome.map_err(|error| PlayError::Transport { rank: self.stream.rank, error })
    }

    /// Plays the capture, again and again where that is asked for. Returns when nothing is left to
    /// publish, or on a stop.
    async fn play(&mut self) -> Result<(), TransportError> {
        if self.serve_until(None, true).await == Flow::Stop {
            return Ok(());
        }
        let mut again = false;
        loop {
            let pace = Pace::new(self.plan.speed, self.timeline, Instant::now());
            match self.play_capture(pace, again).await? {
                Flow::Stop => return Ok(()),
                Flow::On if !self.plan.repeat => return Ok(()),
                Flow::On => {
                    let over = pace.end().unwrap_or_else(Instant::now);
                    if self.serve_until(Some(over), false).await == Flow::Stop {
                        return Ok(());
                    }
                }
                Flow::Restart => {}
            }
            if self.new_life().await? == Flow::Stop {
                return Ok(());
            }
            again = true;
        }
    }

    async fn play_capture(&mut self, pace: Pace, again: bool) -> Result<Flow, TransportError> {
        let stream = Arc::clone(&self.stream);
        for (index, life) in stream.lives.iter().enumerate() {
            if index > 0 && self.new_life().await? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.links.counters.lives.fetch_add(1, Ordering::Relaxed);
            // A life that an engine did not have in the capture begins at 0 like any other.
            let numbering = match life.first() {
                Some(first) if again && index == 0 => Numbering::from_zero(first.seq),
                Some(_) | None => Numbering::captured(),
            };
            match self.play_life(life, pace, numbering).await? {
                Flow::On => {}
                ended @ (Flow::Restart | Flow::Stop) => return Ok(ended),
            }
        }
        Ok(Flow::On)
    }

    async fn play_life(
        &mut self,
        life: &[CaptureMessage],
        pace: Pace,
        mut numbering: Numbering,
    ) -> Result<Flow, TransportError> {
        for message in life {
            if self.until_due(pace.due(message)).await == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if self.faults.loses() {
                numbering.lose();
                count(&self.links.counters.lost);
                continue;
            }
            let seq = numbering.number(message.seq);
            self.publish(message, seq).await?;
            if self.restart_at.is_some_and(|at| seq >= at) {
                self.restart_at = None;
                return Ok(Flow::Restart);
            }
        }
        Ok(Flow::On)
    }

    async fn publish(&mut self, message: &CaptureMessage, seq: u64) -> Result<(), TransportError> {
        let (topic, payload) = (message.topic.clone(), message.payload.clone());
        if self.faults.drops() {
            count(&self.links.counters.dropped);
        } else if let Some(bound) = &mut self.bound {
            let frames = vec![topic.clone(), ring::seq_frame(seq), payload.clone()];
            bound.publisher.send(frames).await?;
            count(&self.links.counters.published);
        }
        self.ring.push(Kept { topic, seq, payload });
        Ok(())
    }

    /// Waits for a message's time, or takes a short breath now and then when it is due already.
    async fn until_due(&mut self, due: Option<Instant>) -> Flow {
        self.sent += 1;
        match due {
            Some(due) if due > Instant::now() => self.serve_until(Some(due), false).await,
            Some(_) | None if self.sent.is_multiple_of(TURN) => {
                tokio::task::yield_now().await;
                self.serve_until(Some(Instant::now()), false).await
            }
            Some(_) | None => Flow::On,
        }
    }

    /// Looks at replay requests at their times until `deadline` (none = for ever), or, while `held`,
    /// until the gate opens. Says whether a stop was asked for.
    async fn serve_until(&mut self, deadline: Option<Instant>, held: bool) -> Flow {
        loop {
            let gate = *self.links.gate.borrow_and_update();
            match gate {
                Gate::Stop => return Flow::Stop,
                Gate::Go if held => return Flow::On,
                Gate::Hold | Gate::Go => {}
            }
            let now = Instant::now();
            if now >= self.next_poll {
                self.answer_requests().await;
                self.next_poll = Instant::now() + self.plan.replay_poll;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Flow::On;
            }
            let wake = deadline.map_or(self.next_poll, |deadline| deadline.min(self.next_poll));
            tokio::select! {
                changed = self.links.gate.changed() => if changed.is_err() { return Flow::Stop },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Answers what has been asked since the last look.
    async fn answer_requests(&mut self) {
        loop {
            let Some(server) = self.bound.as_mut().and_then(|bound| bound.server.as_mut()) else {
                return;
            };
            let (peer, frames) = match now_or_none(server.recv()).await {
                Some(Ok(request)) => request,
                Some(Err(error)) => {
                    tracing::warn!(%error, "the replay socket failed to receive");
                    return;
                }
                None => return,
            };
            let Some(start) = ring::parse_request(&frames) else {
                count(&self.links.counters.malformed_requests);
                continue;
            };
            count(&self.links.counters.requests);
            match send_replies(server, &peer, &self.ring, start, &self.plan).await {
                Ok(sent) => {
                    self.links.counters.replayed.fetch_add(sent, Ordering::Relaxed);
                }
                Err(error) => tracing::debug!(%error, "a replay was cut short"),
            }
        }
    }

    /// Closes both sockets, waits, and binds them again at the same addresses with an empty ring.
    async fn new_life(&mut self) -> Result<Flow, TransportError> {
        if let Some(bound) = self.bound.take() {
            bound.close(self.plan.flush).await;
        }
        self.ring = Ring::new(self.plan.ring);
        tokio::select! {
            () = sleep(self.plan.pause) => {}
            () = stopped(&mut self.links.gate) => return Ok(Flow::Stop),
        }
        let mut tries = 0;
        let bound = loop {
            let replay = self.addresses.replay.as_ref();
            match Bound::bind(&self.transport, &self.addresses.publish, replay).await {
                Ok(bound) => break bound,
                Err(error) if tries == REBIND_TRIES => return Err(error),
                Err(error) => tracing::debug!(%error, tries, "binding again"),
            }
            tries += 1;
            tokio::select! {
                () = sleep(REBIND_EVERY) => {}
                () = stopped(&mut self.links.gate) => return Ok(Flow::Stop),
            }
        };
        self.bound = Some(bound);
        self.next_poll = Instant::now() + self.plan.replay_poll;
        Ok(Flow::On)
    }
}

async fn stopped(gate: &mut watch::Receiver<Gate>) {
    // An error means that the handle is gone, which is a stop as well.
    let _ = gate.wait_for(|gate| *gate == Gate::Stop).await;
}

async fn send_replies(
    server: &mut impl Server,
    peer: &Bytes,
    ring: &Ring,
    start: u64,
    plan: &PlayPlan,
) -> Result<u64, TransportError> {
    let mut sent = 0;
    for message in ring.from(start) {
        server.send(peer, ring::reply(plan.layout, message)).await?;
        sent += 1;
        if sent % TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
    server.send(peer, ring::end_marker(plan.layout)).await?;
    Ok(sent)
}

/// What `future` has ready now. It is polled once, so it must be cancel-safe.
async fn now_or_none<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = ready(()) => None,
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
