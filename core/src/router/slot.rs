//! One rank's slot: its work items, and the one place that takes them in turn ([`Slot::pump`]).
//!
//! A rank does one thing at a time (§9). Every input that concerns it becomes a work item; an item
//! runs up to the command it must wait for, which then is the slot's [`Step`]; the command's
//! completion goes on from there. Items that arrive meanwhile wait in order of arrival. Recovery
//! queries and timers run beside the items (§7); only what they bring is an item.
//!
//! | item | file | may wait for |
//! |---|---|---|
//! | `Reconcile` | `slot/reconcile.rs` | a reset |
//! | `Live` | `live.rs` | an admit, a reset |
//! | `TransportGap`, `Watermark` | `slot/transport.rs` | – |
//! | `Answer` | `answer.rs` | a replace or reset, then an admit |
//! | `FollowUp` | `answer/commit.rs` | – |
//! | `Fault`, `Reject` | `slot/fault.rs` | a reset |
//! | `Probation` | `slot/probation.rs` | – |
//! | `Interrupted`, `Back` | `slot/transport.rs` | a reset |
//! | `Remove` | `slot/reconcile.rs` | a reset |

mod fault;
mod fence;
mod probation;
mod queue;
mod reconcile;
mod restart;
mod step;
mod transport;
mod trust;

use super::command::{Command, Scope};
use super::follow::Follow;
use super::input::{Payload, RecoveryOutcome, Runs};
use super::notice::{DiscardReason, Notice, ResetCause};
use super::shared::Context;
use super::trust::{Trust, TrustReason};
use crate::id::{BootId, Epoch, EventId, Generation, PublisherId, QueryId, RankKey, TargetId};
use crate::membership::{MemberRank, RankStatus, Source, SourceKind};
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
pub(super) use fence::Fence;
pub(super) use probation::Rejected;
pub(super) use step::{Commit, Step, Then};

/// What membership says of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) generation: Generation,
    pub(super) status: RankStatus,
    ready: bool,
}

impl Wanted {
    pub(super) const fn of(rank: &MemberRank) -> Self {
        Self { generation: rank.generation, status: rank.status, ready: rank.ready }
    }

    /// The source that may be followed; readiness can only suppress (§5.4).
    pub(super) const fn selected(self) -> Option<Source> {
        match self.status {
            RankStatus::Active(source) if self.ready => Some(source),
            RankStatus::Active(_) | RankStatus::Missing | RankStatus::Ambiguous => None,
        }
    }
}

/// Tells activations apart: two of the same publisher in the same generation are different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instance(u64);

/// The source that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Binding {
    pub(super) source: Source,
    pub(super) epoch: Epoch,
    pub(super) instance: Instance,
}

/// What is known of the target's content for this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    /// Nothing: an earlier router may have left something (B35).
    Unknown,
    /// Something may be there.
    Dirty,
    /// Empty since a completed reset.
    Empty,
}

/// What a recovery brought; see [`RecoveryOutcome`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer<P> {
    Outcome(RecoveryOutcome<P>),
    /// It named another rank (S6).
    Foreign,
    /// Another incarnation answered (B17).
    OtherBoot,
    /// No attempt brought a usable one.
    Exhausted,
}

/// One piece of a rank's work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item<P> {
    Reconcile,
    Live { instance: Instance, runs: Runs<P> },
    TransportGap { instance: Instance },
    Watermark { instance: Instance, last: Option<EventId>, boot: Option<BootId> },
    Answer { query: QueryId, answer: Answer<P> },
    FollowUp { instance: Instance, start: EventId },
    Fault { epoch: Epoch, barrier_failed: bool },
    Reject { epoch: Epoch },
    Probation,
    Interrupted { publisher: PublisherId, connection: u32 },
    Back { publisher: PublisherId },
    Remove,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot<P> {
    pub(super) key: RankKey,
    /// The generation applied last.
    stored: Option<Generation>,
    pub(super) binding: Option<Binding>,
    /// A reset is owed: nothing passes before it has completed (`reset_pending` of the rules).
    pub(super) fence: Option<Fence>,
    /// Boxed: most ranks have none.
    rejected: Option<Box<Rejected>>,
    /// The publisher whose transport is down (B7).
    lost: Option<PublisherId>,
    /// Counts the selected source's connections: one that is selected anew comes over another.
    connection: u32,
    /// The incarnation that is followed, where it says so (B17).
    pub(super) boot: Option<BootId>,
    /// The transport's next number (B12).
    next_seq: Option<u64>,
    content: Content,
    queue: VecDeque<Item<P>>,
    /// The newest snapshot wants something else than what is followed: nothing of that is handed over
    /// any more (S1), though its turn has not come yet. Never in the reference.
    outdated: bool,
    /// A reconciliation waits in the queue; a newer snapshot changes its content, not its place.
    reconcile_waits: bool,
    waiting_events: u64,
    waiting_bytes: usize,
    pub(super) step: Step<P>,
    pub(super) follow: Follow<P>,
    instances: u64,
    heal_tries: u32,
    /// Removed, and not expected again since.
    removed: bool,
    /// The router has it down as one that a snapshot would have to mend.
    pub(super) unsettled: bool,
    told: (Trust, Option<TrustReason>),
}

