//! Speed of the router machine alone: one live batch and the completion of its admit.
//!
//! Prints `name: value unit` lines, medians on the thread's CPU clock, so that they hold
//! on a busy machine; and a calibration, dependent mixing steps per CPU microsecond, to compare
//! machines by. A run of 1 event is a raw engine's
//! message; a run of 64 is a batch of event ids. Ranks take turns, so that each step finds another
//! slot. An argument, `membership` or `live`, measures that part only.
#![allow(clippy::print_stdout, clippy::float_arithmetic, reason = "a benchmark reports figures")]

use kvmirror_core::id::{EventId, Generation, PublisherId, RankKey};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::{
    Clears, Command, Completion, Effects, LiveBatch, Origin, Payload, Policy, Router, Run, Runs,
};
use kvmirror_core::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::iter;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const ROUNDS: usize = 9;
const SNAPSHOTS: usize = 99;
const BATCHES: u64 = 1 << 21;

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

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}

/// One step of splitmix64.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Millions of dependent mixing steps a second: the best of five.
fn calibrate() -> f64 {
    const STEPS: u32 = 20_000_000;
    let rates = (0..5).map(|_| {
        let began = cpu();
        let mut x = 1_u64;
        for _ in 0..STEPS {
            x = mix(x.wrapping_add(0x9E37_79B9_7F4A_7C15));
        }
        black_box(x);
        f64::from(STEPS) / 1e6 / (cpu() - began).as_secs_f64()
    });
    rates.fold(0.0, f64::max)
}

fn main() {
    println!("calibration: {:.0} M mixing steps/s", calibrate());
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |part| only.as_deref().is_none_or(|only| only == part);
    if is_wanted("membership") {
        membership();
    }
    if is_wanted("live") {
        live();
    }
}

fn live() {
    for ranks in [1, 8, 1_024] {
        for len in [1, 64] {
            let batches = median(ROUNDS, || round(ranks, len));
            println!("router_{ranks}_ranks_runs_of_{len}: {batches:.2} M batches/s");
            let events = batches * f64::from(len);
            println!("router_{ranks}_ranks_runs_of_{len}_events: {events:.1} M events/s");
        }
    }
}

fn median(rounds: usize, measure: impl FnMut() -> f64) -> f64 {
    let mut measured: Vec<f64> = iter::repeat_with(measure).take(rounds).collect();
    measured.sort_by(f64::total_cmp);
    measured[rounds / 2]
}

/// Microseconds a changed rank, and milliseconds a whole comparison, with 65,536 idle ranks.
fn membership() {
    const RANKS: u64 = 65_536;
    let mut router: Router<Events> = Router::new(Policy::default()).expect("defaults are valid");
    let mut fx = Effects::new();
    let member = |rank: u64, generation| {
        let source = Source {
            publisher: PublisherId(rank),
            target: None,
            kind: SourceKind::Agent,
            first_id: EventId(1),
            boot: None,
        };
        let (generation, status) = (Generation(generation), RankStatus::Active(source));
        MemberRank { key: RankKey::new(rank, 0), generation, status, ready: true }
    };
    let members = (0..RANKS).map(|rank| member(rank, 0));
    let mut membership = Membership::new(members.collect()).expect("each rank once");
    membership.begin_next();
    router.handle_membership(&membership, Timestamp(0), &mut fx);
    complete(&mut router, &mut fx, Timestamp(0));
    let named = |router: &mut Router<Events>, fx: &mut Effects<Events>, membership: &Membership| {
        let began = cpu();
        router.handle_membership(membership, Timestamp(0), fx);
        let spent = cpu() - began;
        complete(router, fx, Timestamp(0));
        spent.as_secs_f64()
    };
    let mut generation = 0;
    for changed in [1, 16, 4_096] {
        let spent = median(SNAPSHOTS, || {
            generation += 1;
            let mut next = membership.begin_next();
            for nth in 0..changed {
                next.set(member((nth * 7_919 + generation * 104_729) % RANKS, generation));
            }
            named(&mut router, &mut fx, &membership)
        });
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let each = spent / changed as f64 * 1e6;
        println!("membership_{changed}_changed_of_65536: {each:.2} us/rank");
    }
    let spent = median(SNAPSHOTS, || {
        let whole = Membership::new(membership.ranks().copied().collect()).expect("as before");
        named(&mut router, &mut fx, &whole)
    });
    println!("membership_whole_of_65536: {:.2} ms", spent * 1e3);
}

/// Millions of batches a second.
fn round(ranks: u64, len: u32) -> f64 {
    let mut router = Router::new(Policy::default()).expect("defaults are valid");
    let mut fx = Effects::new();
    let membership = (0..ranks).map(|rank| {
        let source = Source {
            publisher: PublisherId(rank),
            target: None,
            kind: SourceKind::Agent,
            first_id: EventId(0),
            boot: None,
        };
        let status = RankStatus::Active(source);
        MemberRank { key: RankKey::new(rank, 0), generation: Generation(0), status, ready: true }
    });
    let membership = Membership::new(membership.collect()).expect("each rank once");
    router.handle_membership(&membership, Timestamp(0), &mut fx);
    complete(&mut router, &mut fx, Timestamp(0));
    let events = Events(Arc::from([0_u8; 64]), len);
    let width = NonZeroU32::new(len).expect("not empty");
    let began = cpu();
    for batch in 0..BATCHES {
        let first = batch / ranks * u64::from(len);
        let run = Run {
            first: EventId(first),
            len: width,
            clears: Clears::Nothing,
            damaged: false,
            digest: NonZeroU64::new(batch + 1),
            payload: events.clone(),
        };
        let publisher = PublisherId(batch % ranks);
        let runs = Runs::from_buf([run]);
        let live = LiveBatch { publisher, seq: None, origin: Origin::Own, runs };
        router.handle_live(live, Timestamp(batch), &mut fx);
        complete(&mut router, &mut fx, Timestamp(batch));
    }
    let spent = (cpu() - began).as_secs_f64();
    assert_eq!(router.stats().admitted, BATCHES * u64::from(len), "all was in order");
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let millions = BATCHES as f64 / 1e6;
    black_box(&router);
    millions / spent
}

fn complete(router: &mut Router<Events>, fx: &mut Effects<Events>, now: Timestamp) {
    fx.drain_notices().for_each(drop);
    while let Some(command) = fx.next_command() {
        match command {
            Command::Admit { op, .. } | Command::Replace { op, .. } | Command::Reset { op, .. } => {
                router.handle_completion(Completion { op, ok: true, flaw: None }, now, fx);
            }
            Command::Query { .. } | Command::Cancel { .. } => {}
        }
    }
}
