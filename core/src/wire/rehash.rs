//! Hashing a store again under an inherited salt.

use super::cursor::Cursor;
use super::extra_keys::trivial;
use super::local::{BlockIdentity, hash_blocks};
use super::scratch::Keyed;
use super::source::SourceIdentity;
use super::stored::lora_of;
use super::tokens;
use crate::event::{EventKind, EventRecord, EventView, Placement};
use crate::hash::seed_of;
use crate::id::LocalHash;
use alloc::vec::Vec;

/// Hashes the tokens of a positioned store again, under `salt` instead of the event's own (absent)
/// one: for a store that inherits its parent's salt (`wire.md` §6.1).
///
/// `out` is cleared first. Returns false, with `out` empty, when the payload is not at hand or the
/// event is not a positioned store.
pub fn rehash(
    view: EventView<'_>,
    record: &EventRecord,
    identity: &SourceIdentity,
    salt: &str,
    out: &mut Vec<LocalHash>,
) -> bool {
    out.clear();
    if record.kind != EventKind::Stored || record.placement != Placement::Positioned {
        return false;
    }
    let mut words = Vec::new();
    let mut cursor = Cursor::at(view.payload, record.tokens);
    let Ok(list) = tokens::read(&mut cursor, record.token_count, &mut words) else {
        return false;
    };
    if list.count != record.token_count || list.eagle != record.eagle {
        return false;
    }
    let lora = lora_of(view.payload, record, identity);
    let blocks = BlockIdentity {
        payload: view.payload,
        record,
        lora,
        salt: salt.as_bytes(),
        seed: seed_of(lora, salt.as_bytes()),
        keyed: !trivial(view.bytes(record.extra_keys)),
    };
    let words = words.get(..list.count as usize).unwrap_or_default();
    let hashed = hash_blocks(&blocks, identity, words, &mut Keyed::default(), out);
    if hashed.is_err() || out.len() != record.hashes.len as usize {
        out.clear();
        return false;
    }
    true
}
