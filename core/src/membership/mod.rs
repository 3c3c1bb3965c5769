//! Membership: who publishes for which rank, and since when that has meant something else.
//!
//! [`Coordinator`] turns what serving expects and what discovery lists into [`Membership`]
//! snapshots. Nothing here binds a stream, waits or reads a clock. The rules are those of §3 and §4
//! of the reference design; [`MembershipPolicy`] names the improvements.
//!
//! A snapshot is a latest value: a consumer may miss any of them. Since a generation only grows,
//! one that missed an excursion still sees that it happened (M8).

mod coordinator;
mod endpoint;
mod expected;
mod generation;
pub mod health;
mod input;
mod policy;
mod publish;
mod rebind;
mod snapshot;
mod stats;
mod status;
mod store;
mod view;

pub use coordinator::{Coordinator, Update};
pub use endpoint::{EndpointName, Resolution};
pub use input::{Advertisement, MembershipInput, Publishing, Withdrawal, WorkerExpectation};
pub use policy::{MembershipPolicy, MembershipPolicyError};
pub use rebind::Rebind;
pub use snapshot::{
    DuplicateRank, MemberRank, Membership, NextMembership, RankStatus, Source, SourceKind,
};
pub use stats::MembershipStats;
pub use status::Ambiguity;
pub use view::View;
