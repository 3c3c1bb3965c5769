//! Live runs: what one says beside the cursor (§6.3), and what leaves as an admit.
//!
//! For a run that ends with id `e`; `h` is the last id handed over, as if all of this command had
//! been accepted; "asked": the source can be asked:
//!
//! | # | run | held back | asked | effect |
//! |---|---|---|---|---|
//! | 1 | at or below `h`, a clear or not | – | – | ignored; B2 looks whether the source has restarted |
//! | 2 | a clear of everything, above `h` | – | – | ends recovery and doubt; admitted, over any gap |
//! | 3 | another message waits under its id | yes | – | another life (B7) |
//! | 4 | any other | yes | – | buffered |
//! | 5 | nothing handed over yet | no | yes | asked from the beginning, buffered; admitted if it begins the stream (B34), or if the source has shown that it cannot tell (B18) |
//! | 6 | nothing handed over yet | no | no | admitted |
//! | 7 | `h` + 1 | no | – | admitted |
//! | 8 | higher | no | yes | reset and asked for the whole; with B4 asked for what is missing; buffered; asked for in vain, a bounded number of rounds: the whole, then on across the hole (B18) |
//! | 9 | higher | no | no | reset, then admitted |
//!
//! What needs more than one command waits for the first: the rest of the batch goes back to the front
//! of the queue.

use super::anchors::Likeness;
use super::command::Scope;
use super::follow::Base;
use super::input::{Clears, Payload, Run, Runs};
use super::notice::{DiscardReason, Notice, RecoveryEnd, ResetCause};
use super::pending::after;
use super::policy::{GapPolicy, Policy};
use super::purpose::Purpose;
use super::recovery::From;
use super::shared::Context;
use super::slot::{Instance, Slot, Then};
use super::trust::TrustReason;
use crate::id::EventId;
use crate::membership::{Source, SourceKind};
use core::num::NonZeroU32;

/// Fallen ids in a row that count as evidence of a new life (B2).
const FALLEN_EVIDENCE: u32 = 3;

/// What is collected for one admit.
struct Collected<P> {
    runs: Runs<P>,
    base: Option<Base>,
}

impl<P> Collected<P> {
    fn new() -> Self {
        Self { runs: Runs::new(), base: None }
    }
}

/// What one run leads to.
enum Judgement<P> {
    /// It joins the admit.
    Admit(Run<P>, Option<Base>),
    /// It has been dealt with.
    Done,
    /// Something must happen first; the run is judged again afterwards.
    First(Run<P>, First),
    /// Something must happen first, and the run goes with it.
    Ends(First),
}

/// What must happen before the batch can go on; it needs the admit so far to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The missing events are asked for.
    Ask { expected: EventId, got: EventId },
    /// Nobody has what is missing: the whole state is asked for instead (B18).
    Escalate,
    /// The rank is emptied, then the whole is asked for (6.3/8).
    ResetAndAsk { expected: EventId, got: EventId },
    /// The rank is emptied and goes on from the run (6.3/9).
    ResetAndResume { expected: EventId, got: EventId },
    /// The source is in another life; its history is asked for, or begins with the run.
    NewLife { ask: bool },
    /// Is it still the same life?
    Verify,
}

impl<P: Payload> Slot<P> {
    /// Takes a live batch in its turn, and those that wait right behind it.
    pub(super) fn take_live(&mut self, instance: Instance, runs: Runs<P>, cx: &mut Context<'_, P>) {
        let mut collected = Collected::new();
        let mut batch = Some((instance, runs));
        while let Some((instance, runs)) = batch {
            if self.may_take(instance) {
                self.heard(cx);
                if !self.collect(instance, runs, &mut collected, cx) {
                    return;
                }
            } else {
                self.discard_batch(instance, &runs, cx);
            }
            batch = self.next_live();
        }
        self.hand_over(collected, cx);
    }

    /// The live path: one run, in order, nothing held.
    pub(super) fn is_simply_next(&self, instance: Instance, runs: &Runs<P>) -> bool {
        let ([run], Some(cursor)) = (runs.as_slice(), self.follow.cursor) else { return false };
        cursor.0.checked_add(1) == Some(run.first.0)
            && run.clears == Clears::Nothing
            && !self.follow.is_recovering()
            && !self.follow.unverified
            && self.follow.fallen.is_none()
            && self.follow.pending.is_empty()
            && self.may_take(instance)
    }

