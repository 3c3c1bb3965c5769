//! Local hashes of a positioned store (`wire.md` §7.1, §8; rule B19).

use super::cursor::Fault;
use super::extra_keys::ExtraKeys;
use super::mm_infos::MmInfos;
use super::scratch::Keyed;
use super::source::SourceIdentity;
use super::tokens::TokenBytes;
use crate::event::EventRecord;
use crate::hash::multimodal::local_hash_with_objects;
use crate::hash::{local_hash, verbatim_part};
use crate::id::LocalHash;
use alloc::vec::Vec;

/// What goes into the hashes of one store beside its tokens.
#[derive(Debug)]
pub(crate) struct BlockIdentity<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) record: &'a EventRecord,
    /// The LoRA name in force.
    pub(crate) lora: &'a [u8],
    /// The salt in force.
    pub(crate) salt: &'a [u8],
    /// The seed of both.
    pub(crate) seed: u64,
    /// Whether the extra keys say anything.
    pub(crate) keyed: bool,
}

/// Appends one hash per block of `tokens`.
#[inline]
pub(crate) fn hash_blocks(
    identity: &BlockIdentity<'_>,
    source: &SourceIdentity,
    tokens: &[TokenBytes],
    scratch: &mut Keyed,
    out: &mut Vec<LocalHash>,
) -> Result<(), Fault> {
    let record = identity.record;
    let mut seed = identity.seed;
    if !record.lora_id.is_empty() && identity.lora.is_empty() {
        // An adapter without a name must not pass for the base model.
        seed = seed.wrapping_add(verbatim_part(record.lora_id.of(identity.payload)));
    }
    if identity.keyed || !record.mm_infos.is_empty() {
        return hash_keyed(identity, source, tokens, seed, scratch, out);
    }
    let step = record.block_size as usize;
    out.reserve(record.hashes.len as usize);
    if record.eagle {
        out.extend(eagle_windows(tokens, step).map(|block| local_hash(block.as_flattened(), seed)));
    } else {
        let blocks = tokens.as_flattened().chunks_exact(step.saturating_mul(4).max(1));
        out.extend(blocks.map(|block| local_hash(block, seed)));
    }
    Ok(())
}

/// Windows of one block and a look-ahead token.
fn eagle_windows(tokens: &[TokenBytes], step: usize) -> impl Iterator<Item = &[TokenBytes]> {
    let windows = step.saturating_add(1);
    (0..).map_while(move |block: usize| {
        let start = block.checked_mul(step)?;
        tokens.get(start..start.checked_add(windows)?)
    })
}

#[cold]
fn hash_keyed(
    identity: &BlockIdentity<'_>,
    source: &SourceIdentity,
    tokens: &[TokenBytes],
    seed: u64,
    scratch: &mut Keyed,
    out: &mut Vec<LocalHash>,
) -> Result<(), Fault> {
    let BlockIdentity { payload, record, lora, salt, .. } = *identity;
    let mut keys = ExtraKeys::new(payload, record.extra_keys, lora, salt)?;
    let mut infos = MmInfos::new(payload, record.mm_infos)?;
    // XK-3; an empty list of infos leaves the objects of the extra keys in force.
    let explicit = !infos.is_empty();
    let step = record.block_size as usize;
    for block in 0..record.hashes.len as usize {
        let start = block.saturating_mul(step);
        let end = start.saturating_add(step).saturating_add(usize::from(record.eagle));
        let block = tokens.get(start..end).ok_or(Fault::Malformed)?;
        scratch.objects.clear();
        let part = keys.next_block(&mut scratch.objects)?;
        if explicit {
            scratch.objects.clear();
            infos.next_block(&mut scratch.objects)?;
        }
        let seed = seed.wrapping_add(part);
        out.push(if scratch.objects.is_empty() {
            local_hash(block.as_flattened(), seed)
        } else {
            let Keyed { objects, words, bytes } = scratch;
            words.clear();
            words.extend(block.iter().map(|&token| u32::from_le_bytes(token)));
            let (image, video) = (source.image_token_id, source.video_token_id);
            local_hash_with_objects(words, objects, image, video, seed, bytes)
        });
    }
    Ok(())
}
