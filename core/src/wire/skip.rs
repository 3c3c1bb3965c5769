//! Stepping over values nobody needs, by loops: nesting costs no stack.

use super::cursor::{Cursor, Fault, wrong};

/// Deepest nesting a limit can allow; the open containers are kept in an array of this length.
pub(crate) const MAX_DEPTH: u32 = 128;

/// What a marker announces: bytes after it, and values that follow.
struct Shape {
    bytes: usize,
    values: usize,
}

impl Cursor<'_> {
    /// Steps over one value of any depth.
    ///
    /// The values still due are counted. As each takes a byte at least, more of them than bytes
    /// left means that the payload is cut.
    pub(crate) fn step_over(&mut self) -> Result<(), Fault> {
        let mut due = 1_usize;
        while due > 0 {
            let shape = self.shape()?;
            self.advance(shape.bytes)?;
            due = (due - 1).saturating_add(shape.values);
            if due > self.left() {
                return Err(Fault::Framing);
            }
        }
        Ok(())
    }

    /// Steps over one value; nesting beyond `depth` is malformed.
    #[inline]
    pub(crate) fn skip(&mut self, depth: u32) -> Result<(), Fault> {
        let shape = self.shape()?;
        self.advance(shape.bytes)?;
        if shape.values > 0 { self.skip_nested(shape.values, depth) } else { Ok(()) }
    }

    #[cold]
    fn skip_nested(&mut self, values: usize, depth: u32) -> Result<(), Fault> {
        let mut open = [0_usize; MAX_DEPTH as usize];
        let allowed = depth.min(MAX_DEPTH) as usize;
        let Some(open) = open.get_mut(..allowed) else {
            return Err(Fault::Malformed);
        };
        let mut level = 0_usize;
        *open.get_mut(0).ok_or(Fault::Malformed)? = values;
        loop {
            let due = open.get_mut(level).ok_or(Fault::Malformed)?;
            if *due == 0 {
                if level == 0 {
                    return Ok(());
                }
                level -= 1;
                continue;
            }
            if *due > self.left() {
                return Err(Fault::Framing);
            }
            *due -= 1;
            let shape = self.shape()?;
            self.advance(shape.bytes)?;
            if shape.values > 0 {
                level += 1;
                *open.get_mut(level).ok_or(Fault::Malformed)? = shape.values;
            }
        }
    }

    fn shape(&self) -> Result<Shape, Fault> {
        let marker = self.peek()?;
        let (bytes, values) = match marker {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => (1, 0),
            0x80..=0x8f => (1, 2 * usize::from(marker & 0x0f)),
            0x90..=0x9f => (1, usize::from(marker & 0x0f)),
            0xa0..=0xbf => (1 + usize::from(marker & 0x1f), 0),
            0xc1 => return Err(wrong(marker)),
            0xcc | 0xd0 => (2, 0),
            0xcd | 0xd1 => (3, 0),
            0xca | 0xce | 0xd2 => (5, 0),
            0xcb | 0xcf | 0xd3 => (9, 0),
            0xd4 => (3, 0),
            0xd5 => (4, 0),
            0xd6 => (6, 0),
            0xd7 => (10, 0),
            0xd8 => (18, 0),
            0xc4 | 0xd9 => (self.size::<1>(2)?, 0),
            0xc5 | 0xda => (self.size::<2>(3)?, 0),
            0xc6 | 0xdb => (self.size::<4>(5)?, 0),
            // An extension has a type byte between its size and its data.
            0xc7 => (self.size::<1>(3)?, 0),
            0xc8 => (self.size::<2>(4)?, 0),
            0xc9 => (self.size::<4>(6)?, 0),
            0xdc => (3, self.size::<2>(0)?),
            0xdd => (5, self.size::<4>(0)?),
            0xde => (3, self.size::<2>(0)?.saturating_mul(2)),
            0xdf => (5, self.size::<4>(0)?.saturating_mul(2)),
        };
        Ok(Shape { bytes, values })
    }

    /// `plus` and the big-endian number in the `N` bytes after the marker.
    fn size<const N: usize>(&self, plus: usize) -> Result<usize, Fault> {
        let bytes = self.rest().get(1..=N).ok_or(Fault::Framing)?;
        let size = bytes.iter().fold(0_usize, |size, &byte| (size << 8) | usize::from(byte));
        Ok(size.saturating_add(plus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn ends(bytes: &[u8]) -> Result<usize, Fault> {
        let mut loose = Cursor::new(bytes);
        let mut strict = Cursor::new(bytes);
        let result = loose.step_over();
        assert_eq!(result, strict.skip(MAX_DEPTH), "{bytes:?}");
        result.map(|()| {
            assert_eq!(loose.position, strict.position);
            loose.position
        })
    }

    #[test]
    fn every_form_ends_where_it_should() {
        let forms: [(&[u8], usize); 12] = [
            (&[0x05, 9], 1),
            (&[0x81, 0xa1, b'k', 0x93, 1, 2, 3, 9], 7),
            (&[0xca, 0, 0, 0, 0, 9], 5),
            (&[0xd8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], 18),
            (&[0xc7, 2, 1, 0, 0, 9], 5),
            (&[0xc8, 0, 1, 1, 0, 9], 5),
            (&[0xc9, 0, 0, 0, 1, 1, 0, 9], 7),
            (&[0xda, 0, 1, b'a', 9], 4),
            (&[0xc6, 0, 0, 0, 1, 7, 9], 6),
            (&[0xdd, 0, 0, 0, 1, 7, 9], 6),
            (&[0xdf, 0, 0, 0, 1, 7, 8, 9], 7),
            (&[0x90, 9], 1),
        ];
        for (bytes, end) in forms {
            assert_eq!(ends(bytes), Ok(end), "{bytes:?}");
        }
    }

    #[test]
    fn broken_framing_is_refused() {
        let broken: [&[u8]; 6] = [
            &[],
            &[0xc1],
            &[0x92, 1],
            &[0xdd, 0xff, 0xff, 0xff, 0xff, 1],
            &[0xdb, 0xff, 0xff, 0xff, 0xff],
            &[0x91, 0xc1],
        ];
        for bytes in broken {
            assert_eq!(ends(bytes), Err(Fault::Framing), "{bytes:?}");
        }
    }

    #[test]
    fn nesting_is_limited_only_where_asked() {
        let mut deep: Vec<u8> = vec![0x91; 10_000];
        deep.push(0xc0);
        assert_eq!(Cursor::new(&deep).step_over(), Ok(()));
        assert_eq!(Cursor::new(&deep).skip(64), Err(Fault::Malformed));
        let mut shallow: Vec<u8> = vec![0x91; 64];
        shallow.push(0xc0);
        assert_eq!(Cursor::new(&shallow).skip(64), Ok(()));
        assert_eq!(Cursor::new(&shallow).skip(63), Err(Fault::Malformed));
        assert_eq!(Cursor::new(&[0x91, 1]).skip(0), Err(Fault::Malformed));
    }
}
