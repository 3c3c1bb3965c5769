//! What a store's hashes depend on beside its tokens (rule B19), and hashing again.

use super::{NIL, array_store, batch, decode, map_store, one, text};
use crate::event::EventView;
use crate::hash::multimodal::{mm_hash, pad_token};
use crate::hash::{identity_seed, local_hash, verbatim_part};
use crate::wire::{SourceIdentity, rehash};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

const TOKENS: [u32; 4] = [4, 5, 6, 7];

fn bytes(tokens: &[u32], objects: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    bytes.extend(objects.iter().flat_map(|object| object.to_le_bytes()));
    bytes
}

fn plain(lora: &str, salt: &str, more: u64) -> Vec<u64> {
    let seed = identity_seed(lora, salt).wrapping_add(more);
    vec![local_hash(&bytes(&TOKENS, &[]), seed).0]
}

fn locals(event: &[u8]) -> Vec<u64> {
    one(event, &SourceIdentity::default()).1
}

fn keys(raw: &[u8]) -> Vec<u64> {
    locals(&map_store(&[("extra_keys", raw.to_vec())]))
}

#[test]
fn names_and_salts() {
    assert_eq!(locals(&map_store(&[])), plain("", "", 0));
    assert_eq!(locals(&map_store(&[("lora_name", text("a"))])), plain("a", "", 0));
    assert_eq!(locals(&map_store(&[("cache_salt", text("s"))])), plain("", "s", 0));
    let nil = || NIL.to_vec();
    let slot_7 = |value: &[u8]| locals(&array_store(&[nil(), nil(), value.to_vec()]));
    assert_eq!(slot_7(b"\xa1a"), plain("a", "", 0));
    assert_eq!(slot_7(b"\x81\xaacache_salt\xa1s"), plain("", "s", 0));
    assert_eq!(slot_7(b"\x82\xa1x\x91\x05\xaacache_salt\xc0"), plain("", "", 0));
    assert_eq!(slot_7(b"\x80"), plain("", "", 0));
    assert_eq!(slot_7(b"\x05"), Vec::<u64>::new(), "a number is neither name nor map");
}

#[test]
fn default_lora_applies_where_none_is_named() {
    let identity = SourceIdentity { default_lora: "d".to_string(), ..SourceIdentity::default() };
    assert_eq!(one(&map_store(&[]), &identity).1, plain("d", "", 0));
    assert_eq!(one(&map_store(&[("lora_name", text("a"))]), &identity).1, plain("a", "", 0));
    assert_eq!(one(&map_store(&[("lora_id", vec![1])]), &identity).1, plain("d", "", 0));
}

#[test]
fn an_adapter_without_a_name_is_not_the_base_model() {
    let id = |raw: &[u8]| plain("", "", verbatim_part(raw));
    assert_eq!(locals(&map_store(&[("lora_id", vec![1])])), id(&[1]));
    assert_eq!(locals(&map_store(&[("lora_id", vec![0])])), id(&[0]));
    assert_eq!(locals(&array_store(&[vec![0xcc, 200]])), id(&[0xcc, 200]));
    assert_eq!(locals(&array_store(&[NIL.to_vec()])), plain("", "", 0));
    let named = map_store(&[("lora_id", vec![1]), ("lora_name", text("a"))]);
    assert_eq!(locals(&named), plain("a", "", 0));
}

#[test]
fn salts_out_of_extra_keys() {
    assert_eq!(keys(b"\x91\xc0"), plain("", "", 0));
    assert_eq!(keys(b"\x91\x91\xa1s"), plain("", "s", 0));
    assert_eq!(keys(b"\x91\x92\xa1s\xb3dynamo-cache-salt:t"), {
        plain("", "t", verbatim_part(b"\xa1s"))
    });
    let with = |more: &[(&str, Vec<u8>)], raw: &[u8]| {
        let mut fields = more.to_vec();
        fields.push(("extra_keys", raw.to_vec()));
        locals(&map_store(&fields))
    };
    let salted = |salt: &str| vec![("cache_salt", text(salt))];
    assert_eq!(with(&salted("s"), b"\x91\x91\xa1s"), plain("", "s", 0));
    assert_eq!(with(&salted("s"), b"\x91\x91\xa1t"), plain("", "s", verbatim_part(b"\xa1t")));
    assert_eq!(with(&salted(""), b"\x91\x91\xa1t"), plain("", "", verbatim_part(b"\xa1t")));
    let lora = [("lora_name", text("x"))];
    assert_eq!(with(&lora, b"\x91\x91\xa1x"), plain("x", "", 0), "P33");
    assert_eq!(with(&lora, b"\x91\x92\xa1x\xa1s"), plain("x", "s", 0));
}

