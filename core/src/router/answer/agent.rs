//! An agent's range of events, checked (B10, B4).
//!
//! | answer | effect |
//! |---|---|
//! | ids fall, overlap, begin below what was asked, or do not end with what it says it covers | broke the rules |
//! | covers less than what was followed | broke the rules |
//! | asked for the whole, on probation | broke the rules: only a snapshot counts (B15) |
//! | asked for the whole, and it has nothing at all | known to be empty; another life if the rank is not |
//! | asked for the whole, the rank is empty | admitted from the last point at which the state was known |
//! | asked for the whole, the rank is not, and it reaches a known point | replaces |
//! | follows the cursor | admitted up to its first hole; what lies above waits |
//! | begins above the cursor | nothing of the hole: a barren round (B18) |
//! | nothing above the cursor | level, or a barren round |

use super::super::follow::Base;
use super::super::input::{Payload, Run};
use super::super::pending::after;
use super::super::purpose::Purpose;
use super::super::recovery::Recovery;
use super::super::shared::Context;
use super::super::slot::{Commit, Slot};
use super::{Verdict, end_of, from_known_point, is_ascending};
use crate::id::EventId;
use crate::membership::{Source, SourceKind};
use alloc::vec::Vec;

impl<P: Payload> Slot<P> {
    pub(super) fn judge_range(
        &mut self,
        source: Source,
        recovery: &Recovery,
        runs: Vec<Run<P>>,
        last: Option<EventId>,
        complete: bool,
        cx: &mut Context<'_, P>,
    ) -> Verdict<P> {
        let ascends = is_ascending(&runs);
        let ends = runs.last().is_none_or(|end| !complete || Some(end.last()) == last);
        let begins = runs.first().is_none_or(|first| recovery.asked <= Some(first.first));
        if !ascends || !ends || !begins || recovery.purpose == Purpose::Probation {
            return Verdict::Violation;
        }
        if recovery.asked.is_none() {
            return self.judge_whole_range(source, runs, complete, cx);
        }
        if complete && last < recovery.head && source.kind == SourceKind::Agent {
            // It covers less than what was followed when it was asked.
            return Verdict::Violation;
        }
        let Some(cursor) = self.follow.cursor else {
            return self.judge_whole_range(source, runs, complete, cx);
        };
        let above = runs.into_iter().filter_map(|run| after(run, cursor)).collect();
        let next = super::super::next_id(cursor);
        let (runs, rest) = split_at_hole(above, next);
        let barren = runs.is_empty() && (!rest.is_empty() || last > Some(cursor));
        if !complete && runs.is_empty() {
            return Verdict::Failed;
        }
        for run in rest {
            self.buffer(run, cx);
        }
        let gap = recovery.purpose == Purpose::Gap && self.follow.newest > Some(cursor);
        if barren || (runs.is_empty() && gap) {
            self.follow.barren_rounds = self.follow.barren_rounds.saturating_add(1);
        }
        if let Some(last) = last.filter(|last| *last > cursor) {
            self.follow.saw(last);
        }
        let cursor = runs.last().map_or(cursor, Run::last);
        let commit = Commit {
            cursor: Some(cursor),
            unfinished: !complete,
            level: complete && !barren,
            ..Commit::healed()
        };
        Verdict::Admit(runs, commit)
    }

    fn judge_whole_range(
        &mut self,
        source: Source,
        runs: Vec<Run<P>>,
        complete: bool,
        cx: &mut Context<'_, P>,
    ) -> Verdict<P> {
        if runs.is_empty() {
            return match (self.is_dirty(), complete) {
                (false, _) => self.judge_nothing(complete),
                // What is there came from somebody who did publish.
                (true, true) => Verdict::NewLife,
                (true, false) => Verdict::Failed,
            };
        }
        let (runs, rest) = split_at_hole(runs, None);
        for run in rest {
            self.buffer(run, cx);
        }
        let (runs, base) = from_known_point(source, runs);
        let Some(last) = runs.last().map(Run::last) else { return Verdict::Failed };
        let commit = Commit {
            cursor: Some(last),
            base: Some(base),
            end: end_of(base),
            unfinished: !complete,
            level: complete,
        };
        match (self.is_empty(), base) {
            (true, _) => Verdict::Admit(runs, commit),
            (false, Base::Known) if complete && self.follow.cursor <= Some(last) => {
                Verdict::Replace(runs, last, commit)
            }
            (false, Base::Known | Base::Incomplete(_) | Base::Establishing) => Verdict::Failed,
        }
    }
}

/// What follows without a hole, beginning with `next` if that is given, and the rest.
fn split_at_hole<P: Payload>(
    mut runs: Vec<Run<P>>,
    mut next: Option<EventId>,
) -> (Vec<Run<P>>, Vec<Run<P>>) {
    let at = runs
        .iter()
        .position(|run| {
            let hole = next.is_some_and(|next| run.first != next);
            next = super::super::next_id(run.last());
            hole
        })
        .unwrap_or(runs.len());
    let rest = runs.split_off(at);
    (runs, rest)
}
