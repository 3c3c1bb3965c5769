//! The shell on real loopback sockets.
//!
//! Nothing here sleeps to get in step: every wait is for a condition, under a deadline.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, with what it got"
)]

#[path = "net/captures.rs"]
mod captures;
#[path = "net/common.rs"]
mod common;
#[path = "net/lives.rs"]
mod lives;
#[path = "net/play.rs"]
mod play;
#[path = "net/replaying.rs"]
mod replaying;
#[path = "net/sources.rs"]
mod sources;
