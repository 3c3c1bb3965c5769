//! The tokio shell of kvmirror.
//!
//! Everything that touches a socket, a file or a clock lives here:
//!
//! * [`transport`]: ZeroMQ behind one narrow trait family;
//! * [`source`]: one task per event source, feeding a bounded channel;
//! * [`replay`]: one question to an engine's replay socket;
//! * [`capture`]: reading capture files;
//! * [`player`]: publishing a capture the way an engine does.

pub mod capture;
pub mod player;
pub mod replay;
pub mod source;
pub mod transport;
pub mod ui;

mod rng;
