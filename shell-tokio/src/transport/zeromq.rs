//! The transport on the `zeromq` crate, for trusted peers.
//!
//! The crate's own reconnection is never used: a socket serves one connection, and a lost one is
//! dropped and replaced under this module's backoff. That leaves out the crate's silent ways to go
//! deaf while reconnecting, its unlimited reconnect handshake and its 30 s backoff. What cannot be
//! wrapped away: a peer that announces a frame of absurd size aborts the process, a message may have
//! any number of parts, and a publisher that sends ZMTP heartbeats breaks each connection (seen as
//! [`super::DownReason::Broken`] again and again; turn them off at the engine).

mod bound;
mod close_watch;
mod requester;
mod subscriber;

pub use bound::{ZmqPublisher, ZmqServer};
pub use requester::ZmqRequester;
pub use subscriber::ZmqSubscriber;

use super::{Endpoint, SubscribeOptions, Transport, TransportError};
use ::zeromq::{SocketOptions, ZmqError};
use std::time::Duration;

/// Makes `zeromq` sockets. Needs a running tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeroMq;

impl Transport for ZeroMq {
    type Subscriber = ZmqSubscriber;
    type Requester = ZmqRequester;
    type Publisher = ZmqPublisher;
    type Server = ZmqServer;

    fn subscribe(&self, endpoint: Endpoint, options: SubscribeOptions) -> ZmqSubscriber {
        ZmqSubscriber::new(endpoint, options)
    }

    async fn request(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<ZmqRequester, TransportError> {
        ZmqRequester::connect(endpoint, timeout).await
    }

    async fn publish(&self, at: &Endpoint) -> Result<ZmqPublisher, TransportError> {
        ZmqPublisher::bind(at).await
    }

    async fn serve(&self, at: &Endpoint) -> Result<ZmqServer, TransportError> {
        ZmqServer::bind(at).await
    }
}

fn socket_options(connect_timeout: Duration) -> SocketOptions {
    let mut options = SocketOptions::default();
    options.connect_timeout(connect_timeout);
    options
}

fn connect_error(endpoint: &Endpoint, error: &ZmqError) -> TransportError {
    if let ZmqError::ConnectTimeout(after) = error {
        return TransportError::ConnectTimeout { endpoint: endpoint.clone(), after: *after };
    }
    TransportError::Connect { endpoint: endpoint.clone(), reason: error.to_string() }
}
