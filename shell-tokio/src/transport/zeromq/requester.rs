//! A DEALER for one question.

use super::super::{Endpoint, Frames, Requester, TransportError};
use super::close_watch::CloseWatch;
use super::{connect_error, socket_options};
use ::zeromq::{DealerSocket, Socket, SocketRecv, SocketSend, ZmqMessage};
use std::time::Duration;

/// One DEALER connection. It does not reconnect; dropping it closes it.
pub struct ZmqRequester {
    endpoint: Endpoint,
    socket: DealerSocket,
    closed: CloseWatch,
}

impl std::fmt::Debug for ZmqRequester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqRequester").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl ZmqRequester {
    pub(super) async fn connect(
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Self, TransportError> {
        let mut socket = DealerSocket::with_options(socket_options(timeout));
        // Before the connection: the monitor must not miss its end.
        let closed = CloseWatch::of(&mut socket);
        socket.connect(&endpoint.to_string()).await.map_err(|e| connect_error(endpoint, &e))?;
        Ok(Self { endpoint: endpoint.clone(), socket, closed })
    }
}

impl Requester for ZmqRequester {
    async fn send(&mut self, frames: Frames) -> Result<(), TransportError> {
        let send =
            |reason: String| TransportError::Send { endpoint: self.endpoint.clone(), reason };
        let message = ZmqMessage::try_from(frames).map_err(|e| send(e.to_string()))?;
        let failed = self.socket.send(message).await.err();
        failed.map_or(Ok(()), |e| Err(send(e.to_string())))
    }

    async fn recv(&mut self) -> Result<Frames, TransportError> {
        tokio::select! {
            // What has arrived is taken before the end is believed.
            biased;
            got = self.socket.recv() => got.map(ZmqMessage::into_vec).map_err(|e| {
                TransportError::Receive { endpoint: self.endpoint.clone(), reason: e.to_string() }
            }),
            () = self.closed.wait() => {
                Err(TransportError::Closed { endpoint: self.endpoint.clone() })
            }
        }
    }
}