    /// Judges a batch's runs one by one; false when the rest has gone back to wait.
    fn collect(
        &mut self,
        instance: Instance,
        runs: Runs<P>,
        collected: &mut Collected<P>,
        cx: &mut Context<'_, P>,
    ) -> bool {
        let Some(source) = self.binding.map(|binding| binding.source) else { return true };
        let mut rest = runs.into_iter();
        while let Some(run) = rest.next() {
            let head = collected.runs.last().map(Run::last).or(self.follow.cursor);
            let (run, first) = match self.judge(source, run, head, cx) {
                Judgement::Admit(run, base) => {
                    collected.base = base.or(collected.base);
                    collected.runs.push(run);
                    continue;
                }
                Judgement::Done => continue,
                Judgement::First(run, first) => (Some(run), first),
                Judgement::Ends(first) => (None, first),
            };
            self.put_back(instance, run.into_iter().chain(rest).collect());
            if collected.runs.is_empty() {
                self.do_first(first, cx);
            } else {
                // Judged again once what has been collected is accepted.
                self.hand_over(core::mem::replace(collected, Collected::new()), cx);
            }
            return false;
        }
        true
    }

    fn hand_over(&mut self, collected: Collected<P>, cx: &mut Context<'_, P>) {
        if !collected.runs.is_empty() {
            self.follow.level_at = Some(cx.now);
        }
        self.send_admit(collected.runs, collected.base, None, cx);
    }

    /// One row of the table above.
    fn judge(
        &mut self,
        source: Source,
        run: Run<P>,
        head: Option<EventId>,
        cx: &mut Context<'_, P>,
    ) -> Judgement<P> {
        let run = match head {
            Some(head) if run.last() <= head => return self.fallen(source, run, cx),
            Some(head) => match after(run, head) {
                Some(run) => run,
                None => return Judgement::Done,
            },
            None => run,
        };
        self.follow.fallen = None;
        // On trial a source has nothing to say but what it is asked for (B15).
        if supersedes(run.clears, &cx.shared.policy) && !self.is_on_trial() {
            return self.cleared(run, head, cx);
        }
        if self.follow.is_holding() {
            if cx.shared.policy.verify_life && self.follow.pending.contradicts(&run) {
                return self.another_life(source, run, true);
            }
            self.buffer(run, cx);
            return Judgement::Done;
        }
        match head {
            None => self.first(source, run, cx),
            Some(head) if super::next_id(head) == Some(run.first) => Judgement::Admit(run, None),
            Some(head) => self.gap(head, run, cx),
        }
    }

    /// Rows 5 and 6.
    fn first(&mut self, source: Source, run: Run<P>, cx: &mut Context<'_, P>) -> Judgement<P> {
        let policy = &cx.shared.policy;
        let begins = run.first == source.first_id;
        if begins && policy.split_domains && self.is_dirty() {
            // What a cache owner kept through a lifecycle reset is not this beginning's (B32).
            return Judgement::First(run, First::NewLife { ask: false });
        }
        if begins && policy.optional_cursor {
            return Judgement::Admit(run, Some(Base::Known));
        }
        let declared = match self.follow.base {
            Base::Incomplete(_) => true,
            Base::Establishing | Base::Known => false,
        };
        if declared && policy.bounded_rounds {
            return Judgement::Admit(run, None);
        }
        if self.can_ask() {
            if self.is_given_up(cx) {
                // Nobody can tell what came before; nothing is in the target yet.
                self.follow.replay_blind = true;
                cx.shared.timers.cancel(&mut self.follow.probe);
                self.arm_repair(cx);
                return Judgement::Admit(run, Some(Base::Incomplete(TrustReason::HistoryUnknown)));
            }
            let got = run.first;
            self.note_gap(source.first_id, got, cx);
            self.buffer(run, cx);
            self.ask(From::Whole, cx);
            return Judgement::Done;
        }
        if begins {
            return Judgement::Admit(run, Some(Base::Known));
        }
        if !declared {
            self.note_gap(source.first_id, run.first, cx);
        }
        let base = Base::Incomplete(TrustReason::HistoryUnknown);
        Judgement::Admit(run, (!declared).then_some(base))
    }

