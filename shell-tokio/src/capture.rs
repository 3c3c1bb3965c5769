//! Reading captures: raw messages of an engine, one JSON object a line, plain or gzip.
//!
//! [`CaptureReader`] gives the messages one by one in bounded memory; [`Capture`] holds a whole
//! file, split by data-parallel rank and, within a rank, by engine life.

mod line;
mod rank;
mod reader;

pub(crate) use reader::open_plain_or_gzip;
pub use reader::{CaptureReader, MAX_LINE_BYTES};

use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One message of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureMessage {
    /// Line in the file, from 1.
    pub line: u64,
    /// When it was received, in nanoseconds of the recorder's clock; not every kind of file says it.
    pub t_ns: Option<u64>,
    /// The topic; empty where the file has none.
    pub topic: Bytes,
    /// The engine's sequence.
    pub seq: u64,
    /// The payload, undecoded.
    pub payload: Bytes,
    /// The data-parallel rank that the payload names, if it names one.
    pub rank: Option<u32>,
}

/// What is wrong with a capture, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be read to its end.
    #[error("{}:{line}: cannot read: {source}; a cut or damaged .gz file? record it again", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The line that was being read.
        line: u64,
        /// What the system or the decompressor said.
        source: std::io::Error,
    },
    /// A line beyond the limit.
    #[error("{}:{line}: longer than {} MiB; is this a capture?", path.display(), MAX_LINE_BYTES >> 20)]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// A line that is no captured message.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// What is wrong, and what is expected.
        what: String,
    },
    /// No message in the whole file.
    #[error("{}: no message in it; expected lines like {{\"frames\":[\"topic\",\"seq\",\"payload\"]}} in hex", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A whole capture in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The ranks, ascending. Messages that name no rank are rank 0's.
    pub ranks: Vec<RankStream>,
}

/// The messages of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankStream {
    /// The rank.
    pub rank: u32,
    /// Its engine lives in order, none of them empty. A new one begins where the sequence does not
    /// go forward.
    pub lives: Vec<Vec<CaptureMessage>>,
}

impl RankStream {
    /// Messages of all lives.
    pub fn len(&self) -> usize {
        self.lives.iter().map(Vec::len).sum()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.lives.iter().all(Vec::is_empty)
    }

    fn push(&mut self, message: CaptureMessage) {
        let last = self.lives.last().and_then(|life| life.last()).map(|message| message.seq);
        let forward = last.is_some_and(|last| message.seq > last);
        match self.lives.last_mut() {
            Some(life) if forward => life.push(message),
            Some(_) | None => self.lives.push(vec![message]),
        }
    }
}

impl Capture {
    /// Reads `path` to its end.
    ///
    /// # Errors
    /// [`CaptureError`] at the first line that is no message, or when there is none at all.
    pub fn read(path: &Path) -> Result<Self, CaptureError> {
        let capture =
            Self::from_messages(CaptureReader::open(path)?.collect::<Result<Vec<_>, _>>()?);
        if capture.ranks.is_empty() {
            return Err(CaptureError::Empty { path: path.to_owned() });
        }
        Ok(capture)
    }

    /// Splits messages in order of arrival.
    pub fn from_messages(messages: impl IntoIterator<Item = CaptureMessage>) -> Self {
        let mut ranks = BTreeMap::new();
        for message in messages {
            let rank = message.rank.unwrap_or(0);
            ranks
                .entry(rank)
                .or_insert_with(|| RankStream { rank, lives: Vec::new() })
                .push(message);
        }
        Self { ranks: ranks.into_values().collect() }
    }

    /// Messages of all ranks.
    pub fn len(&self) -> usize {
        self.ranks.iter().map(RankStream::len).sum()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.ranks.iter().all(RankStream::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, rank: Option<u32>) -> CaptureMessage {
        let (topic, payload) = (Bytes::new(), Bytes::new());
        CaptureMessage { line: 0, t_ns: None, topic, seq, payload, rank }
    }

    #[test]
    fn ranks_and_lives_are_told_apart() {
        let stream = [
            (0, Some(1)),
            (0, None),
            (1, Some(1)),
            (1, Some(0)),
            (5, Some(1)),
            (0, Some(1)),
            (0, Some(1)),
            (9, Some(1)),
            (8, Some(1)),
        ];
        let capture = Capture::from_messages(stream.map(|(seq, rank)| message(seq, rank)));
        let shape: Vec<(u32, Vec<Vec<u64>>)> = capture
            .ranks
            .iter()
            .map(|r| (r.rank, r.lives.iter().map(|l| l.iter().map(|m| m.seq).collect()).collect()))
            .collect();
        assert_eq!(
            shape,
            [(0, vec![vec![0, 1]]), (1, vec![vec![0, 1, 5], vec![0], vec![0, 9], vec![8]])]
        );
        assert_eq!(capture.len(), 9);
    }
}
