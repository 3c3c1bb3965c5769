//! Writes a mirror's recording to a file, beside the loop.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces of text that may wait for the disk.
const WAITING: usize = 64;

/// What is recorded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// The file. It must not exist yet.
    pub path: PathBuf,
    /// Bytes after which the recording ends; the service goes on.
    pub max_bytes: u64,
    /// Write what messages say, not only their sizes and digests. They hold prompts' token ids.
    pub payloads: bool,
}

/// The file of a recording cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot record to {path}: {source}; name a file that does not exist in a directory that does"
)]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

/// A recording in progress.
#[derive(Debug)]
pub(crate) struct Recording {
    lines: mpsc::Sender<String>,
    writer: JoinHandle<()>,
}

impl Recording {
    /// Makes the file. Must be called within a tokio runtime.
    pub(crate) fn start(options: &RecordOptions) -> Result<Self, RecordError> {
        let path = options.path.clone();
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|source| RecordError { path: path.clone(), source })?;
        let (lines, taken) = mpsc::channel(WAITING);
        let max_bytes = options.max_bytes;
        let writer = tokio::task::spawn_blocking(move || write(file, &path, max_bytes, taken));
        Ok(Self { lines, writer })
    }

    /// Whether the disk keeps up. Text waits in the mirror meanwhile, within its own limit.
    pub(crate) fn has_room(&self) -> bool {
        self.lines.capacity() > 0
    }

    /// Hands whole lines over. After the file's limit, or a failed write, they go nowhere.
    pub(crate) fn write(&self, lines: String) {
        // The writer says why it has ended.
        let _ = self.lines.try_send(lines);
    }

    /// Waits until everything has been written.
    pub(crate) async fn finish(self, rest: String) {
        let _ = self.lines.send(rest).await;
        drop(self.lines);
        if let Err(error) = self.writer.await {
            tracing::error!(%error, "the recording's writer panicked");
        }
    }
}

fn write(file: File, path: &Path, max_bytes: u64, mut lines: mpsc::Receiver<String>) {
    let mut file = BufWriter::new(file);
    let mut written = 0_u64;
    while let Some(text) = lines.blocking_recv() {
        written = written.saturating_add(text.len() as u64);
        let full = written > max_bytes;
        let text = if full { "# the recording ends here: the file has its limit\n" } else { &text };
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.flush()) {
            tracing::error!(path = %path.display(), %error, "recording ended: cannot write");
            return;
        }
        if full {
            tracing::warn!(path = %path.display(), max_bytes, "recording ended: its limit is reached");
            return;
        }
    }
}