    /// Rows 8 and 9.
    fn gap(&mut self, head: EventId, run: Run<P>, cx: &mut Context<'_, P>) -> Judgement<P> {
        let (expected, got) = (super::next_id(head).unwrap_or(head), run.first);
        let given_up = self.is_given_up(cx);
        let first = if given_up && self.may_escalate() {
            First::Escalate
        } else if given_up && self.can_show_state() {
            // It has been asked for everything: what it showed stays, and is repaired later (B5).
            self.note_skipped(Some(expected), got, cx);
            self.arm_repair(cx);
            // Not only once it has been accepted: a reader may see it before.
            self.follow.base = Base::Incomplete(TrustReason::Hole);
            return Judgement::Admit(run, Some(self.follow.base));
        } else if given_up || !self.can_ask() {
            First::ResetAndResume { expected, got }
        } else {
            match cx.shared.policy.gap_policy {
                GapPolicy::ResetFirst => First::ResetAndAsk { expected, got },
                GapPolicy::KeepServing => First::Ask { expected, got },
            }
        };
        Judgement::First(run, first)
    }

    /// Whether the hole has been asked for often enough (B18).
    pub(super) fn is_given_up(&self, cx: &Context<'_, P>) -> bool {
        let policy = &cx.shared.policy;
        policy.bounded_rounds && self.follow.barren_rounds >= policy.rounds
    }

    fn do_first(&mut self, first: First, cx: &mut Context<'_, P>) {
        match first {
            First::Ask { expected, got } => {
                self.note_gap(expected, got, cx);
                self.ask(From::Cursor, cx);
            }
            First::ResetAndAsk { expected, got } => {
                self.note_gap(expected, got, cx);
                self.owe_recovery(Purpose::Gap, From::Whole, cx);
                self.begin_reset(ResetCause::Hole, self.epoch(), Scope::All, Then::Launch, cx);
            }
            First::ResetAndResume { expected, got } => {
                self.note_gap(expected, got, cx);
                self.note_skipped(Some(expected), got, cx);
                self.cancel_recovery(cx);
                self.follow.barren_rounds = 0;
                let base = Base::Incomplete(TrustReason::Hole);
                let then = Then::Resume { base };
                self.begin_reset(ResetCause::Hole, self.epoch(), Scope::All, then, cx);
            }
            First::Escalate => self.escalate(cx),
            First::NewLife { ask } => self.new_life(ask, cx),
            First::Verify => self.start_recovery(Purpose::Verify, From::Cursor, cx),
        }
    }

    /// Whether the source can be asked for its whole state.
    fn can_show_state(&self) -> bool {
        self.follows_agent() && self.can_ask()
    }

    /// Whether it has not been asked for it yet, because of the hole at hand.
    pub(super) fn may_escalate(&self) -> bool {
        self.can_show_state() && !self.follow.escalated
    }

    pub(super) fn escalate(&mut self, cx: &mut Context<'_, P>) {
        self.follow.escalated = true;
        self.owe_recovery(Purpose::Gap, From::Whole, cx);
        self.launch(cx);
    }

    /// Asks for what is missing, later each time the source had nothing of it.
    pub(super) fn ask(&mut self, from: From, cx: &mut Context<'_, P>) {
        self.owe_recovery(Purpose::Gap, from, cx);
        match self.follow.barren_rounds {
            0 => self.launch(cx),
            rounds => self.launch_after(cx.shared.policy.backoff_base.doubled(rounds - 1), cx),
        }
    }

    /// Row 2: the clear wins over gap, recovery and doubt.
    fn cleared(
        &mut self,
        run: Run<P>,
        head: Option<EventId>,
        cx: &mut Context<'_, P>,
    ) -> Judgement<P> {
        let policy = &cx.shared.policy;
        let (tell, keeps) = (policy.no_dark_state, policy.gap_policy == GapPolicy::KeepServing);
        self.follow.unverified = false;
        if self.follow.is_recovering() {
            self.cancel_recovery(cx);
            cx.fx.notice(Notice::Recovered { rank: self.key, end: RecoveryEnd::Superseded });
        }
        cx.shared.timers.cancel(&mut self.follow.repair);
        if tell {
            self.tell_initial(cx);
        }
        let expected = head.map_or(Some(run.first), super::next_id);
        self.note_skipped(expected, run.first, cx);
        self.follow.barren_rounds = 0;
        self.follow.escalated = false;
        let dropped = if keeps {
            // What lies above it follows once it has been accepted.
            self.follow.pending.drop_through(run.last())
        } else {
            self.follow.newest = None;
            self.follow.pending.clear()
        };
        cx.shared.stats.discard(DiscardReason::Cleared, dropped);
        self.arm_probe(cx);
        Judgement::Admit(run, Some(Base::Known))
    }

