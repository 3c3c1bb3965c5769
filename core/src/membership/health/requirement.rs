//! Whether a router needs cache-event sources at all (§4.1).

/// What the workers of a router do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerRole {
    /// Prefill only.
    Prefill,
    /// Decode only.
    Decode,
    /// Prefill and decode.
    Aggregated,
    /// Encoding of multimodal inputs.
    Encode,
    /// Not known.
    Unknown,
}

/// What decides about a router's need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouterSetup {
    /// What its workers do.
    pub role: WorkerRole,
    /// An indexer elsewhere follows the sources.
    pub remote_indexer: bool,
    /// The router subscribes to cache events.
    pub subscribed: bool,
    /// Disaggregation is decided per request.
    pub conditional_disaggregation: bool,
}

/// What a router needs cache-event sources for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// Nothing.
    NotRequired,
    /// To route by cached prefixes.
    CacheAwareRouting,
    /// To decide whether a decode worker already holds enough.
    ConditionalDecodeCache,
    /// Not known, since the workers' role is not.
    Unknown,
}

impl Requirement {
    /// The stable snake_case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotRequired => "not_required",
            Self::CacheAwareRouting => "cache_aware_routing",
            Self::ConditionalDecodeCache => "conditional_decode_cache",
            Self::Unknown => "unknown",
        }
    }

    /// Whether every rank should have a source.
    pub const fn requires_source(self) -> bool {
        match self {
            Self::CacheAwareRouting | Self::ConditionalDecodeCache => true,
            Self::NotRequired | Self::Unknown => false,
        }
    }
}

impl RouterSetup {
    /// The table of §4.1. An unknown role is looked at first.
    pub const fn requirement(self) -> Requirement {
        let events = self.subscribed && !self.remote_indexer;
        match (self.role, events) {
            (WorkerRole::Unknown, _) => Requirement::Unknown,
            (WorkerRole::Prefill | WorkerRole::Aggregated, true) => Requirement::CacheAwareRouting,
            (WorkerRole::Decode, true) if self.conditional_disaggregation => {
                Requirement::ConditionalDecodeCache
            }
            (WorkerRole::Decode | WorkerRole::Encode, true)
            | (
                WorkerRole::Prefill
                | WorkerRole::Decode
                | WorkerRole::Aggregated
                | WorkerRole::Encode,
                false,
            ) => Requirement::NotRequired,
        }
    }
}
