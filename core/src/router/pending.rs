//! Live runs that wait for a recovery.

use super::input::{Payload, Run};
use crate::id::EventId;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held<P> {
    run: Run<P>,
    /// Order of arrival: who came first goes first when the buffer is full (§6.4), and stays when
    /// two have one id.
    arrival: u64,
}

/// Runs above the cursor, ascending by first id, then arrival. Repeats are kept. Bounded by the
/// caller, who asks for [`Pending::events`] and [`Pending::bytes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending<P> {
    held: VecDeque<Held<P>>,
    events: u64,
    bytes: usize,
    arrivals: u64,
}

impl<P> Default for Pending<P> {
    fn default() -> Self {
        Self { held: VecDeque::new(), events: 0, bytes: 0, arrivals: 0 }
    }
}

impl<P: Payload> Pending<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lowest run.
    pub(super) fn front(&self) -> Option<&Run<P>> {
        self.held.front().map(|held| &held.run)
    }

    /// Puts a run in its place. It is cut where one that came earlier begins within it, so that of two
    /// events with one id the earlier one is found first.
    pub(super) fn push(&mut self, run: Run<P>) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let mut rest = Some(run);
        while let Some(run) = rest {
            let at = self.held.partition_point(|held| held.run.first <= run.first);
            let next = self.held.get(at).map(|held| held.run.first);
            let (run, above) = match next.filter(|next| *next <= run.last()) {
                Some(next) => below(run, next),
                None => (run, None),
            };
            self.count(&run);
            self.held.insert(at, Held { run, arrival });
            rest = above;
        }
    }

    /// Whether another message is held under the id of `run`: they are not one life's.
    pub(super) fn contradicts(&self, run: &Run<P>) -> bool {
        let at = self.held.partition_point(|held| held.run.first < run.first);
        self.held
            .range(at..)
            .take_while(|held| held.run.first == run.first)
            .any(|held| matches!((held.run.digest, run.digest), (Some(a), Some(b)) if a != b))
    }

    /// The runs held, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Run<P>> {
        self.held.iter().map(|held| &held.run)
    }

    /// Takes the lowest run.
    pub(super) fn pop_front(&mut self) -> Option<Run<P>> {
        let run = self.held.pop_front()?.run;
        self.uncount(&run);
        Some(run)
    }

    /// Drops what lies at or below `id`; returns how many runs went whole.
    pub(super) fn drop_through(&mut self, id: EventId) -> u64 {
        let mut dropped = 0;
        while self.front().is_some_and(|front| front.first <= id) {
            let Some(run) = self.pop_front() else { break };
            match after(run, id) {
                Some(rest) => self.push(rest),
                None => dropped += 1,
            }
        }
        dropped
    }

    /// Empties the buffer and gives its memory back; returns how many runs it held.
    pub(super) fn clear(&mut self) -> u64 {
        let held = self.held.len() as u64;
        *self = Self::default();
        held
    }

    /// Takes the first arrived events away until at most `limit` are left; returns how many went.
    pub(super) fn evict_down_to(&mut self, limit: u64) -> u64 {
        let mut gone = 0;
        while self.events > limit {
            let oldest = self.held.iter().enumerate().min_by_key(|(_, held)| held.arrival);
            let Some((at, arrival)) = oldest.map(|(at, held)| (at, held.arrival)) else { break };
            let Some(held) = self.held.remove(at) else { break };
            self.uncount(&held.run);
            let excess = (self.events + u64::from(held.run.len.get())).saturating_sub(limit);
            let len = u64::from(held.run.len.get());
            gone += excess.min(len);
            let cut = EventId(held.run.first.0.saturating_add(excess.saturating_sub(1)));
            if excess < len
                && let Some(rest) = after(held.run, cut)
            {
                self.count(&rest);
                let at = self.held.partition_point(|other| {
                    (other.run.first, other.arrival) < (rest.first, arrival)
                });
                self.held.insert(at, Held { run: rest, arrival });
            }
        }
        gone
    }

    /// Takes everything above `id`, once, ascending; of what has one id the first arrival counts.
    /// Returns also how many runs were superfluous. The buffer is empty afterwards.
    pub(super) fn take_above(&mut self, id: Option<EventId>) -> (Vec<Run<P>>, u64) {
        let held = core::mem::take(self).held;
        let mut kept: Vec<Run<P>> = Vec::new();
        let mut superfluous = 0;
        let mut last = id;
        for Held { run, .. } in held {
            let rest = match last {
                Some(last) => after(run, last),
                None => Some(run),
            };
            match rest {
                Some(rest) => {
                    last = Some(rest.last());
                    kept.push(rest);
                }
                None => superfluous += 1,
            }
        }
        (kept, superfluous)
    }

    /// Takes what follows `id` without a hole, and drops what lies at or below it; the rest stays.
    /// Returns also how many runs were superfluous.
    pub(super) fn take_contiguous(&mut self, id: Option<EventId>) -> (Vec<Run<P>>, u64) {
        let (mut runs, mut last, mut superfluous) = (Vec::new(), id, 0);
        while let Some(front) = self.front() {
            if last.is_some_and(|last| {
                front.first.0.checked_sub(1).is_some_and(|below| below > last.0)
            }) {
                break;
            }
            let Some(held) = self.held.pop_front() else { break };
            self.uncount(&held.run);
            let rest = match last {
                Some(last) => after(held.run, last),
                None => Some(held.run),
            };
            match rest {
                Some(rest) => {
                    last = Some(rest.last());
                    runs.push(rest);
                }
                None => superfluous += 1,
            }
        }
        (runs, superfluous)
    }

    fn count(&mut self, run: &Run<P>) {
        self.events += u64::from(run.len.get());
        self.bytes = self.bytes.saturating_add(run.payload.bytes());
    }

    fn uncount(&mut self, run: &Run<P>) {
        self.events -= u64::from(run.len.get());
        self.bytes = self.bytes.saturating_sub(run.payload.bytes());
    }
}

/// Cuts `run` in two, the part below `id` first. Parts have no digest: that is the whole message's.
fn below<P: Payload>(run: Run<P>, id: EventId) -> (Run<P>, Option<Run<P>>) {
    let cut = id.0.checked_sub(run.first.0).and_then(|len| u32::try_from(len).ok());
    let Some(len) = cut.and_then(NonZeroU32::new).filter(|len| *len < run.len) else {
        return (run, None);
    };
    let payload = run.payload.slice(0..len.get());
    let above = id.0.checked_sub(1).and_then(|last| after(run.clone(), EventId(last)));
    (Run { len, digest: None, payload, ..run }, above)
}

/// The part of `run` above `id`. A part has no digest: that is the whole message's.
pub(super) fn after<P: Payload>(run: Run<P>, id: EventId) -> Option<Run<P>> {
    if run.first > id {
        return Some(run);
    }
    if run.last() <= id {
        return None;
    }
    let skip = u32::try_from(id.0 - run.first.0 + 1).ok()?;
    let len = NonZeroU32::new(run.len.get().checked_sub(skip)?)?;
    Some(Run {
        first: EventId(id.0.checked_add(1)?),
        len,
        digest: None,
        payload: run.payload.slice(skip..skip + len.get()),
        ..run
    })
}
