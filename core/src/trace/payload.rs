//! Events as the router machine sees them: runs over one shared list.

use super::event::{OpaqueClear, TraceDomain, TraceEvent, What};
use crate::id::RankKey;
use crate::membership::SourceKind;
use crate::router::{Clears, Origin, Payload, Run};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::num::NonZeroU32;
use core::ops::Range;

/// Some of the events of one message, shared: a slice costs no copy.
#[derive(Clone, Debug)]
pub struct EventPayload {
    all: Arc<[TraceEvent]>,
    range: Range<usize>,
    bytes: usize,
}

impl EventPayload {
    /// A payload of all of `events`.
    pub fn new(events: Vec<TraceEvent>) -> Self {
        let len = events.len();
        Self::part(events.into(), 0..len)
    }

    /// Its events.
    pub fn events(&self) -> &[TraceEvent] {
        self.all.get(self.range.clone()).unwrap_or_default()
    }

    fn part(all: Arc<[TraceEvent]>, range: Range<usize>) -> Self {
        let mut part = Self { all, range, bytes: 0 };
        let bytes = part.events().iter().fold(0_u64, |sum, event| sum.saturating_add(event.size()));
        part.bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        part
    }
}

impl PartialEq for EventPayload {
    fn eq(&self, other: &Self) -> bool {
        self.events() == other.events()
    }
}

impl Eq for EventPayload {}

impl Hash for EventPayload {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.events().hash(state);
    }
}

impl Payload for EventPayload {
    fn len(&self) -> u32 {
        u32::try_from(self.events().len()).unwrap_or(u32::MAX)
    }

    /// The sum of the events' sizes ([`TraceEvent::size`]); a slice's is that of its own events.
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn slice(&self, range: Range<u32>) -> Self {
        let at = |index: u32| self.range.start.saturating_add(index as usize).min(self.range.end);
        Self::part(self.all.clone(), at(range.start)..at(range.end))
    }
}

/// Cuts the events of one message into runs, in order.
///
/// Consecutive ids are one run. Alone are a clear, an event with a digest of its own, and, from an
/// engine, every event: it is a message. Only a run of one event has a digest. A run is damaged when
/// its events are; damaged and whole events do not share one.
pub fn cut(events: Vec<TraceEvent>, kind: SourceKind) -> Vec<Run<EventPayload>> {
    let mut lengths: Vec<usize> = Vec::new();
    let mut before: Option<&TraceEvent> = None;
    for event in &events {
        let joins = before.is_some_and(|before| follows(before, event))
            && ![before, Some(event)].into_iter().flatten().any(|event| is_alone(event, kind));
        match lengths.last_mut() {
            Some(last) if joins => *last += 1,
            Some(_) | None => lengths.push(1),
        }
        before = Some(event);
    }
    runs(events, &lengths, kind)
}

/// Cuts the events of one message into runs of the given lengths.
///
/// # Errors
/// What is wrong with the lengths: they are not those of runs, or not of all events.
pub(super) fn cut_at(
    events: Vec<TraceEvent>,
    lengths: &[u32],
    kind: SourceKind,
) -> Result<Vec<Run<EventPayload>>, String> {
    let mut rest = events.as_slice();
    for &length in lengths {
        let Some((run, after)) = rest.split_at_checked(length as usize).filter(|_| length > 0)
        else {
            return Err(format!("`runs` has a length of {length} where {} events are", rest.len()));
        };
        let whole = run.windows(2).all(|pair| match pair {
            [before, event] => follows(before, event),
            _ => false,
        });
        let clears = run.iter().any(|event| clears(event, kind) != Clears::Nothing);
        if !whole || (clears && length > 1) {
            return Err(format!(
                "`runs` has a length of {length} where no such run is: ids that follow each other, \
                 all damaged or none, and a clear alone"
            ));
        }
        rest = after;
    }
    if !rest.is_empty() {
        return Err(format!("`runs` leaves out {} events", rest.len()));
    }
    let lengths: Vec<usize> = lengths.iter().map(|length| *length as usize).collect();
    Ok(runs(events, &lengths, kind))
}

