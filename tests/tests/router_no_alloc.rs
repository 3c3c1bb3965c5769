//! A warm router follows 1,024 ranks without allocating (`system.md` §4 rule 7); an idle rank
//! takes less than 1 KiB.
#![allow(unsafe_code, reason = "a global allocator that counts cannot be written without")]

use kvmirror_core::id::{EventId, Generation, PublisherId, RankKey, TargetId};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::{
    Clears, Command, Completion, Effects, LiveBatch, Origin, Payload, Policy, RecoveryOutcome,
    RecoveryResponse, Router, Run, Runs,
};
use kvmirror_core::time::Timestamp;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::sync::Arc;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(gone: usize, come: usize) {
    CALLS.with(|calls| calls.set(calls.get() + 1));
    BYTES.with(|bytes| bytes.set(bytes.get().wrapping_add(come).wrapping_sub(gone)));
}

// SAFETY: every call goes to the system allocator unchanged; counting touches only thread-local
// cells without destructor and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Shared, as a decoded message is.
#[derive(Clone, Debug)]
struct Events(Arc<[u8]>, u32);

impl Payload for Events {
    fn len(&self) -> u32 {
        self.1
    }
    fn bytes(&self) -> usize {
        self.0.len()
    }
    fn slice(&self, range: Range<u32>) -> Self {
        Self(Arc::clone(&self.0), range.end - range.start)
    }
}

struct Host {
    router: Router<Events>,
    fx: Effects<Events>,
    events: Events,
    now: u64,
}

impl Host {
    fn new(ranks: u64, kind: SourceKind) -> Self {
        let router = Router::new(Policy::default()).expect("defaults are valid");
        let events = Events(Arc::from([0_u8; 64]), 1);
        let mut host = Self { router, fx: Effects::new(), events, now: 0 };
        let members = (0..ranks).map(|rank| {
            let source = Source {
                publisher: PublisherId(rank),
                target: Some(TargetId(rank)),
                kind,
                first_id: EventId(0),
                boot: None,
            };
            let (generation, status) = (Generation(0), RankStatus::Active(source));
            MemberRank { key: RankKey::new(rank, 0), generation, status, ready: true }
        });
        let membership = Membership::new(members.collect()).expect("each rank once");
        host.router.handle_membership(&membership, Timestamp(0), &mut host.fx);
        drop(membership);
        host.carry_out();
        // The jitter, and every question's permit, one after the other.
        host.pass(3_000);
        host
    }

    /// Completes commands and answers questions with "nothing yet".
    fn carry_out(&mut self) {
        self.fx.drain_notices().for_each(drop);
        while let Some(command) = self.fx.next_command() {
            let now = Timestamp(self.now);
            match command {
                Command::Admit { op, .. }
                | Command::Replace { op, .. }
                | Command::Reset { op, .. } => {
                    let done = Completion { op, ok: true, flaw: None };
                    self.router.handle_completion(done, now, &mut self.fx);
                }
                Command::Query { query, .. } => {
                    let outcome =
                        RecoveryOutcome::Events { runs: Vec::new(), last: None, complete: true };
                    let (origin, boot) = (Origin::Own, None);
                    let response = RecoveryResponse { query, origin, boot, outcome };
                    self.router.handle_recovery(response, now, &mut self.fx);
                }
                Command::Cancel { .. } => {}
            }
            self.fx.drain_notices().for_each(drop);
        }
    }

    fn pass(&mut self, micros: u64) {
        self.now += micros;
        self.router.handle_timeout(Timestamp(self.now), &mut self.fx);
        self.carry_out();
    }

    fn live(&mut self, rank: u64, id: u64) {
        let run = Run {
            first: EventId(id),
            len: NonZeroU32::MIN,
            clears: Clears::Nothing,
            damaged: false,
            digest: NonZeroU64::new(id + 1),
            payload: self.events.clone(),
        };
        let batch = LiveBatch {
            publisher: PublisherId(rank),
            seq: None,
            origin: Origin::Own,
            runs: Runs::from_buf([run]),
        };
        self.router.handle_live(batch, Timestamp(self.now), &mut self.fx);
        self.carry_out();
    }
}

#[test]
fn a_warm_router_allocates_nothing() {
    const RANKS: u64 = 1_024;
    let mut host = Host::new(RANKS, SourceKind::Engine);
    let round = |host: &mut Host, id| (0..RANKS).for_each(|rank| host.live(rank, id));
    (0..4).for_each(|id| round(&mut host, id));
    let before = CALLS.get();
    (4..20).for_each(|id| round(&mut host, id));
    assert_eq!(CALLS.get() - before, 0, "allocations in 16 rounds");
    assert_eq!(host.router.stats().admitted, 20 * RANKS);
}

#[test]
fn an_idle_rank_takes_less_than_1_kib() {
    // Just after a table has grown, and just before.
    for ranks in [57_000, 57_500, 65_536, 65_537] {
        let before = BYTES.get();
        let mut host = Host::new(ranks, SourceKind::Engine);
        (0..ranks).for_each(|rank| host.live(rank, 0));
        host.fx = Effects::new();
        let each = BYTES.get().wrapping_sub(before) / host.router.ranks().count();
        println!("{each} bytes a rank, {ranks} ranks");
        assert!((256..1_024).contains(&each), "{each} bytes a rank, {ranks} ranks");
    }
}
