//! Any sequence of inputs, in either profile: no panic, the invariants that hold for every policy, and
//! the same outputs from a copy (B43).
#![no_main]

use kvmirror_core::id::*;
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Events(u32);

impl Payload for Events {
    fn len(&self) -> u32 {
        self.0
    }
    fn bytes(&self) -> usize {
        100 * self.0 as usize
    }
    fn slice(&self, range: Range<u32>) -> Self {
        assert!(range.start <= range.end && range.end <= self.0, "{range:?} of {}", self.0);
        Self(range.end - range.start)
    }
}

/// Reads small numbers from the fuzzer's bytes; an exhausted text is all zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Mostly small, sometimes at an end of the id space.
    fn id(&mut self) -> EventId {
        EventId(match self.byte() {
            255 => u64::MAX,
            254 => u64::MAX - 1,
            253 => u64::MAX / 2,
            small => u64::from(small % 40),
        })
    }

    fn key(&mut self) -> RankKey {
        RankKey::new(u64::from(self.below(2)), u32::from(self.below(2)))
    }

    fn run(&mut self) -> Run<Events> {
        let len = NonZeroU32::new(u32::from(self.below(4)) + 1).expect("at least 1");
        let clears = match self.below(12) {
            0 => Clears::Everything,
            1 => Clears::OneDomain,
            _ => Clears::Nothing,
        };
        let len = if clears == Clears::Nothing { len } else { NonZeroU32::MIN };
        Run {
            first: self.id(),
            len,
            clears,
            damaged: self.below(16) == 0,
            digest: NonZeroU64::new(u64::from(self.below(3))),
            payload: Events(len.get()),
        }
    }

    fn runs(&mut self) -> Vec<Run<Events>> {
        (0..self.below(5)).map(|_| self.run()).collect()
    }

    fn origin(&mut self) -> Origin {
        if self.below(16) == 0 { Origin::Foreign } else { Origin::Own }
    }

    fn boot(&mut self) -> Option<BootId> {
        (self.below(4) == 0).then(|| BootId(u64::from(self.below(2))))
    }

    fn publisher(&mut self) -> PublisherId {
        PublisherId(u64::from(self.below(5)))
    }

    fn membership(&mut self, membership: &mut Membership) {
        let mut next = membership.begin_next();
        for _ in 0..=self.below(3) {
            let key = self.key();
            if self.below(6) == 0 {
                next.remove(key);
                continue;
            }
            let kind = if self.flag() { SourceKind::Engine } else { SourceKind::Agent };
            let source = Source {
                publisher: self.publisher(),
                target: self.flag().then(|| TargetId(u64::from(self.below(3)))),
                kind,
                first_id: EventId(u64::from(self.below(2))),
                boot: self.boot(),
            };
            let status = match self.below(5) {
                0 => RankStatus::Missing,
                1 => RankStatus::Ambiguous,
                _ => RankStatus::Active(source),
            };
            let generation = Generation(u64::from(self.below(3)));
            next.set(MemberRank { key, generation, status, ready: self.below(6) > 0 });
        }
        next.set_suspect(self.below(8) == 0);
    }
}

/// The commands that are incomplete or in flight, by the machine's own words.
#[derive(Default)]
struct Host {
    ops: BTreeMap<OpId, RankKey>,
    ended: Vec<OpId>,
    queries: BTreeMap<QueryId, RankKey>,
    old: Vec<QueryId>,
}

impl Host {
    fn take(&mut self, fx: &mut Effects<Events>, concurrency: u32) {
        for command in fx.drain_commands() {
            match command {
                Command::Admit { op, rank, .. }
                | Command::Replace { op, rank, .. }
                | Command::Reset { op, rank, .. } => {
                    assert!(!self.ops.values().any(|busy| *busy == rank), "two commands: {rank}");
                    self.ops.insert(op, rank);
                }
                Command::Query { query, rank, .. } => {
                    assert!(
                        !self.queries.values().any(|asked| *asked == rank),
                        "two queries: {rank}"
                    );
                    self.queries.insert(query, rank);
                }
                Command::Cancel { query } => {
                    assert!(self.queries.remove(&query).is_some(), "cancelled twice");
                    self.old.push(query);
                }
            }
        }
        assert!(self.queries.len() <= concurrency as usize);
        fx.drain_replies().for_each(drop);
        fx.drain_notices().for_each(drop);
    }

    fn op(&mut self, bytes: &mut Bytes<'_>) -> OpId {
        let nth = usize::from(bytes.byte());
        if bytes.below(8) == 0 {
            return self.ended.get(nth % self.ended.len().max(1)).copied().unwrap_or(OpId(99));
        }
        let op = self.ops.keys().nth(nth % self.ops.len().max(1)).copied();
        op.inspect(|op| {
            self.ops.remove(op);
            self.ended.push(*op);
        })
        .unwrap_or(OpId(u64::MAX))
    }

