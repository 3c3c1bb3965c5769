//! One question to an engine's replay socket: "everything you still have from this sequence on".
//!
//! Every question has a socket of its own, so that frames of an abandoned one can never be taken
//! for answers to the next (P07), and two deadlines, so that an engine that stops in the middle
//! ends it (P09). Whatever came until then is in the outcome.

use crate::transport::{Endpoint, Frames, Requester, Transport, TransportError};
use bytes::Bytes;
use kvmirror_core::id::EventId;
use kvmirror_core::wire::frames::{FrameError, ReplayFrames, parse_replay, replay_request};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Sequence of the end marker, whose payload is empty.
pub const END_SEQ: u64 = u64::MAX;

/// Limits of one replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Time to connect, handshake included.
    pub connect: Duration,
    /// Longest wait for the next reply. An idle engine looks at its requests every 100 ms or so.
    pub idle: Duration,
    /// Longest time for everything, connecting included.
    pub total: Duration,
    /// Most messages kept.
    pub messages: usize,
    /// Most payload bytes kept.
    pub bytes: usize,
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            idle: Duration::from_secs(2),
            total: Duration::from_secs(27),
            messages: 100_000,
            bytes: 256 << 20,
        }
    }
}

/// What a replay brought.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOutcome {
    /// Sequence and payload in order of arrival; none below the start that was asked for. Not
    /// checked for holes: a first sequence above the start means that the ring begins later.
    pub messages: Vec<(u64, Bytes)>,
    /// Replies below the start, left out.
    pub strays: u64,
    /// How it ended.
    pub end: ReplayEnd,
}

/// How a replay ended. Only [`ReplayEnd::EndMarker`] says that nothing is missing at the end; after
/// any other one, ask again from the last sequence plus one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayEnd {
    /// The engine said that this was all.
    EndMarker,
    /// No reply within [`ReplayLimits::idle`].
    Idle,
    /// Not finished within [`ReplayLimits::total`].
    Total,
    /// The next message would be more than [`ReplayLimits::messages`].
    LimitMessages,
    /// The next message would take more than [`ReplayLimits::bytes`].
    LimitBytes,
    /// A reply that is neither a message nor an end marker.
    Malformed(ReplyError),
    /// The connection could not be made or was lost.
    Failed(TransportError),
}

/// Why a reply cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The frames are no reply.
    #[error(transparent)]
    Frames(#[from] FrameError),
    /// Only one half of an end marker, so it is not known which of the two was meant.
    #[error("half an end marker: sequence {seq}, payload of {bytes} bytes")]
    HalfEndMarker {
        /// The sequence.
        seq: u64,
        /// Bytes of the payload.
        bytes: usize,
    },
}

/// Asks the replay socket at `endpoint` for every message from `start` on.
///
/// Never fails: what went wrong is in [`ReplayOutcome::end`], beside whatever came before. Dropping
/// the future closes the socket.
pub async fn replay<T: Transport>(
    transport: &T,
    endpoint: &Endpoint,
    start: u64,
    limits: ReplayLimits,
) -> ReplayOutcome {
    let total = Instant::now() + limits.total;
    let mut outcome = ReplayOutcome { messages: Vec::new(), strays: 0, end: ReplayEnd::Total };
    let connecting = transport.request(endpoint, limits.connect.min(limits.total));
    let mut requester = match timeout_at(total, connecting).await {
        Ok(Ok(requester)) => requester,
        Ok(Err(error)) => {
            outcome.end = ReplayEnd::Failed(error);
            return outcome;
        }
        Err(_) => return outcome,
    };
    let ask = replay_request(EventId(start)).map(Bytes::from).to_vec();
    if let Err(error) = requester.send(ask).await {
        outcome.end = ReplayEnd::Failed(error);
        return outcome;
    }
    outcome.end = collect(&mut requester, start, &limits, total, &mut outcome).await;
    outcome
}

async fn collect(
    requester: &mut impl Requester,
    start: u64,
    limits: &ReplayLimits,
    total: Instant,
    outcome: &mut ReplayOutcome,
) -> ReplayEnd {
    let mut bytes = 0_usize;
    loop {
        let idle = Instant::now() + limits.idle;
        let frames = match timeout_at(idle.min(total), requester.recv()).await {
            Ok(Ok(frames)) => frames,
            Ok(Err(error)) => return ReplayEnd::Failed(error),
            Err(_) if idle < total => return ReplayEnd::Idle,
            Err(_) => return ReplayEnd::Total,
        };
        // A peer that never pauses must not outlive the deadline by always being ready.
        if Instant::now() >= total {
            return ReplayEnd::Total;
        }
        match parse_reply(&frames) {
            Ok(Reply::End) => return ReplayEnd::EndMarker,
            Ok(Reply::Message { seq, .. }) if seq < start => outcome.strays += 1,
            Ok(Reply::Message { seq, payload }) => {
                if outcome.messages.len() >= limits.messages {
                    return ReplayEnd::LimitMessages;
                }
                bytes = bytes.saturating_add(payload.len());
                if bytes > limits.bytes {
                    return ReplayEnd::LimitBytes;
                }
                outcome.messages.push((seq, payload));
            }
            Err(error) => return ReplayEnd::Malformed(error),
        }
    }
}

enum Reply {
    Message { seq: u64, payload: Bytes },
    End,
}

/// Both layouts, told by their last two frames (P08).
fn parse_reply(frames: &Frames) -> Result<Reply, ReplyError> {
    let (seq, payload) = match parse_replay(frames)? {
        ReplayFrames::End => return Ok(Reply::End),
        ReplayFrames::Message { seq, payload } => (seq.0, payload),
    };
    if seq == END_SEQ || payload.is_empty() {
        return Err(ReplyError::HalfEndMarker { seq, bytes: payload.len() });
    }
    Ok(Reply::Message { seq, payload: frames.last().cloned().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(parts: &[&[u8]]) -> Frames {
        parts.iter().map(|part| Bytes::copy_from_slice(part)).collect()
    }

    #[test]
    fn both_layouts_and_both_end_markers_are_read() {
        let seq = 5_u64.to_be_bytes();
        let end = END_SEQ.to_be_bytes();
        for parts in [&[b"", &seq[..], b"p"][..], &[b"", b"kv@pod@m", &seq, b"p"]] {
            let Ok(Reply::Message { seq, payload }) = parse_reply(&frames(parts)) else {
                panic!("{parts:?}")
            };
            assert_eq!((seq, payload.as_ref()), (5, &b"p"[..]));
        }
        for parts in [&[b"", &end[..], b""][..], &[b"", b"", &end, b""]] {
            assert!(matches!(parse_reply(&frames(parts)), Ok(Reply::End)));
        }
    }

    #[test]
    fn anything_else_is_named() {
        let seq = 5_u64.to_be_bytes();
        let end = END_SEQ.to_be_bytes();
        let error = |parts: &[&[u8]]| parse_reply(&frames(parts)).err();
        assert!(matches!(error(&[&[] as &[u8]; 5]), Some(ReplyError::Frames(_))));
        assert!(matches!(error(&[b"", b"short", b"p"]), Some(ReplyError::Frames(_))));
        assert!(matches!(error(&[b"", &seq, b""]), Some(ReplyError::HalfEndMarker { .. })));
        assert!(matches!(error(&[b"", &end, b"p"]), Some(ReplyError::HalfEndMarker { .. })));
    }
}
