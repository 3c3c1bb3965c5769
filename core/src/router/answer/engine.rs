//! Answers of a raw engine's replay: what they prove, and what they bring (B7).
//!
//! An answer is every message the engine's ring still has from the asked id on. It is asked with
//! one message of overlap, the cursor's own: only that message, seen before and seen again, proves
//! that the source is still the life that was followed.
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
//! The answer to a repair, a fault or a probation replaces the state as a whole; on probation an empty
//! one is no offence, and proves nothing. A cut-off answer is
//! progress: its contiguous beginning counts, and the rest is asked for again.

use super::super::anchors::Likeness;
use super::super::follow::Base;
use super::super::input::{Payload, Run};
use super::super::notice::RecoveryEnd;
use super::super::pending::after;
use super::super::purpose::Purpose;
use super::super::recovery::Recovery;
use super::super::slot::{Commit, Slot};
use super::super::trust::TrustReason;
use super::{Verdict, end_of, from_known_point, from_last_clear, is_ascending};
use crate::id::EventId;
use crate::membership::Source;
use alloc::vec::Vec;

impl<P: Payload> Slot<P> {
    pub(super) fn judge_replay(
        &mut self,
        source: Source,
        recovery: &Recovery,
        runs: Vec<Run<P>>,
        complete: bool,
    ) -> Verdict<P> {
        if !is_ascending(&runs) {
            return Verdict::Violation;
        }
        let (runs, complete) = tidied(runs, complete, recovery.asked);
        let whole_state = match recovery.purpose {
            Purpose::Repair | Purpose::Fault | Purpose::Probation => true,
            Purpose::Initial | Purpose::Gap | Purpose::Verify | Purpose::Probe => false,
        };
        if !whole_state && recovery.head != self.follow.cursor {
            return if self.contradicted(&runs) { Verdict::NewLife } else { Verdict::Overtaken };
        }
        if runs.is_empty() && !complete {
            return Verdict::Failed;
        }
        if !runs.is_empty() {
            self.follow.replay_mute = false;
        }
        match (whole_state, recovery.head) {
            (true, _) if runs.is_empty() && recovery.purpose == Purpose::Probation => {
                self.judge_nothing_on_probation()
            }
            (true, _) => self.judge_whole_replay(source, runs, complete),
            (false, Some(cursor)) if recovery.asked.is_some() => {
                self.judge_overlap(cursor, recovery.purpose, runs, complete)
            }
            (false, Some(_) | None) => self.judge_beginning(source, runs, complete),
        }
    }

    fn judge_whole_replay(
        &mut self,
        source: Source,
        runs: Vec<Run<P>>,
        complete: bool,
    ) -> Verdict<P> {
        if !complete {
            return Verdict::Failed;
        }
        let (runs, base) = from_known_point(source, runs);
        let Some(last) = runs.last().map(Run::last) else { return Verdict::Failed };
        self.follow.replay_blind = false;
        let commit = Commit { end: end_of(base), ..Commit::whole(last, base) };
        Verdict::Replace(runs, last, commit)
    }

    fn judge_beginning(&mut self, source: Source, runs: Vec<Run<P>>, complete: bool) -> Verdict<P> {
        let (runs, base) = from_known_point(source, runs);
        let Some(last) = runs.last().map(Run::last) else { return self.judge_nothing(complete) };
        let commit = Commit {
            cursor: Some(last),
            base: Some(base),
            end: end_of(base),
            unfinished: !complete,
            level: complete,
        };
        Verdict::Admit(runs, commit)
    }

    /// There is nothing to hold against the source; nor does it show what it has.
    fn judge_nothing_on_probation(&self) -> Verdict<P> {
        let base = Some(Base::Incomplete(TrustReason::HistoryUnknown));
        let (cursor, end) = (self.follow.cursor, RecoveryEnd::Restarted);
        Verdict::Admit(Vec::new(), Commit { cursor, base, end, ..Commit::healed() })
    }