    fn query(&mut self, bytes: &mut Bytes<'_>) -> QueryId {
        let nth = usize::from(bytes.byte());
        if bytes.below(8) == 0 {
            return self.old.get(nth % self.old.len().max(1)).copied().unwrap_or(QueryId(99));
        }
        let query = self.queries.keys().nth(nth % self.queries.len().max(1)).copied();
        query
            .inspect(|query| {
                self.queries.remove(query);
                self.old.push(*query);
            })
            .unwrap_or(QueryId(u64::MAX))
    }
}

fn input(bytes: &mut Bytes<'_>, host: &mut Host, membership: &mut Membership) -> Input<Events> {
    match bytes.below(24) {
        0..=2 => {
            bytes.membership(membership);
            Input::Membership(membership.clone())
        }
        3 => Input::MembershipEnded,
        4..=10 => Input::Live(LiveBatch {
            publisher: bytes.publisher(),
            seq: bytes.flag().then(|| u64::from(bytes.below(20))),
            origin: bytes.origin(),
            runs: bytes.runs().into(),
        }),
        11 => Input::Watermark(Watermark {
            publisher: bytes.publisher(),
            last: bytes.flag().then(|| bytes.id()),
            boot: bytes.boot(),
        }),
        12..=14 => {
            let outcome = match bytes.below(9) {
                0..=2 => RecoveryOutcome::Events {
                    runs: bytes.runs(),
                    last: bytes.flag().then(|| bytes.id()),
                    complete: bytes.below(4) > 0,
                },
                3..=4 => RecoveryOutcome::Snapshot { runs: bytes.runs(), last: bytes.id() },
                5 => RecoveryOutcome::SnapshotFailed { last: bytes.id() },
                6 => RecoveryOutcome::TooNew { newest: bytes.flag().then(|| bytes.id()) },
                7 => RecoveryOutcome::InvalidRange,
                _ => RecoveryOutcome::Failed(match bytes.below(3) {
                    0 => QueryFailure::Transport,
                    1 => QueryFailure::Refused,
                    _ => QueryFailure::Unreadable,
                }),
            };
            let (query, origin, boot) = (host.query(bytes), bytes.origin(), bytes.boot());
            Input::Recovery(RecoveryResponse { query, origin, boot, outcome })
        }
        15..=18 => {
            let flaw = match bytes.below(10) {
                0 => Some(Flaw::Orphan),
                1 => Some(Flaw::Capacity),
                _ => None,
            };
            Input::Completion(Completion { op: host.op(bytes), ok: bytes.below(8) > 0, flaw })
        }
        19 => {
            let change = if bytes.flag() { TransportChange::Lost } else { TransportChange::Back };
            Input::Transport(bytes.publisher(), change)
        }
        20 => Input::TargetFault(TargetFault {
            rank: bytes.key(),
            epoch: Epoch(u64::from(bytes.below(3))),
            barrier_failed: bytes.flag(),
        }),
        21 => Input::SourceRejection(SourceRejection {
            rank: bytes.key(),
            epoch: Epoch(u64::from(bytes.below(3))),
        }),
        22 => Input::Timeout,
        _ if bytes.byte() == 255 => Input::Shutdown,
        _ => Input::Timeout,
    }
}

fuzz_target!(|text: &[u8]| {
    let mut bytes = Bytes(text);
    let profile = if bytes.flag() { Policy::HARDENED } else { Policy::REFERENCE };
    let policy = Policy {
        seed: u64::from(bytes.byte()),
        concurrency: u32::from(bytes.below(3)) + 1,
        pending_events: u32::from(bytes.below(8)) + 1,
        attempts: u32::from(bytes.below(3)) + 1,
        jitter_max: Micros(u64::from(bytes.below(2)) * 1_000),
        ..profile
    };
    let mut router = Router::new(policy).expect("no limit is zero");
    let (mut fx, mut host, mut membership) =
        (Effects::new(), Host::default(), Membership::default());
    let mut now = 0_u64;
    while !bytes.0.is_empty() {
        now = match bytes.below(16) {
            0 => router.next_deadline().map_or(now, |at| at.0),
            1 => now.saturating_add(60_000_000),
            2 if bytes.byte() == 255 => u64::MAX,
            _ => now.saturating_add(1_000),
        };
        let input = input(&mut bytes, &mut host, &mut membership);
        let mut copy = router.clone();
        let mut copied = fx.clone();
        copy.handle(input.clone(), Timestamp(now), &mut copied);
        router.handle(input, Timestamp(now), &mut fx);
        assert_eq!((&copy, &copied), (&router, &fx));
        host.take(&mut fx, policy.concurrency);
        assert_eq!(router.queries_in_flight() as usize, host.queries.len());
        for view in router.ranks() {
            assert!(view.pending_events <= 2 * u64::from(policy.pending_events) + 25);
        }
    }
});
