//! Message transport behind one narrow trait family: subscribe, request, publish, serve.
//!
//! A [`Transport`] makes four kinds of sockets. The rest of the shell is generic over it, so that
//! another implementation can replace [`zeromq`] without a change elsewhere.
//!
//! Every future of these traits is cancel-safe: one that is dropped before it is ready has lost no
//! message (a [`Subscriber`] keeps connecting where it was when `recv` is called again).

mod backoff;
mod endpoint;
pub mod zeromq;

pub use backoff::Backoff;
pub use endpoint::{Endpoint, EndpointError, Host};

use bytes::Bytes;
use std::future::Future;
use std::time::Duration;

/// The parts of one multipart message.
pub type Frames = Vec<Bytes>;

/// What went wrong on a socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Nothing answered (not even a refusal that lasted) within the time allowed.
    #[error("{endpoint}: no connection within {after:?}; is the other side up and speaking ZMTP?")]
    ConnectTimeout {
        /// Where to.
        endpoint: Endpoint,
        /// The time allowed.
        after: Duration,
    },
    /// The connection attempt failed.
    #[error("{endpoint}: cannot connect: {reason}")]
    Connect {
        /// Where to.
        endpoint: Endpoint,
        /// What the system or the protocol said.
        reason: String,
    },
    /// The address cannot be bound.
    #[error("{endpoint}: cannot bind: {reason}; choose another address or stop its owner")]
    Bind {
        /// The address.
        endpoint: Endpoint,
        /// What the system said.
        reason: String,
    },
    /// The other side closed the connection.
    #[error("{endpoint}: connection closed by the other side")]
    Closed {
        /// Whose connection.
        endpoint: Endpoint,
    },
    /// A message could not be handed to the socket.
    #[error("{endpoint}: cannot send: {reason}")]
    Send {
        /// The socket's address.
        endpoint: Endpoint,
        /// What the socket said.
        reason: String,
    },
    /// Receiving failed.
    #[error("{endpoint}: cannot receive: {reason}")]
    Receive {
        /// The socket's address.
        endpoint: Endpoint,
        /// What the socket said.
        reason: String,
    },
}

/// Why a subscription is, or was, not connected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownReason {
    /// The publisher could not be reached. Reported once per outage; retries go on.
    Unreachable(TransportError),
    /// The publisher closed the connection.
    Closed,
    /// The connection broke, or the peer said something that cannot be read.
    Broken(String),
    /// Nothing came for this long; the socket was dropped and is being built anew, because a
    /// connection that is dead without a sign looks the same as a quiet one.
    Silence(Duration),
    /// The receiver of the messages was too slow and this many were dropped (raised by
    /// [`crate::source`], never by a transport).
    Overflow(u64),
}

impl DownReason {
    /// The stable snake_case code, for metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Closed => "closed",
            Self::Broken(_) => "broken",
            Self::Silence(_) => "silence",
            Self::Overflow(_) => "overflow",
        }
    }
}

/// What a subscription says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubEvent {
    /// Connected and subscribed. Messages from before may have been missed.
    Up,
    /// Not connected; an [`SubEvent::Up`] follows when it is again. Any such pair is a discontinuity
    /// of the stream, whether or not a gap shows (P06).
    Down {
        /// Why.
        reason: DownReason,
    },
    /// One message.
    Message(Frames),
}

/// How a subscription behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Prefix of the first frame; empty = everything. One per socket.
    pub topic: String,
    /// Time for one connection attempt including the handshake.
    pub connect_timeout: Duration,
    /// First and largest wait between attempts, before jitter.
    pub backoff: (Duration, Duration),
    /// A socket that is silent for this long is dropped and built anew; `None` = never.
    pub silence: Option<Duration>,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            topic: String::new(),
            connect_timeout: Duration::from_secs(2),
            backoff: (Duration::from_millis(100), Duration::from_secs(5)),
            silence: Some(Duration::from_secs(300)),
        }
    }
}

/// Makes sockets.
pub trait Transport: Clone + Send + Sync + 'static {
    /// A subscription to one publisher.
    type Subscriber: Subscriber;
    /// A question to one server.
    type Requester: Requester;
    /// A bound publisher.
    type Publisher: Publisher;
    /// A bound server.
    type Server: Server;

    /// A subscription to the publisher at `endpoint`. Nothing happens before the first
    /// [`Subscriber::recv`]; an absent publisher is not an error.
    fn subscribe(&self, endpoint: Endpoint, options: SubscribeOptions) -> Self::Subscriber;

    /// Connects a fresh socket for one question to the server at `endpoint`.
    ///
    /// # Errors
    /// When there is no connection within `timeout`.
    fn request(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self::Requester, TransportError>> + Send;

    /// Binds a publisher. Port 0 takes a free port; [`Publisher::local`] says which.
    ///
    /// # Errors
    /// When the address cannot be bound. A stale IPC path is unlinked first.
    fn publish(
        &self,
        at: &Endpoint,
    ) -> impl Future<Output = Result<Self::Publisher, TransportError>> + Send;

    /// Binds a server. Port 0 takes a free port; [`Server::local`] says which.
    ///
    /// # Errors
    /// When the address cannot be bound. A stale IPC path is unlinked first.
    fn serve(
        &self,
        at: &Endpoint,
    ) -> impl Future<Output = Result<Self::Server, TransportError>> + Send;
}

/// A subscription that connects, reconnects and says so.
pub trait Subscriber: Send + 'static {
    /// The next event. Never ends: a lost connection is retried with jittered backoff for ever.
    fn recv(&mut self) -> impl Future<Output = SubEvent> + Send;
}

/// One question and its replies. Dropping it closes the connection.
pub trait Requester: Send {
    /// Sends one message.
    ///
    /// # Errors
    /// When the connection is gone.
    fn send(&mut self, frames: Frames) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// The next reply.
    ///
    /// # Errors
    /// When the connection is gone; there is no reconnection.
    fn recv(&mut self) -> impl Future<Output = Result<Frames, TransportError>> + Send;
}

/// A bound publisher.
pub trait Publisher: Send + 'static {
    /// Where it is bound.
    fn local(&self) -> &Endpoint;

    /// Hands one message to every subscriber whose topic matches. Never waits: a subscriber that
    /// is too slow loses it.
    ///
    /// # Errors
    /// When the socket refuses it.
    fn send(&mut self, frames: Frames) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Gives what is queued up to `flush` to leave, then closes. The address is free afterwards.
    fn close(self, flush: Duration) -> impl Future<Output = ()> + Send;
}

/// A bound server: requests in, any number of replies out.
pub trait Server: Send + 'static {
    /// Where it is bound.
    fn local(&self) -> &Endpoint;

    /// The next request: who asks, and the frames after the identity.
    ///
    /// # Errors
    /// When the socket is broken.
    fn recv(&mut self) -> impl Future<Output = Result<(Bytes, Frames), TransportError>> + Send;

    /// Sends one message to `peer`; waits at most a second for room in its queue.
    ///
    /// # Errors
    /// When the peer is gone or does not read.
    fn send(
        &mut self,
        peer: &Bytes,
        frames: Frames,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Gives what is queued up to `flush` to leave, then closes. The address is free afterwards.
    fn close(self, flush: Duration) -> impl Future<Output = ()> + Send;
}
