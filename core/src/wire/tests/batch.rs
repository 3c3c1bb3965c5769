//! Envelope, isolation and limits.

use super::{array_store, batch, decode, map, map_store, read, text};
use crate::event::{BatchRank, EventBatch, EventKind, Placement, SkipReason, Tier};
use crate::id::{BlockHash, Rank};
use crate::wire::{DecodeError, Decoder, Limits, SourceIdentity};
use alloc::vec;
use alloc::vec::Vec;

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hex digit");
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|p| u8::try_from(digit(p[0]) << 4 | digit(p[1])).expect("a byte")).collect()
}

const P1: &str = "93cb3ff8000000000000939eab426c6f636b53746f7265649165c0940a0b0c0d04c0a347\
    5055c0c0c0c0c0c0c083ac626c6f636b5f68617368657391ffa66d656469756da3435055a474797065ac426c6f63\
    6b52656d6f76656491b0416c6c426c6f636b73436c656172656403";
const P2: &str = "95ab426c6f636b53746f7265649140c0940405060704";
const P3: &str = "85a474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739140b170617265\
    6e745f626c6f636b5f68617368c0a9746f6b656e5f6964739404050607aa626c6f636b5f73697a6504";

#[test]
fn golden_payload_p1() {
    let batch = read(&unhex(P1));
    assert_eq!(batch.ts, 1.5);
    assert_eq!(batch.rank, BatchRank::Named(Rank(3)));
    let [stored, removed, cleared] = batch.records[..] else {
        panic!("three events");
    };
    assert_eq!(stored.kind, EventKind::Stored);
    assert_eq!(stored.hashes.of(&batch.hashes), [BlockHash(101)]);
    assert_eq!((stored.token_count, stored.block_size), (4, 4));
    assert_eq!((stored.tier, stored.placement), (Tier::Device, Placement::Positioned));
    assert_eq!(stored.locals.of(&batch.locals)[0].0, 8_906_183_847_324_352_865, "H7");
    assert_eq!((removed.kind, removed.tier), (EventKind::Removed, Tier::Host));
    assert_eq!(removed.hashes.of(&batch.hashes), [BlockHash(u64::MAX)]);
    assert_eq!(cleared.kind, EventKind::Cleared);
    assert!(batch.records.iter().all(|record| record.skip.is_none()));
    assert!(batch.has_full_clear());
}

#[test]
fn golden_payloads_p2_and_p3_mean_the_same() {
    let [array, map] = [P2, P3].map(|hex| read(&batch(&[unhex(hex)])));
    assert_eq!(array.hashes, [BlockHash(64)]);
    assert_eq!(array.locals, map.locals);
    assert_eq!(array.hashes, map.hashes);
    let (mut a, mut b) = (array.records[0], map.records[0]);
    assert_eq!(a.tokens.len, b.tokens.len);
    a.tokens.start = 0;
    b.tokens.start = 0;
    assert_eq!(a, b);
}

#[test]
fn batch_forms_mean_the_same() {
    let event = unhex(P2);
    let mut long = vec![0x95, 0x01, 0x91];
    long.extend(&event);
    long.extend([0x03, 0xc3, 0x91, 0x05, 0xff, 0xff]);
    let mut events = vec![0x91];
    events.extend(&event);
    let by_name = map(&[
        ("extra", vec![0x91, 0x01]),
        ("dp_rank", vec![3]),
        ("events", events),
        ("ts", vec![1]),
    ]);
    for payload in [long, by_name] {
        let batch = read(&payload);
        assert_eq!((batch.ts, batch.rank), (1.0, BatchRank::Named(Rank(3))));
        assert_eq!((batch.records.len(), batch.cut), (1, false));
        assert_eq!(batch.hashes, [BlockHash(64)]);
    }
    let short = read(&[0x92, 0x01, 0x90]);
    assert_eq!((short.rank, short.records.len(), short.cut), (BatchRank::Absent, 0, false));
}

