//! A SUB that lives through the end of its connections.

use super::super::{Backoff, DownReason, Endpoint, Frames, SubEvent, SubscribeOptions, Subscriber};
use super::close_watch::CloseWatch;
use super::{connect_error, socket_options};
use crate::transport::{Host, TransportError};
use ::zeromq::{Socket, SocketRecv, SubSocket};
use std::pin::Pin;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// A connection that lasted this long, or brought a message, counts as sound: the next loss starts
/// the backoff over.
const SOUND: Duration = Duration::from_secs(5);

/// A subscription with one connection at a time, each on a socket of its own.
pub struct ZmqSubscriber {
    endpoint: Endpoint,
    options: SubscribeOptions,
    backoff: Backoff,
    state: State,
    /// Whether a `Down` was the last thing said about the connection.
    said_down: bool,
    /// The last attempt failed: look before the crate is asked, see [`probe`].
    unreachable: bool,
}

enum State {
    Start,
    Connecting(Attempt),
    Waiting(Pin<Box<Sleep>>),
    Live(Box<Live>),
}

impl std::fmt::Debug for ZmqSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqSubscriber").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl ZmqSubscriber {
    pub(super) fn new(endpoint: Endpoint, options: SubscribeOptions) -> Self {
        let backoff = Backoff::new(options.backoff.0, options.backoff.1);
        Self {
            endpoint,
            options,
            backoff,
            state: State::Start,
            said_down: false,
            unreachable: false,
        }
    }

    fn wait(&mut self) -> State {
        let wait = self.backoff.next_wait();
        tracing::debug!(endpoint = %self.endpoint, ?wait, "waiting before the next connection attempt");
        State::Waiting(Box::pin(sleep(wait)))
    }

    /// The attempt ended: `Some` is to be reported.
    fn attempted(&mut self, outcome: Result<Live, TransportError>) -> Option<SubEvent> {
        match outcome {
            Ok(live) => {
                self.state = State::Live(Box::new(live));
                self.said_down = false;
                self.unreachable = false;
                Some(SubEvent::Up)
            }
            Err(error) => {
                self.state = self.wait();
                self.unreachable = true;
                let first = !self.said_down;
                self.said_down = true;
                first.then_some(SubEvent::Down { reason: DownReason::Unreachable(error) })
            }
        }
    }

    /// The connection ended. After silence the next attempt is made at once; after a loss it waits,
    /// so that a peer that accepts and drops is not hammered.
    fn lost(&mut self, reason: DownReason, sound: bool) -> SubEvent {
        if sound {
            self.backoff.reset();
        }
        self.state =
            if matches!(reason, DownReason::Silence(_)) { State::Start } else { self.wait() };
        self.said_down = true;
        SubEvent::Down { reason }
    }
}

impl Subscriber for ZmqSubscriber {
    async fn recv(&mut self) -> SubEvent {
        loop {
            match &mut self.state {
                State::Start => {
                    let attempt = connect(
                        self.endpoint.clone(),
                        self.options.clone(),
                        // Not the first time: a stray connection is the price of knowing.
                        self.unreachable,
                    );
                    self.state = State::Connecting(Attempt(tokio::spawn(attempt)));
                }
                State::Connecting(attempt) => {
                    let outcome = attempt.outcome(&self.endpoint).await;
                    if let Some(event) = self.attempted(outcome) {
                        return event;
                    }
                }
                State::Waiting(sleep) => {
                    sleep.as_mut().await;
                    self.state = State::Start;
                }
                State::Live(live) => match live.next(self.options.silence).await {
                    Ok(frames) => return SubEvent::Message(frames),
                    Err(reason) => {
                        let sound = live.heard || live.since.elapsed() >= SOUND;
                        return self.lost(reason, sound);
                    }
                },
            }
        }
    }
}

/// A connection attempt in a task of its own; dropping it ends the attempt.
struct Attempt(JoinHandle<Result<Live, TransportError>>);

impl Attempt {
    async fn outcome(&mut self, endpoint: &Endpoint) -> Result<Live, TransportError> {
        (&mut self.0).await.unwrap_or_else(|error| {
            Err(TransportError::Connect { endpoint: endpoint.clone(), reason: error.to_string() })
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One connected socket.
struct Live {
    socket: SubSocket,
    closed: CloseWatch,
    since: Instant,
    /// Whether it has brought a message.
    heard: bool,
    /// When it brought the last one.
    last: Instant,
    watchdog: Pin<Box<Sleep>>,
}

impl Live {
    async fn next(&mut self, silence: Option<Duration>) -> Result<Frames, DownReason> {
        loop {
            tokio::select! {
                // What has arrived is taken before the end is believed.
                biased;
                got = self.socket.recv() => {
                    let message = got.map_err(|error| DownReason::Broken(error.to_string()))?;
                    self.heard = true;
                    self.last = Instant::now();
                    return Ok(message.into_vec());
                }
                () = self.closed.wait() => return Err(DownReason::Closed),
                () = self.watchdog.as_mut(), if silence.is_some() => {
                    // Moved only when it fires, not on every message.
                    let limit = silence.unwrap_or(Duration::MAX);
                    let due = self.last + limit;
                    if Instant::now() >= due {
                        return Err(DownReason::Silence(limit));
                    }
                    self.watchdog.as_mut().reset(due);
                }
            }
        }
    }
}

async fn connect(
    endpoint: Endpoint,
    options: SubscribeOptions,
    probe_first: bool,
) -> Result<Live, TransportError> {
    if probe_first {
        probe(&endpoint, options.connect_timeout).await?;
    }
    let mut socket = SubSocket::with_options(socket_options(options.connect_timeout));
    let closed = CloseWatch::of(&mut socket);
    socket.connect(&endpoint.to_string()).await.map_err(|e| connect_error(&endpoint, &e))?;
    // Subscribing after connecting, not before: a subscription that cannot be written is then an
    // error here, where the crate would otherwise keep a socket that never hears anything.
    let subscribed =
        tokio::time::timeout(options.connect_timeout, socket.subscribe(&options.topic));
    match subscribed.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(connect_error(&endpoint, &error)),
        Err(_) => {
            return Err(TransportError::ConnectTimeout {
                endpoint,
                after: options.connect_timeout,
            });
        }
    }
    let now = Instant::now();
    let first_check = now + options.silence.unwrap_or(Duration::from_secs(3_600));
    let watchdog = Box::pin(sleep_until(first_check));
    Ok(Live { socket, closed, since: now, heard: false, last: now, watchdog })
}

/// One plain connection attempt. The crate retries a refused connection by itself, many times
/// within its timeout; an endpoint known to be dead gets one packet per backoff instead (P36).
async fn probe(endpoint: &Endpoint, timeout: Duration) -> Result<(), TransportError> {
    let attempt = async {
        match endpoint {
            Endpoint::Tcp { host: Host::Ip(ip), port } => {
                tokio::net::TcpStream::connect((*ip, *port)).await.map(drop)
            }
            Endpoint::Tcp { host: Host::Name(name), port } => {
                tokio::net::TcpStream::connect((name.as_str(), *port)).await.map(drop)
            }
            Endpoint::Ipc { path } => tokio::net::UnixStream::connect(path).await.map(drop),
        }
    };
    match tokio::time::timeout(timeout, attempt).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            Err(TransportError::Connect { endpoint: endpoint.clone(), reason: error.to_string() })
        }
        Err(_) => {
            Err(TransportError::ConnectTimeout { endpoint: endpoint.clone(), after: timeout })
        }
    }
}
