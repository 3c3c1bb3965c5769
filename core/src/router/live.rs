//! Live runs: what one says beside the cursor, and what leaves as an admit.
//!
//! For a run with last id `e`, `h` the last id handed to the target:
//!
//! | run | effect |
//! |---|---|
//! | the stream's first id, at or below `h`, equal to the message admitted under it | duplicate |
//! | … different, or never seen, or while the transport is in doubt | new life that begins with it (B2) |
//! | another id at or below `h`, equal digest, or unknown | counted; three in a row: verify, or a new life when nobody can be asked |
//! | another id at or below `h`, another digest | new life |
//! | above `h`, another message waits under its id | new life |
//! | contains a clear, above `h` | what waits below it goes; it is admitted next, over any gap, recovery or doubt |
//! | above `h` | waits in its place; admitted at once when it is next and nothing is held |
//!
//! What waits, when nothing is held (`c` the cursor, `f` the first waiting id):
//!
//! | c | f | asked can be | effect |
//! |---|---|---|---|
//! | any | c + 1 | – | admit the contiguous beginning |
//! | none | the stream's first id | – | the history is known: admit |
//! | none, declared incomplete | any | – | admit |
//! | any other | – | yes | gap: ask from the cursor |
//! | none | – | no | history unknown: admit as partial |
//! | some | – | no | hole: reset, then admit as partial (6.3/9, L2) |

use super::anchors::Likeness;
use super::command::ResetReason;
use super::follow::{Base, Doubt};
use super::input::{Payload, Run, Runs, Source};
use super::notice::{DiscardReason, Notice, RecoveryEnd};
use super::pending::after;
use super::recovery::Purpose;
use super::shared::Context;
use super::slot::{Busy, Slot, Then};
use super::trust::TrustReason;
use crate::id::EventId;
use crate::time::Micros;

/// Fallen ids in a row that count as evidence of a new life (B2).
const FALLEN_EVIDENCE: u32 = 3;

/// Whether [`Slot::drain`] changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// The slot may have more to do.
    Again,
    /// Nothing more can be done before the next input.
    Waits,
}

impl<P: Payload> Slot<P> {
    /// One live run of the active source has arrived.
    pub(super) fn live(&mut self, source: Source, run: Run<P>, cx: &mut Context<'_, P>) {
        self.follow.last_live = cx.now;
        if self.fence.is_some() {
            cx.shared.stats.discard(DiscardReason::Fenced, 1);
            return;
        }
        if self.follow.probe_step > 0 {
            self.follow.probe_step = 0;
            self.arm_probe(cx);
        }
        let run = match self.head() {
            Some(head) if run.last() <= head => return self.fallen(source, run, cx),
            Some(head) => match after(run, head) {
                Some(run) => run,
                None => return,
            },
            None => run,
        };
        self.follow.fallen = None;
        if self.follow.pending.contradicts(&run) {
            self.new_life(source, run, cx);
            return;
        }
        if self.is_next(&run) {
            self.follow.level_at = Some(cx.now);
            self.admit(Runs::from_buf([run]), None, cx);
            return;
        }
        self.hold(run, cx);
    }

    /// The live path: in order, nothing held, nothing incomplete.
    fn is_next(&self, run: &Run<P>) -> bool {
        let Some(cursor) = self.follow.cursor else { return false };
        matches!(self.busy, Busy::Idle)
            && cursor.0.checked_add(1) == Some(run.first.0)
            && self.follow.pending.is_empty()
            && self.restart.is_none()
            && !run.clear
            && !self.follow.holding()
    }

    /// Puts a run above the cursor in its place, within the limits (B13).
    fn hold(&mut self, run: Run<P>, cx: &mut Context<'_, P>) {
        self.follow.saw(run.last());
        if run.clear {
            // Whatever lies below a clear of everything no longer matters.
            let below = EventId(run.first.0.saturating_sub(1));
            let dropped = self.follow.pending.drop_through(below);
            cx.shared.stats.discard(DiscardReason::Cleared, dropped);
        }
        if !self.follow.pending.insert(run) {
            cx.shared.stats.discard(DiscardReason::Duplicate, 1);
        }
        let policy = &cx.shared.policy;
        if self.follow.pending.events() > u64::from(policy.pending_events)
            || self.follow.pending.bytes() > policy.pending_bytes
        {
            let dropped = self.follow.pending.clear();
            cx.shared.stats.discard(DiscardReason::OverLimit, dropped);
        }
    }

