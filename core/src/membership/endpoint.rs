//! Endpoint names, and which of them the fleet's workers publish at.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

/// The name of a serving endpoint or of the endpoint that cache events are published at.
///
/// A name may have parts, joined by `/` (namespace, component, name): names are ordered part by
/// part. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EndpointName(Arc<str>);

impl EndpointName {
    /// Takes a name as it is.
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EndpointName {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl Ord for EndpointName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.split('/').cmp(other.0.split('/'))
    }
}

impl PartialOrd for EndpointName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where the fleet's cache events are published, by the words of all its workers (M2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// All agree.
    Resolved(EndpointName),
    /// They do not: these are named, ascending. No rank may be followed (M3).
    Ambiguous(Vec<EndpointName>),
}

impl Resolution {
    /// The one endpoint, if all agree.
    pub const fn endpoint(&self) -> Option<&EndpointName> {
        match self {
            Self::Resolved(endpoint) => Some(endpoint),
            Self::Ambiguous(_) => None,
        }
    }

    /// The stable snake_case name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Resolved(_) => "resolved",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}
