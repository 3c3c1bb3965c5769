//! Why a trace cannot be replayed, and where it differs from what was expected.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A line that cannot be understood, or that asks for something that cannot be done. As a text it
/// begins with the line's number, so that a file's name and a colon before it make a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// The first place where a machine did not do what a trace expects. As a text it begins with the
/// line's number, as that of a [`TraceError`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The line that is not met; that of the step's input for what no line expects.
    pub line: usize,
    /// What differs.
    pub message: String,
    /// The line as it stands; `None` when no line expects what came.
    pub expected: Option<String>,
    /// What came, as a line; `None` when nothing came.
    pub got: Option<String>,
    /// The last steps up to here, oldest first: inputs as they stand, then what came of them. Long
    /// lines are cut.
    pub recent: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.line, self.message)?;
        writeln!(f, "  expected  {}", self.expected.as_deref().unwrap_or("nothing"))?;
        write!(f, "  got       {}", self.got.as_deref().unwrap_or("nothing"))?;
        if !self.recent.is_empty() {
            write!(f, "\n  the last steps:")?;
            for line in &self.recent {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

/// Why a replay ended before its trace did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayFailure {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The machine did something else.
    #[error("{0}")]
    Mismatch(alloc::boxed::Box<Mismatch>),
}
