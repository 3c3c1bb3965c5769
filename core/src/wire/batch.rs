//! The batch envelope, and one odd event as one odd event (`wire.md` §2, rule B22).

use super::cursor::{Cursor, Fault, is_array, is_map};
use super::draft::Draft;
use super::error::DecodeError;
use super::reader::Reader;
use super::scratch::Scratch;
use super::source::{Limits, SourceIdentity};
use crate::event::{BatchRank, EventBatch, EventRecord};
use crate::id::Rank;

/// Decodes messages and owns the buffers for it. Make one per reading task, not one per source.
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    scratch: Scratch,
}

impl Decoder {
    /// A decoder with these limits. A payload limit above 32 bits counts as the 32-bit maximum, a
    /// depth above 128 as 128.
    pub fn new(limits: Limits) -> Self {
        let limits =
            Limits { payload_bytes: limits.payload_bytes.min(u32::MAX as usize), ..limits };
        Self { limits, scratch: Scratch::default() }
    }

    /// Reads the events of one message of a source into `out`, which is cleared first.
    ///
    /// A batch is `[ts, events, rank, ..]` or a map with `ts`, `events` and a rank; an event is an
    /// array or a map in any of the engines' layouts. Nothing is allocated once the buffers are
    /// warm; big ones are given back after some dozens of small messages.
    ///
    /// An event that cannot be read or must not be applied is a record with
    /// [`EventRecord::skip`] set, and its neighbours stand. Damaged framing sets
    /// [`EventBatch::cut`]: the records are those before the damage, and a rank behind it is
    /// [`BatchRank::Absent`].
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when nothing of the message is usable; `out` is then empty.
    pub fn decode(
        &mut self,
        payload: &[u8],
        identity: &SourceIdentity,
        out: &mut EventBatch,
    ) -> Result<(), DecodeError> {
        self.scratch.give_back(out);
        out.clear();
        let Some(&marker) = payload.first() else {
            return Err(DecodeError::Empty);
        };
        if payload.len() > self.limits.payload_bytes {
            return Err(DecodeError::PayloadTooLarge {
                bytes: payload.len(),
                limit: self.limits.payload_bytes,
            });
        }
        let mut reader = Reader {
            cursor: Cursor::new(payload),
            limits: self.limits,
            identity,
            scratch: &mut self.scratch,
            out,
            first_hash: 0,
            tokens_left: self.limits.tokens,
        };
        let result = if is_array(marker) {
            reader.array_batch()
        } else if is_map(marker) {
            reader.map_batch()
        } else {
            Err(DecodeError::NotABatch { marker })
        };
        if result.is_err() {
            out.clear();
        }
        result
    }
}

impl Reader<'_, '_> {
    fn array_batch(&mut self) -> Result<(), DecodeError> {
        let elements = self.cursor.array().map_err(|fault| DecodeError::of(fault, "array", 0))?;
        if elements < 2 {
            return Err(DecodeError::TooShort { elements });
        }
        self.timestamp()?;
        self.events()?;
        if elements > 2 && !self.out.cut {
            self.rank()?;
        }
        Ok(())
    }

    fn map_batch(&mut self) -> Result<(), DecodeError> {
        let pairs = self.cursor.map().map_err(|fault| DecodeError::of(fault, "map", 0))?;
        let mut has_events = false;
        for _ in 0..pairs {
            match self.map_field(&mut has_events) {
                Ok(()) => {}
                Err(DecodeError::Truncated { .. }) if has_events => self.out.cut = true,
                Err(error) => return Err(error),
            }
            if self.out.cut {
                break;
            }
        }
        if has_events { Ok(()) } else { Err(DecodeError::NoEvents) }
    }

    fn map_field(&mut self, has_events: &mut bool) -> Result<(), DecodeError> {
        let offset = self.cursor.position;
        let key = self.cursor.text().map_err(|fault| DecodeError::of(fault, "key", offset))?;
        match key {
            b"ts" => self.timestamp(),
            b"events" => {
                self.out.records.clear();
                self.out.hashes.clear();
                self.out.locals.clear();
                self.events()?;
                *has_events = true;
                Ok(())
            }
            b"data_parallel_rank" | b"dp_rank" | b"attn_dp_rank" => self.rank(),
            _ => self.unknown_value(),
        }
    }

