//! What the router expects of its sources, and what is wrong with them (§4), as data.

mod diagnosis;
mod mismatch;
mod requirement;

pub use diagnosis::{ChangedWorkers, SourceDiagnostic, SourceHealth, SourceHealthCode};
pub use mismatch::{Mismatch, MismatchScope, mismatch_after_shutdown};
pub use requirement::{Requirement, RouterSetup, WorkerRole};

pub(super) use mismatch::MismatchSets;
