//! Everything that can happen to the router machine.

use crate::id::{BootId, Epoch, EventId, OpId, PublisherId, QueryId, RankKey};
use crate::membership::Membership;
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

/// What a run clears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clears {
    /// Nothing.
    #[default]
    Nothing,
    /// One residency domain: an ordinary event for the machine (B32).
    OneDomain,
    /// All of them: what precedes it no longer matters.
    Everything,
}

/// A run of events with consecutive ids. A raw engine's message is one id, whatever it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run<P> {
    /// The first id.
    pub first: EventId,
    /// How many ids.
    pub len: NonZeroU32,
    /// What the run clears. A run that clears is always alone.
    pub clears: Clears,
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
    /// The transport's own number of the message, one more with each; `None` when it has none (B12).
    pub seq: Option<u64>,
    /// Whose events it holds.
    pub origin: Origin,
    /// Its events, ascending.
    pub runs: Runs<P>,
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
    /// The process that answered, where it says so (B17).
    pub boot: Option<BootId>,
    /// What it says.
    pub outcome: RecoveryOutcome<P>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecoveryOutcome<P> {
    /// The events the source still has from the asked start on.
    Events {
        /// The events, oldest first.
        runs: Vec<Run<P>>,
        /// The last id it covers; `None` when the source has published nothing.
        last: Option<EventId>,
        /// Whether the source said that this is all. A cut-off answer is progress, no proof.
        complete: bool,
    },
    /// The source's whole state.
    Snapshot {
        /// Stores that build it from nothing; their ids mean nothing.
        runs: Vec<Run<P>>,
        /// The last event id it reflects.
        last: EventId,
    },
    /// The source tried to build a snapshot and could not.
    SnapshotFailed {
        /// The last event id it would have reflected.
        last: EventId,
    },
    /// The asked start lies above everything the source has.
    TooNew {
        /// Its newest id; `None` when it has published nothing.
        newest: Option<EventId>,
    },
    /// The source calls the range impossible.
    InvalidRange,
    /// No usable answer.
    Failed(QueryFailure),
}

/// An agent's sign of life (B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark {
    /// The incarnation it came from.
    pub publisher: PublisherId,
    /// Its last id; `None` when it has published nothing.
    pub last: Option<EventId>,
    /// The process it runs in (B17).
    pub boot: Option<BootId>,
}

/// Something is wrong with what a rank's target holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetFault {
    /// The rank.
    pub rank: RankKey,
    /// The activation it happened under.
    pub epoch: Epoch,
    /// A reset or replace is in doubt: the host deals with it by itself.
    pub barrier_failed: bool,
}

/// The target calls a source's events impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceRejection {
    /// The rank.
    pub rank: RankKey,
    /// The activation it happened under.
    pub epoch: Epoch,
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

/// Every input in one type, for recording, replaying and exploring. The router has one handler for
/// each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input<P> {
    /// See [`super::Router::handle_membership`].
    Membership(Membership),
    /// See [`super::Router::handle_membership_ended`].
    MembershipEnded,
    /// See [`super::Router::handle_live`].
    Live(LiveBatch<P>),
    /// See [`super::Router::handle_watermark`].
    Watermark(Watermark),
    /// See [`super::Router::handle_recovery`].
    Recovery(RecoveryResponse<P>),
    /// See [`super::Router::handle_completion`].
    Completion(Completion),
    /// See [`super::Router::handle_transport`].
    Transport(PublisherId, TransportChange),
    /// See [`super::Router::handle_target_fault`].
    TargetFault(TargetFault),
    /// See [`super::Router::handle_source_rejection`].
    SourceRejection(SourceRejection),
    /// See [`super::Router::handle_timeout`].
    Timeout,
    /// See [`super::Router::handle_shutdown`].
    Shutdown,
}