#[test]
fn unknown_keys_never_match_a_query_without_them() {
    for raw in
        [&b"\xc4\x02\xff\xfe"[..], b"\x05", b"\xcb\x3f\xf8\0\0\0\0\0\0", b"\xc3", b"\xc4\x01s"]
    {
        let mut entry = vec![0x91, 0x91];
        entry.extend(raw);
        assert_eq!(keys(&entry), plain("", "", verbatim_part(raw)), "{raw:?}");
    }
}

#[test]
fn objects() {
    let hash = mm_hash("m").expect("not empty");
    let event = map_store(&[("extra_keys", b"\x91\x92\x92\xa1m\x00\xa1s".to_vec())]);
    let seed = identity_seed("", "s");
    assert_eq!(locals(&event), [local_hash(&bytes(&TOKENS, &[hash]), seed).0]);
    let image = SourceIdentity { image_token_id: Some(5), ..SourceIdentity::default() };
    let padded = [4, pad_token(hash), 6, 7];
    assert_eq!(one(&event, &image).1, [local_hash(&bytes(&padded, &[]), seed).0]);
    let video = SourceIdentity { video_token_id: Some(6), ..SourceIdentity::default() };
    let padded = [4, 5, pad_token(hash), 7];
    assert_eq!(one(&event, &video).1, [local_hash(&bytes(&padded, &[]), seed).0]);
    let absent = SourceIdentity { image_token_id: Some(99), ..SourceIdentity::default() };
    assert_eq!(one(&event, &absent).1, locals(&event));
}

#[test]
fn explicit_objects_win() {
    let infos = b"\x91\x81\xaamm_objects\x92\x81\xa7mm_hash\x2a\x81\xa7mm_hash\x07".to_vec();
    let fields = [("extra_keys", b"\x91\x91\x92\xa1m\x00".to_vec()), ("block_mm_infos", infos)];
    let expected = local_hash(&bytes(&TOKENS, &[7, 42]), identity_seed("", "")).0;
    assert_eq!(locals(&map_store(&fields)), [expected]);
}

#[test]
fn hashing_again_under_the_same_salt_gives_the_same() {
    let raw = [
        &b"\x91\x92\xa1s\xa1s"[..],
        b"\x91\x93\xa1x\xa1s\xc4\x01\xff",
        b"\x91\x92\xa1u\xb3dynamo-cache-salt:t",
        b"\x91\x92\x92\xa1m\x00\xa1s",
        b"\x91\xc0",
    ];
    for raw in raw {
        let fields = [("lora_name", text("x")), ("extra_keys", raw.to_vec())];
        let payload = batch(&[map_store(&fields)]);
        let identity = SourceIdentity::default();
        let out = decode(&payload, &identity).expect("a readable batch");
        let view = EventView { payload: &payload, batch: &out };
        let record = &out.records[0];
        let salt = view.text(record.salt).unwrap_or_default();
        let mut again = vec![];
        assert!(rehash(view, record, &identity, salt, &mut again));
        assert_eq!(again, view.locals(record), "{raw:?}");
    }
}

#[test]
fn hashing_again_under_an_inherited_salt() {
    let payload =
        batch(&[map_store(&[("lora_id", vec![1])]), b"\x91\xb0AllBlocksCleared".to_vec()]);
    let identity = SourceIdentity::default();
    let out = decode(&payload, &identity).expect("a readable batch");
    let view = EventView { payload: &payload, batch: &out };
    let mut again = vec![];
    assert!(rehash(view, &out.records[0], &identity, "tenant", &mut again));
    let again: Vec<u64> = again.iter().map(|hash| hash.0).collect();
    assert_eq!(again, plain("", "tenant", verbatim_part(&[1])));
    let mut stale = vec![crate::id::LocalHash(1)];
    assert!(!rehash(view, &out.records[1], &identity, "tenant", &mut stale));
    assert_eq!(stale, []);
    let without = EventView { payload: &[], batch: &out };
    assert!(!rehash(without, &out.records[0], &identity, "tenant", &mut stale));
}
