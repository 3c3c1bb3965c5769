//! The rank of a payload, without decoding it.

/// Deepest value and longest list are bounded by the payload itself: every element takes at least
/// one byte, so a count beyond the bytes left is a lie.
struct Cursor<'a> {
    rest: &'a [u8],
}

/// The data-parallel rank that a payload names: the third element of its outer msgpack array.
///
/// `None` when there is no third element, it is nil, not a number up to `u32::MAX`, or the payload
/// is not an event batch at all. Values before it are stepped over, not read; never recurses.
pub fn peek_rank(payload: &[u8]) -> Option<u32> {
    let mut cursor = Cursor { rest: payload };
    let elements = cursor.array_len()?;
    if elements < 3 {
        return None;
    }
    cursor.skip_values(2)?;
    cursor.uint().and_then(|rank| u32::try_from(rank).ok())
}

impl Cursor<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn big_endian(&mut self, bytes: usize) -> Option<u64> {
        let (head, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(head.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn array_len(&mut self) -> Option<u64> {
        match self.byte()? {
            head @ 0x90..=0x9f => Some(u64::from(head & 0x0f)),
            0xdc => self.big_endian(2),
            0xdd => self.big_endian(4),
            _ => None,
        }
    }

    fn uint(&mut self) -> Option<u64> {
        match self.byte()? {
            small @ 0x00..=0x7f => Some(u64::from(small)),
            0xcc => self.big_endian(1),
            0xcd => self.big_endian(2),
            0xce => self.big_endian(4),
            0xcf => self.big_endian(8),
            // Signed forms of numbers that are not negative.
            0xd0 => self.big_endian(1).filter(|value| *value <= 0x7f),
            0xd1 => self.big_endian(2).filter(|value| *value <= 0x7fff),
            0xd2 => self.big_endian(4).filter(|value| *value <= 0x7fff_ffff),
            0xd3 => self.big_endian(8).filter(|value| *value <= 0x7fff_ffff_ffff_ffff),
            _ => None,
        }
    }

    /// Steps over `count` values with everything in them.
    fn skip_values(&mut self, count: u64) -> Option<()> {
        let mut pending = count;
        while pending > 0 {
            pending -= 1;
            let (bytes, inner) = match self.byte()? {
                0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => (0, 0),
                head @ 0x80..=0x8f => (0, 2 * u64::from(head & 0x0f)),
                head @ 0x90..=0x9f => (0, u64::from(head & 0x0f)),
                head @ 0xa0..=0xbf => (u64::from(head & 0x1f), 0),
                0xc4 | 0xd9 => (self.big_endian(1)?, 0),
                0xc5 | 0xda => (self.big_endian(2)?, 0),
                0xc6 | 0xdb => (self.big_endian(4)?, 0),
                0xc7 => (self.big_endian(1)? + 1, 0),
                0xc8 => (self.big_endian(2)? + 1, 0),
                0xc9 => (self.big_endian(4)? + 1, 0),
                0xcc | 0xd0 => (1, 0),
                0xcd | 0xd1 | 0xd4 => (2, 0),
                0xd5 => (3, 0),
                0xca | 0xce | 0xd2 => (4, 0),
                0xd6 => (5, 0),
                0xcb | 0xcf | 0xd3 => (8, 0),
                0xd7 => (9, 0),
                0xd8 => (17, 0),
                0xdc => (0, self.big_endian(2)?),
                0xdd => (0, self.big_endian(4)?),
                0xde => (0, 2 * self.big_endian(2)?),
                0xdf => (0, 2 * self.big_endian(4)?),
            };
            let bytes = usize::try_from(bytes).ok()?;
            self.rest = self.rest.get(bytes..)?;
            pending += inner;
            // Each value to come needs a byte; this also bounds the loop.
            if pending > self.rest.len() as u64 {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_element_is_found_behind_anything() {
        // [1.5, [["x", {"k": bin}, ext, nil, -1]], rank]
        let mut payload = vec![0x93, 0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0];
        payload.extend([0x91, 0x95, 0xa1, b'x', 0x81, 0xa1, b'k', 0xc4, 2, 9, 9]);
        payload.extend([0xd6, 1, 2, 3, 4, 5, 0xc0, 0xff]);
        for (tail, rank) in [
            (&[0x07][..], Some(7)),
            (&[0xcc, 200], Some(200)),
            (&[0xcd, 1, 0], Some(256)),
            (&[0xd1, 0, 9], Some(9)),
            (&[0xd0, 0xff], None),
            (&[0xcf, 1, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0xc0], None),
            (&[], None),
        ] {
            let mut whole = payload.clone();
            whole.extend(tail);
            assert_eq!(peek_rank(&whole), rank, "{tail:?}");
        }
    }

    #[test]
    fn lies_about_lengths_and_other_shapes_are_none() {
        assert_eq!(peek_rank(&[]), None);
        assert_eq!(peek_rank(&[0x92, 0x01, 0x90]), None, "no rank on the wire");
        assert_eq!(peek_rank(&[0x83, 0x01, 0x02, 0x03]), None, "a map");
        assert_eq!(peek_rank(&[0x93, 0xdd, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(peek_rank(&[0x93, 0xdf, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
        assert_eq!(peek_rank(&[0x93, 0xc6, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
