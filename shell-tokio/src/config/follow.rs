//! `[follow]`: timings and limits of following sources (`system.md` §6).

use super::{BadValue, duration};
use crate::replay::ReplayLimits;
use crate::transport::SubscribeOptions;
use core::time::Duration;
use kvmirror_core::router::Policy;
use kvmirror_core::time::Micros;
use serde::Deserialize;

/// How sources are followed: the router machine's policy and the transport's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowConfig {
    /// `probe_interval`: quiet time after which a raw engine is asked for its tail; doubles while
    /// it stays quiet. Default `"1s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub probe_interval: Duration,
    /// `probe_interval_max`: longest wait between two probes of a quiet engine. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub probe_interval_max: Duration,
    /// `silence`: a connection to a source with a replay endpoint that says nothing for this long is
    /// dropped and built anew, since one that died without a sign looks like a quiet one. `0` =
    /// never. Default `"5m"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub silence: Duration,
    /// `recovery_attempts`: attempts of one recovery. Default `8`.
    pub recovery_attempts: u32,
    /// `recovery_backoff`: wait after the first failed attempt, doubling. Default `"200ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_backoff: Duration,
    /// `recovery_timeout`: longest time of one attempt. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_timeout: Duration,
    /// `recovery_idle`: longest pause within the answer to one attempt. Default `"2s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_idle: Duration,
    /// `recovery_jitter`: largest random wait before a recovery from the beginning. Default
    /// `"3ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_jitter: Duration,
    /// `recovery_concurrency`: recoveries at a time, all ranks together. Default `16`.
    pub recovery_concurrency: u32,
    /// `recovery_rounds`: how often a hole is asked for again before it counts as one that nobody
    /// can fill. Default `3`.
    pub recovery_rounds: u32,
    /// `repair_backoff`: wait before a failed recovery is tried again in the background,
    /// doubling. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub repair_backoff: Duration,
    /// `repair_backoff_max`: cap of it. Default `"10m"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub repair_backoff_max: Duration,
    /// `heal_backoff`: wait before a fenced rank is tried again, doubling. Default `"1s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff: Duration,
    /// `heal_backoff_max`: cap of it. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff_max: Duration,
    /// `pending_events`: live events a rank holds back while it recovers. Default `1024`.
    pub pending_events: u32,
    /// `pending_bytes`: their payloads, in bytes. Default `8388608`.
    pub pending_bytes: u64,
    /// `ingress_messages`: messages a source may be ahead of the follower; beyond, they are
    /// dropped, counted and recovered as a gap. Default `8192`.
    pub ingress_messages: u32,
    /// `connect_timeout`: longest time of one connection attempt, handshake included. Default
    /// `"2s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub connect_timeout: Duration,
    /// `reconnect_backoff`: first wait between connection attempts, doubling. Default `"100ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff: Duration,
    /// `reconnect_backoff_max`: cap of it. Default `"5s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff_max: Duration,
}

impl Default for FollowConfig {
    fn default() -> Self {
        Self {
            probe_interval: Duration::from_secs(1),
            probe_interval_max: Duration::from_secs(30),
            silence: Duration::from_secs(300),
            recovery_attempts: 8,
            recovery_backoff: Duration::from_millis(200),
            recovery_timeout: Duration::from_secs(30),
            recovery_idle: Duration::from_secs(2),
            recovery_jitter: Duration::from_millis(3),
            recovery_concurrency: 16,
            recovery_rounds: 3,
            repair_backoff: Duration::from_secs(30),
            repair_backoff_max: Duration::from_secs(600),
            heal_backoff: Duration::from_secs(1),
            heal_backoff_max: Duration::from_secs(30),
            pending_events: 1_024,
            pending_bytes: 8 << 20,
            ingress_messages: 8_192,
            connect_timeout: Duration::from_secs(2),
            reconnect_backoff: Duration::from_millis(100),
            reconnect_backoff_max: Duration::from_secs(5),
        }
    }
}

/// Shortest wait or timeout that is not a busy loop.
const SHORTEST: Duration = Duration::from_millis(1);

