//! A capture through the whole pipeline of a mirror, without sockets and without waiting.
//!
//! Each rank of the capture is a live-only source of a [`Mirror`], so the machine that follows live
//! engines decides everything here too: what a repeated message is, where a new engine life begins,
//! what a gap means. It is never told of a transport that went down; a new life is what it notices
//! itself.

use crate::capture::{CaptureError, CaptureMessage};
use kvmirror_core::event::{SkipReason, Tier};
use kvmirror_core::id::{EventId, LocalHash, PublisherId, RankKey};
use kvmirror_core::index::{DomainId, Duplicates, FindScratch, Match, ResidentBlock};
use kvmirror_core::mirror::{
    Mirror, MirrorError, MirrorOptions, Received, SourceCounts, SourceFacts,
};
use kvmirror_core::router::{Notice, PolicyError, Trust, TrustReason};
use kvmirror_core::time::Timestamp;
use kvmirror_core::wire::SourceIdentity;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// The only worker of a capture.
const WORKER: u64 = 1;

/// A live-only source is never asked, so nothing waits for a time.
const NOW: Timestamp = Timestamp(0);

/// How a capture is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfflineOptions {
    /// Tokens per block; `None` takes every store's own as right.
    pub block_size: Option<NonZeroU32>,
    /// How repeated stores are read.
    pub duplicates: Duplicates,
}

/// Why a capture cannot be run through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfflineError {
    /// It cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The mirror refused a source.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The mirror refused its limits.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// The state of one rank in one engine life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The rank.
    pub rank: u32,
    /// The engine life, from 1.
    pub life: u64,
    /// Every message of the life up to this sequence has been applied.
    pub after_seq: u64,
    /// What may be believed of the blocks.
    pub trust: Trust,
    /// Why they are not exact.
    pub reason: Option<TrustReason>,
    /// Everything resident, ascending.
    pub blocks: Vec<ResidentBlock>,
    /// Events since the life began.
    pub events: EventCounts,
}

/// Events of one life, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Stores applied.
    pub stored: u64,
    /// Removes applied.
    pub removed: u64,
    /// Clears applied.
    pub cleared: u64,
    /// Events counted instead of applied.
    pub skipped: u64,
    /// Those of `skipped` for each reason, in the order of [`SkipReason::ALL`].
    pub reasons: [u64; SkipReason::ALL.len()],
}

impl EventCounts {
    fn since(now: &SourceCounts, base: &SourceCounts) -> Self {
        let mut reasons = now.applied.skipped;
        reasons.iter_mut().zip(base.applied.skipped).for_each(|(now, base)| *now -= base);
        Self {
            stored: now.stored_events - base.stored_events,
            removed: now.removed_events - base.removed_events,
            cleared: now.cleared_events - base.cleared_events,
            skipped: now.skipped_events - base.skipped_events,
            reasons,
        }
    }
}

/// What one message did.
#[derive(Debug)]
pub struct Step {
    /// What it turned out to be.
    pub received: Received,
    /// The last state of the life that ended with it, when it began a new one.
    pub ended: Option<Snapshot>,
}

/// A [`Mirror`] that captured messages are put into one by one.
#[derive(Debug)]
pub struct Offline {
    mirror: Mirror,
    domain: DomainId,
    options: OfflineOptions,
    ranks: BTreeMap<u32, Life>,
    scratch: FindScratch,
    found: Vec<Match>,
}

/// The life a rank is in.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    /// The source's counters when it began.
    base: SourceCounts,
}

impl Offline {
    /// An empty mirror.
    ///
    /// # Errors
    /// [`OfflineError::Policy`], which the default limits never cause.
    pub fn new(options: OfflineOptions) -> Result<Self, OfflineError> {
        let mut mirror = Mirror::new(MirrorOptions::default())?;
        let domain = mirror.open_domain();
        Ok(Self {
            mirror,
            domain,
            options,
            ranks: BTreeMap::new(),
            scratch: FindScratch::default(),
            found: Vec::new(),
        })
    }

