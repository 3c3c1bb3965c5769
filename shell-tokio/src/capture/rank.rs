//! The rank that a payload names.

use kvmirror_core::event::{BatchRank, EventBatch};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};

/// Reads ranks; keeps its buffers.
#[derive(Debug)]
pub(super) struct RankReader {
    decoder: Decoder,
    events: EventBatch,
}

impl RankReader {
    pub(super) fn new() -> Self {
        Self { decoder: Decoder::new(Limits::default()), events: EventBatch::default() }
    }

    /// `None` when the payload names none, or cannot be read up to where it would.
    pub(super) fn rank(&mut self, payload: &[u8]) -> Option<u32> {
        let identity = SourceIdentity::default();
        self.decoder.decode(payload, &identity, &mut self.events).ok()?;
        match self.events.rank {
            BatchRank::Named(rank) => Some(rank.0),
            BatchRank::Absent => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_what_the_payload_says() {
        let mut reader = RankReader::new();
        for (payload, rank) in [
            (&[0x93, 0x01, 0x90, 0x03][..], Some(3)),
            (&[0x93, 0x01, 0x90, 0xc0], None),
            (&[0x93, 0x01, 0x90, 0xff], None),
            (&[0x92, 0x01, 0x90], None),
            (&[0x93, 0x01], None),
            (&[], None),
        ] {
            assert_eq!(reader.rank(payload), rank, "{payload:?}");
        }
    }
}
