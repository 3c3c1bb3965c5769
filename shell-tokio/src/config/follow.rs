//! `[follow]`: timings and limits of following sources (`system.md` §6).

use super::{BadValue, duration};
use core::time::Duration;
use serde::Deserialize;

/// How sources are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowConfig {
    /// `probe_interval`: how often a rank without live messages asks its source whether there is
    /// anything newer. Default `"1s"`. `0` = never.
    #[serde(deserialize_with = "duration::deserialize")]
    pub probe_interval: Duration,
    /// `silence`: after how long without a live message or an answered probe a rank is no longer
    /// called `exact`. Default `"5s"`. `0` = never.
    #[serde(deserialize_with = "duration::deserialize")]
    pub silence: Duration,
    /// `recovery_attempts`: attempts of one recovery. Default 8.
    pub recovery_attempts: u32,
    /// `recovery_backoff`: wait after the first failed attempt, doubling. Default `"200ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_backoff: Duration,
    /// `recovery_timeout`: longest time of one attempt. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_timeout: Duration,
    /// `recovery_jitter`: largest random wait before a first attempt. Default `"3ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_jitter: Duration,
    /// `recovery_concurrency`: recoveries at a time, all ranks together. Default 16.
    pub recovery_concurrency: u32,
    /// `pending_messages`: live messages a rank holds back while it recovers. Default 1024.
    pub pending_messages: u32,
    /// `pending_bytes`: their payloads, in bytes. Default 67108864 (64 MiB).
    pub pending_bytes: u64,
    /// `heal_backoff`: wait before a fenced rank is tried again, doubling. Default `"1s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff: Duration,
    /// `heal_backoff_max`: cap of it. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff_max: Duration,
    /// `connect_timeout`: longest time of one connection attempt. Default `"5s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub connect_timeout: Duration,
    /// `reconnect_backoff`: wait between connection attempts while a connection was lost for less
    /// than `reconnect_eager`. Default `"100ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff: Duration,
    /// `reconnect_eager`: how long after a loss attempts stay that frequent; afterwards the wait
    /// doubles, so that an endpoint that is gone is not hammered. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_eager: Duration,
    /// `reconnect_backoff_max`: cap of the wait. Default `"5s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff_max: Duration,
    /// `ingress_messages`: messages a reader may be ahead of the follower, per source. Default
    /// 8192. Beyond, messages are dropped and counted, which the follower sees as a gap.
    pub ingress_messages: u32,
}

impl Default for FollowConfig {
    fn default() -> Self {
        Self {
            probe_interval: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            recovery_attempts: 8,
            recovery_backoff: Duration::from_millis(200),
            recovery_timeout: Duration::from_secs(30),
            recovery_jitter: Duration::from_millis(3),
            recovery_concurrency: 16,
            pending_messages: 1_024,
            pending_bytes: 64 << 20,
            heal_backoff: Duration::from_secs(1),
            heal_backoff_max: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            reconnect_backoff: Duration::from_millis(100),
            reconnect_eager: Duration::from_secs(30),
            reconnect_backoff_max: Duration::from_secs(5),
            ingress_messages: 8_192,
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
            ("pending_messages", self.pending_messages, 1, 1 << 20),
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
        for (key, value) in [
            ("recovery_backoff", self.recovery_backoff),
            ("recovery_timeout", self.recovery_timeout),
            ("heal_backoff", self.heal_backoff),
            ("connect_timeout", self.connect_timeout),
            ("reconnect_backoff", self.reconnect_backoff),
        ] {
            if value < SHORTEST {
                return Err(bad(key, format_args!("{value:?}"), "write at least \"1ms\"".into()));
            }
        }
        if !self.probe_interval.is_zero() && self.probe_interval < SHORTEST {
            let fix = "write at least \"1ms\", or 0 for never".to_owned();
            return Err(bad("probe_interval", format_args!("{:?}", self.probe_interval), fix));
        }
        for (key, cap, first) in [
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
}

fn bad(key: &str, value: impl core::fmt::Display, fix: String) -> BadValue {
    BadValue::new(format!("follow.{key}"), format!("{value} is out of range"), fix)
}
