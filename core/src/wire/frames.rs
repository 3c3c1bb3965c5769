//! Multipart frames of live messages and of the replay socket (Z-2 to Z-4; `[topic, seq, payload]`).

use crate::id::EventId;
use alloc::vec::Vec;
use thiserror::Error;

/// Why frames are no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Too few or too many frames.
    #[error(
        "a {what} has {got} frames instead of {expected}; the endpoint speaks another protocol"
    )]
    Count {
        /// Which kind of message.
        what: &'static str,
        /// How many frames it should have.
        expected: &'static str,
        /// How many there are.
        got: usize,
    },
    /// A sequence frame that is not 8 bytes long.
    #[error(
        "the sequence frame has {bytes} bytes instead of 8; the endpoint speaks another protocol"
    )]
    Sequence {
        /// Its length.
        bytes: usize,
    },
}

/// A live message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFrames<'a> {
    /// The topic; says nothing beyond what the subscription filtered (Z-3).
    pub topic: &'a [u8],
    /// The publisher's sequence number.
    pub seq: EventId,
    /// The batch.
    pub payload: &'a [u8],
}

/// One message of a replay reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFrames<'a> {
    /// A batch that was published before.
    Message {
        /// Its sequence number.
        seq: EventId,
        /// The batch.
        payload: &'a [u8],
    },
    /// The end of the reply.
    End,
}

/// Reads a live message: exactly topic, sequence (8 bytes, big-endian) and payload.
///
/// # Errors
///
/// [`FrameError`] for another number of frames or another length of the sequence.
pub fn parse_live<F: AsRef<[u8]>>(frames: &[F]) -> Result<LiveFrames<'_>, FrameError> {
    let [topic, seq, payload] = frames else {
        return Err(FrameError::Count { what: "live message", expected: "3", got: frames.len() });
    };
    Ok(LiveFrames {
        topic: topic.as_ref(),
        seq: sequence(seq.as_ref())?,
        payload: payload.as_ref(),
    })
}

/// Reads a message of a replay reply: the last two of two to four frames, so that replies with and
/// without a topic, and with or without the empty delimiter, read alike.
///
/// The end is an empty payload with a sequence of all ones (P08 of the field reports).
///
/// # Errors
///
/// [`FrameError`] for another number of frames or another length of the sequence.
pub fn parse_replay<F: AsRef<[u8]>>(frames: &[F]) -> Result<ReplayFrames<'_>, FrameError> {
    let ([seq, payload] | [_, seq, payload] | [_, _, seq, payload]) = frames else {
        return Err(FrameError::Count {
            what: "replay reply",
            expected: "2 to 4",
            got: frames.len(),
        });
    };
    let seq = sequence(seq.as_ref())?;
    let payload = payload.as_ref();
    if payload.is_empty() && seq.0 == u64::MAX {
        return Ok(ReplayFrames::End);
    }
    Ok(ReplayFrames::Message { seq, payload })
}

/// The frames a DEALER sends to get everything from `start` on: an empty one and the sequence.
pub fn replay_request(start: EventId) -> [Vec<u8>; 2] {
    [Vec::new(), start.0.to_be_bytes().to_vec()]
}

fn sequence(frame: &[u8]) -> Result<EventId, FrameError> {
    let bytes = <[u8; 8]>::try_from(frame);
    let bytes = bytes.map_err(|_| FrameError::Sequence { bytes: frame.len() })?;
    Ok(EventId(u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 5];
    const ONES: &[u8] = &[0xff; 8];

    #[test]
    fn live_messages() {
        let frames = [&b"kv"[..], FIVE, b"x"];
        let parsed = parse_live(&frames).expect("three frames");
        assert_eq!(parsed, LiveFrames { topic: b"kv", seq: EventId(5), payload: b"x" });
        for frames in [&[FIVE, b"x"][..], &[], &[b"", b"", FIVE, b"x"]] {
            let error = parse_live(frames).expect_err("not three frames");
            assert!(matches!(error, FrameError::Count { got, .. } if got == frames.len()));
        }
        let frames = [&b""[..], b"1234567", b"x"];
        assert_eq!(parse_live(&frames), Err(FrameError::Sequence { bytes: 7 }));
    }

    #[test]
    fn replay_messages_of_every_layout() {
        let message = Ok(ReplayFrames::Message { seq: EventId(5), payload: b"x" });
        assert_eq!(parse_replay(&[FIVE, b"x"]), message);
        assert_eq!(parse_replay(&[&b""[..], FIVE, b"x"]), message);
        assert_eq!(parse_replay(&[&b""[..], b"kv", FIVE, b"x"]), message);
        assert_eq!(parse_replay(&[&b""[..], b"", ONES, b""]), Ok(ReplayFrames::End));
        assert_eq!(parse_replay(&[&b""[..], ONES, b""]), Ok(ReplayFrames::End));
        let last = Ok(ReplayFrames::Message { seq: EventId(u64::MAX), payload: b"x" });
        assert_eq!(parse_replay(&[&b""[..], ONES, b"x"]), last);
        assert!(parse_replay(&[FIVE]).is_err());
        assert!(parse_replay(&[FIVE; 5]).is_err());
    }

    #[test]
    fn requests() {
        assert_eq!(replay_request(EventId(5)), [alloc::vec![], FIVE.to_vec()]);
    }
}
