//! What a caller can get wrong.

use super::domain::DomainId;
use crate::id::RankKey;

/// A call that named something the index does not have. Never caused by an event's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The rank was never added, or was removed.
    #[error("rank {rank} is not in the index: add it before its events")]
    UnknownRank {
        /// The rank that was named.
        rank: RankKey,
    },
    /// The rank is there already.
    #[error("rank {rank} is in the index already: remove it before it is added with other facts")]
    RankExists {
        /// The rank that was named.
        rank: RankKey,
    },
    /// The domain was never opened, or was closed.
    #[error("index domain {domain} is not open: open one before a rank is added to it")]
    UnknownDomain {
        /// The domain that was named.
        domain: DomainId,
    },
}
