//! Engine formats to events.

mod source;

pub use source::{Limits, SourceIdentity};

use crate::event::{EventRecord, EventView};
use crate::id::LocalHash;
use alloc::vec::Vec;

/// Hashes the tokens of a positioned store again, under `salt` instead of the event's own (absent)
/// one: for a store that inherits its parent's salt (`wire.md` §6.1).
///
/// `out` is cleared first. Returns false, with `out` empty, when the payload is not at hand or the
/// event is not a positioned store.
pub fn rehash(
    _view: EventView<'_>,
    _record: &EventRecord,
    _identity: &SourceIdentity,
    _salt: &str,
    out: &mut Vec<LocalHash>,
) -> bool {
    out.clear();
    false
}