    /// Puts the next message in. A rank is followed from its first message on; one that names no
    /// rank is rank 0's.
    ///
    /// # Errors
    /// [`OfflineError::Mirror`] when a rank cannot be added.
    pub fn step(&mut self, message: &CaptureMessage) -> Result<Step, OfflineError> {
        let rank = message.rank.unwrap_or(0);
        self.follow(rank)?;
        // Only a message that does not go forward can begin a new life; the state it ends would be
        // gone afterwards.
        let falls_back = self.cursor(rank).is_some_and(|cursor| message.seq <= cursor);
        let before = if falls_back { self.snapshot(rank) } else { None };
        let base = *self.counts(rank);
        let seq = EventId(message.seq);
        let received = self.mirror.message(publisher(rank), seq, &message.payload, NOW);
        let began = self
            .mirror
            .drain_notices()
            .any(|notice| matches!(notice, Notice::NewLife { rank: of, .. } if of == key(rank)));
        if !began {
            return Ok(Step { received, ended: None });
        }
        if let Some(life) = self.ranks.get_mut(&rank) {
            *life = Life { number: life.number + 1, base };
        }
        Ok(Step { received, ended: before })
    }

    /// The ranks followed, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranks.keys().copied()
    }

    /// Sequence of the last message applied in the rank's current life.
    pub fn cursor(&self, rank: u32) -> Option<u64> {
        Some(self.mirror.rank(key(rank))?.cursor?.0)
    }

    /// The state of a rank now; `None` before its first message.
    pub fn snapshot(&self, rank: u32) -> Option<Snapshot> {
        let life = self.ranks.get(&rank)?;
        let view = self.mirror.rank(key(rank))?;
        Some(Snapshot {
            rank,
            life: life.number,
            after_seq: view.cursor?.0,
            trust: view.trust,
            reason: view.reason,
            blocks: self.mirror.index().blocks(key(rank)),
            events: EventCounts::since(self.counts(rank), &life.base),
        })
    }

    /// How many leading blocks of a prompt with these local hashes the rank holds on its device.
    pub fn device_match(&mut self, rank: u32, locals: &[LocalHash]) -> u32 {
        self.mirror.index().find(self.domain, locals, &mut self.scratch, &mut self.found);
        let own = self.found.iter().find(|found| found.rank == key(rank));
        own.map_or(0, |own| own.matched[Tier::Device.index()])
    }

    /// The mirror itself.
    pub const fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    fn follow(&mut self, rank: u32) -> Result<(), OfflineError> {
        if self.ranks.contains_key(&rank) {
            return Ok(());
        }
        let block_size = self.options.block_size;
        let facts = SourceFacts {
            identity: SourceIdentity { block_size, ..SourceIdentity::default() },
            duplicates: self.options.duplicates,
            ..SourceFacts::live_only(key(rank), publisher(rank), self.domain)
        };
        self.mirror.add_source(facts, NOW)?;
        self.mirror.transport_up(publisher(rank), NOW);
        self.ranks.insert(rank, Life { number: 1, base: SourceCounts::default() });
        Ok(())
    }

    fn counts(&self, rank: u32) -> &SourceCounts {
        self.mirror.counts(key(rank)).expect("a followed rank has a source")
    }
}

fn key(rank: u32) -> RankKey {
    RankKey::new(WORKER, rank)
}

fn publisher(rank: u32) -> PublisherId {
    PublisherId(u64::from(rank))
}

/// What a whole capture came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Messages.
    pub messages: u64,
    /// Those that could not be read.
    pub unreadable: u64,
    /// Those left out because their payload names a rank that only the whole decoder can read.
    pub foreign: u64,
    /// Sequences asked for that no rank reached in any life, ascending.
    pub unreached: BTreeSet<u64>,
}

