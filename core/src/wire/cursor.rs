//! A position in a msgpack payload; every step is checked and none recurses.

use crate::event::Span;

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end inside a value, or hold a byte that starts none: nothing after it is readable.
    Framing,
    /// A whole value of the wrong type or out of range.
    Malformed,
    /// More hashes or tokens than a message may hold.
    OverLimit,
}

/// An integer as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    /// The value's two's-complement bits.
    pub(crate) bits: u64,
    /// Whether the value is below zero.
    pub(crate) negative: bool,
}

/// A position as span arithmetic has it. Payloads are limited to the u32 range beforehand.
pub(crate) fn narrow(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// A slice and a position in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) position: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// A cursor at the start of `span`.
    pub(crate) const fn at(bytes: &'a [u8], span: Span) -> Self {
        Self { bytes, position: span.start as usize }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    #[inline]
    pub(crate) fn peek(&self) -> Result<u8, Fault> {
        self.bytes.get(self.position).copied().ok_or(Fault::Framing)
    }

    /// The bytes ahead.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// `N` bytes at `offset` from here, without moving.
    #[inline]
    fn ahead<const N: usize>(&self, offset: usize) -> Result<[u8; N], Fault> {
        let rest = self.bytes.get(self.position.saturating_add(offset)..).ok_or(Fault::Framing)?;
        rest.first_chunk::<N>().copied().ok_or(Fault::Framing)
    }

    /// Moves over `count` bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) -> Result<(), Fault> {
        if count > self.left() {
            return Err(Fault::Framing);
        }
        self.position += count;
        Ok(())
    }

    /// The span from `start` to here.
    pub(crate) fn since(&self, start: usize) -> Span {
        Span { start: narrow(start), len: narrow(self.position.saturating_sub(start)) }
    }

    /// Steps over a nil, if there is one.
    #[inline]
    pub(crate) fn nil(&mut self) -> Result<bool, Fault> {
        let nil = self.peek()? == 0xc0;
        self.position += usize::from(nil);
        Ok(nil)
    }

    /// The length of an array whose elements can still fit into the bytes left.
    #[inline]
    pub(crate) fn array(&mut self) -> Result<usize, Fault> {
        let marker = self.peek()?;
        let count = if marker & 0xf0 == 0x90 {
            self.position += 1;
            usize::from(marker & 0x0f)
        } else {
            self.wide_count(marker, 0xdc)?
        };
        if count > self.left() {
            return Err(Fault::Framing);
        }
        Ok(count)
    }

    /// The number of pairs of a map whose pairs can still fit into the bytes left.
    #[inline]
    pub(crate) fn map(&mut self) -> Result<usize, Fault> {
        let marker = self.peek()?;
        let count = if marker & 0xf0 == 0x80 {
            self.position += 1;
            usize::from(marker & 0x0f)
        } else {
            self.wide_count(marker, 0xde)?
        };
        if count > self.left() / 2 {
            return Err(Fault::Framing);
        }
        Ok(count)
    }

    /// A 16 or 32 bit count behind `short` or the marker after it.
    fn wide_count(&mut self, marker: u8, short: u8) -> Result<usize, Fault> {
        if marker == short {
            let count = u16::from_be_bytes(self.ahead(1)?);
            self.position += 3;
            Ok(usize::from(count))
        } else if marker == short + 1 {
            let count = u32::from_be_bytes(self.ahead(1)?);
            self.position += 5;
            Ok(count as usize)
        } else {
            Err(wrong(marker))
        }
    }

    /// The bytes of a str or bin.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Fault> {
        let marker = self.peek()?;
        let (header, len) = if marker & 0xe0 == 0xa0 {
            (1, usize::from(marker & 0x1f))
        } else {
            self.wide_text(marker)?
        };
        let start = self.position.saturating_add(header);
        let bytes = self.bytes.get(start..).and_then(|rest| rest.get(..len));
        let bytes = bytes.ok_or(Fault::Framing)?;
        self.position = start + len;
        Ok(bytes)
    }

    #[cold]
    fn wide_text(&self, marker: u8) -> Result<(usize, usize), Fault> {
        Ok(match marker {
            0xd9 | 0xc4 => (2, usize::from(u8::from_be_bytes(self.ahead(1)?))),
            0xda | 0xc5 => (3, usize::from(u16::from_be_bytes(self.ahead(1)?))),
            0xdb | 0xc6 => (5, u32::from_be_bytes(self.ahead(1)?) as usize),
            other => return Err(wrong(other)),
        })
    }

    /// Where the bytes of a str or bin are; `None` for nil.
    #[inline]
    pub(crate) fn text_or_nil(&mut self) -> Result<Option<Span>, Fault> {
        if self.nil()? {
            return Ok(None);
        }
        let len = self.text()?.len();
        Ok(Some(Span { start: narrow(self.position - len), len: narrow(len) }))
    }

    /// An integer of any form.
    #[inline]
    pub(crate) fn int(&mut self) -> Result<Int, Fault> {
        let marker = self.peek()?;
        if marker < 0x80 {
            self.position += 1;
            return Ok(Int { bits: u64::from(marker), negative: false });
        }
        self.wide_int(marker)
    }

    fn wide_int(&mut self, marker: u8) -> Result<Int, Fault> {
        let (size, signed) = match marker {
            0xcc => (1, i64::from(u8::from_be_bytes(self.ahead(1)?))),
            0xcd => (2, i64::from(u16::from_be_bytes(self.ahead(1)?))),
            0xce => (4, i64::from(u32::from_be_bytes(self.ahead(1)?))),
            0xcf => {
                let bits = u64::from_be_bytes(self.ahead(1)?);
                self.position += 9;
                return Ok(Int { bits, negative: false });
            }
            0xd0 => (1, i64::from(i8::from_be_bytes(self.ahead(1)?))),
            0xd1 => (2, i64::from(i16::from_be_bytes(self.ahead(1)?))),
            0xd2 => (4, i64::from(i32::from_be_bytes(self.ahead(1)?))),
            0xd3 => (8, i64::from_be_bytes(self.ahead(1)?)),
            0xe0..=0xff => (0, i64::from(i8::from_be_bytes([marker]))),
            other => return Err(wrong(other)),
        };
        self.position += 1 + size;
        Ok(Int { bits: signed.cast_unsigned(), negative: signed < 0 })
    }

    /// An integer in the u32 range.
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Result<u32, Fault> {
        let int = self.int()?;
        if int.negative {
            return Err(Fault::Malformed);
        }
        u32::try_from(int.bits).map_err(|_| Fault::Malformed)
    }

    /// An integer in the u32 range; `None` for nil.
    #[inline]
    pub(crate) fn unsigned_or_nil(&mut self) -> Result<Option<u32>, Fault> {
        if self.nil()? { Ok(None) } else { self.unsigned().map(Some) }
    }

    /// A number as seconds.
    pub(crate) fn seconds(&mut self) -> Result<f64, Fault> {
        match self.peek()? {
            0xca => {
                let value = f32::from_be_bytes(self.ahead(1)?);
                self.position += 5;
                Ok(f64::from(value))
            }
            0xcb => {
                let value = f64::from_be_bytes(self.ahead(1)?);
                self.position += 9;
                Ok(value)
            }
            _ => {
                let int = self.int()?;
                // Rounding above 2^53 is harmless: the time is informative only.
                Ok(if int.negative { int.bits.cast_signed() as f64 } else { int.bits as f64 })
            }
        }
    }
}

