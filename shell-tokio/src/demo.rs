//! `kvmirror demo`: the whole system in one process, on loopback sockets.
//!
//! Engines play real captures with seeded loss and one restart; the follower and its HTTP API mirror
//! them; a live table shows how; a few prompts are asked for over HTTP; at the end each mirror is
//! compared with the table the engine itself had when the capture was recorded.

mod ask;
mod engines;
mod proof;
mod table;

use crate::backend::BackendError;
use crate::config::ServeConfig;
use crate::player::{PlayError, Player, PlayerHandle};
use crate::serve::{ServeError, Service};
use crate::transport::zeromq::ZeroMq;
use ask::AskError;
use clap::Args;
use engines::{Engine, EngineError};
use kvmirror_core::router::Trust;
use proof::{Proof, RankProof};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use table::Table;
use tokio::time::{Instant, sleep_until};

/// How long the last losses may take to heal once every engine has said everything.
const HEALING: Duration = Duration::from_secs(15);

/// How long the connections may take.
const CONNECTING: Duration = Duration::from_secs(15);

/// Run the whole system in one process and prove that every mirror equals its engine.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit codes: 0 every mirror equals its engine's own table, 1 one does not, \
                        2 something could not be started."
)]
pub struct DemoArgs {
    /// How long the engines play.
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Seed of the losses.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Print one JSON object at the end instead of table and text.
    #[arg(long)]
    pub json: bool,
    /// Falsify one block on the way, to see that the proof fails.
    #[arg(long, hide = true)]
    pub tamper: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
    if (0.0..=3_600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("write 0 (unpaced) to 3600".to_owned())
    }
}

/// What keeps the demo from running to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The service did not start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// An engine did not start.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A built-in capture cannot be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A call over HTTP failed.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The follower did not answer.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The engines were not connected in time.
    #[error("the follower did not reach every engine within {CONNECTING:?}; is loopback blocked?")]
    NotConnected,
    /// The output is gone.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

/// Runs the demo. True when every mirror equals its engine.
///
/// # Errors
/// [`DemoError`] when it cannot run to its end.
pub async fn run(args: &DemoArgs) -> Result<bool, DemoError> {
    let mut out = io::stdout();
    let terminal = out.is_terminal();
    let mut config = ServeConfig::default();
    config.listen.set_port(0);
    let service = Service::start(&config).await?;
    let outcome = play(args, &service, terminal, &mut out).await;
    service.stop().await;
    let proof = outcome?;
    if args.json {
        serde_json::to_writer(&mut out, &proof).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{proof}")?;
    }
    Ok(proof.equal)
}

async fn play(
    args: &DemoArgs,
    service: &Service,
    terminal: bool,
    out: &mut impl Write,
) -> Result<Proof, DemoError> {
    let engines = engines::all(args.tamper)?;
    let mut players = Vec::with_capacity(engines.len());
    for engine in &engines {
        let player = Player::start(ZeroMq, engine.plan(args.seconds, args.seed)).await?;
        ask::register(service.address, engine, &player).await?;
        players.push(player);
    }
    connected(service, engines.len()).await?;
    if !args.json {
        writeln!(out, "HTTP API on http://{}; {} engines:", service.address, engines.len())?;
        for engine in &engines {
            writeln!(out, "  {:<14} {}", engine.name, engine.story)?;
        }
        writeln!(out)?;
    }
    for player in &players {
        player.release();
    }
    watch(service, &engines, &players, (!args.json).then_some((terminal, &mut *out))).await?;
    if !args.json {
        for answer in ask::prompts(service.address, &engines).await? {
            writeln!(out, "{answer}")?;
        }
        writeln!(out)?;
    }
    prove(service, &engines).await
}

/// Waits until every rank's transport is up.
async fn connected(service: &Service, ranks: usize) -> Result<(), DemoError> {
    let patience = Instant::now() + CONNECTING;
    loop {
        let rows = service.follower.ranks().await?;
        let up = rows.iter().filter(|row| row.trust > Trust::Fenced).count();
        if up == ranks {
            return Ok(());
        }
        if Instant::now() >= patience {
            return Err(DemoError::NotConnected);
        }
        sleep_until(Instant::now() + Duration::from_millis(20)).await;
    }
}

/// Shows the table until every engine has said everything and every rank is level with it, or the
/// time for healing is over.
async fn watch(
    service: &Service,
    engines: &[Engine],
    players: &[PlayerHandle],
    out: Option<(bool, &mut impl Write)>,
) -> Result<(), DemoError> {
    let (terminal, mut out) = match out {
        Some((terminal, out)) => (terminal, Some(out)),
        None => (false, None),
    };
    let mut table = Table::new(terminal);
    let every = Duration::from_millis(if terminal { 200 } else { 2_000 });
    let mut shown = Instant::now();
    let mut healing: Option<Instant> = None;
    loop {
        let rows = service.follower.ranks().await?;
        if let Some(out) = out.as_mut()
            && Instant::now() >= shown
        {
            table.show(&rows, *out)?;
            shown = Instant::now() + every;
        }
        let played = players.iter().all(PlayerHandle::has_played);
        let level = rows.iter().all(|row| {
            let last = engines.iter().find(|engine| engine.name == row.instance);
            row.trust == Trust::Exact && last.is_some_and(|engine| row.cursor == Some(engine.last))
        });
        if played && level {
            break;
        }
        let patience = *healing.get_or_insert_with(|| Instant::now() + HEALING);
        if !played {
            healing = None;
        } else if Instant::now() >= patience {
            break;
        }
        sleep_until(Instant::now() + Duration::from_millis(50)).await;
    }
    if let Some(out) = out {
        table.show(&service.follower.ranks().await?, out)?;
    }
    Ok(())
}

async fn prove(service: &Service, engines: &[Engine]) -> Result<Proof, DemoError> {
    let mut ranks = Vec::new();
    for row in service.follower.ranks().await? {
        let Some(engine) = engines.iter().find(|engine| engine.name == row.instance) else {
            continue;
        };
        let blocks = service.follower.blocks(row.key).await?;
        ranks.push(RankProof::of(&row, engine, &blocks));
    }
    Ok(Proof::of(ranks, engines.len()))
}