    /// A run at or below the last id handed over: late, repeated, or another life's.
    fn fallen(&mut self, source: Source, run: Run<P>, cx: &mut Context<'_, P>) {
        let likeness = self.follow.anchors.compare(run.first, run.digest);
        let in_doubt = self.follow.doubt == Some(Doubt::Unverified);
        let beginning = run.first == source.first_id;
        let new_life = match likeness {
            Likeness::Other => true,
            Likeness::Same => beginning && in_doubt,
            Likeness::Unknown => beginning,
        };
        if new_life {
            self.new_life(source, run, cx);
            return;
        }
        let in_a_row = match self.follow.fallen {
            Some((last, count)) if last.0.checked_add(1) == Some(run.first.0) => count + 1,
            Some(_) | None => 1,
        };
        self.follow.fallen = Some((run.last(), in_a_row));
        let reason = match likeness {
            Likeness::Same => DiscardReason::Duplicate,
            Likeness::Unknown | Likeness::Other => DiscardReason::Regression,
        };
        if in_a_row < FALLEN_EVIDENCE {
            cx.shared.stats.discard(reason, 1);
        } else if self.can_ask() {
            cx.shared.stats.discard(reason, 1);
            self.follow.fallen = None;
            self.start_recovery(Purpose::Verify, Micros(0), cx);
        } else {
            self.new_life(source, run, cx);
        }
    }

    /// The source is in another life, and `run` belongs to it.
    fn new_life(&mut self, source: Source, run: Run<P>, cx: &mut Context<'_, P>) {
        // What was learned of the replay was the ended life's.
        self.follow.replay_blind = false;
        let beginning = run.first == source.first_id;
        let then = if beginning || !self.can_ask() { Then::NewLife(run) } else { Then::Fresh };
        self.settle_doubt();
        self.owe_restart(ResetReason::NewLife, then, cx);
    }

    /// Whether a message that waits differs from the one that was admitted under its id.
    fn waits_for_another_life(&self, cursor: EventId) -> bool {
        let waiting = self.follow.pending.iter().take_while(|run| run.first <= cursor);
        let anchors = &self.follow.anchors;
        waiting.into_iter().any(|run| anchors.compare(run.first, run.digest) == Likeness::Other)
    }

    /// Does the next thing about what waits; see the second table above.
    pub(super) fn drain(&mut self, source: Source, cx: &mut Context<'_, P>) -> Drained {
        if let Some(cursor) = self.follow.cursor {
            if self.waits_for_another_life(cursor) {
                // Which of the two is the later one cannot be told from here.
                self.settle_doubt();
                self.owe_restart(ResetReason::NewLife, Then::Fresh, cx);
                return Drained::Again;
            }
            let dropped = self.follow.pending.drop_through(cursor);
            cx.shared.stats.discard(DiscardReason::Duplicate, dropped);
        }
        let Some(front) = self.follow.pending.front() else { return self.drained_empty(cx) };
        let (first, clear) = (front.first, front.clear);
        if clear {
            return self.admit_clear(first, cx);
        }
        if self.follow.holding() {
            return Drained::Waits;
        }
        let follow = &self.follow;
        let next = match follow.cursor {
            Some(cursor) => cursor.0.checked_add(1) == Some(first.0),
            None => first == source.first_id || matches!(follow.base, Base::Incomplete(_)),
        };
        if next {
            let base = (follow.cursor.is_none() && first == source.first_id).then_some(Base::Known);
            if self.follow.recovery.is_none() {
                self.follow.level_at = Some(cx.now);
            }
            let runs = self.take_contiguous();
            self.admit(Runs::from_vec(runs), base, cx);
            return Drained::Waits;
        }
        self.gap(source, first, cx)
    }

