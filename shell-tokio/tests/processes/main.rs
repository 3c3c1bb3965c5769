//! The `kvmirror` binary as its users run it: real processes on loopback.

mod demo;
mod equal;
mod faults;
mod killed;
mod player;
mod process;
mod recorded;
mod serve;
mod starting;
mod unfriendly;
