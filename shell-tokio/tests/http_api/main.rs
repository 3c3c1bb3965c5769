//! The HTTP API against a backend that holds the running example: every literal request and answer
//! of the two APIs, every status code and every kind of error.

#![allow(clippy::unwrap_used, reason = "a test whose set-up fails has failed")]

mod client;
mod errors;
mod example;
mod fields;
mod get;
mod query;
mod registration;
mod sockets;
