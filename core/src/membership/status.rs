//! What is known of one rank: the status table of §3.4, rows in its order.

use super::endpoint::EndpointName;
use super::snapshot::{RankStatus, Source};
use crate::id::PublisherId;
use alloc::boxed::Box;

/// Why a rank is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ambiguity<'a> {
    /// The workers name different endpoints; these, ascending. It concerns every rank.
    EndpointMapping(&'a [EndpointName]),
    /// This publisher's descriptions contradict each other.
    ConflictingDescriptor(PublisherId),
    /// These publish for the rank; ascending, for display only.
    Incarnations(&'a [PublisherId]),
}

impl Ambiguity<'_> {
    /// The publishers involved, ascending.
    pub fn publishers(&self) -> &[PublisherId] {
        match self {
            Self::EndpointMapping(_) => &[],
            Self::ConflictingDescriptor(publisher) => core::slice::from_ref(publisher),
            Self::Incarnations(publishers) => publishers,
        }
    }

    /// The stable snake_case code.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EndpointMapping(_) => "endpoint_mapping",
            Self::ConflictingDescriptor(_) => "conflicting_descriptor",
            Self::Incarnations(_) => "incarnations",
        }
    }
}

/// A status with the details that tell two ambiguities apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum RankState {
    Missing,
    Active(Source),
    Ambiguous(Cause),
}

/// Why; the endpoints of a mapping are the same for all ranks and kept once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    EndpointMapping,
    ConflictingDescriptor(PublisherId),
    Incarnations(Box<[PublisherId]>),
}

impl RankState {
    pub(super) const fn is_active(&self) -> bool {
        match self {
            Self::Active(_) => true,
            Self::Missing | Self::Ambiguous(_) => false,
        }
    }

    pub(super) const fn status(&self) -> RankStatus {
        match self {
            Self::Missing => RankStatus::Missing,
            Self::Active(source) => RankStatus::Active(*source),
            Self::Ambiguous(_) => RankStatus::Ambiguous,
        }
    }
}
