//! One event source: a task that keeps a subscription and hands its messages on.
//!
//! The task never waits for its receiver. A message that finds the channel full is dropped and
//! counted, and the receiver is told of the discontinuity as soon as there is room, so overload
//! becomes a recovery and never silence (P05). `Up` and `Down` are never dropped: they wait in a
//! queue of at most two, because an older pair says nothing that a newer one does not.

use crate::transport::{
    DownReason, Endpoint, Frames, SubEvent, SubscribeOptions, Subscriber, Transport,
};
use bytes::Bytes;
use kvmirror_core::id::EventId;
use kvmirror_core::wire::frames::{FrameError, parse_live};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What to follow, and under which name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Comes back with every event; of no meaning here.
    pub source: u64,
    /// The publisher.
    pub endpoint: Endpoint,
    /// Topic prefix, timeouts, backoff and watchdog.
    pub subscribe: SubscribeOptions,
}

/// An event and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInput {
    /// [`SourceConfig::source`].
    pub source: u64,
    /// The event.
    pub event: SourceEvent,
}

/// What a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// Connected and subscribed; what was published before may have been missed.
    Up,
    /// A discontinuity; an `Up` follows when the source is heard again.
    Down {
        /// Why.
        reason: DownReason,
    },
    /// One message.
    Message {
        /// Its sequence.
        seq: EventId,
        /// Its payload, undecoded.
        payload: Bytes,
        /// When it was taken from the socket.
        received: Instant,
    },
    /// A message that is none; its neighbours are unaffected.
    BadFrames {
        /// What is wrong with it.
        what: FrameError,
    },
}

/// Sequence and payload of a live message. The topic was matched by the subscription and may be
/// empty (Mooncake).
fn parse_message(frames: &Frames) -> Result<(EventId, Bytes), FrameError> {
    let seq = parse_live(frames)?.seq;
    Ok((seq, frames.last().cloned().unwrap_or_default()))
}

/// Counters of one source; all only rise.
#[derive(Debug, Default)]
pub struct SourceCounters {
    messages: AtomicU64,
    overflow: AtomicU64,
    bad_frames: AtomicU64,
    downs: AtomicU64,
}

impl SourceCounters {
    /// Messages handed on.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Messages dropped because the channel was full.
    pub fn overflow(&self) -> u64 {
        self.overflow.load(Ordering::Relaxed)
    }

    /// Messages that could not be read.
    pub fn bad_frames(&self) -> u64 {
        self.bad_frames.load(Ordering::Relaxed)
    }

    /// Discontinuities of the connection.
    pub fn downs(&self) -> u64 {
        self.downs.load(Ordering::Relaxed)
    }
}

/// A running source. Dropping it ends the task.
#[derive(Debug)]
pub struct SourceHandle {
    counters: Arc<SourceCounters>,
    task: JoinHandle<()>,
}

impl SourceHandle {
    /// The source's counters.
    pub const fn counters(&self) -> &Arc<SourceCounters> {
        &self.counters
    }

    /// Whether the task has ended, which it does when the receiver is gone.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends the task and waits until its socket is dropped.
    pub async fn stop(mut self) {
        self.task.abort();
        if let Err(error) = (&mut self.task).await
            && error.is_panic()
        {
            tracing::error!(%error, "a source task panicked");
        }
    }
}

impl Drop for SourceHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows a publisher: starts the task that owns its subscription. It ends when the handle or the
/// receiver of `out` is dropped.
///
/// Must be called within a tokio runtime.
pub fn spawn_source<T: Transport>(
    transport: &T,
    config: SourceConfig,
    out: mpsc::Sender<SourceInput>,
) -> SourceHandle {
    let subscriber = transport.subscribe(config.endpoint, config.subscribe);
    let counters = Arc::new(SourceCounters::default());
    let outlet = Outlet {
        source: config.source,
        out,
        waiting: VecDeque::with_capacity(2),
        counters: Arc::clone(&counters),
    };
    SourceHandle { counters, task: tokio::spawn(run(subscriber, outlet)) }
}

async fn run(mut subscriber: impl Subscriber, mut outlet: Outlet) {
    let out = outlet.out.clone();
    loop {
        tokio::select! {
            event = subscriber.recv() => outlet.take(event),
            flushed = outlet.flush(), if outlet.is_waiting() => if !flushed { return },
            () = out.closed() => return,
        }
    }
}

/// The way to the receiver.
struct Outlet {
    source: u64,
    out: mpsc::Sender<SourceInput>,
    /// Control events that found no room: nothing, an `Up`, a `Down`, or a `Down` and its `Up`.
    waiting: VecDeque<SourceEvent>,
    counters: Arc<SourceCounters>,
}