fn runs(events: Vec<TraceEvent>, lengths: &[usize], kind: SourceKind) -> Vec<Run<EventPayload>> {
    let all: Arc<[TraceEvent]> = events.into();
    let mut runs = Vec::with_capacity(lengths.len());
    let mut start = 0;
    for &length in lengths {
        let len = u32::try_from(length).ok().and_then(NonZeroU32::new);
        if let (Some(first), Some(len)) = (all.get(start), len) {
            runs.push(Run {
                first: first.id,
                len,
                clears: clears(first, kind),
                damaged: first.damaged,
                digest: if length == 1 { first.digest() } else { None },
                payload: EventPayload::part(all.clone(), start..start + length),
            });
        }
        start += length;
    }
    runs
}

fn follows(before: &TraceEvent, event: &TraceEvent) -> bool {
    before.id.0.checked_add(1) == Some(event.id.0) && before.damaged == event.damaged
}

fn is_alone(event: &TraceEvent, kind: SourceKind) -> bool {
    kind == SourceKind::Engine || clears(event, kind) != Clears::Nothing || event.has_own_digest()
}

/// What an event clears. A clear that names no domain is one of the worker's; an engine's clear is
/// one of everything unless it is the cache owner's (B32). What an opaque event says is final.
pub fn clears(event: &TraceEvent, kind: SourceKind) -> Clears {
    match &event.what {
        What::Store { .. } | What::Remove { .. } => Clears::Nothing,
        What::Opaque(opaque) => match opaque.clear {
            OpaqueClear::Nothing => Clears::Nothing,
            OpaqueClear::OneDomain => Clears::OneDomain,
            OpaqueClear::Everything => Clears::Everything,
        },
        What::Clear => match (event.domain.unwrap_or(TraceDomain::Worker), kind) {
            (TraceDomain::All, _) | (TraceDomain::Worker, SourceKind::Engine) => Clears::Everything,
            (TraceDomain::CacheOwner, _) | (TraceDomain::Worker, SourceKind::Agent) => {
                Clears::OneDomain
            }
        },
    }
}

