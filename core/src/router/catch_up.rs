//! What a rank does about events that wait, or are known to exist, while nothing else is to be done.
//!
//! | waits | effect |
//! |---|---|
//! | another message than the one admitted under its id | another life |
//! | what follows the cursor | admitted |
//! | something higher | judged like one that has just come (`live.rs`) |
//! | nothing, but more is known to exist; cannot be asked | reset, begins anew: removals may be lost (L2) |
//! | … can be asked | asked for, a bounded number of rounds (B18) |
//! | … in vain, the source has a whole state to show | that is asked for, once |
//! | … in vain | partial from here on |

use super::anchors::Likeness;
use super::command::Scope;
use super::follow::Base;
use super::input::{Payload, Runs};
use super::notice::{DiscardReason, ResetCause};
use super::recovery::From;
use super::shared::Context;
use super::slot::{Slot, Then};
use super::trust::TrustReason;
use crate::membership::Source;

impl<P: Payload> Slot<P> {
    /// Does the next thing about what waits while nothing else is to be done. Returns whether there
    /// was one. In the reference nothing waits outside a recovery.
    pub(super) fn catch_up(&mut self, cx: &mut Context<'_, P>) -> bool {
        if self.follow.pending.is_empty() && self.follow.newest.is_none() {
            return false;
        }
        let Some(binding) = self.binding else { return false };
        if !self.may_take(binding.instance) || self.follow.is_holding() {
            return false;
        }
        if self.waits_for_another_life() {
            // Which of the two is the later one cannot be told from here.
            self.new_life(true, cx);
            return true;
        }
        let (runs, superfluous) = match self.follow.cursor {
            Some(cursor) => self.follow.pending.take_contiguous(Some(cursor)),
            None => (alloc::vec::Vec::new(), 0),
        };
        cx.shared.stats.discard(DiscardReason::Duplicate, superfluous);
        if !runs.is_empty() {
            self.send_admit(Runs::from_vec(runs), None, None, cx);
            return true;
        }
        if let Some(run) = self.follow.pending.pop_front() {
            // Judged like one that has just come.
            self.put_back(binding.instance, Runs::from_buf([run]));
            return true;
        }
        self.follow.is_behind() && self.fetch_tail(binding.source, cx)
    }

    /// Whether a message that waits differs from the one that was admitted under its id.
    fn waits_for_another_life(&self) -> bool {
        let Some(cursor) = self.follow.cursor else { return false };
        let anchors = &self.follow.anchors;
        self.follow
            .pending
            .iter()
            .take_while(|run| run.first <= cursor)
            .any(|run| anchors.compare(run.first, run.digest) == Likeness::Other)
    }

    /// More is known to exist than is held: it was over a limit, was announced (B3), or lies behind
    /// a cut-off answer.
    fn fetch_tail(&mut self, source: Source, cx: &mut Context<'_, P>) -> bool {
        if !self.can_ask() {
            // What was over the limit cannot be had again, and may have held removals (L2).
            self.follow.newest = None;
            let then = Then::Begin { ask: false };
            self.begin_reset(ResetCause::Hole, self.epoch(), Scope::All, then, cx);
            return true;
        }
        if !self.is_given_up(cx) {
            let got = self.follow.newest.unwrap_or(source.first_id);
            let expected = self.follow.cursor.map_or(Some(source.first_id), super::next_id);
            self.note_gap(expected.unwrap_or(got), got, cx);
            self.ask(From::Cursor, cx);
            return true;
        }
        if self.may_escalate() {
            self.escalate(cx);
            return true;
        }
        // Seen once, and its own source does not have it: nobody can fill the hole (B18). Or it was an
        // earlier life's; then the source's own history puts it right later.
        self.follow.newest = None;
        self.follow.base = Base::Incomplete(TrustReason::Hole);
        self.arm_repair(cx);
        false
    }
}
