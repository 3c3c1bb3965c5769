//! The `kvmirror` command line: which command, where its output goes, how it ends.

use crate::commands::{
    CommandError, EXIT_FAILED, EXIT_FOUND, decode, mirror, predict, replay, serve,
};
use crate::demo::{self, DemoArgs};
use crate::player::args::PlayArgs;
use crate::player::command as play_command;
use crate::ui::Ui;
use clap::{Parser, Subcommand};
use std::env;
use std::error::Error;
use std::io::{self, BufWriter, IsTerminal, StdoutLock};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Mirror the KV caches of an inference fleet, exactly.
#[derive(Parser, Clone, Debug)]
#[command(name = "kvmirror", version, after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Results go to standard output, progress and log lines to standard error. KVMIRROR_LOG (or RUST_LOG)
chooses the log lines, for example KVMIRROR_LOG=info.

Exit codes: 0 all is well, 1 the command worked and found something wrong (its --help says what),
2 wrong arguments, or something could not be read, opened or written.";

// A variant's own doc comment would hide the long help of its arguments.
#[derive(Subcommand, Clone, Debug)]
enum Command {
    Demo(DemoArgs),
    Serve(serve::ServeArgs),
    Play(PlayArgs),
    Decode(decode::DecodeArgs),
    Mirror(mirror::MirrorArgs),
    Predict(predict::PredictArgs),
    Replay(replay::ReplayArgs),
}

/// Reads the arguments of this process and does what they say.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut ui = Ui::stderr();
    start_log(&mut ui);
    let result = match &cli.command {
        Command::Demo(args) => online(async { Ok(verdict(demo::run(args).await?)) }),
        Command::Serve(args) => online(async {
            serve::run(args.clone(), &mut ui).await?;
            Ok(ExitCode::SUCCESS)
        }),
        Command::Play(args) => {
            online(async { Ok(play_command::run(args.clone(), &mut ui).await?) })
        }
        Command::Decode(args) => offline(&mut ui, |out, ui| decode::run(args, out, ui)),
        Command::Mirror(args) => offline(&mut ui, |out, ui| mirror::run(args, out, ui)),
        Command::Predict(args) => offline(&mut ui, |out, ui| predict::run(args, out, ui)),
        Command::Replay(args) => offline(&mut ui, |out, ui| replay::run(args, out, ui)),
    };
    result.unwrap_or_else(|error| {
        ui.line(&format!("error: {error}"));
        ExitCode::from(EXIT_FAILED)
    })
}

/// Log lines go to standard error: warnings and errors, unless the environment says otherwise.
fn start_log(ui: &mut Ui<io::Stderr>) {
    let chosen = ["KVMIRROR_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|text| !text.is_empty()).map(|t| (name, t)));
    let filter = chosen.and_then(|(name, text)| {
        let filter = EnvFilter::try_new(&text);
        filter.inspect_err(|error| ui.line(&format!("note: {name} is left out: {error}"))).ok()
    });
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// Runs a command that needs sockets.
fn online(
    command: impl Future<Output = Result<ExitCode, Box<dyn Error>>>,
) -> Result<ExitCode, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(command);
    // A name that is still being looked up must not hold the process.
    runtime.shutdown_background();
    result
}

fn verdict(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) }
}

/// Runs a command that writes to standard output. A reader that has seen enough is no failure.
fn offline(
    ui: &mut Ui<io::Stderr>,
    run: impl FnOnce(
        &mut BufWriter<StdoutLock<'static>>,
        &mut Ui<io::Stderr>,
    ) -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = BufWriter::new(io::stdout().lock());
    match run(&mut out, ui) {
        Err(error) if error.is_closed_pipe() => {
            // What is still buffered has nowhere to go.
            let _ = out.into_parts();
            Ok(ExitCode::SUCCESS)
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn work_that_cannot_be_cancelled_does_not_hold_the_end() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let blocked = std::thread::spawn(move || {
            let result = online(async {
                tokio::task::spawn_blocking(move || released.recv());
                tokio::task::yield_now().await;
                Ok(ExitCode::SUCCESS)
            });
            result.is_ok()
        });
        let started = std::time::Instant::now();
        while !blocked.is_finished() && started.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(blocked.is_finished());
        drop(release);
        assert!(blocked.join().unwrap());
    }

    #[test]
    fn every_command_documents_its_exit_codes() {
        for name in ["demo", "serve", "play", "decode", "mirror", "predict", "replay"] {
            let mut cli = Cli::command();
            let command = cli.find_subcommand_mut(name).expect("a command");
            let help = command.render_long_help().to_string();
            assert!(help.contains("Exit codes: 0"), "{help}");
        }
        assert_eq!((EXIT_FOUND, EXIT_FAILED), (1, 2));
    }

    #[test]
    fn the_long_help_of_the_arguments_is_shown() {
        for (name, words) in [("play", "ROUTER"), ("mirror", "gap"), ("predict", "At least one")] {
            let mut cli = Cli::command();
            let command = cli.find_subcommand_mut(name).expect("a command");
            assert!(command.render_long_help().to_string().contains(words), "{name}");
        }
    }
}
