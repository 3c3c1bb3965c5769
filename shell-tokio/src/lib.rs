//! The tokio shell of kvmirror: what stands between the pure machines of `kvmirror-core` and the
//! world.
//!
//! | module | owns |
//! |---|---|
//! | [`registry`] | which ranks are followed, under which names and in which index domains; pure |
//! | [`backend`] | the seam between the HTTP surface and whoever follows the ranks |
//! | [`answer`] | registry + one rank's state → the rows of an answer; pure |
//! | [`http`] | the HTTP API: parsing, rendering, errors |
//! | [`config`] | the configuration of `kvmirror serve` and its `--source` text |
//! | [`metrics`] | `kvmirror_*` metrics as Prometheus text |
//! | [`trust`] | what a query may believe of a rank |

pub mod answer;
pub mod backend;
pub mod config;
pub mod http;
pub mod metrics;
pub mod registry;
pub mod trust;
