//! Worked payloads and rules of the decoder as a whole.

mod batch;
mod events;
mod identity;

use super::{DecodeError, Decoder, Limits, SourceIdentity};
use crate::event::{EventBatch, EventRecord, EventView};
use alloc::vec;
use alloc::vec::Vec;

pub(super) fn decode(payload: &[u8], identity: &SourceIdentity) -> Result<EventBatch, DecodeError> {
    let mut out = EventBatch::default();
    Decoder::new(Limits::default()).decode(payload, identity, &mut out)?;
    Ok(out)
}

pub(super) fn read(payload: &[u8]) -> EventBatch {
    decode(payload, &SourceIdentity::default()).expect("a readable batch")
}

/// A batch of these raw events.
pub(super) fn batch(events: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0x93, 0x01, 0xdc, 0x00, u8::try_from(events.len()).expect("few")];
    out.extend(events.iter().flatten());
    out.push(0xc0);
    out
}

/// The record of one raw event; `locals` are the batch's.
pub(super) fn one(event: &[u8], identity: &SourceIdentity) -> (EventRecord, Vec<u64>) {
    let payload = batch(&[event.to_vec()]);
    let out = decode(&payload, identity).expect("a readable batch");
    assert!(!out.cut);
    assert_eq!(out.records.len(), 1);
    let view = EventView { payload: &payload, batch: &out };
    let locals = view.locals(&out.records[0]).iter().map(|hash| hash.0).collect();
    (out.records[0], locals)
}

/// A raw text.
pub(super) fn text(text: &str) -> Vec<u8> {
    let mut out = vec![0xd9, u8::try_from(text.len()).expect("short")];
    out.extend(text.as_bytes());
    out
}

/// A raw map of these keys and raw values.
pub(super) fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0xde, 0, u8::try_from(fields.len()).expect("few")];
    for (key, value) in fields {
        out.extend(text(key));
        out.extend(value);
    }
    out
}

/// A raw array of these raw values.
pub(super) fn array(values: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0xdc, 0, u8::try_from(values.len()).expect("few")];
    out.extend(values.iter().flatten());
    out
}

pub(super) const NIL: &[u8] = &[0xc0];

/// The fields of a map store of hash 64 over tokens 4 to 7, and `more` of them.
pub(super) fn map_store(more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut fields = vec![
        ("type", text("BlockStored")),
        ("block_hashes", vec![0x91, 64]),
        ("parent_block_hash", NIL.to_vec()),
        ("token_ids", vec![0x94, 4, 5, 6, 7]),
        ("block_size", vec![4]),
    ];
    fields.extend(more.iter().cloned());
    map(&fields)
}

/// An array store of hash 64 over tokens 4 to 7, and `more` after the block size.
pub(super) fn array_store(more: &[Vec<u8>]) -> Vec<u8> {
    let mut values =
        vec![text("BlockStored"), vec![0x91, 64], NIL.to_vec(), vec![0x94, 4, 5, 6, 7], vec![4]];
    values.extend(more.iter().cloned());
    array(&values)
}
