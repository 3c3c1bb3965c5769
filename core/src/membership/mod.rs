//! Membership: who publishes for which rank, and since when that has meant something else.

mod snapshot;

pub use snapshot::{
    DuplicateRank, MemberRank, Membership, NextMembership, RankStatus, Source, SourceKind,
};
