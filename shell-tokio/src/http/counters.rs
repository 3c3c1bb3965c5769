//! Counts of answers by path and status code.

use crate::metrics::{Kind, Writer};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const PATHS: [&str; 7] =
    ["/register", "/unregister", "/query", "/query_by_hash", "/workers", "/health", "/metrics"];

/// The label of a request path. Paths that do not exist share one, so that no client can make the
/// set of series grow.
pub(crate) fn known_path(path: &str) -> &'static str {
    PATHS.into_iter().find(|known| *known == path).unwrap_or("other")
}

/// `kvmirror_http_requests_total`. Bounded by known paths × status codes.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Counters {
    pub(crate) fn count(&self, path: &'static str, code: u16) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((path, code)).or_default() += 1;
    }

    pub(crate) fn render(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut writer = Writer::default();
        writer.family(
            "kvmirror_http_requests_total",
            Kind::Counter,
            "Answered HTTP requests by path and status code.",
        );
        for ((path, code), count) in counts {
            writer.sample(&[("path", path), ("code", &code.to_string())], count);
        }
        writer.finish()
    }
}
