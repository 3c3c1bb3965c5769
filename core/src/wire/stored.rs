//! What an event amounts to once all of it has been read: skip reasons, placement, local hashes.

use super::cursor::{Fault, narrow};
use super::draft::Draft;
use super::enums::{Locality, Medium, Ownership, Tag};
use super::extra_keys::{find_salt, trivial};
use super::local::{BlockIdentity, hash_blocks};
use super::reader::Reader;
use super::{hashes, source::SourceIdentity};
use crate::event::{EventKind, EventRecord, Placement, ResidencyDomain, SkipReason, Span};

impl Reader<'_, '_> {
    /// Judges the event and makes its record final.
    #[inline]
    pub(crate) fn settle(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        match draft.tag.ok_or(Fault::Malformed)? {
            Tag::Stored => self.settle_stored(draft),
            Tag::Removed => self.settle_removed(draft),
            Tag::Cleared => {
                self.settle_cleared(draft);
                Ok(())
            }
            Tag::Ignored => {
                self.out.hashes.truncate(self.first_hash);
                draft.record = EventRecord::new(EventKind::Unreadable);
                draft.record.skip = Some(SkipReason::IgnoredEvent);
                Ok(())
            }
        }
    }

    fn settle_cleared(&mut self, draft: &mut Draft) {
        self.out.hashes.truncate(self.first_hash);
        draft.record = EventRecord::new(EventKind::Cleared);
        match draft.ownership {
            Ownership::Framework => {}
            Ownership::CacheOwner => draft.record.domain = ResidencyDomain::CacheOwner,
            Ownership::Unknown => draft.record.skip = Some(SkipReason::UnknownOwnership),
        }
    }

    fn settle_removed(&self, draft: &mut Draft) -> Result<(), Fault> {
        if !draft.has_hashes {
            return Err(Fault::Malformed);
        }
        draft.record = EventRecord {
            hashes: draft.record.hashes,
            group: draft.record.group,
            spec: draft.record.spec,
            sliding_window: draft.record.sliding_window,
            ..EventRecord::new(EventKind::Removed)
        };
        self.settle_residency(draft);
        Ok(())
    }

    #[inline]
    fn settle_stored(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let complete = draft.has_tokens && draft.has_block_size || draft.event_type;
        if !draft.has_hashes || !complete {
            return Err(Fault::Malformed);
        }
        draft.record.kind = EventKind::Stored;
        self.settle_residency(draft);
        let payload = self.cursor.bytes;
        let record = &mut draft.record;
        check_text(payload, record.lora)?;
        check_text(payload, record.session)?;
        let keyed = !trivial(record.extra_keys.of(payload));
        record.salt = match draft.explicit_salt {
            Some(span) => span,
            None if keyed => {
                find_salt(payload, record.extra_keys, lora_of(payload, record, self.identity))?
            }
            None => Span::EMPTY,
        };
        check_text(payload, record.salt)?;
        let hashes = record.hashes.of(&self.out.hashes);
        record.placement = placement(record, self.identity);
        if record.placement == Placement::Positioned
            && hashes::repeated(hashes, record.parent, &mut self.scratch.table)
        {
            record.placement = Placement::RepeatedHash;
        }
        if record.placement == Placement::Positioned {
            self.hash_tokens(record, keyed)?;
        }
        Ok(())
    }

    #[inline]
    fn hash_tokens(&mut self, record: &mut EventRecord, keyed: bool) -> Result<(), Fault> {
        let payload = self.cursor.bytes;
        let lora = lora_of(payload, record, self.identity);
        let salt = record.salt.of(payload);
        let seed = self.scratch.seed(lora, salt);
        let identity = BlockIdentity { payload, record, lora, salt, seed, keyed };
        let count = record.token_count as usize;
        let tokens = self.scratch.tokens.get(..count).unwrap_or_default();
        let first = self.out.locals.len();
        hash_blocks(
            &identity,
            self.identity,
            tokens,
            &mut self.scratch.keyed,
            &mut self.out.locals,
        )?;
        let added = self.out.locals.len() - first;
        record.locals = Span { start: narrow(first), len: narrow(added) };
        Ok(())
    }

    /// Tier, domain and skip reason of a store or a remove (PF-2, PF-4, PF-5, AD table).
    #[inline]
    fn settle_residency(&self, draft: &mut Draft) {
        let name = draft.medium.of(self.cursor.bytes);
        let medium = Medium::parse(name, draft.event_type);
        let record = &mut draft.record;
        record.tier = medium.unwrap_or(Medium::DEVICE).tier;
        let owned = draft.ownership == Ownership::CacheOwner;
        if owned {
            record.domain = ResidencyDomain::CacheOwner;
        }
        record.skip = if draft.ownership == Ownership::Unknown {
            Some(SkipReason::UnknownOwnership)
        } else if draft.locality == Locality::RemoteOrUnknown {
            Some(SkipReason::NonLocalLocality)
        } else {
            match medium {
                None => Some(SkipReason::UnknownMedium),
                Some(medium) if owned && !medium.cache_owner => Some(SkipReason::CacheOwnerTier),
                Some(_) => None,
            }
        };
    }
}

/// The LoRA name in force: the event's, else the source's.
pub(crate) fn lora_of<'a>(
    payload: &'a [u8],
    record: &EventRecord,
    identity: &'a SourceIdentity,
) -> &'a [u8] {
    if record.lora.is_empty() { identity.default_lora.as_bytes() } else { record.lora.of(payload) }
}

#[inline]
fn check_text(payload: &[u8], span: Span) -> Result<(), Fault> {
    if span.is_empty() || core::str::from_utf8(span.of(payload)).is_ok() {
        Ok(())
    } else {
        Err(Fault::Malformed)
    }
}

/// Whether counts and sizes allow positions; repeated hashes are looked for apart.
#[inline]
fn placement(record: &EventRecord, identity: &SourceIdentity) -> Placement {
    if record.token_count == 0 || record.block_size == 0 {
        return Placement::TokenLess;
    }
    if identity.eagle.is_some_and(|eagle| eagle != record.eagle) {
        return Placement::EagleMismatch;
    }
    if identity.block_size.is_some_and(|size| size.get() != record.block_size) {
        return Placement::BlockSizeMismatch;
    }
    let positions = record.token_count - u32::from(record.eagle);
    if u64::from(positions) != u64::from(record.hashes.len) * u64::from(record.block_size) {
        return Placement::TokenCountMismatch;
    }
    Placement::Positioned
}
