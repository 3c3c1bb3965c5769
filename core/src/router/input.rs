//! Everything that can happen to the router machine.

use crate::id::{EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId};
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};
use core::ops::Range;
use smallvec::SmallVec;

/// What the machine asks of a payload. It calls nothing else: headers decide, never contents.
pub trait Payload: Clone {
    /// Number of event ids the payload covers.
    fn len(&self) -> u32;

    /// Whether it covers none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes it keeps alive, for the pending budget.
    fn bytes(&self) -> usize;

    /// The part that covers `range` of its ids; `range` lies within `0..len()`.
    #[must_use]
    fn slice(&self, range: Range<u32>) -> Self;
}

/// A run of events with consecutive ids. A raw engine's message is one id, whatever it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run<P> {
    /// The first id.
    pub first: EventId,
    /// How many ids.
    pub len: NonZeroU32,
    /// The run contains a clear of everything: what precedes it no longer matters. Always alone.
    pub clear: bool,
    /// Its content could not be read whole: the ids count, but the mirror is no longer exact.
    pub damaged: bool,
    /// Digest of the message as it came over the wire: a second message with this id and another
    /// digest is another life's (B7). `None` when the host cannot tell.
    pub digest: Option<NonZeroU64>,
    /// The events, opaque.
    pub payload: P,
}

impl<P> Run<P> {
    /// The last id; saturates at the end of the id space.
    pub fn last(&self) -> EventId {
        EventId(self.first.0.saturating_add(u64::from(self.len.get()) - 1))
    }
}

/// Runs of one message: almost always one, held inline.
pub type Runs<P> = SmallVec<[Run<P>; 1]>;

/// Whose events a message or reply holds, by its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The rank its source is registered for.
    Own,
    /// At least one event names another rank: the whole message is foreign (S6).
    Foreign,
}

/// One transport message of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LiveBatch<P> {
    /// The incarnation it came from.
    pub publisher: PublisherId,
    /// Whose events it holds.
    pub origin: Origin,
    /// Its events, ascending.
    pub runs: Runs<P>,
}

/// What a source can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The incarnation.
    pub publisher: PublisherId,
    /// Its recovery target; `None` = live-only.
    pub target: Option<TargetId>,
    /// The id its stream begins with in every life: 0 for engines, 1 for Mooncake's master.
    pub first_id: EventId,
}

/// What membership says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankStatus {
    /// Expected, but nobody publishes for it (or its transport is not up yet).
    Missing,
    /// More than one incarnation, or contradictory descriptions: nothing may be believed.
    Ambiguous,
    /// Exactly one source.
    Active(Source),
}

/// One rank of a membership snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberRank {
    /// Which rank.
    pub key: RankKey,
    /// Its lifecycle generation.
    pub generation: Generation,
    /// Its status.
    pub status: RankStatus,
}

/// Two entries of a snapshot name the same rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "membership snapshot names rank {key} twice; give each (worker, rank) one entry, ambiguous if \
     sources contradict each other"
)]
pub struct DuplicateRank {
    /// The rank named twice.
    pub key: RankKey,
}

/// A whole membership snapshot: a rank that is not listed is no longer expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Membership {
    ranks: Vec<MemberRank>,
}

impl Membership {
    /// Makes a snapshot from entries in any order.
    ///
    /// # Errors
    /// [`DuplicateRank`] when two entries name one rank.
    pub fn new(mut ranks: Vec<MemberRank>) -> Result<Self, DuplicateRank> {
        ranks.sort_unstable_by_key(|rank| rank.key);
        let twice = ranks.windows(2).find_map(|pair| match pair {
            [a, b] if a.key == b.key => Some(a.key),
            _ => None,
        });
        twice.map_or(Ok(Self { ranks }), |key| Err(DuplicateRank { key }))
    }

    /// The entries, ascending by rank.
    pub fn ranks(&self) -> &[MemberRank] {
        &self.ranks
    }
}

/// Why a query brought no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryFailure {
    /// The transport delivered no answer.
    Transport,
    /// The source answered that it cannot.
    Refused,
    /// The answer could not be read.
    Unreadable,
}

/// The answer to a query command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecoveryResponse<P> {
    /// Which query.
    pub query: QueryId,
    /// Whose events the answer holds.
    pub origin: Origin,
    /// What it says.
    pub outcome: RecoveryOutcome<P>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecoveryOutcome<P> {
    /// Every message the source still has from the asked start on, oldest first.
    Events {
        /// The messages.
        runs: Vec<Run<P>>,
        /// Whether the source said that this is all. A cut-off answer is progress, no proof.
        complete: bool,
    },
    /// No usable answer.
    Failed(QueryFailure),
}

/// The end of a reset, admit or replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Which command.
    pub op: OpId,
    /// Whether it took effect.
    pub ok: bool,
    /// What only a target can notice: it took effect, but the target is not what the source is.
    pub flaw: Option<Flaw>,
}

/// Why a target that accepted everything is still not what its source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// The target has no room left and says so instead of losing something at random.
    Capacity,
    /// A store's parent is resident nowhere on the rank: something was lost before it was numbered
    /// (B37).
    Orphan,
}

/// A change of the way to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportChange {
    /// Delivery was interrupted.
    Lost,
    /// Messages flow again; whether from the same life is not known (B7).
    Back,
}
