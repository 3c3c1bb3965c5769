//! A warm mirror follows a live stream without allocating (`system.md` §4 rule 7).
#![allow(unsafe_code, reason = "a global allocator that counts cannot be written without")]

use kvmirror_core::id::{EventId, PublisherId, RankKey};
use kvmirror_core::mirror::{Mirror, MirrorOptions, Received, SourceFacts};
use kvmirror_core::router::Trust;
use kvmirror_core::time::Timestamp;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to the system allocator unchanged; counting touches only a thread-local
// cell without destructor and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BLOCKS: u64 = 8;

fn put_hashes(out: &mut Vec<u8>) {
    out.push(0x98);
    for block in 1..=BLOCKS {
        out.push(0xcf);
        out.extend((block << 40).to_be_bytes());
    }
}

/// A chain of blocks of 4 tokens is stored.
fn store() -> Vec<u8> {
    let mut out = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0\x91\x97\xabBlockStored".to_vec();
    put_hashes(&mut out);
    out.extend(b"\xc0\xdc\x00\x20");
    out.extend(1..=u8::try_from(BLOCKS * 4).expect("small"));
    out.extend(b"\x04\xc0\xa3GPU\xc0");
    out
}

/// The same blocks are removed.
fn remove() -> Vec<u8> {
    let mut out = b"\x93\xcb\x3f\xf8\0\0\0\0\0\0\x91\x93\xacBlockRemoved".to_vec();
    put_hashes(&mut out);
    out.extend(b"\xa3GPU\xc0");
    out
}

#[test]
fn a_warm_mirror_allocates_nothing_for_messages_in_order() {
    let mut mirror = Mirror::new(MirrorOptions::default()).expect("defaults are valid");
    let domain = mirror.open_domain();
    let (rank, publisher) = (RankKey::new(1, 0), PublisherId(42));
    mirror.add_source(SourceFacts::live_only(rank, publisher, domain), Timestamp(0)).expect("new");
    mirror.transport_up(publisher, Timestamp(0));
    let payloads = [store(), remove()];
    let mut next = 0;
    let mut play = |mirror: &mut Mirror, messages: u64| {
        for _ in 0..messages {
            let payload = &payloads[usize::try_from(next % 2).expect("0 or 1")];
            let received = mirror.message(publisher, EventId(next), payload, Timestamp(next));
            assert_eq!(received, Received::Read);
            next += 1;
        }
    };
    play(&mut mirror, 1_001);
    assert_eq!(mirror.index().counts(rank).iter().sum::<u64>(), BLOCKS, "the chain is stored");
    mirror.drain_notices().for_each(drop);
    let before = CALLS.get();
    play(&mut mirror, 1_000);
    assert_eq!(CALLS.get() - before, 0, "allocations for 1,000 messages");
    assert_eq!(mirror.drain_notices().count(), 0, "nothing to tell of a stream in order");
    let view = mirror.rank(rank).expect("followed");
    assert_eq!((view.trust, view.cursor), (Trust::Exact, Some(EventId(2_000))));
    assert_eq!(mirror.counts(rank).map(|counts| counts.stored_events), Some(1_001));
}

#[test]
fn diagnostics_that_nobody_takes_are_bounded() {
    let mut mirror = Mirror::new(MirrorOptions::default()).expect("defaults are valid");
    let domain = mirror.open_domain();
    let (rank, publisher) = (RankKey::new(1, 0), PublisherId(42));
    mirror.add_source(SourceFacts::live_only(rank, publisher, domain), Timestamp(0)).expect("new");
    // Its transport never came up: every message is discarded, and told.
    for seq in 0..5_000 {
        mirror.message(publisher, EventId(seq), &store(), Timestamp(0));
    }
    let kept = mirror.drain_notices().count();
    assert_eq!(kept, 4_096);
    assert_eq!(mirror.notices_dropped(), 5_000 - 4_096);
}
