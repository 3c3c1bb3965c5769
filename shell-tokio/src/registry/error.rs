//! Why the registry refuses.

use super::facts::Registration;
use super::name::InstanceName;
use kvmirror_core::id::Rank;
use thiserror::Error;

/// A refusal. `field` is the name a caller of the HTTP API knows the fact by.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// A text is empty or too long.
    #[error("{field} {problem}")]
    Invalid {
        /// The fact.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The rank is registered with other facts: unregister it first.
    #[error("instance {instance} dp_rank {rank} is registered with another {field}")]
    RankConflict {
        /// The instance.
        instance: InstanceName,
        /// The rank.
        rank: Rank,
        /// The first fact that differs.
        field: &'static str,
    },
    /// The instance is in another domain of its tenant: unregister all its ranks first.
    #[error("instance {instance} of tenant {tenant} is registered with another {field}")]
    DomainConflict {
        /// The instance.
        instance: InstanceName,
        /// Its tenant.
        tenant: String,
        /// The first fact that differs.
        field: &'static str,
    },
    /// The name exists in several tenants and none was named.
    #[error("instance {instance} exists in {tenants} tenants")]
    SeveralTenants {
        /// The instance.
        instance: InstanceName,
        /// In how many.
        tenants: usize,
    },
    /// No such registration.
    #[error("{}", not_found(instance, *rank))]
    NotFound {
        /// The instance.
        instance: InstanceName,
        /// The rank, when one was named.
        rank: Option<Rank>,
    },
    /// The limit of registrations is reached.
    #[error("the limit of {limit} registrations is reached")]
    Full {
        /// The limit.
        limit: u32,
    },
    /// The generator of publisher ids repeats itself.
    #[error("no fresh publisher id could be drawn")]
    NoPublisherId,
}

fn not_found(instance: &InstanceName, rank: Option<Rank>) -> String {
    match rank {
        Some(rank) => format!("instance {instance} dp_rank {rank} not found"),
        None => format!("instance {instance} not found"),
    }
}

/// The first fact of a rank in which `new` differs from `old`.
pub(super) fn difference(old: &Registration, new: &Registration) -> Option<&'static str> {
    domain_difference(old, new).or_else(|| {
        [
            ("endpoint", old.endpoint != new.endpoint),
            ("replay_endpoint", old.replay_endpoint != new.replay_endpoint),
            ("type", old.kind != new.kind),
            ("lora_name", old.lora != new.lora),
            ("duplicates", old.duplicates != new.duplicates),
            ("topic", old.topic != new.topic),
        ]
        .into_iter()
        .find_map(|(field, differs)| differs.then_some(field))
    })
}

/// The first fact of a domain in which `new` differs from `old`; the tenant is the same already.
pub(super) fn domain_difference(old: &Registration, new: &Registration) -> Option<&'static str> {
    [
        ("model_name", old.model != new.model),
        ("block_size", old.block_size != new.block_size),
        ("additional_salt", old.salt != new.salt),
        ("eagle", old.eagle != new.eagle),
        ("image_token_id", old.image_token_id != new.image_token_id),
        ("video_token_id", old.video_token_id != new.video_token_id),
    ]
    .into_iter()
    .find_map(|(field, differs)| differs.then_some(field))
}
