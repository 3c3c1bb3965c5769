//! Being told to end.

/// Waits for ctrl-c or, on Unix, SIGTERM. A signal that cannot be listened for is never seen; the
/// other one still is.
pub async fn interrupt() {
    tokio::select! {
        () = ctrl_c() => {}
        () = terminate() => {}
    }
}

async fn ctrl_c() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "cannot listen for ctrl-c");
        core::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot listen for SIGTERM");
            core::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminate() {
    core::future::pending::<()>().await;
}
