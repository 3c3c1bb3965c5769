//! Damaged payloads of real producers: never a panic, never a span out of range, and an odd event
//! leaves its neighbours alone.

use kvmirror_core::event::{EventBatch, EventKind, EventView, Placement, Span};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity, rehash};
use proptest::prelude::*;
use std::sync::LazyLock;

const VARIANTS: &str = include_str!("../data/wire/wire-variants.jsonl");

static PAYLOADS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let lines = VARIANTS.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let hex = line["hex"].as_str().expect("hex").as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit");
        let bytes = hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1]));
        bytes.map(|byte| u8::try_from(byte).expect("a byte")).collect()
    });
    lines.collect()
});

fn decode(payload: &[u8]) -> Option<EventBatch> {
    let mut out = EventBatch::default();
    let result =
        Decoder::new(Limits::default()).decode(payload, &SourceIdentity::default(), &mut out);
    result.is_ok().then_some(out)
}

/// What has to hold for any batch that came out of any payload.
fn check(payload: &[u8], out: &EventBatch) {
    let view = EventView { payload, batch: out };
    let inside = |span: Span, len: usize| span.start as usize + span.len as usize <= len;
    let mut again = Vec::new();
    for record in &out.records {
        assert!(inside(record.hashes, out.hashes.len()), "{record:?}");
        assert!(inside(record.locals, out.locals.len()), "{record:?}");
        for span in [record.tokens, record.extra_keys, record.mm_infos, record.lora_id] {
            assert!(inside(span, payload.len()), "{record:?}");
        }
        for span in [record.lora, record.salt, record.session] {
            assert!(inside(span, payload.len()), "{record:?}");
            assert_eq!(span.is_empty(), view.text(span).is_none(), "{record:?}");
        }
        let positioned =
            record.kind == EventKind::Stored && record.placement == Placement::Positioned;
        let expected = if positioned { record.hashes.len } else { 0 };
        assert_eq!(record.locals.len, expected, "{record:?}");
        let salt = view.text(record.salt).unwrap_or_default();
        let hashed = rehash(view, record, &SourceIdentity::default(), salt, &mut again);
        assert_eq!(hashed, positioned, "{record:?}");
        assert_eq!(again, view.locals(record), "{record:?}");
    }
}

/// A batch of these raw events.
fn batch(events: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0x92, 0x01, 0x90 | u8::try_from(events.len()).expect("few")];
    out.extend(events.concat());
    out
}

const GOOD: [&[u8]; 3] = [
    b"\x95\xabBlockStored\x91\x40\xc0\x94\x04\x05\x06\x07\x04",
    b"\x82\xacblock_hashes\x91\x41\xa4type\xacBlockRemoved",
    b"\x91\xb0AllBlocksCleared",
];

const NAMES: &[&str] =
    &["BlockStored", "BlockRemoved", "type", "token_ids", "block_hashes", "x", ""];

/// Any whole msgpack value, up to some depth.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        (0_u8..0x80).prop_map(|byte| vec![byte]),
        (0xe0_u8..).prop_map(|byte| vec![byte]),
        prop_oneof![Just(0xc0_u8), Just(0xc2), Just(0xc3)].prop_map(|byte| vec![byte]),
        any::<u64>().prop_map(|bits| [&[0xcf][..], &bits.to_be_bytes()].concat()),
        any::<u32>().prop_map(|bits| [&[0xce][..], &bits.to_be_bytes()].concat()),
        any::<f64>().prop_map(|value| [&[0xcb][..], &value.to_be_bytes()].concat()),
        proptest::sample::select(NAMES).prop_map(|name| {
            [&[0xa0 | u8::try_from(name.len()).expect("short")][..], name.as_bytes()].concat()
        }),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
            [&[0xc4, u8::try_from(bytes.len()).expect("short")][..], &bytes].concat()
        }),
        proptest::collection::vec(any::<u8>(), 4)
            .prop_map(|bytes| [&[0xd6, 1][..], &bytes].concat()),
    ];
    leaf.prop_recursive(4, 40, 9, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(|values| {
                let count = 0x90 | u8::try_from(values.len()).expect("few");
                [vec![count], values.concat()].concat()
            }),
            proptest::collection::vec((inner.clone(), inner), 0..8).prop_map(|pairs| {
                let count = 0x80 | u8::try_from(pairs.len()).expect("few");
                let pairs: Vec<u8> = pairs.into_iter().flat_map(|(k, v)| [k, v].concat()).collect();
                [vec![count], pairs].concat()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn mutants_never_panic(
        pick in any::<proptest::sample::Index>(),
        edits in proptest::collection::vec(
            (any::<proptest::sample::Index>(), 0_u8..4, any::<u8>()), 0..6),
    ) {
        let mut payload = pick.get(&PAYLOADS).clone();
        for (at, edit, byte) in edits {
            if payload.is_empty() {
                break;
            }
            let at = at.index(payload.len());
            match edit {
                0 => payload[at] = byte,
                1 => payload.insert(at, byte),
                2 => {
                    payload.remove(at);
                }
                _ => payload.truncate(at),
            }
        }
        if let Some(out) = decode(&payload) {
            check(&payload, &out);
        }
    }

    #[test]
    fn neighbours_of_any_value_survive(odd in value()) {
        let payload = batch(&[GOOD[0], &odd, GOOD[1], &odd, GOOD[2]]);
        let out = decode(&payload).expect("the envelope is sound");
        check(&payload, &out);
        prop_assert!(!out.cut);
        prop_assert_eq!(out.records.len(), 5);
        let kinds: Vec<_> = [0, 2, 4].map(|at: usize| out.records[at].kind).into();
        prop_assert_eq!(kinds, [EventKind::Stored, EventKind::Removed, EventKind::Cleared]);
        for at in [0, 2, 4] {
            prop_assert_eq!(out.records[at].skip, None);
        }
        prop_assert_eq!(out.records[0].hashes.of(&out.hashes)[0].0, 64);
        prop_assert_eq!(out.records[2].hashes.of(&out.hashes)[0].0, 65);
    }
}
