//! Timings and limits of following sources (`system.md` §6).

use super::{BadValue, duration};
use crate::follower::{FollowerOptions, IngressMessages};
use crate::registry::RegistryLimits;
use crate::replay::ReplayLimits;
use crate::transport::SubscribeOptions;
use core::time::Duration;
use kvmirror_core::mirror::MirrorOptions;
use kvmirror_core::router::Policy;
use kvmirror_core::time::Micros;
use serde::Deserialize;

/// How sources are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowConfig {
    /// `probe_interval`: quiet time after which an engine with a replay endpoint is asked whether
    /// there is anything newer; doubles while it stays quiet. Default `"1s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub probe_interval: Duration,
    /// `probe_interval_max`: cap of it. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub probe_interval_max: Duration,
    /// `silence`: after how long without any message the connection to a source with a replay
    /// endpoint is built anew, since a connection that died without a sign looks like a quiet one.
    /// Default `"5m"`. `0` = never.
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
    /// `recovery_idle`: longest wait for the next message of an answer. Default `"2s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_idle: Duration,
    /// `recovery_jitter`: largest random wait before a first attempt. Default `"3ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub recovery_jitter: Duration,
    /// `recovery_concurrency`: recoveries at a time, all ranks together. Default 16.
    pub recovery_concurrency: u32,
    /// `repair_interval`: wait before a recovery that failed is tried again in the background,
    /// doubling up to twenty times as long. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub repair_interval: Duration,
    /// `pending_messages`: live messages a rank holds back while it recovers. Default 1024.
    pub pending_messages: u32,
    /// `pending_bytes`: what they may keep in memory, in bytes. Default 8388608 (8 MiB).
    pub pending_bytes: u64,
    /// `heal_backoff`: wait before a fenced rank is tried again, doubling. Default `"1s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff: Duration,
    /// `heal_backoff_max`: cap of it. Default `"30s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub heal_backoff_max: Duration,
    /// `connect_timeout`: longest time of one connection attempt. Default `"2s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub connect_timeout: Duration,
    /// `reconnect_backoff`: first wait between connection attempts, doubling. Default `"100ms"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff: Duration,
    /// `reconnect_backoff_max`: cap of it. Default `"5s"`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub reconnect_backoff_max: Duration,
    /// `ingress_messages`: messages that all readers together may be ahead of the follower. Default
    /// 8192. Beyond, messages are dropped and counted, and their ranks verify what they have.
    pub ingress_messages: u32,
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
            repair_interval: Duration::from_secs(30),
            pending_messages: 1_024,
            pending_bytes: 8 << 20,
            heal_backoff: Duration::from_secs(1),
            heal_backoff_max: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(2),
            reconnect_backoff: Duration::from_millis(100),
            reconnect_backoff_max: Duration::from_secs(5),
            ingress_messages: 8_192,
        }
    }
}

/// Shortest wait or timeout that is not a busy loop.
const SHORTEST: Duration = Duration::from_millis(1);

/// Longest background repair wait, in first waits.
const REPAIR_STRETCH: u32 = 20;

impl FollowConfig {
    /// The options of a follower with these timings and limits.
    pub fn options(&self, registry: RegistryLimits) -> FollowerOptions {
        let policy = Policy {
            attempts: self.recovery_attempts,
            backoff_base: micros(self.recovery_backoff),
            attempt_timeout: micros(self.recovery_timeout),
            jitter_max: micros(self.recovery_jitter),
            concurrency: self.recovery_concurrency,
            pending_events: self.pending_messages,
            pending_bytes: usize::try_from(self.pending_bytes).unwrap_or(usize::MAX),
            heal_base: micros(self.heal_backoff),
            heal_max: micros(self.heal_backoff_max),
            probe_first: micros(self.probe_interval),
            probe_max: micros(self.probe_interval_max),
            repair_base: micros(self.repair_interval),
            repair_max: micros(self.repair_interval.saturating_mul(REPAIR_STRETCH)),
            ..Policy::default()
        };
        FollowerOptions {
            mirror: MirrorOptions { policy, ..MirrorOptions::default() },
            registry,
            subscribe: SubscribeOptions {
                topic: String::new(),
                connect_timeout: self.connect_timeout,
                backoff: (self.reconnect_backoff, self.reconnect_backoff_max),
                silence: (!self.silence.is_zero()).then_some(self.silence),
            },
            replay: ReplayLimits {
                connect: self.connect_timeout,
                idle: self.recovery_idle,
                // What came until then still counts as progress when the machine hears of it.
                total: self.recovery_timeout.mul_f32(0.9),
                ..ReplayLimits::default()
            },
            ingress_messages: IngressMessages(self.ingress_messages as usize),
        }
    }

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
            ("probe_interval", self.probe_interval),
            ("recovery_backoff", self.recovery_backoff),
            ("recovery_timeout", self.recovery_timeout),
            ("recovery_idle", self.recovery_idle),
            ("repair_interval", self.repair_interval),
            ("heal_backoff", self.heal_backoff),
            ("connect_timeout", self.connect_timeout),
            ("reconnect_backoff", self.reconnect_backoff),
        ] {
            if value < SHORTEST {
                return Err(bad(key, format_args!("{value:?}"), "write at least \"1ms\"".into()));
            }
        }
        if !self.silence.is_zero() && self.silence < SHORTEST {
            let fix = "write at least \"1ms\", or 0 for never".to_owned();
            return Err(bad("silence", format_args!("{:?}", self.silence), fix));
        }
        for (key, cap, first) in [
            ("probe_interval_max", self.probe_interval_max, self.probe_interval),
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

fn micros(span: Duration) -> Micros {
    Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

fn bad(key: &str, value: impl core::fmt::Display, fix: String) -> BadValue {
    BadValue::new(format!("follow.{key}"), format!("{value} is out of range"), fix)
}
