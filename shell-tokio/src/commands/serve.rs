//! `kvmirror serve`: the router-side service until it is interrupted.

use crate::config::{ConfigError, ServeConfig};
use crate::record::RecordOptions;
use crate::serve::{ServeError, Service};
use crate::signal::interrupt;
use crate::ui::Ui;
use clap::Args;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Follow sources and answer prefix queries over HTTP.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit codes: 0 ended by ctrl-c or SIGTERM, 2 it could not start or failed.")]
pub struct ServeArgs {
    /// Configuration file (TOML). Without one, every setting has its default.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the HTTP API; wins over the file. Default 127.0.0.1:7117.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A source to follow, as key=value pairs separated by commas; may be repeated. Example:
    /// instance=engine-a,endpoint=tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5558,model=m,block_size=16
    /// (further keys: rank, tenant, topic, lora, salt, type, duplicates=counted|set, eagle,
    /// image_token_id, video_token_id).
    #[arg(long = "source", value_name = "PAIRS")]
    pub sources: Vec<String>,
    /// Record what the machine is fed and what it wants into a new file, for `kvmirror replay`.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Record what messages say as well: they hold prompts' token ids.
    #[arg(long, requires = "record")]
    pub payloads: bool,
    /// Bytes after which the recording ends; the service goes on.
    #[arg(long, value_name = "BYTES", requires = "record", default_value_t = 1 << 30)]
    pub record_max_bytes: u64,
}

impl ServeArgs {
    /// The configuration that file and options add up to.
    ///
    /// # Errors
    /// Every [`ConfigError`].
    pub fn configuration(&self) -> Result<ServeConfig, ConfigError> {
        let mut config = match &self.config {
            Some(path) => ServeConfig::load(path)?,
            None => ServeConfig::default(),
        };
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        config.add_sources(&self.sources)?;
        config.record = self.record.as_ref().map(|path| RecordOptions {
            path: path.clone(),
            max_bytes: self.record_max_bytes,
            payloads: self.payloads,
        });
        config.checked("--listen")?;
        Ok(config)
    }
}

/// Runs the service until ctrl-c or SIGTERM.
///
/// # Errors
/// [`ServeError`] when it cannot start or ends by itself.
pub async fn run<W: Write>(args: ServeArgs, ui: &mut Ui<W>) -> Result<(), ServeError> {
    let config = args.configuration()?;
    let interrupted = interrupt();
    let mut service = Service::start(&config).await?;
    ui.line(&format!(
        "listening on http://{}, following {} configured sources; ctrl-c ends",
        service.address,
        config.sources.len()
    ));
    let failed = tokio::select! {
        error = service.failed() => Some(error),
        () = interrupted => None,
    };
    ui.line("stopping");
    service.stop().await;
    failed.map_or(Ok(()), Err)
}
