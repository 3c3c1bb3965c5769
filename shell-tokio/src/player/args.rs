//! The arguments of `kvmirror play`.

use super::{DropRule, PlayPlan, ReplayLayout, Speed};
use crate::capture::RankStream;
use crate::transport::Endpoint;
use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time an option takes, in seconds: ten years.
const LONGEST_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;

/// Publish a capture exactly as the engine did.
///
/// Opens a PUB socket and a replay socket (ROUTER) and plays the capture with the engine's own
/// topics, sequence numbers, payloads and timing. Of a capture with several data-parallel ranks,
/// rank r is published at port + r of both addresses. Where the capture holds a second life of the
/// engine, both sockets close for 0.2 s in between. After the last message, replay is served until
/// interrupted.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(
    after_help = "Exit codes: 0 played, or ended by ctrl-c or SIGTERM; 2 the capture cannot be \
                        read or an address cannot be bound."
)]
pub struct PlayArgs {
    /// Capture to play: JSON Lines, plain or gzip.
    pub capture: PathBuf,

    /// Address to publish at.
    #[arg(long = "pub", value_name = "ADDR", default_value = "tcp://127.0.0.1:5557",
          value_parser = Endpoint::parse_bind)]
    pub publish: Endpoint,

    /// Address to serve replay at.
    #[arg(long, value_name = "ADDR", default_value = "tcp://127.0.0.1:5558",
          value_parser = Endpoint::parse_bind)]
    pub replay: Endpoint,

    /// Times as fast as captured; 0 = unpaced, as fast as it goes.
    #[arg(long, value_name = "X", default_value = "1", value_parser = parse_speed)]
    pub speed: Speed,

    /// At the end, close both sockets for 0.2 s and begin a new life with the first message,
    /// sequence 0 and an empty ring; for ever.
    #[arg(long = "loop")]
    pub repeat: bool,

    /// Messages that the replay ring holds, per rank.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub ring: usize,

    /// Drop each message on the way with this probability (0 to 1). It stays in the ring.
    #[arg(long = "drop", value_name = "P", conflicts_with = "drop_every",
          value_parser = parse_probability)]
    pub drop: Option<f64>,

    /// Drop every Nth message of a rank on the way. It stays in the ring.
    #[arg(long, value_name = "N")]
    pub drop_every: Option<NonZeroU64>,

    /// Lose every Nth message of a rank before it is numbered: later ones are renumbered, no gap
    /// shows, and the ring does not have it.
    #[arg(long, value_name = "N")]
    pub lose: Option<NonZeroU64>,

    /// Seed of --drop; the same seed drops the same messages.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,

    /// After this sequence, close both sockets for 0.2 s and begin a new life: the capture from its
    /// first message, sequence 0, empty ring. Once per rank.
    #[arg(long, value_name = "SEQ")]
    pub restart_at: Option<u64>,

    /// Milliseconds between two looks at replay requests.
    #[arg(long, value_name = "MS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub replay_poll: u64,

    /// Seconds to serve replay after the last message [default: until interrupted].
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub linger: Option<Duration>,

    /// How replies look: vLLM from 0.26 and SGLang from 0.5.22 send the topic, older ones do not.
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = LayoutArg::WithTopic)]
    pub replay_layout: LayoutArg,
}

/// [`ReplayLayout`] on the command line.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutArg {
    /// Empty frame, topic, sequence, payload.
    WithTopic,
    /// Empty frame, sequence, payload.
    WithoutTopic,
}

impl PlayArgs {
    /// The plan these arguments ask for, over what was read from [`PlayArgs::capture`].
    pub fn plan(&self, streams: Vec<RankStream>) -> PlayPlan {
        let drop = match (self.drop, self.drop_every) {
            (Some(probability), _) => DropRule::Probability(probability),
            (None, Some(every)) => DropRule::Every(every),
            (None, None) => DropRule::Never,
        };
        PlayPlan {
            speed: self.speed,
            repeat: self.repeat,
            ring: self.ring,
            drop,
            lose: self.lose,
            seed: self.seed,
            restart_at: self.restart_at,
            replay_poll: Duration::from_millis(self.replay_poll),
            linger: self.linger,
            layout: match self.replay_layout {
                LayoutArg::WithTopic => ReplayLayout::WithTopic,
                LayoutArg::WithoutTopic => ReplayLayout::WithoutTopic,
            },
            ..PlayPlan::new(streams, self.publish.clone(), Some(self.replay.clone()))
        }
    }
}

fn parse_number(text: &str, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=max).contains(&number) {
        return Ok(number);
    }
    Err(format!("must be from 0 to {max}"))
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    let factor = parse_number(text, 1e9)?;
    Ok(if factor == 0.0 { Speed::Unpaced } else { Speed::Paced(factor) })
}

fn parse_probability(text: &str) -> Result<f64, String> {
    parse_number(text, 1.0)
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_number(text, LONGEST_SECONDS).map(Duration::from_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Cli {
        #[command(flatten)]
        play: PlayArgs,
    }

    fn parse(args: &[&str]) -> Result<PlayArgs, String> {
        let all = ["play", "c.jsonl"].iter().chain(args);
        Cli::try_parse_from(all).map(|cli| cli.play).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_an_engine_on_loopback_without_faults() {
        let plan = parse(&[]).unwrap().plan(Vec::new());
        let replay = Some(Endpoint::loopback(5558));
        assert_eq!(plan, PlayPlan::new(Vec::new(), Endpoint::loopback(5557), replay));
    }

    #[test]
    fn every_option_reaches_the_plan() {
        let args = "--pub tcp://0.0.0.0:7000 --replay tcp://[::1]:8000 --speed 0 --loop --ring 5 \
                    --drop 0.5 --lose 7 --seed 9 --restart-at 11 --replay-poll 20 --linger 1.5 \
                    --replay-layout without-topic";
        let args: Vec<&str> = args.split_whitespace().collect();
        let plan = parse(&args).unwrap().plan(Vec::new());
        assert_eq!(plan.publish.to_string(), "tcp://0.0.0.0:7000");
        assert_eq!(plan.replay.unwrap().to_string(), "tcp://[::1]:8000");
        assert_eq!((plan.speed, plan.repeat, plan.ring), (Speed::Unpaced, true, 5));
        assert_eq!(plan.drop, DropRule::Probability(0.5));
        assert_eq!((plan.lose, plan.seed), (NonZeroU64::new(7), 9));
        assert_eq!(plan.restart_at, Some(11));
        assert_eq!(plan.replay_poll, Duration::from_millis(20));
        assert_eq!(plan.linger, Some(Duration::from_millis(1_500)));
        assert_eq!(plan.layout, ReplayLayout::WithoutTopic);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "--pub tcp://*:0",
            "--pub inproc://x",
            "--speed -1",
            "--speed nan",
            "--drop 1.5",
            "--drop 0.1 --drop-every 3",
            "--drop-every 0",
            "--lose 0",
            "--replay-poll 0",
            "--linger inf",
        ] {
            let args: Vec<&str> = bad.split_whitespace().collect();
            assert!(parse(&args).is_err(), "{bad}");
        }
    }
}
