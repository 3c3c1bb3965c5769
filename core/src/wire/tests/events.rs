//! Fields of events: layouts, tails, tiers, reasons, placement.

use super::{NIL, array, array_store, map, map_store, one, text};
use crate::event::{
    EventKind, EventRecord, Placement, ResidencyDomain, SkipReason, SpecKind, Tier,
};
use crate::id::BlockHash;
use crate::wire::SourceIdentity;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

fn record(event: &[u8]) -> EventRecord {
    one(event, &SourceIdentity::default()).0
}

fn nil() -> Vec<u8> {
    NIL.to_vec()
}

/// A store with this raw tail.
fn with_tail(tail: &[Vec<u8>]) -> EventRecord {
    let mut more = vec![nil(), text("GPU"), nil(), nil()];
    more.extend(tail.iter().cloned());
    record(&array_store(&more))
}

const MAIN: Option<SpecKind> = Some(SpecKind::MainAttention);
const OTHER: Option<SpecKind> = Some(SpecKind::Other);
const UNKNOWN: Option<SpecKind> = Some(SpecKind::Unknown);

#[test]
fn tails() {
    let n = |number: u8| vec![number];
    let full = || text("full_attention");
    let window = || text("sliding_window");
    let local = || text("LOCAL");
    let big = vec![0xcf, 0, 0, 0, 1, 0, 0, 0, 0];
    let mm = b"\x91\x81\xaamm_objects\x91\x81\xa7mm_hash\x2a".to_vec();
    type Row = (Vec<Vec<u8>>, Option<u32>, Option<SpecKind>, Option<u32>);
    let rows: [Row; 15] = [
        (vec![n(3)], Some(3), None, None),
        (vec![n(3), full()], Some(3), MAIN, None),
        (vec![full()], None, MAIN, None),
        (vec![n(3), window(), vec![0xcc, 128]], Some(3), OTHER, Some(128)),
        // Deviation from TL-2, which takes the window for the group (wire.md §12.4).
        (vec![nil(), window(), vec![0xcc, 128]], None, OTHER, Some(128)),
        (vec![nil(), full(), vec![0xcc, 128], local()], None, MAIN, Some(128)),
        (vec![n(3), full(), nil(), local()], Some(3), MAIN, None),
        (vec![nil(), n(3), full(), vec![0xc3]], Some(3), MAIN, None),
        (vec![mm.clone(), n(3), full()], Some(3), MAIN, None),
        (vec![n(3), full(), vec![0xcc, 128], local(), n(5)], Some(3), UNKNOWN, Some(128)),
        (vec![vec![0xff], full(), nil(), local()], None, UNKNOWN, None),
        (vec![vec![0x90], n(3), full(), nil(), local()], Some(3), UNKNOWN, None),
        (vec![big, full(), nil(), local()], None, UNKNOWN, None),
        (vec![nil(), nil(), nil()], None, None, None),
        (vec![n(1), n(2), full()], Some(1), MAIN, Some(2)),
    ];
    for (tail, group, spec, sliding_window) in rows {
        let record = with_tail(&tail);
        assert_eq!(
            (record.group, record.spec, record.sliding_window, record.skip),
            (group, spec, sliding_window, None),
            "{tail:?}"
        );
    }
    assert!(!with_tail(&[mm, n(3), full()]).mm_infos.is_empty());
}

#[test]
fn tails_with_ownership_and_locality() {
    let owner = [nil(), nil(), nil(), nil(), text("kvcr")];
    let owned = with_tail(&owner);
    assert_eq!(owned.domain, ResidencyDomain::CacheOwner);
    assert_eq!(owned.skip, Some(SkipReason::CacheOwnerTier), "no cache owner has device blocks");
    let far = [nil(), nil(), nil(), text("weird"), text("kvcr"), text("future"), vec![99]];
    let far = with_tail(&far);
    assert_eq!(far.domain, ResidencyDomain::CacheOwner);
    assert_eq!(far.skip, Some(SkipReason::NonLocalLocality));
    let unknown = with_tail(&[nil(), nil(), nil(), nil(), text("other")]);
    assert_eq!(unknown.skip, Some(SkipReason::UnknownOwnership));
}

