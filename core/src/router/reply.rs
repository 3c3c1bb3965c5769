//! Answers of a raw engine's replay: what they prove, and what they bring.
//!
//! An answer is every message the engine's ring still has from the asked id on. It is asked with
//! one message of overlap, the cursor's own: only that message, seen before and seen again, proves
//! that the source is still the life that was followed (B7).
//!
//! Asked from the beginning (no cursor yet):
//!
//! | answer | effect |
//! |---|---|
//! | nothing | nothing was published so far: known, empty; after a doubtful "nothing": still to be told |
//! | begins with the stream's first id | known: admit all |
//! | begins later, contains a clear | known from its last clear on: admit from there |
//! | begins later | history unknown: admit all as partial |
//!
//! Asked from the cursor `c`, or from a little before it:
//!
//! | answer | effect |
//! |---|---|
//! | nothing, or whole and ends before `c` | the source has fewer messages than were followed: new life |
//! | any message that differs from the one admitted under its id | new life |
//! | reaches back to `c`, same message | same life: admit the rest |
//! | reaches back to `c`, no digests to compare | same life only while the transport is not in doubt |
//! | begins after `c` | no proof and a hole: reset, restart from its last clear, or from its oldest as partial |
//! | cut off, brings nothing above `c` | a failed attempt |
//!
//! A repair's answer replaces the state as a whole. A cut-off answer is progress: its contiguous
//! beginning counts, and the rest is asked for again.

use super::anchors::Likeness;
use super::command::ResetReason;
use super::follow::{Base, Reply};
use super::input::{Payload, Run, Runs, Source};
use super::notice::RecoveryEnd;
use super::pending::after;
use super::recovery::Purpose;
use super::shared::Context;
use super::slot::{Slot, Then};
use super::trust::TrustReason;
use crate::id::EventId;
use alloc::vec::Vec;

impl<P: Payload> Slot<P> {
    /// Works an answer off; the rank has no incomplete command.
    pub(super) fn take_reply(&mut self, source: Source, reply: Reply<P>, cx: &mut Context<'_, P>) {
        let Some(recovery) = self.follow.recovery else { return };
        let reply = tidied(reply, recovery.asked);
        if recovery.purpose != Purpose::Repair && recovery.head != self.follow.cursor {
            // Live messages overtook a probe: the source is plainly there.
            if self.contradicted(&reply.runs) {
                self.replaced_by_another_life(cx);
            } else {
                self.finish_recovery(RecoveryEnd::Healed, cx);
            }
            return;
        }
        if reply.runs.is_empty() && !reply.complete {
            self.attempt_failed(cx);
            return;
        }
        if !reply.runs.is_empty() {
            self.follow.replay_mute = false;
        }
        match (recovery.purpose, recovery.head) {
            (Purpose::Repair, _) => self.repair_reply(source, reply, cx),
            (_, None) => self.beginning_reply(source, reply, cx),
            (_, Some(cursor)) => self.overlap_reply(cursor, reply, cx),
        }
    }

    fn beginning_reply(&mut self, source: Source, reply: Reply<P>, cx: &mut Context<'_, P>) {
        let sent_at = self.follow.recovery.map(|recovery| recovery.sent_at);
        if reply.runs.is_empty() {
            self.follow.barren_rounds += 1;
            if self.follow.pending.is_empty() {
                self.follow.barren_rounds = 0;
                self.follow.base =
                    if self.follow.replay_mute { Base::Establishing } else { Base::Known };
                self.follow.newest = None;
                self.follow.level_at = sent_at;
            }
            self.finish_recovery(RecoveryEnd::Healed, cx);
            return;
        }
        let (runs, base) = from_known_point(source, reply.runs);
        self.conclude(reply.complete, end_of(base), cx);
        self.follow.level_at = sent_at.filter(|_| reply.complete);
        self.admit(Runs::from_vec(runs), Some(base), cx);
    }