    fn unknown_value(&mut self) -> Result<(), DecodeError> {
        let offset = self.cursor.position;
        match self.cursor.skip(self.limits.depth) {
            Ok(()) => Ok(()),
            Err(Fault::Framing) => Err(DecodeError::Truncated { offset }),
            Err(Fault::Malformed | Fault::OverLimit) => {
                Err(DecodeError::TooDeep { offset, limit: self.limits.depth })
            }
        }
    }

    fn timestamp(&mut self) -> Result<(), DecodeError> {
        let offset = self.cursor.position;
        let seconds = self.cursor.seconds();
        self.out.ts = seconds.map_err(|fault| DecodeError::of(fault, "time", offset))?;
        Ok(())
    }

    /// The rank; an end of the bytes in it leaves the events usable.
    fn rank(&mut self) -> Result<(), DecodeError> {
        let offset = self.cursor.position;
        let int = match self.cursor.nil() {
            Ok(true) => {
                self.out.rank = BatchRank::Absent;
                return Ok(());
            }
            Ok(false) => self.cursor.int(),
            Err(fault) => Err(fault),
        };
        let int = match int {
            Ok(int) => int,
            Err(Fault::Framing) => {
                self.out.cut = true;
                return Ok(());
            }
            Err(fault) => return Err(DecodeError::of(fault, "rank", offset)),
        };
        match u32::try_from(int.bits) {
            Ok(rank) if !int.negative => {
                self.out.rank = BatchRank::Named(Rank(rank));
                Ok(())
            }
            Ok(_) | Err(_) => {
                let rank = if int.negative {
                    i128::from(int.bits.cast_signed())
                } else {
                    i128::from(int.bits)
                };
                Err(DecodeError::RankOutOfRange { rank })
            }
        }
    }

    fn events(&mut self) -> Result<(), DecodeError> {
        let offset = self.cursor.position;
        let count = match self.event_count() {
            Ok(count) => count,
            Err(fault) => return Err(DecodeError::of(fault, "list of events", offset)),
        };
        if count > self.limits.events as usize {
            return Err(DecodeError::TooManyEvents { count, limit: self.limits.events });
        }
        // The shortest event that is one takes two bytes.
        self.out.records.reserve(count.min(self.cursor.left() / 2));
        for _ in 0..count {
            if self.next_event().is_err() {
                self.out.cut = true;
                break;
            }
        }
        Ok(())
    }

    /// Announced events, which a cut payload need not hold.
    fn event_count(&mut self) -> Result<usize, Fault> {
        let whole = self.cursor;
        match self.cursor.array() {
            Err(Fault::Framing) if is_array(whole.peek()?) => {
                let (skip, count) = match *whole.rest() {
                    [0xdc, a, b, ..] => (3, usize::from(u16::from_be_bytes([a, b]))),
                    [0xdd, a, b, c, d, ..] => (5, u32::from_be_bytes([a, b, c, d]) as usize),
                    [marker @ 0x90..=0x9f, ..] => (1, usize::from(marker & 0x0f)),
                    _ => return Err(Fault::Framing),
                };
                self.cursor = whole;
                self.cursor.advance(skip)?;
                Ok(count)
            }
            result => result,
        }
    }

    /// Reads one event, or counts it under a reason and steps over it; `Err` when even that fails.
    #[inline]
    fn next_event(&mut self) -> Result<(), Fault> {
        let start = self.cursor.position;
        self.first_hash = self.out.hashes.len();
        let first_local = self.out.locals.len();
        let mut draft = Draft::new();
        let read = self.event(&mut draft).and_then(|()| self.settle(&mut draft));
        match read {
            Ok(()) => self.out.records.push(draft.record),
            Err(fault) => {
                let record = self.odd_event(start, first_local, &draft, fault)?;
                self.out.records.push(record);
            }
        }
        Ok(())
    }

    #[cold]
    fn odd_event(
        &mut self,
        start: usize,
        first_local: usize,
        draft: &Draft,
        fault: Fault,
    ) -> Result<EventRecord, Fault> {
        self.out.hashes.truncate(self.first_hash);
        self.out.locals.truncate(first_local);
        self.cursor.position = start;
        self.cursor.step_over()?;
        let mut record = EventRecord::new(draft.kind());
        record.skip = Some(draft.reason(fault));
        Ok(record)
    }
}
