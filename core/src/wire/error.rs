//! Why a whole message cannot be read.

use super::cursor::Fault;
use thiserror::Error;

/// A message of which nothing is usable. Damage inside its events is none of these: see
/// [`crate::event::EventBatch::cut`] and [`crate::event::SkipReason`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No bytes.
    #[error("the payload is empty; check that the publisher sends its batch in the third frame")]
    Empty,
    /// More bytes than the limit.
    #[error(
        "the payload has {bytes} bytes, the limit is {limit}; raise it or lower the batch size"
    )]
    PayloadTooLarge {
        /// Bytes of the payload.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Neither an array nor a map.
    #[error(
        "the payload begins with 0x{marker:02x}, which is neither an array nor a map; check that the topic carries KV events"
    )]
    NotABatch {
        /// The payload's first byte.
        marker: u8,
    },
    /// An array of fewer than two elements.
    #[error(
        "the batch array has {elements} elements, at least a time and a list of events are needed"
    )]
    TooShort {
        /// Elements announced.
        elements: usize,
    },
    /// A map without events.
    #[error("the batch map has no \"events\"; check that the topic carries KV events")]
    NoEvents,
    /// A batch field of the wrong type.
    #[error(
        "the batch's {field} at byte {offset} has the wrong type; the publisher speaks another dialect"
    )]
    WrongType {
        /// Which field.
        field: &'static str,
        /// Where it begins.
        offset: usize,
    },
    /// The bytes end, or make no sense, before the events begin.
    #[error(
        "the batch breaks off at byte {offset}, before its first event; the message is damaged"
    )]
    Truncated {
        /// Where the unreadable value begins.
        offset: usize,
    },
    /// More events than the limit.
    #[error(
        "the batch announces {count} events, the limit is {limit}; raise it or lower the batch size"
    )]
    TooManyEvents {
        /// Events announced.
        count: usize,
        /// The limit.
        limit: u32,
    },
    /// Values nested deeper than the limit outside of the events.
    #[error(
        "the batch nests deeper than {limit} values at byte {offset}; the message is not a KV-event batch"
    )]
    TooDeep {
        /// Where the nested value begins.
        offset: usize,
        /// The limit.
        limit: u32,
    },
    /// A rank below zero or above 32 bits (P20 of the field reports).
    #[error(
        "the batch names rank {rank}, which no rank can have; fix the publisher's data-parallel rank"
    )]
    RankOutOfRange {
        /// The rank on the wire.
        rank: i128,
    },
}

impl DecodeError {
    /// The error of a fault while reading `field`, which begins at `offset`.
    pub(crate) const fn of(fault: Fault, field: &'static str, offset: usize) -> Self {
        match fault {
            Fault::Framing => Self::Truncated { offset },
            Fault::Malformed | Fault::OverLimit => Self::WrongType { field, offset },
        }
    }
}