/// Runs a capture through and shows each rank's state at each sequence of `at`, and at the end of
/// each life.
///
/// A state at a sequence is the one once all messages of the life up to it have been applied. There
/// is none where the life begins after the sequence or ends before it, and only one where it ends
/// with it. States come in the order in which the capture reaches them; those at its end by rank.
///
/// # Errors
/// The first error of the capture or of `visit`.
pub fn mirror_capture<E: From<OfflineError>>(
    messages: impl IntoIterator<Item = Result<CaptureMessage, CaptureError>>,
    options: OfflineOptions,
    at: &[u64],
    mut visit: impl FnMut(Snapshot) -> Result<(), E>,
) -> Result<Outcome, E> {
    let at: BTreeSet<u64> = at.iter().copied().collect();
    let mut outcome = Outcome { unreached: at.clone(), ..Outcome::default() };
    let mut offline = Offline::new(options)?;
    for message in messages {
        let message = message.map_err(OfflineError::from)?;
        let rank = message.rank.unwrap_or(0);
        let passed = offline.cursor(rank).filter(|cursor| *cursor < message.seq);
        for &seq in passed.iter().flat_map(|cursor| at.range(cursor..&message.seq)) {
            outcome.unreached.remove(&seq);
            if let Some(snapshot) = offline.snapshot(rank) {
                visit(Snapshot { after_seq: seq, ..snapshot })?;
            }
        }
        let step = offline.step(&message)?;
        outcome.messages += 1;
        match step.received {
            Received::Read | Received::UnknownPublisher => {}
            Received::Unreadable(_) => outcome.unreadable += 1,
            Received::Foreign => outcome.foreign += 1,
        }
        if let Some(ended) = step.ended {
            outcome.unreached.remove(&ended.after_seq);
            visit(ended)?;
        }
    }
    for snapshot in offline.ranks().filter_map(|rank| offline.snapshot(rank)) {
        outcome.unreached.remove(&snapshot.after_seq);
        visit(snapshot)?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[1.5, [event], rank]`: a store of block `hash` (1 to 127) without tokens, or a clear.
    fn message(rank: u8, seq: u64, hash: Option<u8>) -> CaptureMessage {
        let mut payload = vec![0x93, 0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0x91];
        match hash {
            Some(hash) => {
                payload.extend(b"\x96\xabBlockStored\x91");
                payload.extend([hash, 0xc0, 0x90, 0, 0xc0]);
            }
            None => payload.extend(b"\x91\xb0AllBlocksCleared"),
        }
        payload.push(rank);
        let (topic, t_ns) = (bytes::Bytes::new(), None);
        let rank = Some(u32::from(rank));
        CaptureMessage { line: 0, t_ns, topic, seq, payload: payload.into(), rank }
    }

    type Seen = (u32, u64, u64, Trust, Vec<u64>, u64);

    fn run(messages: Vec<CaptureMessage>, at: &[u64]) -> (Vec<Seen>, Outcome) {
        let mut seen = Vec::new();
        let messages = messages.into_iter().map(Ok);
        let options = OfflineOptions::default();
        let outcome = mirror_capture::<OfflineError>(messages, options, at, |state| {
            let hashes = state.blocks.iter().map(|block| block.hash.0).collect();
            let Snapshot { rank, life, after_seq, trust, events, .. } = state;
            seen.push((rank, life, after_seq, trust, hashes, events.stored));
            Ok(())
        });
        (seen, outcome.expect("a capture"))
    }

    #[test]
    fn states_are_those_once_everything_up_to_the_sequence_is_applied() {
        use Trust::{Exact, Partial};
        let messages = vec![
            message(0, 0, Some(1)),
            message(3, 7, Some(9)),
            message(0, 1, Some(2)),
            message(0, 4, Some(3)),
            message(3, 8, None),
        ];
        let (seen, outcome) = run(messages, &[7, 3, 1, 3, 9, 0]);
        let expected = [
            (0, 1, 0, Exact, vec![1], 1),
            (0, 1, 1, Exact, vec![1, 2], 2),
            (0, 1, 3, Exact, vec![1, 2], 2),
            (3, 1, 7, Partial, vec![9], 1),
            (0, 1, 4, Partial, vec![3], 3),
            (3, 1, 8, Exact, vec![], 1),
        ];
        assert_eq!(seen, expected, "a hole empties; a clear makes exact");
        assert_eq!((outcome.messages, outcome.unreached), (5, BTreeSet::from([9])));
    }

    #[test]
    fn a_repeated_message_is_no_new_life_and_another_first_one_is() {
        let stream = [(0, 1), (1, 2), (0, 1), (1, 2), (2, 3), (0, 4), (1, 5)]
            .map(|(seq, hash)| message(0, seq, Some(hash)));
        let (seen, _) = run(stream.to_vec(), &[2]);
        let expected =
            [(0, 1, 2, Trust::Exact, vec![1, 2, 3], 3), (0, 2, 1, Trust::Exact, vec![4, 5], 2)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn unreadable_messages_are_counted_and_never_exact() {
        let mut broken = message(0, 1, None);
        broken.payload = bytes::Bytes::from_static(&[7]);
        let (seen, outcome) = run(vec![message(0, 0, Some(1)), broken], &[]);
        assert_eq!((outcome.messages, outcome.unreadable, outcome.foreign), (2, 1, 0));
        assert_eq!((seen[0].2, seen[0].3), (1, Trust::Partial));
    }
}