impl Outlet {
    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn take(&mut self, event: SubEvent) {
        match event {
            SubEvent::Up => self.control(SourceEvent::Up),
            SubEvent::Down { reason } => {
                self.counters.downs.fetch_add(1, Ordering::Relaxed);
                self.control(SourceEvent::Down { reason });
            }
            SubEvent::Message(frames) => match parse_message(&frames) {
                Ok((seq, payload)) => {
                    let received = Instant::now();
                    self.data(SourceEvent::Message { seq, payload, received });
                }
                Err(what) => {
                    self.counters.bad_frames.fetch_add(1, Ordering::Relaxed);
                    self.data(SourceEvent::BadFrames { what });
                }
            },
        }
    }

    /// Never dropped, never out of order: behind what already waits. Of several waiting pairs the
    /// last one stays, for it covers the others.
    fn control(&mut self, event: SourceEvent) {
        if self.waiting.is_empty() {
            if let Err(event) = self.try_send(event) {
                self.waiting.push_back(event);
            }
            return;
        }
        if matches!(event, SourceEvent::Down { .. }) {
            self.waiting.clear();
        }
        self.waiting.push_back(event);
    }

    /// Dropped and counted when there is no room. While control events wait, messages behind them
    /// have no room either; the `Up` that waits makes the receiver look for them.
    fn data(&mut self, event: SourceEvent) {
        if self.waiting.is_empty() && self.try_send(event).is_ok() {
            self.counters.messages.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let dropped = self.counters.overflow.fetch_add(1, Ordering::Relaxed) + 1;
        if self.waiting.is_empty() {
            let reason = DownReason::Overflow(dropped);
            self.waiting.extend([SourceEvent::Down { reason }, SourceEvent::Up]);
        }
    }

    fn try_send(&self, event: SourceEvent) -> Result<(), SourceEvent> {
        use mpsc::error::TrySendError;
        self.out.try_send(SourceInput { source: self.source, event }).map_err(|error| match error {
            TrySendError::Full(input) | TrySendError::Closed(input) => input.event,
        })
    }

    /// Waits for room and sends the oldest waiting event. False when the receiver is gone.
    async fn flush(&mut self) -> bool {
        let Ok(permit) = self.out.reserve().await else { return false };
        if let Some(event) = self.waiting.pop_front() {
            permit.send(SourceInput { source: self.source, event });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlet(room: usize) -> (Outlet, mpsc::Receiver<SourceInput>) {
        let (out, rx) = mpsc::channel(room);
        let counters = Arc::new(SourceCounters::default());
        (Outlet { source: 7, out, waiting: VecDeque::new(), counters }, rx)
    }

    fn message(seq: u64) -> SubEvent {
        let seq = Bytes::copy_from_slice(&seq.to_be_bytes());
        SubEvent::Message(vec![Bytes::new(), seq, Bytes::from_static(b"p")])
    }

    fn name(input: &SourceInput) -> String {
        match &input.event {
            SourceEvent::Up => "up".to_owned(),
            SourceEvent::Down { reason } => format!("down {}", reason.code()),
            SourceEvent::Message { seq, .. } => seq.to_string(),
            SourceEvent::BadFrames { what } => what.to_string(),
        }
    }

    #[test]
    fn sequence_and_payload_are_taken_apart() {
        let seq = Bytes::copy_from_slice(&9_u64.to_be_bytes());
        let part = Bytes::from_static(b"x");
        let good = vec![Bytes::new(), seq.clone(), part.clone()];
        assert_eq!(parse_message(&good), Ok((EventId(9), part)));
        assert!(matches!(parse_message(&vec![seq]), Err(FrameError::Count { got: 1, .. })));
    }

    #[tokio::test]
    async fn overflow_is_counted_and_told_once_as_a_discontinuity() {
        let (mut outlet, mut rx) = outlet(2);
        for seq in 0..5 {
            outlet.take(message(seq));
        }
        assert_eq!(outlet.counters.overflow(), 3);
        assert_eq!(outlet.waiting.len(), 2);
        let mut seen = Vec::new();
        while outlet.is_waiting() {
            seen.push(name(&rx.recv().await.unwrap()));
            assert!(outlet.flush().await);
        }
        outlet.take(message(5));
        assert_eq!(outlet.counters.overflow(), 4, "the channel is full of the pair");
        rx.close();
        while let Some(input) = rx.recv().await {
            seen.push(name(&input));
        }
        assert_eq!(seen, ["0", "1", "down overflow", "up"]);
    }

    #[tokio::test]
    async fn waiting_control_events_stay_at_most_a_pair_and_in_order() {
        let (mut outlet, mut rx) = outlet(1);
        outlet.take(message(0));
        for _ in 0..10 {
            outlet.take(SubEvent::Down { reason: DownReason::Closed });
            outlet.take(SubEvent::Up);
            outlet.take(message(1));
            assert!(outlet.waiting.len() <= 2);
        }
        assert_eq!(outlet.counters.downs(), 10);
        let mut seen = vec![name(&rx.recv().await.unwrap())];
        while outlet.is_waiting() {
            assert!(outlet.flush().await);
            seen.push(name(&rx.recv().await.unwrap()));
        }
        outlet.take(message(2));
        seen.push(name(&rx.recv().await.unwrap()));
        assert_eq!(seen, ["0", "down closed", "up", "2"]);
    }
}
