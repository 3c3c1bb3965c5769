//! One engine message on its way through the machine, and the pool that makes the way free of
//! allocation.

use crate::event::{BatchRank, EventBatch, EventView, SkipReason};
use crate::id::{EventId, Rank};
use crate::router::{Clears, Origin, Payload, Run};
use crate::wire::{DecodeError, Decoder, SourceIdentity};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};
use core::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Messages kept for reuse; what is free beyond that is given back.
const POOLED: usize = 256;

/// Payload bytes that a pooled message may keep reserved.
const POOLED_BYTES: usize = 64 << 10;

/// A decoded message and the bytes its events point into.
#[derive(Debug, Default)]
pub(super) struct Message {
    payload: Vec<u8>,
    events: EventBatch,
    /// Whether a recording may show it.
    shown: bool,
}

/// A shared message: the payload type of the router machine. A raw engine's message is one id.
#[derive(Clone, Debug)]
pub(super) struct MessageRef(Arc<Message>);

impl MessageRef {
    pub(super) fn view(&self) -> EventView<'_> {
        EventView { payload: &self.0.payload, batch: &self.0.events }
    }
}

impl Payload for MessageRef {
    fn len(&self) -> u32 {
        1
    }

    fn bytes(&self) -> usize {
        let events = &self.0.events;
        self.0.payload.len()
            + size_of_val(events.records.as_slice())
            + size_of_val(events.hashes.as_slice())
            + size_of_val(events.locals.as_slice())
    }

    fn slice(&self, _range: Range<u32>) -> Self {
        self.clone()
    }
}

#[cfg(feature = "trace")]
impl crate::trace::Traced for MessageRef {
    fn content(&self, _index: u32) -> crate::trace::Content {
        use core::fmt::Write;
        if !self.0.shown {
            return crate::trace::Content::Hidden;
        }
        let mut digits = alloc::string::String::with_capacity(2 * self.0.payload.len());
        for byte in &self.0.payload {
            // Writing to a text cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        crate::trace::Content::Bytes(digits)
    }
}

/// What reading a message told.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) origin: Origin,
    pub(super) run: Run<MessageRef>,
    pub(super) error: Option<DecodeError>,
}

/// Reads messages into reused buffers.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder,
    free: Vec<Arc<Message>>,
    show: bool,
}

impl Reader {
    pub(super) const fn new(decoder: Decoder) -> Self {
        Self { decoder, free: Vec::new(), show: false }
    }

    /// Whether recordings may show what messages say.
    #[cfg(feature = "trace")]
    pub(super) const fn show_payloads(&mut self, show: bool) {
        self.show = show;
    }

    /// Reads one message of the source registered as `rank`.
    ///
    /// A message that cannot be read keeps its id: asking for it again would bring the same bytes.
    /// It counts as damaged, and so does one with an event whose meaning is lost.
    pub(super) fn read(
        &mut self,
        rank: Rank,
        seq: EventId,
        payload: &[u8],
        identity: &SourceIdentity,
    ) -> Reading {
        let mut shared = self.free.pop().unwrap_or_default();
        if Arc::get_mut(&mut shared).is_none() {
            shared = Arc::default();
        }
        let mut error = None;
        if let Some(message) = Arc::get_mut(&mut shared) {
            message.shown = self.show;
            error = self.decoder.decode(payload, identity, &mut message.events).err();
            message.payload.clear();
            if error.is_some() {
                message.events.clear();
            } else {
                message.payload.extend_from_slice(payload);
            }
        }
        let events = &shared.events;
        let origin = match events.rank {
            BatchRank::Named(named) if named != rank => Origin::Foreign,
            BatchRank::Named(_) | BatchRank::Absent => Origin::Own,
        };
        let run = Run {
            first: seq,
            len: NonZeroU32::MIN,
            clears: if events.has_full_clear() { Clears::Everything } else { Clears::Nothing },
            damaged: error.is_some() || loses_meaning(events),
            digest: Some(NonZeroU64::new(xxh3_64(payload)).unwrap_or(NonZeroU64::MIN)),
            payload: MessageRef(shared),
        };
        Reading { origin, run, error }
    }

    /// Takes a message back that nobody needs any more.
    pub(super) fn recycle(&mut self, message: MessageRef) {
        let shared = message.0;
        if self.free.len() < POOLED
            && Arc::strong_count(&shared) == 1
            && shared.payload.capacity() <= POOLED_BYTES
        {
            self.free.push(shared);
        }
    }
}

/// Whether an event of the batch was meant for the mirror and could not be read. An unknown kind of
/// event, or one that another rule leaves out, loses nothing the mirror is about.
fn loses_meaning(events: &EventBatch) -> bool {
    events.cut
        || events.records.iter().any(|record| match record.skip {
            Some(SkipReason::Malformed | SkipReason::OverLimit) => true,
            Some(
                SkipReason::UnknownEvent
                | SkipReason::IgnoredEvent
                | SkipReason::NonLocalLocality
                | SkipReason::UnknownMedium
                | SkipReason::UnknownOwnership
                | SkipReason::CacheOwnerTier,
            )
            | None => false,
        })
}