impl FollowConfig {
    /// Refuses what would spin, never end, or hold nothing.
    pub(super) fn check(&self) -> Result<(), BadValue> {
        for (key, value, min, max) in [
            ("recovery_attempts", self.recovery_attempts, 1, 64),
            ("recovery_concurrency", self.recovery_concurrency, 1, 4_096),
            ("recovery_rounds", self.recovery_rounds, 1, 64),
            ("pending_events", self.pending_events, 1, 1 << 20),
            ("ingress_messages", self.ingress_messages, 1, 1 << 20),
        ] {
            if !(min..=max).contains(&value) {
                return Err(bad(key, value, format!("write an integer from {min} to {max}")));
            }
        }
        if self.pending_bytes < 1_024 {
            let fix = "allow at least 1024 bytes".to_owned();
            return Err(bad("pending_bytes", self.pending_bytes, fix));
        }
        let waits = [
            ("probe_interval", self.probe_interval),
            ("recovery_backoff", self.recovery_backoff),
            ("recovery_timeout", self.recovery_timeout),
            ("recovery_idle", self.recovery_idle),
            ("repair_backoff", self.repair_backoff),
            ("heal_backoff", self.heal_backoff),
            ("connect_timeout", self.connect_timeout),
            ("reconnect_backoff", self.reconnect_backoff),
        ];
        for (key, value) in waits {
            if value < SHORTEST {
                return Err(bad(key, format_args!("{value:?}"), "write at least \"1ms\"".into()));
            }
        }
        for (key, cap, first) in [
            ("probe_interval_max", self.probe_interval_max, self.probe_interval),
            ("repair_backoff_max", self.repair_backoff_max, self.repair_backoff),
            ("heal_backoff_max", self.heal_backoff_max, self.heal_backoff),
            ("reconnect_backoff_max", self.reconnect_backoff_max, self.reconnect_backoff),
        ] {
            if cap < first {
                let fix = "write at least the wait it caps".to_owned();
                return Err(bad(key, format_args!("{cap:?}"), fix));
            }
        }
        Ok(())
    }

    /// The policy of the router machine; `seed` is that of its jitter.
    pub fn policy(&self, seed: u64) -> Policy {
        Policy {
            seed,
            attempts: self.recovery_attempts,
            backoff_base: micros(self.recovery_backoff),
            attempt_timeout: micros(self.recovery_timeout),
            jitter_max: micros(self.recovery_jitter),
            concurrency: self.recovery_concurrency,
            pending_events: self.pending_events,
            pending_bytes: usize::try_from(self.pending_bytes).unwrap_or(usize::MAX),
            rounds: self.recovery_rounds,
            heal_base: micros(self.heal_backoff),
            heal_max: micros(self.heal_backoff_max),
            probe_first: micros(self.probe_interval),
            probe_max: micros(self.probe_interval_max),
            repair_base: micros(self.repair_backoff),
            repair_max: micros(self.repair_backoff_max),
            ..Policy::default()
        }
    }

    /// The limits of one question to a replay socket.
    pub fn replay_limits(&self) -> ReplayLimits {
        ReplayLimits {
            connect: self.connect_timeout,
            idle: self.recovery_idle,
            // What came until then must reach the machine before its own deadline: it is progress.
            total: self.recovery_timeout.mul_f64(0.9),
            ..ReplayLimits::default()
        }
    }

    /// The options of a subscription to `topic`.
    pub fn subscribe_options(&self, topic: &str) -> SubscribeOptions {
        SubscribeOptions {
            topic: topic.to_owned(),
            connect_timeout: self.connect_timeout,
            backoff: (self.reconnect_backoff, self.reconnect_backoff_max),
            silence: (!self.silence.is_zero()).then_some(self.silence),
        }
    }
}

/// Whole microseconds; a configured duration is at most a day.
fn micros(duration: Duration) -> Micros {
    Micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn bad(key: &str, value: impl core::fmt::Display, fix: String) -> BadValue {
    BadValue::new(format!("follow.{key}"), format!("{value} is out of range"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_machines() {
        let config = FollowConfig::default();
        assert_eq!(config.policy(0), Policy::default());
        assert_eq!(config.replay_limits(), ReplayLimits::default());
        assert_eq!(config.subscribe_options(""), SubscribeOptions::default());
    }

    #[test]
    fn silence_can_be_switched_off() {
        let config = FollowConfig { silence: Duration::ZERO, ..FollowConfig::default() };
        assert_eq!(config.subscribe_options("kv").silence, None);
        assert_eq!(config.subscribe_options("kv").topic, "kv");
    }
}
