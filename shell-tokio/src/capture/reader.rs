//! Line by line, in bounded memory.

use super::rank::RankReader;
use super::{CaptureError, CaptureMessage, line};
use flate2::bufread::MultiGzDecoder;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line, after decompression.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// The first two bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a file for reading its text. Whether it is compressed is read from its first bytes, not from
/// its name.
pub(crate) fn open_plain_or_gzip(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut input = BufReader::new(File::open(path)?);
    if input.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::with_capacity(64 << 10, MultiGzDecoder::new(input))));
    }
    Ok(Box::new(input))
}

/// The messages of a capture file in order. Stops after the first error.
pub struct CaptureReader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: u64,
    buffer: Vec<u8>,
    /// Messages of a line that holds more than one.
    ready: VecDeque<CaptureMessage>,
    ranks: RankReader,
    ended: bool,
}

impl std::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureReader")
            .field("path", &self.path)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl CaptureReader {
    /// Opens a capture. Whether it is compressed is read from its first bytes, not from its name.
    ///
    /// # Errors
    /// When the file cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let input = open_plain_or_gzip(path)
            .map_err(|source| CaptureError::Open { path: path.to_owned(), source })?;
        Ok(Self::new(path.to_owned(), input))
    }

    /// Reads uncompressed lines from anywhere; `path` is for messages.
    pub fn new(path: PathBuf, input: Box<dyn BufRead + Send>) -> Self {
        let (buffer, ready) = (Vec::new(), VecDeque::new());
        let ranks = RankReader::new();
        Self { path, input, line: 0, buffer, ready, ranks, ended: false }
    }

    /// Reads the next line into the buffer; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, CaptureError> {
        self.buffer.clear();
        self.line += 1;
        let limit = MAX_LINE_BYTES as u64 + 1;
        let read = (&mut self.input).take(limit).read_until(b'\n', &mut self.buffer);
        match read {
            Ok(0) => Ok(false),
            Ok(_) if self.buffer.len() > MAX_LINE_BYTES => {
                Err(CaptureError::LineTooLong { path: self.path.clone(), line: self.line })
            }
            Ok(_) => Ok(true),
            Err(source) => Err(self.read_error(source)),
        }
    }

    fn read_error(&self, source: io::Error) -> CaptureError {
        CaptureError::Read { path: self.path.clone(), line: self.line, source }
    }

    fn advance(&mut self) -> Result<Option<CaptureMessage>, CaptureError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            if !self.next_line()? {
                return Ok(None);
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            line::parse(&self.buffer, self.line, &mut self.ranks, &mut self.ready).map_err(
                |what| CaptureError::Line { path: self.path.clone(), line: self.line, what },
            )?;
        }
    }
}

impl Iterator for CaptureReader {
    type Item = Result<CaptureMessage, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.advance().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn reader(text: &str) -> CaptureReader {
        let input = io::Cursor::new(text.as_bytes().to_vec());
        CaptureReader::new("test.jsonl".into(), Box::new(input))
    }

    const GOOD: &str = r#"{"frames":["6b76","0000000000000001","90"]}"#;

    #[test]
    fn errors_name_file_and_line_and_end_the_reading() {
        let mut lines = reader(&format!("{GOOD}\n\n{GOOD}\noops\n{GOOD}\n"));
        assert_eq!(lines.next().unwrap().unwrap().line, 1);
        assert_eq!(lines.next().unwrap().unwrap().line, 3);
        let error = lines.next().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("test.jsonl:4: not a captured message"), "{error}");
        assert!(lines.next().is_none());
    }

    #[test]
    fn an_endless_line_is_cut_off() {
        let endless = BufReader::new(io::repeat(b'x'));
        let mut lines = CaptureReader::new("endless".into(), Box::new(endless));
        let error = lines.next().unwrap().unwrap_err();
        assert!(matches!(error, CaptureError::LineTooLong { line: 1, .. }), "{error}");
        assert!(lines.next().is_none());
    }

    #[test]
    fn gzip_is_known_by_its_bytes_and_a_cut_file_is_an_error() {
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..100 {
            writeln!(zip, "{GOOD}").unwrap();
        }
        let zipped = zip.finish().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("no-gz-in-the-name");
        std::fs::write(&path, &zipped).unwrap();
        assert_eq!(CaptureReader::open(&path).unwrap().filter(Result::is_ok).count(), 100);
        std::fs::write(&path, &zipped[..zipped.len() / 2]).unwrap();
        let last = CaptureReader::open(&path).unwrap().last().unwrap();
        assert!(last.is_err(), "{last:?}");
    }
}
