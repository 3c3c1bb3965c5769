//! `kvmirror play`.

use super::args::PlayArgs;
use super::{PlayError, PlayProgress, Player, PlayerHandle};
use crate::capture::{Capture, CaptureError};
use crate::signal::interrupt;
use crate::transport::zeromq::ZeroMq;
use crate::ui::Ui;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Why `kvmirror play` failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// It cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// Something of this process failed.
    #[error("{0}")]
    Process(String),
}

/// Plays a capture until it ends, ctrl-c or SIGTERM. Progress goes to `ui`; nothing is written elsewhere.
///
/// # Errors
/// When the capture cannot be read or an address cannot be bound. An interruption is no error.
pub async fn run<W: Write>(args: PlayArgs, ui: &mut Ui<W>) -> Result<ExitCode, CommandError> {
    let interrupt = interrupt();
    let path = args.capture.clone();
    let capture = tokio::task::spawn_blocking(move || Capture::read(&path))
        .await
        .map_err(|error| CommandError::Process(error.to_string()))??;
    let total = capture.len();
    let plan = args.plan(capture.ranks);
    let lives: Vec<(u32, usize, usize)> =
        plan.streams.iter().map(|s| (s.rank, s.len(), s.lives.len())).collect();
    let mut player = Player::start(ZeroMq, plan).await?;
    for (played, (rank, messages, lives)) in player.ranks().iter().zip(lives) {
        let replay = played.replay.as_ref().map(ToString::to_string).unwrap_or_default();
        ui.line(&format!(
            "rank {rank}: {messages} messages, {lives} {}, publish {}, replay {replay}",
            if lives == 1 { "life" } else { "lives" },
            played.publish,
        ));
    }
    let open = [&args.publish, &args.replay].into_iter().filter(|address| !address.is_local());
    for address in open {
        ui.line(&format!("note: {address} is open to other machines, without authentication"));
    }
    let interrupted = watch(&mut player, total, interrupt, ui).await?;
    let progress = player.wait().await?;
    let how = if interrupted { "interrupted" } else { "done" };
    ui.line(&format!("{how}: {}", describe(&progress, total)));
    Ok(ExitCode::SUCCESS)
}

/// Shows progress until the player ends. True when it was ended by a signal.
async fn watch<W: Write>(
    player: &mut PlayerHandle,
    total: usize,
    interrupt: impl Future<Output = ()>,
    ui: &mut Ui<W>,
) -> Result<bool, CommandError> {
    let every = Duration::from_millis(if ui.is_terminal() { 200 } else { 5_000 });
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = PlayProgress::default();
    let mut interrupted = false;
    tokio::pin!(interrupt);
    loop {
        tokio::select! {
            joined = player.joined() => {
                joined?;
                return Ok(interrupted);
            }
            () = &mut interrupt, if !interrupted => {
                interrupted = true;
                player.stop();
            }
            _ = ticks.tick() => {
                let progress = player.progress();
                // An idle player says nothing again and again on a log.
                if progress != shown {
                    ui.progress(&describe(&progress, total));
                    shown = progress;
                }
            }
        }
    }
}

fn describe(progress: &PlayProgress, total: usize) -> String {
    let PlayProgress { published, dropped, lost, lives, requests, malformed_requests, replayed } =
        progress;
    let mut text = format!("published {published} of {total}");
    for (count, what) in [
        (dropped, "dropped"),
        (lost, "lost before numbering"),
        (malformed_requests, "malformed requests"),
    ] {
        if *count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push_str(&format!("; lives {lives}; replay requests {requests}, messages {replayed}"));
    text
}
