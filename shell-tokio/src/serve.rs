//! The router-side service: a follower and its HTTP API in one process.

use crate::backend::{Backend, BackendError};
use crate::config::{ConfigError, ServeConfig};
use crate::follower::{Follower, FollowerError, FollowerOptions, IngressMessages};
use crate::http;
use crate::transport::zeromq::ZeroMq;
use kvmirror_core::mirror::MirrorOptions;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Why the service could not start or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The follower cannot start.
    #[error(transparent)]
    Follower(#[from] FollowerError),
    /// The HTTP address cannot be bound.
    #[error(
        "cannot listen on {address}: {source}; choose another `listen` address or stop its owner"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's word.
        source: io::Error,
    },
    /// A configured source was refused.
    #[error("source {instance}, rank {rank}: {error}")]
    Source {
        /// The instance.
        instance: String,
        /// The rank.
        rank: u32,
        /// Why.
        error: BackendError,
    },
    /// The HTTP server ended by itself.
    #[error("the HTTP server ended: {0}")]
    Http(io::Error),
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    /// Where the HTTP API listens.
    pub address: SocketAddr,
    /// The follower behind it.
    pub follower: Follower,
    running: JoinHandle<()>,
    server: JoinHandle<io::Result<()>>,
    shutdown: oneshot::Sender<()>,
}

impl Service {
    /// Binds the HTTP address, starts the follower and registers the configured sources.
    ///
    /// # Errors
    /// [`ServeError`]; nothing is left running then.
    pub async fn start(config: &ServeConfig) -> Result<Self, ServeError> {
        let registrations = config.registrations()?;
        let address = config.listen;
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let policy = config.follow.policy(0);
        let options = FollowerOptions {
            mirror: MirrorOptions { policy, ..MirrorOptions::default() },
            registry: config.registry_limits(),
            subscribe: config.follow.subscribe_options(""),
            replay: config.follow.replay_limits(),
            ingress_messages: IngressMessages(config.follow.ingress_messages as usize),
            record: config.record.clone(),
        };
        let (follower, running) = Follower::start(ZeroMq, options, random())?;
        for registration in registrations {
            let (instance, rank) = (registration.instance.clone(), registration.rank);
            if let Err(error) = follower.register(registration).await {
                follower.stop().await;
                let instance = instance.as_str().to_owned();
                return Err(ServeError::Source { instance, rank: rank.0, error });
            }
        }
        let (shutdown, told) = oneshot::channel::<()>();
        let app = http::router(Arc::new(follower.clone()), config.http_options());
        let server = tokio::spawn(async move {
            let told = async {
                // Told, or whoever would tell is gone.
                let _ = told.await;
            };
            axum::serve(listener, app).with_graceful_shutdown(told).await
        });
        Ok(Self { address, follower, running, server, shutdown })
    }

    /// Waits until the service fails; never returns while it is well.
    pub async fn failed(&mut self) -> ServeError {
        let ended = tokio::select! {
            ended = &mut self.server => ended,
            ended = &mut self.running => ended.map(Ok),
        };
        ServeError::Http(match ended {
            Ok(Ok(())) => io::Error::other("it stopped"),
            Ok(Err(error)) => error,
            Err(error) => io::Error::other(error),
        })
    }

    /// Stops following, lets open requests end for at most two seconds, and closes everything.
    pub async fn stop(mut self) {
        self.follower.stop().await;
        // The server may have ended already.
        let _ = self.shutdown.send(());
        let grace = std::time::Duration::from_secs(2);
        // What `failed` has seen the end of must not be waited for again: nor need it be.
        if !self.server.is_finished()
            && tokio::time::timeout(grace, &mut self.server).await.is_err()
        {
            self.server.abort();
        }
        if !self.running.is_finished()
            && let Err(error) = self.running.await
        {
            tracing::error!(%error, "the follower's loop panicked");
        }
    }
}

/// Random numbers from the standard library's hasher keys: not secret, but different in every
/// process and every call, which is all that publisher ids and jitter need.
pub fn random() -> impl FnMut() -> u64 + Send + Sync + 'static {
    let keys = RandomState::new();
    let mut drawn = 0_u64;
    move || {
        drawn += 1;
        let mut hasher = keys.build_hasher();
        hasher.write_u64(drawn);
        hasher.finish()
    }
}
