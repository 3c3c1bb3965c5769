//! What is registered: requests, facts and results.

use super::domain::{DomainEvent, DomainId, DomainKey};
use super::name::InstanceName;
use crate::transport::Endpoint;
use core::num::NonZeroU32;
use kvmirror_core::id::{PublisherId, Rank, RankKey, WorkerId};
use kvmirror_core::index::Duplicates;
use kvmirror_core::wire::SourceIdentity;

/// The tenant of a registration or query that names none.
pub const DEFAULT_TENANT: &str = "default";

/// Which engine a source is said to be: a hint, the decoder recognises layouts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// vLLM, or an engine that publishes as it does.
    #[default]
    Vllm,
    /// SGLang.
    SgLang,
}

/// What a `type` text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedKind {
    /// An engine.
    Engine(EngineKind),
    /// A shared store (`Mooncake`): known, not supported, never a row.
    SharedStore,
}

impl EngineKind {
    /// The name as both APIs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::SgLang => "SGLang",
        }
    }

    /// Reads a `type` text, in any case.
    pub fn parse(text: &str) -> Option<ParsedKind> {
        if text.eq_ignore_ascii_case("mooncake") {
            return Some(ParsedKind::SharedStore);
        }
        [Self::Vllm, Self::SgLang]
            .into_iter()
            .find(|kind| text.eq_ignore_ascii_case(kind.name()))
            .map(ParsedKind::Engine)
    }
}

/// The text of a policy for repeated stores.
pub const fn duplicates_name(policy: Duplicates) -> &'static str {
    match policy {
        Duplicates::Counted => "counted",
        Duplicates::Set => "set",
    }
}

/// Reads the exact text of a policy for repeated stores.
pub fn parse_duplicates(text: &str) -> Option<Duplicates> {
    [Duplicates::Counted, Duplicates::Set]
        .into_iter()
        .find(|policy| duplicates_name(*policy) == text)
}

/// A wish to follow one rank of one instance (`http-api` §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Name of the instance; not empty.
    pub instance: InstanceName,
    /// The rank.
    pub rank: Rank,
    /// Live PUB address.
    pub endpoint: Endpoint,
    /// Where missed messages can be asked for.
    pub replay_endpoint: Option<Endpoint>,
    /// Subscription prefix; empty = everything the endpoint publishes.
    pub topic: String,
    /// Model name; not empty.
    pub model: String,
    /// Tenant; not empty.
    pub tenant: String,
    /// Additional salt; empty = none.
    pub salt: String,
    /// Tokens per block.
    pub block_size: NonZeroU32,
    /// The engine hint.
    pub kind: EngineKind,
    /// Adapter of stores that name none; empty = base model.
    pub lora: String,
    /// How repeated stores are read.
    pub duplicates: Duplicates,
    /// Whether tokens are hashed in pairs.
    pub eagle: bool,
    /// Placeholder token of images.
    pub image_token_id: Option<u32>,
    /// Placeholder token of videos.
    pub video_token_id: Option<u32>,
}

impl Registration {
    /// A registration with the required facts; everything else at its default.
    pub fn new(
        instance: InstanceName,
        endpoint: Endpoint,
        model: impl Into<String>,
        block_size: NonZeroU32,
    ) -> Self {
        Self {
            instance,
            rank: Rank(0),
            endpoint,
            replay_endpoint: None,
            topic: String::new(),
            model: model.into(),
            tenant: DEFAULT_TENANT.to_owned(),
            salt: String::new(),
            block_size,
            kind: EngineKind::default(),
            lora: String::new(),
            duplicates: Duplicates::default(),
            eagle: false,
            image_token_id: None,
            video_token_id: None,
        }
    }

    /// The index domain it belongs to.
    pub fn domain(&self) -> DomainKey {
        DomainKey {
            model: self.model.clone(),
            tenant: self.tenant.clone(),
            salt: self.salt.clone(),
            block_size: self.block_size,
            eagle: self.eagle,
            image_token_id: self.image_token_id,
            video_token_id: self.video_token_id,
        }
    }

    /// What a decoder must know of it.
    pub fn identity(&self) -> SourceIdentity {
        SourceIdentity {
            block_size: Some(self.block_size),
            eagle: Some(self.eagle),
            default_lora: self.lora.clone(),
            image_token_id: self.image_token_id,
            video_token_id: self.video_token_id,
        }
    }
}

/// A registered rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFacts {
    /// The instance's number.
    pub worker: WorkerId,
    /// This registration's publisher id; kept while it lasts, over any reconnects.
    pub publisher: PublisherId,
    /// The domain.
    pub domain: DomainId,
    /// What was registered.
    pub registration: Registration,
}

impl RankFacts {
    /// The routing identity.
    pub const fn key(&self) -> RankKey {
        RankKey { worker: self.worker, rank: self.registration.rank }
    }
}

/// The result of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// False for a repeat of what is already registered: nothing changed, nothing is to be done.
    pub new: bool,
    /// The instance's number.
    pub worker: WorkerId,
    /// The rank.
    pub rank: Rank,
    /// Its publisher id.
    pub publisher: PublisherId,
    /// Its domain.
    pub domain: DomainId,
    /// Set when the domain is new.
    pub opened: Option<DomainEvent>,
}

/// A wish to stop following (`http-api` §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unregistration {
    /// Name of the instance.
    pub instance: InstanceName,
    /// `None`: the instance's only tenant; refused when it has several.
    pub tenant: Option<String>,
    /// Must be the instance's model when given.
    pub model: Option<String>,
    /// `None`: every rank.
    pub rank: Option<Rank>,
}

/// The result of an unregistration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unregistered {
    /// What was removed, by ascending rank.
    pub removed: Vec<RankFacts>,
    /// Set when the domain of the removed ranks has no registration left.
    pub closed: Option<DomainEvent>,
}

/// Which workers to list; an absent field selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerFilter {
    /// Exact model.
    pub model: Option<String>,
    /// Exact tenant.
    pub tenant: Option<String>,
}