    /// Rows 1: late, repeated, or another life's.
    fn fallen(&mut self, source: Source, run: Run<P>, cx: &mut Context<'_, P>) -> Judgement<P> {
        let likeness = self.follow.anchors.compare(run.first, run.digest);
        let reason = match likeness {
            Likeness::Same => DiscardReason::Duplicate,
            Likeness::Unknown | Likeness::Other => DiscardReason::Regression,
        };
        if !cx.shared.policy.detect_restart {
            cx.shared.stats.discard(reason, 1);
            return Judgement::Done;
        }
        let beginning = run.first == source.first_id;
        let new_life = match likeness {
            Likeness::Other => true,
            Likeness::Same => beginning && self.follow.unverified,
            Likeness::Unknown => beginning,
        };
        let proven = likeness != Likeness::Unknown;
        if new_life {
            return self.another_life(source, run, proven);
        }
        let in_a_row = match self.follow.fallen {
            Some((last, count)) if super::next_id(last) == Some(run.first) => {
                count.saturating_add(1)
            }
            Some(_) | None => NonZeroU32::MIN,
        };
        self.follow.fallen = Some((run.last(), in_a_row));
        if in_a_row.get() < FALLEN_EVIDENCE {
            cx.shared.stats.discard(reason, 1);
            return Judgement::Done;
        }
        // An engine is asked with an overlap, and what it says is the proof. An agent that has passed
        // the cursor meanwhile would simply go on.
        if !self.can_ask() || (source.kind == SourceKind::Agent && !proven) {
            return self.another_life(source, run, proven);
        }
        cx.shared.stats.discard(reason, 1);
        self.follow.fallen = None;
        Judgement::Ends(First::Verify)
    }

    /// The source is in another life, and `run` belongs to it: its beginning, or part of what it is
    /// asked for. A beginning that may as well be a late repeat is no whole history: it is asked for,
    /// too.
    fn another_life(&mut self, source: Source, run: Run<P>, proven: bool) -> Judgement<P> {
        let beginning = run.first == source.first_id;
        // What was learned of the replay was the ended life's.
        self.follow.replay_blind = false;
        let ask = self.recoverable() && !(beginning && proven);
        Judgement::First(run, First::NewLife { ask })
    }

    /// Row 4 (§6.4, B13).
    pub(super) fn buffer(&mut self, run: Run<P>, cx: &mut Context<'_, P>) {
        self.follow.saw(run.last());
        self.follow.pending.push(run);
        let (events, bytes) = (self.follow.pending.events(), self.follow.pending.bytes());
        if !self.is_over_limit(events, bytes, cx) {
            return;
        }
        if cx.shared.policy.refetch_overflow {
            let dropped = self.follow.pending.clear();
            cx.shared.stats.discard(DiscardReason::OverLimit, dropped);
        } else {
            let limit = u64::from(cx.shared.policy.pending_events);
            let dropped = self.follow.pending.evict_down_to(limit);
            cx.shared.stats.discard(DiscardReason::Evicted, dropped);
        }
    }

    pub(super) fn note_gap(&self, expected: EventId, got: EventId, cx: &mut Context<'_, P>) {
        if self.follow.barren_rounds == 0 {
            cx.shared.stats.gaps += 1;
            cx.fx.notice(Notice::Gap { rank: self.key, expected, got });
        }
    }

    /// Ids from `expected` up to `got` are skipped for good (S2).
    pub(super) fn note_skipped(
        &self,
        expected: Option<EventId>,
        got: EventId,
        cx: &mut Context<'_, P>,
    ) {
        if let Some(first) = expected.filter(|expected| *expected < got) {
            let last = EventId(got.0 - 1);
            cx.fx.notice(Notice::Skipped { rank: self.key, first, last });
        }
    }
}

/// Whether a run makes everything before it irrelevant: any clear in the reference, one of
/// everything when domains are told apart (B32).
pub(super) const fn supersedes(clears: Clears, policy: &Policy) -> bool {
    match clears {
        Clears::Nothing => false,
        Clears::OneDomain => !policy.split_domains,
        Clears::Everything => true,
    }
}