impl<P: Payload> Slot<P> {
    /// A rank that is expected; `stored` is the tombstone it left behind, if any (§5.7).
    pub(super) fn new(key: RankKey, stored: Option<Generation>, now: Timestamp) -> Self {
        Self {
            key,
            stored,
            binding: None,
            fence: None,
            rejected: None,
            lost: None,
            connection: 0,
            boot: None,
            next_seq: None,
            content: Content::Unknown,
            queue: VecDeque::new(),
            outdated: false,
            reconcile_waits: false,
            waiting_events: 0,
            waiting_bytes: 0,
            step: Step::Idle,
            follow: Follow::fresh(now),
            instances: 0,
            heal_tries: 0,
            removed: false,
            unsettled: false,
            told: (Trust::Missing, Some(TrustReason::NoSource)),
        }
    }

    /// Whether the rank has left and nothing is left to do for it.
    pub(super) fn is_gone(&self) -> bool {
        self.removed && self.queue.is_empty() && self.is_idle()
    }

    /// The generation that a return is compared with.
    pub(super) const fn tombstone(&self) -> Option<Generation> {
        self.stored
    }

    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle)
    }

    /// The usual case, cheaply told: there is nothing that a snapshot would have to mend.
    pub(super) const fn is_plainly_followed(&self) -> bool {
        self.fence.is_none() && self.binding.is_some() && !self.removed
    }

    /// Whether the rank does nothing at the moment.
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_idle() && !self.has_items()
    }

    /// Whether work items wait.
    pub(super) fn has_items(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn recoverable(&self) -> bool {
        self.target().is_some()
    }

    pub(super) fn target(&self) -> Option<TargetId> {
        self.binding.and_then(|binding| binding.source.target)
    }

    /// Whether the newest snapshot wants something else than what is followed.
    pub(super) const fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// Whether an agent is followed: a source that can show its whole state.
    pub(super) fn follows_agent(&self) -> bool {
        self.binding.is_some_and(|binding| binding.source.kind == SourceKind::Agent)
    }

    /// Whether the followed source's transport is down.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some() && self.lost == self.binding.map(|binding| binding.source.publisher)
    }

    /// Events and bytes that wait, pending or queued.
    pub(super) const fn waiting(&self) -> (u64, usize) {
        (
            self.follow.pending.events() + self.waiting_events,
            self.follow.pending.bytes() + self.waiting_bytes,
        )
    }

    /// Works the slot off up to its next wait.
    pub(super) fn pump(&mut self, cx: &mut Context<'_, P>) {
        while self.is_idle() {
            match self.take_item() {
                Some(item) => self.run(item, cx),
                None if self.catch_up(cx) => {}
                None => break,
            }
        }
        self.repair_from_agent(cx);
        self.tell_trust(cx);
    }

    /// Takes one item up; see the table above.
    pub(super) fn run(&mut self, item: Item<P>, cx: &mut Context<'_, P>) {
        match item {
            Item::Reconcile => self.reconcile(cx),
            Item::Live { instance, runs } => self.take_live(instance, runs, cx),
            Item::TransportGap { instance } => self.transport_gap(instance, cx),
            Item::Watermark { instance, last, boot } => self.watermark(instance, last, boot, cx),
            Item::Answer { query, answer } => self.take_answer(query, answer, cx),
            Item::FollowUp { instance, start } => self.follow_up(instance, start, cx),
            Item::Fault { epoch, barrier_failed } => self.fault(epoch, barrier_failed, cx),
            Item::Reject { epoch } => self.reject(epoch, cx),
            Item::Probation => self.begin_probation(cx),
            Item::Interrupted { publisher, connection } => {
                self.interrupted(publisher, connection, cx);
            }
            Item::Back { publisher } => self.back(publisher, cx),
            Item::Remove => self.remove(cx),
        }
    }

    /// Whether an item that was meant for an activation still is (O7, O10).
    pub(super) fn is_current(&self, instance: Instance) -> bool {
        self.binding.is_some_and(|binding| binding.instance == instance)
    }

    /// Stops everything that runs beside the rank's work, and forgets what waits for a recovery.
    pub(super) fn quiesce(&mut self, reason: DiscardReason, cx: &mut Context<'_, P>) {
        self.cancel_recovery(cx);
        cx.shared.timers.cancel(&mut self.follow.probe);
        cx.shared.timers.cancel(&mut self.follow.repair);
        let dropped = self.follow.pending.clear();
        cx.shared.stats.discard(reason, dropped);
        self.follow.newest = None;
    }

    /// Empties the rank; `then` says what begins once that is done.
    pub(super) fn begin_reset(
        &mut self,
        cause: ResetCause,
        epoch: Epoch,
        scope: Scope,
        then: Then<P>,
        cx: &mut Context<'_, P>,
    ) {
        let op = cx.shared.fresh_op(cx.slot);
        cx.shared.stats.resets += 1;
        cx.fx.notice(Notice::Reset { rank: self.key, cause });
        cx.fx.command(Command::Reset { op, rank: self.key, epoch, scope, reason: cause.reason() });
        self.step = Step::Resetting { op, scope, then };
    }

    /// The epoch of the followed source.
    pub(super) fn epoch(&self) -> Epoch {
        self.binding.map_or(Epoch(0), |binding| binding.epoch)
    }
}
