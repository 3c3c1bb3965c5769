//! kvmirror's pure machines.
//!
//! This crate does no IO and owns no clock, thread, socket, environment or random source. Everything
//! enters as an argument; what must happen leaves as a command in a caller-owned buffer.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::float_arithmetic)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod event;
pub mod hash;
pub mod id;
pub mod index;
pub mod membership;
pub mod mirror;
pub mod router;
pub mod time;
#[cfg(feature = "trace")]
pub mod trace;
pub mod wire;