    fn overlap_reply(&mut self, cursor: EventId, reply: Reply<P>, cx: &mut Context<'_, P>) {
        let (Some(first), Some(last)) = (reply.runs.first(), reply.runs.last()) else {
            self.follow.replay_mute = self.follow.doubt.is_none();
            self.replaced_by_another_life(cx);
            return;
        };
        if first.first > cursor {
            self.finish_recovery(RecoveryEnd::Restarted, cx);
            self.settle_doubt();
            let (runs, base) = from_last_clear(reply.runs);
            self.owe_restart(ResetReason::Hole, Then::Rebase { runs, base, repair: false }, cx);
            return;
        }
        let short = last.last() < cursor;
        if short && !reply.complete {
            self.attempt_failed(cx);
            return;
        }
        if short || self.contradicted(&reply.runs) || !self.same_life(cursor, &reply.runs) {
            self.replaced_by_another_life(cx);
            return;
        }
        self.settle_doubt();
        self.follow.fallen = None;
        let sent_at = self.follow.recovery.map(|recovery| recovery.sent_at);
        let runs: Vec<_> = reply.runs.into_iter().filter_map(|run| after(run, cursor)).collect();
        if runs.is_empty() && !reply.complete {
            // Nothing beyond what was known: no progress, or the same answer would count for ever.
            self.verified();
            self.attempt_failed(cx);
            return;
        }
        if runs.is_empty() && self.follow.purpose() == Some(Purpose::Gap) {
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
        }
        self.conclude(reply.complete, RecoveryEnd::Healed, cx);
        if reply.complete {
            self.follow.level_at = sent_at;
        }
        self.admit(Runs::from_vec(runs), None, cx);
    }

    /// Whether an answer holds another message under the id of one that was admitted.
    fn contradicted(&self, runs: &[Run<P>]) -> bool {
        let anchors = &self.follow.anchors;
        runs.iter().any(|run| anchors.compare(run.first, run.digest) == Likeness::Other)
    }

    /// Whether an answer that reaches back to the cursor comes from the life that is followed.
    fn same_life(&self, cursor: EventId, runs: &[Run<P>]) -> bool {
        let overlap = runs.iter().find(|run| run.last() >= cursor);
        let likeness = overlap
            .map_or(Likeness::Unknown, |run| self.follow.anchors.compare(run.first, run.digest));
        match likeness {
            Likeness::Same => true,
            Likeness::Other => false,
            Likeness::Unknown => {
                self.follow.doubt.is_none() && self.follow.purpose() != Some(Purpose::Verify)
            }
        }
    }

    fn replaced_by_another_life(&mut self, cx: &mut Context<'_, P>) {
        self.finish_recovery(RecoveryEnd::NewLife, cx);
        self.owe_restart(ResetReason::NewLife, Then::Fresh, cx);
    }

    fn repair_reply(&mut self, source: Source, reply: Reply<P>, cx: &mut Context<'_, P>) {
        if reply.runs.is_empty() || !reply.complete {
            self.attempt_failed(cx);
            return;
        }
        self.follow.replay_blind = false;
        let (runs, base) = from_known_point(source, reply.runs);
        self.finish_recovery(end_of(base), cx);
        self.follow.barren_rounds = 0;
        self.replace(runs, base, cx);
    }

    /// Ends the recovery if the answer was whole, else goes on from what it brought.
    fn conclude(&mut self, complete: bool, end: RecoveryEnd, cx: &mut Context<'_, P>) {
        if complete {
            self.finish_recovery(end, cx);
        } else {
            self.attempt_progressed(cx);
        }
    }
}

const fn end_of(base: Base) -> RecoveryEnd {
    match base {
        Base::Known => RecoveryEnd::Healed,
        Base::Incomplete(_) | Base::Establishing => RecoveryEnd::Restarted,
    }
}

/// The usable part of an answer: nothing below what was asked, contiguous to its end. An answer
/// with a hole in it is cut off before the hole (B10).
fn tidied<P: Payload>(mut reply: Reply<P>, asked_from: Option<EventId>) -> Reply<P> {
    if let Some(asked) = asked_from {
        reply.runs.retain(|run| run.last() >= asked);
    }
    let mut last: Option<EventId> = None;
    let contiguous = reply
        .runs
        .iter()
        .take_while(|run| {
            let fits = last.is_none_or(|last| last.0.checked_add(1) == Some(run.first.0));
            last = Some(run.last());
            fits
        })
        .count();
    if contiguous < reply.runs.len() {
        reply.runs.truncate(contiguous);
        reply.complete = false;
    }
    reply
}

/// From the stream's first id the history is known; else from the last clear, if there is one.
fn from_known_point<P: Payload>(source: Source, runs: Vec<Run<P>>) -> (Vec<Run<P>>, Base) {
    match runs.first() {
        Some(first) if first.first == source.first_id => (runs, Base::Known),
        Some(_) | None => from_last_clear(runs),
    }
}

fn from_last_clear<P: Payload>(mut runs: Vec<Run<P>>) -> (Vec<Run<P>>, Base) {
    match runs.iter().rposition(|run| run.clear) {
        Some(at) => (runs.split_off(at), Base::Known),
        None => (runs, Base::Incomplete(TrustReason::HistoryUnknown)),
    }
}