    /// Nothing waits, but more is known to exist: it was over the limit, or lies behind a cut-off
    /// answer.
    fn drained_empty(&mut self, cx: &mut Context<'_, P>) -> Drained {
        if !self.follow.behind() || self.follow.holding() {
            return Drained::Waits;
        }
        if !self.can_ask() {
            // What was over the limit cannot be had again, and may have held removals (L2).
            self.owe_restart(ResetReason::Hole, Then::Fresh, cx);
            return Drained::Again;
        }
        if self.follow.barren_rounds >= cx.shared.policy.rounds {
            // Seen once, and its own source does not have it: nobody can fill the hole (B18). Or it was
            // an earlier life's; then the source's own history puts it right later.
            self.follow.newest = self.follow.cursor;
            self.follow.base = Base::Incomplete(TrustReason::Hole);
            self.arm_repair(cx);
            return Drained::Waits;
        }
        self.ask_gap(cx);
        Drained::Waits
    }

    /// A clear of everything wins over gap, recovery and doubt (6.3/2).
    fn admit_clear(&mut self, first: EventId, cx: &mut Context<'_, P>) -> Drained {
        if self.follow.doubt == Some(Doubt::Lost) {
            return Drained::Waits;
        }
        self.follow.doubt = None;
        if self.follow.recovery.is_some() {
            self.cancel_recovery(cx);
            cx.fx.notice(Notice::Recovered { rank: self.key, end: RecoveryEnd::Superseded });
        }
        cx.shared.timers.cancel(&mut self.follow.repair);
        self.tell_initial(cx);
        self.note_skipped(first, cx);
        self.follow.level_at = Some(cx.now);
        let runs = self.take_contiguous();
        self.admit(Runs::from_vec(runs), Some(Base::Known), cx);
        self.arm_probe(cx);
        Drained::Waits
    }

    fn note_skipped(&self, first: EventId, cx: &mut Context<'_, P>) {
        let expected = self.follow.cursor.map_or(Some(first), super::next_id);
        if let Some(expected) = expected.filter(|expected| *expected < first) {
            let last = EventId(first.0 - 1);
            cx.fx.notice(Notice::Skipped { rank: self.key, first: expected, last });
        }
    }

    /// What waits is not next: ask for what is missing, or go on without it.
    fn gap(&mut self, source: Source, got: EventId, cx: &mut Context<'_, P>) -> Drained {
        let expected = self.follow.cursor.map_or(Some(source.first_id), super::next_id);
        let expected = expected.unwrap_or(got);
        if self.follow.barren_rounds == 0 {
            cx.shared.stats.gaps += 1;
            cx.fx.notice(Notice::Gap { rank: self.key, expected, got });
        }
        if self.can_ask() && self.follow.barren_rounds < cx.shared.policy.rounds {
            self.ask_gap(cx);
            return Drained::Waits;
        }
        if self.follow.cursor.is_none() {
            // Nobody can tell what came before; nothing is in the target yet.
            if self.follow.barren_rounds > 0 {
                self.follow.replay_blind = true;
                cx.shared.timers.cancel(&mut self.follow.probe);
                self.arm_repair(cx);
            }
            self.follow.base = Base::Incomplete(TrustReason::HistoryUnknown);
            return Drained::Again;
        }
        self.note_skipped(got, cx);
        let runs = self.take_contiguous();
        let base = Base::Incomplete(TrustReason::Hole);
        self.owe_restart(ResetReason::Hole, Then::Rebase { runs, base, repair: false }, cx);
        Drained::Again
    }

    fn ask_gap(&mut self, cx: &mut Context<'_, P>) {
        let delay = match self.follow.barren_rounds {
            0 => Micros(0),
            rounds => cx.shared.policy.backoff_base.doubled(rounds - 1),
        };
        self.start_recovery(Purpose::Gap, delay, cx);
    }

    /// All attempts to fill a hole failed: go on across it, as partial (B5, B33). The state stays;
    /// a failed answer is no answer.
    pub(super) fn cross_hole(&mut self, cx: &mut Context<'_, P>) {
        let Some(first) = self.follow.pending.front().map(|front| front.first) else {
            self.follow.newest = self.follow.cursor;
            return;
        };
        if !matches!(self.busy, Busy::Idle) || self.follow.doubt.is_some() {
            return;
        }
        self.note_skipped(first, cx);
        let runs = self.take_contiguous();
        self.admit(Runs::from_vec(runs), Some(Base::Incomplete(TrustReason::Hole)), cx);
    }
}