/// Whether a marker begins an array.
pub(crate) const fn is_array(marker: u8) -> bool {
    matches!(marker, 0x90..=0x9f | 0xdc | 0xdd)
}

/// Whether a marker begins a map.
pub(crate) const fn is_map(marker: u8) -> bool {
    matches!(marker, 0x80..=0x8f | 0xde | 0xdf)
}

/// The fault of a marker of another type: the reserved marker starts no value at all.
pub(crate) fn wrong(marker: u8) -> Fault {
    if marker == 0xc1 { Fault::Framing } else { Fault::Malformed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(bytes: &[u8]) -> Result<Int, Fault> {
        Cursor::new(bytes).int()
    }

    #[test]
    fn integers_keep_their_bits() {
        let positive = |bits| Ok(Int { bits, negative: false });
        let negative = |value: i64| Ok(Int { bits: value.cast_unsigned(), negative: true });
        assert_eq!(int(&[0x7f]), positive(127));
        assert_eq!(int(&[0xcc, 0xff]), positive(255));
        assert_eq!(int(&[0xcd, 0xff, 0xfe]), positive(65_534));
        assert_eq!(int(&[0xce, 0xff, 0, 0, 0]), positive(0xff00_0000));
        assert_eq!(int(&[0xcf, 0xff, 0, 0, 0, 0, 0, 0, 1]), positive(0xff00_0000_0000_0001));
        assert_eq!(int(&[0xff]), negative(-1));
        assert_eq!(int(&[0xe0]), negative(-32));
        assert_eq!(int(&[0xd0, 0x80]), negative(-128));
        assert_eq!(int(&[0xd1, 0x80, 0]), negative(-32_768));
        assert_eq!(int(&[0xd2, 0x80, 0, 0, 0]), negative(-2_147_483_648));
        assert_eq!(int(&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]), negative(i64::MIN));
        assert_eq!(int(&[0xd3, 0, 0, 0, 0, 0, 0, 0, 5]), positive(5));
    }

    #[test]
    fn wrong_types_and_ends_are_told_apart() {
        assert_eq!(int(&[0xc0]), Err(Fault::Malformed));
        assert_eq!(int(&[0xc1]), Err(Fault::Framing));
        assert_eq!(int(&[]), Err(Fault::Framing));
        assert_eq!(int(&[0xcf, 1]), Err(Fault::Framing));
        assert_eq!(Cursor::new(&[0x92, 1]).array(), Err(Fault::Framing));
        assert_eq!(Cursor::new(&[0xdd, 0xff, 0xff, 0xff, 0xff]).array(), Err(Fault::Framing));
        assert_eq!(Cursor::new(&[0x81, 1]).map(), Err(Fault::Framing));
        assert_eq!(Cursor::new(&[0xa2, b'a']).text(), Err(Fault::Framing));
        assert_eq!(Cursor::new(&[0x01]).text(), Err(Fault::Malformed));
        assert_eq!(Cursor::new(&[0xc4, 2, 1, 2]).text(), Ok(&[1, 2][..]));
    }

    #[test]
    fn seconds_take_any_number() {
        assert_eq!(Cursor::new(&[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]).seconds(), Ok(1.5));
        assert_eq!(Cursor::new(&[0xca, 0x3f, 0xc0, 0, 0]).seconds(), Ok(1.5));
        assert_eq!(Cursor::new(&[0xff]).seconds(), Ok(-1.0));
        assert_eq!(Cursor::new(&[0x07]).seconds(), Ok(7.0));
        assert_eq!(Cursor::new(&[0xa0]).seconds(), Err(Fault::Malformed));
    }
}
