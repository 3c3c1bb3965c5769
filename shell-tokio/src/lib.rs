//! The tokio shell of kvmirror.
//!
//! Everything that touches a socket, a file or a clock lives here:
//!
//! * [`transport`]: ZeroMQ behind one narrow trait family;
//! * [`source`]: one task per event source, feeding a bounded channel;
//! * [`replay`]: one question to an engine's replay socket;
//! * [`registry`]: which ranks are followed, under which names and in which index domains; pure;
//! * [`backend`]: the seam between the HTTP surface and whoever follows the ranks;
//! * [`answer`]: the registry and one rank's state to the rows of an answer; pure;
//! * [`http`]: the HTTP API: parsing, rendering, errors;
//! * [`metrics`]: `kvmirror_*` metrics as Prometheus text;
//! * [`config`]: the configuration of `kvmirror serve` and its `--source` text;
//! * [`capture`]: reading capture files;
//! * [`player`]: publishing a capture the way an engine does.

pub mod answer;
pub mod backend;
pub mod capture;
pub mod config;
pub mod http;
pub mod metrics;
pub mod player;
pub mod registry;
pub mod replay;
pub mod source;
pub mod transport;
pub mod trust;
pub mod ui;

mod rng;
