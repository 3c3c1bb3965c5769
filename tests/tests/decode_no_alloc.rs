//! A warm decoder allocates nothing, and a hostile payload makes it allocate little.
#![allow(unsafe_code, reason = "a global allocator that counts cannot be written without")]

use kvmirror_core::event::EventBatch;
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroU32;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    CALLS.with(|calls| calls.set(calls.get() + 1));
    BYTES.with(|total| total.set(total.get() + bytes));
}

// SAFETY: every call goes to the system allocator unchanged; counting touches only thread-local
// cells without destructors and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and bytes asked for by `work`.
fn counted(work: impl FnOnce()) -> (usize, usize) {
    let before = (CALLS.get(), BYTES.get());
    work();
    (CALLS.get() - before.0, BYTES.get() - before.1)
}

/// 64 stores of one block of 16 tokens, with identity and extra keys on every fourth of them.
fn payload(round: u64) -> Vec<u8> {
    let mut out = vec![0x93, 0xcb, 0x41, 0xd9, 0x54, 0xfc, 0x40, 0, 0, 0, 0xdc, 0, 64];
    for event in 0..64_u64 {
        out.extend(b"\x99\xabBlockStored\x91\xcf");
        out.extend((round << 32 | event << 8 | 1).to_be_bytes());
        out.extend(b"\xcf");
        out.extend((round << 32 | event << 8).to_be_bytes());
        out.extend(b"\xdc\x00\x10");
        for token in 0..16_u64 {
            out.push(0xcd);
            out.extend(&(round + event * 16 + token).to_be_bytes()[6..]);
        }
        out.extend(b"\x10\xc0\xa3GPU");
        out.extend(if event % 4 == 0 {
            &b"\xa1a\x91\x94\xa1a\xa4salt\x92\xa2mm\x00\xc4\x01\xff"[..]
        } else {
            &b"\xc0\x91\xc0"[..]
        });
    }
    out.push(0);
    out
}

fn identity() -> SourceIdentity {
    SourceIdentity {
        block_size: NonZeroU32::new(16),
        eagle: Some(false),
        image_token_id: Some(3),
        ..SourceIdentity::default()
    }
}

#[test]
fn a_warm_decoder_allocates_nothing() {
    let (mut decoder, identity) = (Decoder::new(Limits::default()), identity());
    let mut out = EventBatch::default();
    let payloads: Vec<Vec<u8>> = (0..200).map(payload).collect();
    decoder.decode(&payloads[0], &identity, &mut out).expect("readable");
    assert_eq!((out.records.len(), out.locals.len()), (64, 64));
    let (calls, _) = counted(|| {
        for payload in &payloads {
            decoder.decode(payload, &identity, &mut out).expect("readable");
            assert_eq!(out.locals.len(), 64);
        }
    });
    assert_eq!(calls, 0);
}

#[test]
fn hostile_payloads_cost_little() {
    let mut deep = b"\x92\x01\x91\x82\xa4type\xabBlockStored\xa1x".to_vec();
    deep.extend(vec![0x91; 1 << 20]);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise: Vec<u8> = (0..1 << 20)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()[3]
        })
        .collect();
    let mut events = b"\x92\x01\xdd\x00\x00\xff\xff".to_vec();
    events.extend(&noise);
    noise.splice(..3, [0x93, 0x01, 0xdc]);
    let payloads: [&[u8]; 6] = [
        &noise,
        &events,
        &deep,
        b"\xdd\xff\xff\xff\xff",
        b"\x92\x01\xdd\xff\xff\xff\xff",
        b"\x92\x01\x91\x95\xabBlockStored\x90\xc0\xdd\xff\xff\xff\xff",
    ];
    for payload in payloads {
        let mut decoder = Decoder::new(Limits::default());
        let mut out = EventBatch::default();
        let start = std::time::Instant::now();
        let (_, bytes) = counted(|| {
            let result = decoder.decode(payload, &identity(), &mut out);
            assert!(result.is_err() || out.cut, "{:?}", payload.first_chunk::<8>());
        });
        let spent = start.elapsed();
        // At most a record for every two bytes, within the limit on events.
        assert!(bytes <= 16 << 20, "{bytes} bytes");
        assert!(spent.as_millis() < 100, "{spent:?} for {} bytes", payload.len());
    }
}