    /// The source says that it has nothing at all.
    pub(super) fn judge_nothing(&mut self, complete: bool) -> Verdict<P> {
        if !complete {
            return Verdict::Failed;
        }
        let mut commit = Commit { cursor: self.follow.cursor, ..Commit::healed() };
        if self.follow.pending.is_empty() {
            self.follow.barren_rounds = 0;
            self.follow.newest = None;
            commit.base =
                Some(if self.follow.replay_mute { Base::Establishing } else { Base::Known });
        } else {
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
            commit.level = false;
        }
        Verdict::Admit(Vec::new(), commit)
    }

    fn judge_overlap(
        &mut self,
        cursor: EventId,
        purpose: Purpose,
        runs: Vec<Run<P>>,
        complete: bool,
    ) -> Verdict<P> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            self.follow.replay_mute = !self.follow.unverified;
            return Verdict::NewLife;
        };
        if first.first > cursor {
            let (runs, base) = from_last_clear(runs);
            return Verdict::Restart(runs, base);
        }
        let short = last.last() < cursor;
        if short && !complete {
            return Verdict::Failed;
        }
        if short || self.contradicted(&runs) || !self.is_same_life(cursor, purpose, &runs) {
            return Verdict::NewLife;
        }
        self.follow.unverified = false;
        self.follow.fallen = None;
        let runs: Vec<_> = runs.into_iter().filter_map(|run| after(run, cursor)).collect();
        if runs.is_empty() && !complete {
            // Nothing beyond what was known: no progress, or the same answer would count for ever.
            self.verified();
            return Verdict::Failed;
        }
        if runs.is_empty() && purpose == Purpose::Gap {
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
        }
        let cursor = runs.last().map_or(cursor, Run::last);
        let commit = Commit {
            cursor: Some(cursor),
            unfinished: !complete,
            level: complete,
            ..Commit::healed()
        };
        Verdict::Admit(runs, commit)
    }

    /// The life is established, whatever else is missing: a verification goes on as a gap.
    fn verified(&mut self) {
        if let Some(recovery) = self.follow.recovery_mut()
            && recovery.purpose == Purpose::Verify
        {
            recovery.purpose = Purpose::Gap;
        }
    }

    /// Whether an answer holds another message under the id of one that was admitted.
    fn contradicted(&self, runs: &[Run<P>]) -> bool {
        let anchors = &self.follow.anchors;
        runs.iter().any(|run| anchors.compare(run.first, run.digest) == Likeness::Other)
    }

    /// Whether an answer that reaches back to the cursor comes from the life that is followed.
    fn is_same_life(&self, cursor: EventId, purpose: Purpose, runs: &[Run<P>]) -> bool {
        let overlap = runs.iter().find(|run| run.last() >= cursor);
        let likeness = overlap
            .map_or(Likeness::Unknown, |run| self.follow.anchors.compare(run.first, run.digest));
        match likeness {
            Likeness::Same => true,
            Likeness::Other => false,
            Likeness::Unknown => !self.follow.unverified && purpose != Purpose::Verify,
        }
    }
}

/// The usable part of an answer: nothing below what was asked, contiguous to its end. An answer
/// with a hole in it is cut off before the hole (B10).
fn tidied<P: Payload>(
    mut runs: Vec<Run<P>>,
    complete: bool,
    asked: Option<EventId>,
) -> (Vec<Run<P>>, bool) {
    if let Some(asked) = asked {
        runs.retain(|run| run.last() >= asked);
    }
    let mut next: Option<EventId> = None;
    let contiguous = runs
        .iter()
        .position(|run| {
            let hole = next.is_some_and(|next| next != run.first);
            next = super::super::next_id(run.last());
            hole
        })
        .unwrap_or(runs.len());
    let whole = contiguous == runs.len();
    runs.truncate(contiguous);
    (runs, complete && whole)
}
