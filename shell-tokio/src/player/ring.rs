//! The engine's replay side: a ring of recent messages, and what it answers.

use super::ReplayLayout;
use crate::replay::END_SEQ;
use crate::transport::Frames;
use bytes::Bytes;
use std::collections::VecDeque;

/// One numbered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) topic: Bytes,
    pub(super) seq: u64,
    pub(super) payload: Bytes,
}

/// The most recent messages of one life, whether they were dropped on the way or not.
#[derive(Debug)]
pub(super) struct Ring {
    kept: VecDeque<Kept>,
    capacity: usize,
}

impl Ring {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { kept: VecDeque::new(), capacity }
    }

    pub(super) fn push(&mut self, message: Kept) {
        if self.capacity == 0 {
            return;
        }
        if self.kept.len() == self.capacity {
            self.kept.pop_front();
        }
        self.kept.push_back(message);
    }

    /// Everything from `start` on, oldest first. The sequence rises, so it is found by halving.
    pub(super) fn from(&self, start: u64) -> impl Iterator<Item = &Kept> {
        let first = self.kept.partition_point(|message| message.seq < start);
        self.kept.range(first..)
    }
}

/// The start a request asks for: exactly an empty frame and a number, behind the identity that the
/// server took off. Like the engines, any length is read as a big-endian number (empty = 0) and
/// only the count of frames is checked; a number beyond 64 bits is beyond every message.
pub(super) fn parse_request(frames: &Frames) -> Option<u64> {
    let [_separator, start] = frames.as_slice() else { return None };
    let mut value = 0_u64;
    for byte in start {
        let Some(shifted) = value.checked_mul(256) else { return Some(u64::MAX) };
        value = shifted | u64::from(*byte);
    }
    Some(value)
}

/// One message of a reply, as the server sends it.
pub(super) fn reply(layout: ReplayLayout, message: &Kept) -> Frames {
    frames(layout, message.topic.clone(), message.seq, message.payload.clone())
}

/// The end of a reply.
pub(super) fn end_marker(layout: ReplayLayout) -> Frames {
    frames(layout, Bytes::new(), END_SEQ, Bytes::new())
}

fn frames(layout: ReplayLayout, topic: Bytes, seq: u64, payload: Bytes) -> Frames {
    let seq = seq_frame(seq);
    match layout {
        ReplayLayout::WithTopic => vec![Bytes::new(), topic, seq, payload],
        ReplayLayout::WithoutTopic => vec![Bytes::new(), seq, payload],
    }
}

/// A sequence on the wire.
pub(super) fn seq_frame(seq: u64) -> Bytes {
    Bytes::copy_from_slice(&seq.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(seq: u64) -> Kept {
        Kept { topic: Bytes::new(), seq, payload: Bytes::new() }
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let mut ring = Ring::new(3);
        for seq in [0, 1, 2, 4, 7] {
            ring.push(kept(seq));
        }
        let from = |start| ring.from(start).map(|message| message.seq).collect::<Vec<_>>();
        assert_eq!(from(0), [2, 4, 7]);
        assert_eq!(from(3), [4, 7]);
        assert_eq!(from(8), [0; 0]);
        let mut none = Ring::new(0);
        none.push(kept(0));
        assert_eq!(none.from(0).count(), 0);
    }

    #[test]
    fn requests_are_read_as_the_engines_do() {
        let request = |parts: &[&[u8]]| {
            parse_request(&parts.iter().map(|part| Bytes::copy_from_slice(part)).collect())
        };
        assert_eq!(request(&[b"", &7_u64.to_be_bytes()]), Some(7));
        assert_eq!(request(&[b"", b""]), Some(0));
        assert_eq!(request(&[b"", &[1, 0]]), Some(256));
        assert_eq!(request(&[b"", &[0, 0, 0, 0, 0, 0, 0, 0, 9]]), Some(9));
        assert_eq!(request(&[b"", &[1, 0, 0, 0, 0, 0, 0, 0, 0]]), Some(u64::MAX));
        assert_eq!(request(&[&7_u64.to_be_bytes()]), None);
        assert_eq!(request(&[b"", b"", &7_u64.to_be_bytes()]), None);
    }
}
