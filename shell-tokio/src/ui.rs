//! Progress for people: one line that is rewritten on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};

/// Writes messages and progress to one stream. Errors of the stream are ignored: a closed pipe must
/// not stop the work that is being reported on.
#[derive(Debug)]
pub struct Ui<W> {
    out: W,
    terminal: bool,
    /// Width of the progress line that is on the terminal now.
    shown: usize,
}

impl Ui<io::Stderr> {
    /// To standard error.
    pub fn stderr() -> Self {
        let out = io::stderr();
        let terminal = out.is_terminal();
        Self { out, terminal, shown: 0 }
    }
}

impl<W: Write> Ui<W> {
    /// To `out`, as if it were a terminal or not.
    pub const fn new(out: W, terminal: bool) -> Self {
        Self { out, terminal, shown: 0 }
    }

    /// Whether progress is rewritten in place.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line that stays.
    pub fn line(&mut self, text: &str) {
        self.wipe();
        let _ = writeln!(self.out, "{text}");
        let _ = self.out.flush();
    }

    /// The current state: replaces the previous one on a terminal, is a line elsewhere.
    pub fn progress(&mut self, text: &str) {
        if !self.terminal {
            return self.line(text);
        }
        self.wipe();
        let _ = write!(self.out, "{text}");
        let _ = self.out.flush();
        self.shown = text.chars().count();
    }

    /// The stream, with any progress line wiped.
    pub fn into_inner(mut self) -> W {
        self.wipe();
        self.out
    }

    fn wipe(&mut self) {
        if self.shown > 0 {
            let _ = write!(self.out, "\r{:width$}\r", "", width = self.shown);
            self.shown = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_rewrites_and_a_pipe_gets_lines() {
        let mut tty = Ui::new(Vec::new(), true);
        tty.progress("1/2");
        tty.progress("2/2");
        tty.line("done");
        assert_eq!(tty.into_inner(), b"1/2\r   \r2/2\r   \rdone\n");
        let mut pipe = Ui::new(Vec::new(), false);
        pipe.progress("1/2");
        pipe.line("done");
        assert_eq!(pipe.into_inner(), b"1/2\ndone\n");
    }
}