/// Whose events these are: one that names another rank than `own` makes all of them foreign.
pub fn origin(events: &[TraceEvent], own: RankKey) -> Origin {
    if events.iter().any(|event| event.is_foreign_to(own)) { Origin::Foreign } else { Origin::Own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EventId, Rank, WorkerId};
    use alloc::vec;

    fn store(id: u64) -> TraceEvent {
        TraceEvent::new(EventId(id), What::Store { parent: None, blocks: Vec::new() })
    }

    fn clear(id: u64, domain: Option<TraceDomain>) -> TraceEvent {
        TraceEvent { domain, ..TraceEvent::new(EventId(id), What::Clear) }
    }

    fn shape(events: Vec<TraceEvent>, kind: SourceKind) -> Vec<(u64, u32, Clears, bool)> {
        let runs = cut(events, kind);
        assert!(runs.iter().all(|run| run.payload.len() == run.len.get()));
        runs.iter()
            .map(|run| (run.first.0, run.len.get(), run.clears, run.digest.is_some()))
            .collect()
    }

    #[test]
    fn consecutive_ids_are_one_run() {
        let events = || [1, 2, 4, 5, 5, 4, u64::MAX, 0].map(store).to_vec();
        let nothing = Clears::Nothing;
        assert_eq!(
            shape(events(), SourceKind::Agent),
            [
                (1, 2, nothing, false),
                (4, 2, nothing, false),
                (5, 1, nothing, true),
                (4, 1, nothing, true),
                (u64::MAX, 1, nothing, true),
                (0, 1, nothing, true),
            ]
        );
        assert!(shape(events(), SourceKind::Engine).iter().all(|run| run.1 == 1 && run.3));
    }

    #[test]
    fn a_clear_is_alone() {
        let events = vec![store(1), clear(2, None), store(3), store(4)];
        assert_eq!(
            shape(events, SourceKind::Agent),
            [
                (1, 1, Clears::Nothing, true),
                (2, 1, Clears::OneDomain, true),
                (3, 2, Clears::Nothing, false)
            ]
        );
    }

    #[test]
    fn whether_a_clear_is_one_of_everything() {
        let (agent, engine) = (SourceKind::Agent, SourceKind::Engine);
        let (one, all) = (Clears::OneDomain, Clears::Everything);
        for (domain, of_agent, of_engine) in [
            (None, one, all),
            (Some(TraceDomain::Worker), one, all),
            (Some(TraceDomain::CacheOwner), one, one),
            (Some(TraceDomain::All), all, all),
        ] {
            assert_eq!(clears(&clear(1, domain), agent), of_agent, "{domain:?}");
            assert_eq!(clears(&clear(1, domain), engine), of_engine, "{domain:?}");
        }
    }

    #[test]
    fn damaged_events_have_a_run_of_their_own() {
        let damaged = |id| TraceEvent { damaged: true, ..store(id) };
        let runs = cut(vec![store(1), damaged(2), damaged(3), store(4)], SourceKind::Agent);
        let shape: Vec<_> =
            runs.iter().map(|run| (run.first.0, run.len.get(), run.damaged)).collect();
        assert_eq!(shape, [(1, 1, false), (2, 2, true), (4, 1, false)]);
    }

    #[test]
    fn given_lengths_are_those_of_runs() {
        let events = || vec![store(1), store(2), store(3), clear(4, None), store(9)];
        let lengths = |lengths: &[u32]| {
            let runs = cut_at(events(), lengths, SourceKind::Agent)?;
            Ok::<Vec<u32>, String>(runs.iter().map(|run| run.len.get()).collect())
        };
        for well in [&[1, 2, 1, 1][..], &[3, 1, 1], &[1, 1, 1, 1, 1]] {
            assert_eq!(lengths(well).as_deref(), Ok(well));
        }
        for (bad, words) in [
            (&[3, 1][..], "leaves out 1"),
            (&[3, 1, 1, 1], "where 0 events"),
            (&[3, 1, 0, 1], "length of 0"),
            (&[4, 1], "no such run"),
            (&[3, 2], "no such run"),
            (&[u32::MAX], "where 5 events"),
            (&[], "leaves out 5"),
        ] {
            let error = lengths(bad).unwrap_err();
            assert!(error.contains(words), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_slice_is_a_part_with_its_own_size() {
        let blocks = |count: u64| (0..count).map(|hash| (hash.into(), hash.into())).collect();
        let store = |id, count| {
            TraceEvent::new(EventId(id), What::Store { parent: None, blocks: blocks(count) })
        };
        let whole = EventPayload::new(vec![store(1, 0), store(2, 1), store(3, 2)]);
        assert_eq!((whole.len(), whole.bytes()), (3, 32 + 48 + 64));
        let tail = whole.slice(1..3);
        assert_eq!((tail.len(), tail.bytes()), (2, 48 + 64));
        assert_eq!(tail.slice(1..2).events(), &[store(3, 2)]);
        assert!(tail.slice(1..1).is_empty());
        assert!(tail.slice(5..9).is_empty());
    }

    #[test]
    fn one_foreign_event_makes_the_message_foreign() {
        let own = RankKey::new(1, 2);
        let named = |worker: Option<u64>, rank: Option<u32>| TraceEvent {
            worker: worker.map(WorkerId),
            rank: rank.map(Rank),
            ..store(1)
        };
        for (worker, rank, expected) in [
            (None, None, Origin::Own),
            (Some(1), Some(2), Origin::Own),
            (Some(1), None, Origin::Own),
            (Some(3), None, Origin::Foreign),
            (None, Some(3), Origin::Foreign),
        ] {
            assert_eq!(origin(&[store(9), named(worker, rank)], own), expected);
        }
    }
}
