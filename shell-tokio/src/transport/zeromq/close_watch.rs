//! Learning that a connection ended.

use ::zeromq::{Socket, SocketEvent};
use std::future::Future;
use std::pin::Pin;

/// Resolves once the only connection of a socket has ended. `recv` of the crate does not say so: on
/// a clean close it just goes quiet. The monitor event is raised while `recv` is polled, after the
/// last message of the connection was handed out.
pub(super) struct CloseWatch(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl CloseWatch {
    /// Starts watching; to be called before the socket connects.
    pub(super) fn of(socket: &mut impl Socket) -> Self {
        let mut monitor = socket.monitor();
        Self(Some(Box::pin(async move {
            while let Ok(event) = monitor.recv().await {
                if matches!(event, SocketEvent::Disconnected(_)) {
                    return;
                }
            }
        })))
    }

    /// Waits for the end; returns at once when it has been seen before.
    pub(super) async fn wait(&mut self) {
        if let Some(ended) = self.0.as_mut() {
            ended.as_mut().await;
            self.0 = None;
        }
    }
}
