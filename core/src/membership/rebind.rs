//! When the discovery stream is bound again (M12).

use crate::time::{Micros, Timestamp};

/// Wait before the first retry.
const FIRST: Micros = Micros::from_millis(100);
/// Longest wait.
const LONGEST: Micros = Micros::from_secs(5);

/// Keeps the waits of whoever binds the discovery stream of the resolved endpoint.
///
/// The wait is 100 ms, doubles with each retry up to 5 s, and is 100 ms again after a success. While
/// no endpoint is resolved nothing is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rebind {
    resolved: bool,
    wait: Micros,
    due: Option<Timestamp>,
}

impl Rebind {
    /// At the start, with the endpoint resolved or not: if it is, a bind is due at once.
    pub fn new(resolved: bool, now: Timestamp) -> Self {
        Self { resolved, wait: FIRST, due: resolved.then_some(now) }
    }

    /// When to bind; `None` while a stream is bound, or no endpoint is resolved.
    pub const fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// The endpoint is another one, or none. The old stream is closed; the coordinator has published
    /// the view without its advertisements before this (M13).
    pub fn endpoint_changed(&mut self, resolved: bool, now: Timestamp) {
        self.resolved = resolved;
        self.due = resolved.then_some(now);
    }

    /// A stream is bound.
    pub const fn bound(&mut self) {
        self.wait = FIRST;
        self.due = None;
    }

    /// Binding failed, or the bound stream failed or ended.
    pub fn failed(&mut self, now: Timestamp) {
        if self.resolved {
            self.due = Some(now.after(self.wait));
            self.wait = self.wait.doubled(1).min(LONGEST);
        }
    }
}