#[test]
fn tails_of_removes() {
    let removed = |tail: &[Vec<u8>]| {
        let mut values = vec![text("BlockRemoved"), vec![0x92, 1, 2], text("CPU")];
        values.extend(tail.iter().cloned());
        record(&array(&values))
    };
    let record = removed(&[vec![1], text("sliding_window"), vec![64]]);
    assert_eq!((record.group, record.spec, record.sliding_window), (Some(1), OTHER, Some(64)));
    assert_eq!((record.tier, record.hashes.len), (Tier::Host, 2));
    assert_eq!(removed(&[vec![0x90], vec![2]]).mm_infos.len, 0);
}

#[test]
fn reasons_keep_the_fields() {
    type Fields<'a> = &'a [(&'a str, Vec<u8>)];
    let cases: [(Fields<'_>, SkipReason); 5] = [
        (&[("locality", text("REMOTE"))], SkipReason::NonLocalLocality),
        (&[("locality", text("local"))], SkipReason::NonLocalLocality),
        (&[("medium", text("gpu"))], SkipReason::UnknownMedium),
        (&[("ownership", text(""))], SkipReason::UnknownOwnership),
        (&[("ownership", text("kvcr")), ("medium", text("NVME"))], SkipReason::CacheOwnerTier),
    ];
    for (fields, reason) in cases {
        let record = record(&map_store(fields));
        assert_eq!((record.kind, record.skip), (EventKind::Stored, Some(reason)), "{fields:?}");
        assert_eq!((record.hashes.len, record.token_count), (1, 4));
        assert_eq!(record.placement, Placement::Positioned);
    }
    for medium in ["CPU", "CPU_PINNED", "STORAGE", "DISK"] {
        let fields = [("ownership", text("kvcr")), ("medium", text(medium))];
        let record = record(&map_store(&fields));
        assert_eq!((record.skip, record.domain), (None, ResidencyDomain::CacheOwner));
    }
}

#[test]
fn clears() {
    let plain = record(b"\x91\xb0AllBlocksCleared");
    assert_eq!(
        (plain.kind, plain.domain, plain.skip),
        (EventKind::Cleared, ResidencyDomain::Worker, None)
    );
    let owned = record(b"\x94\xb0AllBlocksCleared\xa4kvcr\x05\x91\x01");
    assert_eq!((owned.kind, owned.domain), (EventKind::Cleared, ResidencyDomain::CacheOwner));
    let map = record(&map(&[("type", text("AllBlocksCleared")), ("ownership", text("x"))]));
    assert_eq!((map.kind, map.skip), (EventKind::Cleared, Some(SkipReason::UnknownOwnership)));
    let odd = record(b"\x92\xb0AllBlocksCleared\x05");
    assert_eq!((odd.kind, odd.skip), (EventKind::Cleared, Some(SkipReason::Malformed)));
}

#[test]
fn map_keys_come_in_any_order_and_the_last_one_counts() {
    let event = map(&[
        ("future", vec![0xd4, 1, 2]),
        ("token_ids", vec![0x91, 1]),
        ("block_size", vec![4]),
        ("block_hashes", vec![0x92, 1, 2]),
        ("token_ids", vec![0x94, 4, 5, 6, 7]),
        ("block_hashes", vec![0x91, 64]),
        ("lookahead_token_ids", vec![0x91, 0x91, 9]),
        ("session_id", text("s")),
        ("type", text("BlockStored")),
    ]);
    let (found, locals) = one(&event, &SourceIdentity::default());
    let (plain, expected) = one(&map_store(&[]), &SourceIdentity::default());
    assert_eq!((found.placement, found.hashes), (Placement::Positioned, plain.hashes));
    assert_eq!(locals, expected);
    assert_eq!(found.session.len, 1);
}

#[test]
fn integer_coded_locality_is_no_quirk_of_ours() {
    let record = record(&map_store(&[("locality", vec![0])]));
    assert_eq!((record.kind, record.skip), (EventKind::Stored, Some(SkipReason::Malformed)));
}

#[test]
fn missing_fields_are_malformed() {
    let fields = [
        ("type", text("BlockStored")),
        ("block_hashes", vec![0x91, 64]),
        ("token_ids", vec![0x91, 4]),
        ("block_size", vec![1]),
    ];
    assert_eq!(record(&map(&fields)).skip, None);
    for missing in 1..fields.len() {
        let mut fields = fields.to_vec();
        fields.remove(missing);
        assert_eq!(record(&map(&fields)).skip, Some(SkipReason::Malformed), "{missing}");
    }
    let short = array(&[text("BlockStored"), vec![0x91, 64], nil(), vec![0x91, 4]]);
    assert_eq!(record(&short).skip, Some(SkipReason::Malformed));
}

#[test]
fn store_master_events() {
    let stored = map(&[
        ("event_id", vec![1]),
        ("event_type", text("stored")),
        ("model_name", text("m")),
        ("block_size", vec![4]),
        ("medium", text("cpu")),
        ("lora_name", NIL.to_vec()),
        ("seq_hashes", vec![0x91, 42]),
        ("parent_hash", vec![41]),
        ("token_ids", NIL.to_vec()),
        ("group_id", text("7")),
        ("block_hashes", vec![0x91, 42]),
        ("parent_block_hash", NIL.to_vec()),
        ("type", text("BlockStored")),
    ]);
    let found = record(&stored);
    assert_eq!((found.kind, found.skip), (EventKind::Stored, None));
    assert_eq!((found.tier, found.placement), (Tier::Host, Placement::TokenLess));
    assert_eq!((found.hashes.len, found.parent, found.group), (1, Some(BlockHash(41)), Some(7)));
    let empty = map(&[
        ("event_type", text("removed")),
        ("medium", text("disk")),
        ("seq_hashes", vec![0x90]),
        ("object_key", text("k")),
    ]);
    let found = record(&empty);
    assert_eq!((found.kind, found.skip, found.tier), (EventKind::Removed, None, Tier::Disk));
    assert!(found.hashes.is_empty());
    let cleared = record(&map(&[("event_type", text("cleared"))]));
    assert_eq!((cleared.kind, cleared.skip), (EventKind::Cleared, None));
    let unknown = record(&map(&[("event_type", text("moved"))]));
    assert_eq!(unknown.skip, Some(SkipReason::UnknownEvent));
}

#[test]
fn placements() {
    let identity = SourceIdentity {
        block_size: NonZeroU32::new(2),
        eagle: Some(false),
        ..SourceIdentity::default()
    };
    let store = |hashes: &[u8], parent: u8, tokens: &[u8], size: u8| {
        let fields =
            [text("BlockStored"), hashes.to_vec(), vec![parent], tokens.to_vec(), vec![size]];
        let (record, locals) = one(&array(&fields), &identity);
        assert_eq!(record.skip, None);
        assert_eq!(usize::try_from(record.hashes.len), Ok(usize::from(hashes[0] & 15)));
        let expected =
            if record.placement == Placement::Positioned { record.hashes.len } else { 0 };
        assert_eq!(u32::try_from(locals.len()), Ok(expected));
        record.placement
    };
    let four = [0x94, 1, 2, 3, 4];
    assert_eq!(store(&[0x92, 7, 8], 6, &four, 2), Placement::Positioned);
    assert_eq!(store(&[0x91, 7], 6, &[0x90], 2), Placement::TokenLess);
    assert_eq!(store(&[0x91, 7], 6, &four, 0), Placement::TokenLess);
    assert_eq!(store(&[0x91, 7], 6, &four, 4), Placement::BlockSizeMismatch);
    assert_eq!(store(&[0x91, 7], 6, &four, 2), Placement::TokenCountMismatch, "surplus");
    assert_eq!(store(&[0x93, 7, 8, 9], 6, &four, 2), Placement::TokenCountMismatch, "short");
    assert_eq!(store(&[0x90], 6, &four, 2), Placement::TokenCountMismatch, "no hashes");
    assert_eq!(store(&[0x92, 7, 7], 6, &four, 2), Placement::RepeatedHash);
    assert_eq!(store(&[0x92, 7, 8], 8, &four, 2), Placement::RepeatedHash);
    let pairs = [0x92, 0x92, 1, 2, 0x92, 2, 3];
    assert_eq!(store(&[0x91, 7], 6, &pairs, 2), Placement::EagleMismatch);
}

#[test]
fn eagle_blocks_have_a_token_ahead() {
    let eagle = SourceIdentity { eagle: Some(true), ..SourceIdentity::default() };
    let mut pairs = vec![0x94];
    for first in 10..14_u8 {
        pairs.extend([0x92, first, first + 1]);
    }
    let fields = [text("BlockStored"), vec![0x92, 7, 8], vec![6], pairs, vec![2]];
    let (record, locals) = one(&array(&fields), &eagle);
    assert!(record.eagle);
    assert_eq!(record.token_count, 5);
    assert_eq!(locals, [5_959_138_341_449_004_422, 13_917_772_031_453_556_700], "H22");
    let (plain, _) = one(&array_store(&[]), &eagle);
    assert_eq!(plain.placement, Placement::EagleMismatch);
}
