//! Live runs that wait: for a recovery, or behind an incomplete command.

use super::input::{Payload, Run};
use crate::id::EventId;
use alloc::collections::VecDeque;
use core::num::NonZeroU32;

/// Runs above the cursor, ascending and without overlap. Bounded by the caller, who asks for
/// [`Pending::events`] and [`Pending::bytes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending<P> {
    runs: VecDeque<Run<P>>,
    events: u64,
    bytes: usize,
}

impl<P> Default for Pending<P> {
    fn default() -> Self {
        Self { runs: VecDeque::new(), events: 0, bytes: 0 }
    }
}

impl<P: Payload> Pending<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of runs, for counting what is discarded.
    pub(super) fn runs(&self) -> u64 {
        self.runs.len() as u64
    }

    pub(super) fn front(&self) -> Option<&Run<P>> {
        self.runs.front()
    }

    /// The highest id held.
    pub(super) fn last(&self) -> Option<EventId> {
        self.runs.back().map(Run::last)
    }

    /// Empties the buffer and gives its memory back; returns how many runs it held.
    pub(super) fn clear(&mut self) -> u64 {
        let held = self.runs();
        *self = Self::default();
        held
    }

    pub(super) fn pop_front(&mut self) -> Option<Run<P>> {
        let run = self.runs.pop_front()?;
        self.forget(&run);
        Some(run)
    }

    /// Drops what lies at or below `id`, cutting a run that straddles it; returns how many whole
    /// runs went.
    pub(super) fn drop_through(&mut self, id: EventId) -> u64 {
        let mut dropped = 0;
        while let Some(front) = self.runs.front() {
            if front.first > id {
                break;
            }
            let Some(run) = self.pop_front() else { break };
            match after(run, id) {
                Some(rest) => {
                    self.remember(&rest);
                    self.runs.push_front(rest);
                    break;
                }
                None => dropped += 1,
            }
        }
        dropped
    }

    /// Whether another message is held under an id of `run`: they are not one life's.
    pub(super) fn contradicts(&self, run: &Run<P>) -> bool {
        let at = self.runs.partition_point(|held| held.first < run.first);
        self.runs.get(at).is_some_and(|held| {
            held.first == run.first
                && matches!((held.digest, run.digest), (Some(held), Some(run)) if held != run)
        })
    }

    /// The runs held, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Run<P>> {
        self.runs.iter()
    }

    /// Puts a run in its place. Of ids that are held already the first arrival stays. Returns
    /// whether anything of the run was kept.
    pub(super) fn insert(&mut self, run: Run<P>) -> bool {
        let at = self.runs.partition_point(|held| held.first < run.first);
        let mut rest = Some(run);
        if let Some(before) = at.checked_sub(1).and_then(|i| self.runs.get(i)) {
            rest = rest.and_then(|run| after(run, before.last()));
        }
        let mut at = at;
        let mut kept = false;
        while let Some(run) = rest.take() {
            let Some(next) = self.runs.get(at) else {
                kept |= self.place(at, run);
                break;
            };
            let (next_first, next_last) = (next.first, next.last());
            if run.last() < next_first {
                kept |= self.place(at, run);
                break;
            }
            rest = after(run.clone(), next_last);
            if let Some(head) = before(run, next_first) {
                kept |= self.place(at, head);
                at += 1;
            }
            at += 1;
        }
        kept
    }

    fn place(&mut self, at: usize, run: Run<P>) -> bool {
        self.remember(&run);
        self.runs.insert(at, run);
        true
    }

    fn remember(&mut self, run: &Run<P>) {
        self.events += u64::from(run.len.get());
        self.bytes = self.bytes.saturating_add(run.payload.bytes());
    }

    fn forget(&mut self, run: &Run<P>) {
        self.events -= u64::from(run.len.get());
        self.bytes = self.bytes.saturating_sub(run.payload.bytes());
    }
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

/// The part of `run` below `id`.
fn before<P: Payload>(run: Run<P>, id: EventId) -> Option<Run<P>> {
    if run.last() < id {
        return Some(run);
    }
    let len = NonZeroU32::new(u32::try_from(id.0.checked_sub(run.first.0)?).ok()?)?;
    Some(Run { len, digest: None, payload: run.payload.slice(0..len.get()), ..run })
}