#[test]
fn ranks() {
    let rank = |raw: &[u8]| {
        let mut payload = vec![0x93, 0x01, 0x90];
        payload.extend(raw);
        decode(&payload, &SourceIdentity::default()).map(|batch| batch.rank)
    };
    assert_eq!(rank(&[0xc0]), Ok(BatchRank::Absent));
    assert_eq!(rank(&[0]), Ok(BatchRank::Named(Rank(0))));
    assert_eq!(rank(&[0xce, 0xff, 0xff, 0xff, 0xff]), Ok(BatchRank::Named(Rank(u32::MAX))));
    assert_eq!(rank(&[0xff]), Err(DecodeError::RankOutOfRange { rank: -1 }));
    let too_big = rank(&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(too_big, Err(DecodeError::RankOutOfRange { rank: 1 << 32 }));
    assert_eq!(rank(&[0xa0]), Err(DecodeError::WrongType { field: "rank", offset: 3 }));
}

#[test]
fn times() {
    let ts = |raw: &[u8]| {
        let mut payload = vec![0x92];
        payload.extend(raw);
        payload.push(0x90);
        decode(&payload, &SourceIdentity::default()).map(|batch| batch.ts)
    };
    assert_eq!(ts(&[7]), Ok(7.0));
    assert!(ts(&[0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]).is_ok_and(f64::is_nan));
    assert_eq!(ts(&[0xa1, b'x']), Err(DecodeError::WrongType { field: "time", offset: 1 }));
}

#[test]
fn unreadable_batches_have_typed_errors() {
    let error = |payload: &[u8]| decode(payload, &SourceIdentity::default()).expect_err("unusable");
    assert_eq!(error(&[]), DecodeError::Empty);
    assert_eq!(error(&[0x05]), DecodeError::NotABatch { marker: 5 });
    assert_eq!(error(&[0x91, 0x01]), DecodeError::TooShort { elements: 1 });
    assert_eq!(error(&[0x80]), DecodeError::NoEvents);
    assert_eq!(error(&[0x92, 0xcb, 0x00]), DecodeError::Truncated { offset: 1 });
    assert_eq!(error(&[0x93, 0x01]), DecodeError::Truncated { offset: 0 });
    let nil = error(&[0x92, 0x01, 0xc0]);
    assert_eq!(nil, DecodeError::WrongType { field: "list of events", offset: 2 });
    let huge = error(&[0x92, 0x01, 0xdd, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(huge, DecodeError::TooManyEvents { count: 0xffff_ffff, limit: 65_536 });
    assert_eq!(error(&[0xdd, 0xff, 0xff, 0xff, 0xff]), DecodeError::Truncated { offset: 0 });
    let mut deep = vec![0x81, 0xa1, b'x'];
    deep.extend([0x91; 10_000]);
    deep.push(0xc0);
    assert_eq!(error(&deep), DecodeError::TooDeep { offset: 3, limit: 64 });
    let mut small = Decoder::new(Limits { payload_bytes: 2, ..Limits::default() });
    let result =
        small.decode(&[0x92, 1, 0x90], &SourceIdentity::default(), &mut EventBatch::default());
    assert_eq!(result, Err(DecodeError::PayloadTooLarge { bytes: 3, limit: 2 }));
}

#[test]
fn an_error_leaves_nothing_behind() {
    let mut payload = batch(&[unhex(P2)]);
    payload.pop();
    payload.push(0xff);
    let mut out = EventBatch::default();
    let result =
        Decoder::new(Limits::default()).decode(&payload, &SourceIdentity::default(), &mut out);
    assert_eq!(result, Err(DecodeError::RankOutOfRange { rank: -1 }));
    assert_eq!(out, EventBatch::default());
}

#[test]
fn one_odd_event_is_one_odd_event() {
    let odd: [(&[u8], EventKind, SkipReason); 13] = [
        (b"\x82\xa4type\xa4What\xa9token_ids\x05", EventKind::Unreadable, SkipReason::UnknownEvent),
        (b"\x92\xabBlockPinned\x91\x01", EventKind::Unreadable, SkipReason::UnknownEvent),
        (b"\x81\xa4type\xa4What", EventKind::Unreadable, SkipReason::UnknownEvent),
        (b"\x91\xa7Ignored", EventKind::Unreadable, SkipReason::IgnoredEvent),
        (b"\x90", EventKind::Unreadable, SkipReason::Malformed),
        (b"\x80", EventKind::Unreadable, SkipReason::Malformed),
        (b"\xc0", EventKind::Unreadable, SkipReason::Malformed),
        (b"\xabBlockStored", EventKind::Unreadable, SkipReason::Malformed),
        (b"\x92\x05\x91\x01", EventKind::Unreadable, SkipReason::Malformed),
        (b"\x92\xacBlockRemoved\xc0", EventKind::Removed, SkipReason::Malformed),
        (b"\x92\xacBlockRemoved\x92\x07\xc2", EventKind::Removed, SkipReason::Malformed),
        (b"\x95\xabBlockStored\x91\x07\xc0\x91\xff\x01", EventKind::Stored, SkipReason::Malformed),
        (b"\x82\x01\x02\xa4type\xabBlockStored", EventKind::Unreadable, SkipReason::Malformed),
    ];
    for (event, kind, reason) in odd {
        let batch = read(&batch(&[unhex(P2), event.to_vec(), unhex(P3)]));
        assert_eq!(batch.records.len(), 3, "{event:?}");
        assert!(!batch.cut);
        assert_eq!(
            (batch.records[1].kind, batch.records[1].skip),
            (kind, Some(reason)),
            "{event:?}"
        );
        assert_eq!(batch.hashes, [BlockHash(64); 2], "{event:?}");
        assert_eq!(batch.locals.len(), 2, "{event:?}");
        assert!(batch.records[0].skip.is_none() && batch.records[2].skip.is_none());
    }
}

#[test]
fn deep_nesting_inside_an_event_is_one_odd_event() {
    let mut deep = vec![0x91; 10_000];
    deep.push(0xc0);
    let event = map_store(&[("future", deep)]);
    let batch = read(&batch(&[unhex(P2), event, unhex(P2)]));
    assert_eq!(batch.records[1].skip, Some(SkipReason::Malformed));
    assert_eq!(batch.hashes.len(), 2);
}

#[test]
fn broken_framing_cuts_the_batch() {
    let whole = batch(&[unhex(P2), array_store(&[]), unhex(P3)]);
    let first_end = 5 + unhex(P2).len();
    for end in 5..whole.len() - 1 {
        let batch = read(&whole[..end]);
        assert!(batch.cut, "cut at {end}");
        assert_eq!(batch.records.is_empty(), end < first_end);
        assert_eq!(batch.hashes.len(), batch.records.len());
    }
    let batch = read(&whole[..whole.len() - 1]);
    assert!(batch.cut, "the rank is missing");
    assert_eq!(batch.records.len(), 3);
    let reserved = super::batch(&[unhex(P2), vec![0xc1]]);
    assert!(read(&reserved).cut);
}

#[test]
fn a_map_batch_is_cut_only_behind_its_events() {
    let mut events = vec![0x91];
    events.extend(unhex(P2));
    let tail = [
        ("x", vec![0xcd, 1, 2]),
        ("ts", vec![0xcb, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("dp_rank", vec![0xcc, 3]),
    ];
    let whole = map(&[&[("events", events)][..], &tail].concat());
    let behind = whole.len() - (3 + 3) - (4 + 9) - (9 + 2);
    assert!(!read(&whole).cut);
    for end in behind..whole.len() {
        let batch = read(&whole[..end]);
        assert!(batch.cut, "cut at {end}");
        assert_eq!(batch.hashes, [BlockHash(64)]);
    }
    let header = whole.len() - behind;
    let result =
        decode(&whole[..whole.len() - header - unhex(P2).len() - 1], &SourceIdentity::default());
    assert!(matches!(result, Err(DecodeError::Truncated { .. })), "{result:?}");
}

#[test]
fn limits_on_content_skip_events() {
    let limits = Limits { hashes: 1, tokens: 4, ..Limits::default() };
    let mut out = EventBatch::default();
    let removed = b"\x92\xacBlockRemoved\x91\x01".to_vec();
    let payload = batch(&[unhex(P2), removed, array_store(&[]), text("x")]);
    Decoder::new(limits)
        .decode(&payload, &SourceIdentity::default(), &mut out)
        .expect("a readable batch");
    let skips: Vec<_> = out.records.iter().map(|record| record.skip).collect();
    let over = Some(SkipReason::OverLimit);
    assert_eq!(skips, [None, over, over, Some(SkipReason::Malformed)]);
    assert_eq!(out.hashes.len(), 1);
}

#[test]
fn announced_sizes_reserve_nothing() {
    let mut out = EventBatch::default();
    let mut decoder = Decoder::new(Limits::default());
    let payloads: [&[u8]; 3] = [
        b"\x92\x01\xdc\xff\xff",
        b"\x92\x01\x91\x95\xabBlockStored\xdd\xff\xff\xff\xff",
        b"\x92\x01\x91\x95\xabBlockStored\x90\xc0\xdd\xff\xff\xff\xff",
    ];
    for payload in payloads {
        decoder
            .decode(payload, &SourceIdentity::default(), &mut out)
            .expect("the envelope is readable");
        assert!(out.cut);
        let reserved = out.records.capacity() + out.hashes.capacity() + out.locals.capacity();
        assert!(reserved < 100, "{reserved}");
    }
}
