//! Bound sockets: PUB and ROUTER.

use super::super::{Endpoint, Frames, Host, Publisher, Server, TransportError};
use ::zeromq::{Listener, PubSocket, RouterSocket, Socket, SocketRecv, SocketSend, ZmqMessage};
use bytes::Bytes;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// How long a reply may wait for room in its peer's queue.
const SEND_PATIENCE: Duration = Duration::from_secs(1);

/// A PUB. Each subscriber has a queue of 100,000 messages of whatever size in the crate; beyond it
/// the newest are lost without a sign.
pub struct ZmqPublisher {
    local: Endpoint,
    socket: PubSocket,
}

/// A ROUTER.
pub struct ZmqServer {
    local: Endpoint,
    socket: RouterSocket,
}

impl std::fmt::Debug for ZmqPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqPublisher").field("local", &self.local).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ZmqServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqServer").field("local", &self.local).finish_non_exhaustive()
    }
}

impl ZmqPublisher {
    pub(super) async fn bind(at: &Endpoint) -> Result<Self, TransportError> {
        let mut socket = PubSocket::new();
        let local = bind(&mut socket, at).await?;
        Ok(Self { local, socket })
    }
}

impl ZmqServer {
    pub(super) async fn bind(at: &Endpoint) -> Result<Self, TransportError> {
        let mut socket = RouterSocket::new();
        let local = bind(&mut socket, at).await?;
        Ok(Self { local, socket })
    }

    fn send_error(&self, reason: impl Into<String>) -> TransportError {
        TransportError::Send { endpoint: self.local.clone(), reason: reason.into() }
    }
}

impl Publisher for ZmqPublisher {
    fn local(&self) -> &Endpoint {
        &self.local
    }

    async fn send(&mut self, frames: Frames) -> Result<(), TransportError> {
        let send = |reason: String| TransportError::Send { endpoint: self.local.clone(), reason };
        let message = ZmqMessage::try_from(frames).map_err(|e| send(e.to_string()))?;
        let failed = self.socket.send(message).await.err();
        failed.map_or(Ok(()), |e| Err(send(e.to_string())))
    }

    async fn close(self, flush: Duration) {
        // The crate has no linger: what its fan-out task has not picked up is lost with the socket.
        tokio::time::sleep(flush).await;
        log_unbind(&self.local, &self.socket.close().await);
    }
}

impl Server for ZmqServer {
    fn local(&self) -> &Endpoint {
        &self.local
    }

    async fn recv(&mut self) -> Result<(Bytes, Frames), TransportError> {
        let receive =
            |reason: String| TransportError::Receive { endpoint: self.local.clone(), reason };
        let message = self.socket.recv().await.map_err(|e| receive(e.to_string()))?;
        let mut frames = message.into_vecdeque();
        let peer =
            frames.pop_front().ok_or_else(|| receive("a message without parts".to_owned()))?;
        Ok((peer, frames.into()))
    }

    async fn send(&mut self, peer: &Bytes, mut frames: Frames) -> Result<(), TransportError> {
        frames.insert(0, peer.clone());
        let message = ZmqMessage::try_from(frames).map_err(|e| self.send_error(e.to_string()))?;
        match tokio::time::timeout(SEND_PATIENCE, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.send_error(error.to_string())),
            Err(_) => Err(self.send_error("the peer does not read its replies")),
        }
    }

    async fn close(self, flush: Duration) {
        tokio::time::sleep(flush).await;
        log_unbind(&self.local, &self.socket.close().await);
    }
}

fn log_unbind(local: &Endpoint, errors: &[::zeromq::ZmqError]) {
    for error in errors {
        tracing::warn!(endpoint = %local, %error, "closing a bound socket");
    }
}

async fn bind(socket: &mut impl Socket, at: &Endpoint) -> Result<Endpoint, TransportError> {
    let failed = |reason: String| TransportError::Bind { endpoint: at.clone(), reason };
    let (listener, local) = listen(at).await.map_err(|e| failed(e.to_string()))?;
    socket.bind_listener(listener).await.map_err(|e| failed(e.to_string()))?;
    Ok(local)
}

async fn listen(at: &Endpoint) -> io::Result<(Listener, Endpoint)> {
    match at {
        Endpoint::Tcp { host, port } => {
            let listener = match host {
                Host::Ip(ip) => tokio::net::TcpListener::bind((*ip, *port)).await?,
                Host::Name(name) => tokio::net::TcpListener::bind((name.as_str(), *port)).await?,
            };
            let port = listener.local_addr()?.port();
            let local = Endpoint::Tcp { host: host.clone(), port };
            Ok((listener.into_std()?.into(), local))
        }
        Endpoint::Ipc { path } => {
            unlink_stale(path)?;
            let listener = std::os::unix::net::UnixListener::bind(path)?;
            Ok((listener.into(), at.clone()))
        }
    }
}

/// Removes a socket file that nobody listens on any more; a killed publisher leaves it behind. A
/// file that is no socket, or one that answers, is left alone and the bind fails on it.
fn unlink_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Ok(());
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
