//! The queue of a rank's work items, and what bounds it (§6.4, B13).

use super::super::input::{Clears, Payload, Run, Runs};
use super::super::notice::DiscardReason;
use super::super::shared::Context;
use super::{Instance, Item, Slot};

impl<P: Payload> Slot<P> {
    /// Puts an item behind what waits already, and works the slot off.
    pub(in crate::router) fn accept(&mut self, item: Item<P>, cx: &mut Context<'_, P>) {
        if self.is_at_rest() {
            // Nothing to wait for: the queue of an idle rank takes no memory.
            self.run(item, cx);
        } else {
            self.enqueue(item, cx);
        }
        self.pump(cx);
    }

    /// Puts an item behind what waits already.
    pub(in crate::router) fn enqueue(&mut self, item: Item<P>, cx: &mut Context<'_, P>) {
        match &item {
            Item::Reconcile if self.reconcile_waits => return,
            Item::Reconcile => self.reconcile_waits = true,
            Item::Live { runs, .. } => self.count_waiting(runs),
            Item::TransportGap { .. } | Item::Watermark { .. } => {
                // The newest says all; those before it must not pile up behind a command that hangs.
                let kind = core::mem::discriminant(&item);
                self.queue.retain(|waiting| core::mem::discriminant(waiting) != kind);
            }
            Item::Answer { .. }
            | Item::FollowUp { .. }
            | Item::Fault { .. }
            | Item::Reject { .. }
            | Item::Probation
            | Item::Interrupted { .. }
            | Item::Back { .. }
            | Item::Remove => {}
        }
        self.queue.push_back(item);
        if !self.is_idle() {
            self.bound_queue(cx);
        }
    }

    /// Puts what is left of a batch back to the front.
    pub(in crate::router) fn put_back(&mut self, instance: Instance, runs: Runs<P>) {
        if !runs.is_empty() {
            self.count_waiting(&runs);
            self.queue.push_front(Item::Live { instance, runs });
        }
    }

    /// Whether a live batch waits in front.
    pub(in crate::router) fn has_next_live(&self) -> bool {
        matches!(self.queue.front(), Some(Item::Live { .. }))
    }

    /// Takes the next batch, if a live batch waits in front.
    pub(in crate::router) fn next_live(&mut self) -> Option<(Instance, Runs<P>)> {
        if !self.has_next_live() {
            return None;
        }
        match self.take_item() {
            Some(Item::Live { instance, runs }) => Some((instance, runs)),
            Some(_) | None => None,
        }
    }

    pub(super) fn take_item(&mut self) -> Option<Item<P>> {
        let item = self.queue.pop_front()?;
        if let Item::Live { runs, .. } = &item {
            self.uncount_waiting(runs);
        }
        self.reconcile_waits &= !matches!(item, Item::Reconcile);
        Some(item)
    }

    fn count_waiting(&mut self, runs: &[Run<P>]) {
        let (events, bytes) = size(runs);
        self.waiting_events += events;
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
    }

    fn uncount_waiting(&mut self, runs: &[Run<P>]) {
        let (events, bytes) = size(runs);
        self.waiting_events = self.waiting_events.saturating_sub(events);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    /// Whether so much may wait on this rank, with what all ranks hold together.
    pub(in crate::router) fn is_over_limit(
        &self,
        events: u64,
        bytes: usize,
        cx: &Context<'_, P>,
    ) -> bool {
        let policy = &cx.shared.policy;
        let in_all = cx.others_bytes.saturating_add(self.waiting().1);
        events > u64::from(policy.pending_events)
            || bytes > policy.pending_bytes
            || (policy.refetch_overflow && in_all > policy.pending_bytes_total)
    }

    /// Keeps what waits behind an incomplete command within its limits: all of it goes and is fetched
    /// again, a clear apart (B13); in the reference the oldest go, and the gap shows later.
    fn bound_queue(&mut self, cx: &mut Context<'_, P>) {
        if !self.is_over_limit(self.waiting_events, self.waiting_bytes, cx) {
            return;
        }
        if cx.shared.policy.refetch_overflow {
            self.drop_waiting(cx);
        } else {
            self.evict_waiting(cx);
        }
    }

    /// Drops every live run that waits, but the newest clear of everything.
    fn drop_waiting(&mut self, cx: &mut Context<'_, P>) {
        let mut clear = None;
        let mut newest = None;
        let mut dropped = 0;
        let mut last_instance = None;
        for item in core::mem::take(&mut self.queue) {
            let Item::Live { instance, runs } = item else {
                self.queue.push_back(item);
                continue;
            };
            last_instance = Some(instance);
            for run in runs {
                newest = newest.max(Some(run.last()));
                dropped += 1;
                if run.clears == Clears::Everything {
                    clear = Some(run);
                }
            }
        }
        (self.waiting_events, self.waiting_bytes) = (0, 0);
        if let (Some(clear), Some(instance)) = (clear, last_instance) {
            dropped -= 1;
            let runs = Runs::from_buf([clear]);
            self.count_waiting(&runs);
            self.queue.push_back(Item::Live { instance, runs });
        }
        if let Some(newest) = newest {
            self.follow.saw(newest);
        }
        cx.shared.stats.discard(DiscardReason::OverLimit, dropped);
    }

    /// Drops the batches that wait longest, whole, until the rest is within the limits.
    fn evict_waiting(&mut self, cx: &mut Context<'_, P>) {
        while self.is_over_limit(self.waiting_events, self.waiting_bytes, cx) {
            let Some(at) = self.queue.iter().position(|item| matches!(item, Item::Live { .. }))
            else {
                break;
            };
            if let Some(Item::Live { runs, .. }) = self.queue.remove(at) {
                self.uncount_waiting(&runs);
                cx.shared.stats.discard(DiscardReason::Evicted, runs.len() as u64);
            }
        }
    }
}

fn size<P: Payload>(runs: &[Run<P>]) -> (u64, usize) {
    runs.iter().fold((0, 0), |(events, bytes), run| {
        (events + u64::from(run.len.get()), bytes.saturating_add(run.payload.bytes()))
    })
}
