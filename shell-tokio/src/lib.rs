//! The tokio shell of kvmirror: what stands between the pure machines of `kvmirror-core` and the
//! world.
//!
//! | module | owns |
//! |---|---|
//! | [`transport`] | ZeroMQ behind one narrow trait family |
//! | [`source`] | one task per event source, feeding a bounded channel |
//! | [`replay`] | one question to an engine's replay socket |
//! | [`follower`] | the run loop that owns the mirror |
//! | [`registry`] | which ranks are followed, under which names and in which index domains; pure |
//! | [`backend`] | the seam between the HTTP surface and whoever follows the ranks |
//! | [`answer`] | registry + one rank's state → the rows of an answer; pure |
//! | [`http`] | the HTTP API: parsing, rendering, errors |
//! | [`config`] | the configuration of `kvmirror serve` and its `--source` text |
//! | [`metrics`] | `kvmirror_*` metrics as Prometheus text |
//! | [`capture`] | reading capture files |
//! | [`player`] | publishing a capture the way an engine does |
//! | [`offline`] | a capture through the whole pipeline, without sockets |
//! | [`truth`] | reading truth files: what an engine itself held and served |
//! | [`serve`] | the router-side service: a follower and its HTTP API |
//! | [`signal`] | being told to end |
//! | [`commands`] | the commands, apart from `play` and `demo` |
//! | `cli`, `demo` | the command line; the whole system in one process (feature `cli`) |
//! | [`ui`] | progress and results on a terminal |

pub mod answer;
pub mod backend;
pub mod capture;
#[cfg(feature = "cli")]
pub mod cli;
pub mod commands;
pub mod config;
#[cfg(feature = "cli")]
pub mod demo;
pub mod follower;
pub mod http;
pub mod metrics;
pub mod offline;
pub mod player;
pub mod record;
pub mod registry;
pub mod replay;
pub mod serve;
pub mod signal;
pub mod source;
pub mod transport;
pub mod truth;
pub mod ui;

mod rng;
