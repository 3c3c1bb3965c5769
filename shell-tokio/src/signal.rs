//! Being told to end.

/// Resolves on ctrl-c or, on Unix, SIGTERM. Both are listened for from the call on, not only from
/// the first poll: a signal that comes in between is not lost and does not kill the process. One that
/// cannot be listened for is never seen; the other one still is.
///
/// Must be called within a tokio runtime.
pub fn interrupt() -> impl Future<Output = ()> {
    let (ctrl_c, terminate) = (ctrl_c(), terminate());
    async {
        tokio::select! {
            () = ctrl_c => {}
            () = terminate => {}
        }
    }
}

#[cfg(unix)]
fn ctrl_c() -> impl Future<Output = ()> {
    listen(tokio::signal::unix::SignalKind::interrupt(), "ctrl-c")
}

#[cfg(unix)]
fn terminate() -> impl Future<Output = ()> {
    listen(tokio::signal::unix::SignalKind::terminate(), "SIGTERM")
}

#[cfg(unix)]
fn listen(kind: tokio::signal::unix::SignalKind, name: &'static str) -> impl Future<Output = ()> {
    let listening = tokio::signal::unix::signal(kind);
    async move {
        match listening {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot listen for {name}");
                core::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(not(unix))]
async fn ctrl_c() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "cannot listen for ctrl-c");
        core::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
async fn terminate() {
    core::future::pending::<()>().await;
}
