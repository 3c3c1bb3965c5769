//! The `config` of a header: every key is optional and overrides its profile.

use super::number::U64;
use crate::membership::{Coordinator, EndpointName, MembershipPolicy, MembershipPolicyError};
use crate::router::{GapPolicy, Policy, PolicyError};
use crate::time::Micros;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A whole set of settings to start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    Reference,
    #[default]
    Hardened,
}

/// How one value stands in a trace.
trait Setting: Sized {
    type Field;
    fn field(&self) -> Self::Field;
    fn of(field: Self::Field) -> Self;
}

macro_rules! plain_setting {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            type Field = Self;
            fn field(&self) -> Self {
                *self
            }
            fn of(field: Self) -> Self {
                field
            }
        }
    )*};
}

plain_setting!(bool, u32);

impl Setting for U64 {
    type Field = u64;
    fn field(&self) -> u64 {
        self.0
    }
    fn of(field: u64) -> Self {
        Self(field)
    }
}

/// Whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span(U64);

impl Setting for Span {
    type Field = Micros;
    fn field(&self) -> Micros {
        Micros(self.0.0)
    }
    fn of(field: Micros) -> Self {
        Self(U64(field.0))
    }
}

/// A number of bytes or things; more than this machine can address is as much as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Size(U64);

impl Setting for Size {
    type Field = usize;
    fn field(&self) -> usize {
        usize::try_from(self.0.0).unwrap_or(usize::MAX)
    }
    fn of(field: usize) -> Self {
        Self(U64(field as u64))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Gap {
    ResetFirst,
    KeepServing,
}

impl Setting for Gap {
    type Field = GapPolicy;
    fn field(&self) -> GapPolicy {
        match self {
            Self::ResetFirst => GapPolicy::ResetFirst,
            Self::KeepServing => GapPolicy::KeepServing,
        }
    }
    fn of(field: GapPolicy) -> Self {
        match field {
            GapPolicy::ResetFirst => Self::ResetFirst,
            GapPolicy::KeepServing => Self::KeepServing,
        }
    }
}

macro_rules! config {
    (
        $(#[$doc:meta])*
        $name:ident of $policy:ident $({ $($extra:ident: $extra_type:ty,)* })?;
        $($key:ident: $type:ty => $field:ident,)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            #[serde(default)]
            profile: Profile,
            $($(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $extra: Option<$extra_type>,
            )*)?
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $key: Option<$type>,
            )*
        }

        /// The configuration that means a policy whatever the profiles' defaults are.
        impl From<&$policy> for $name {
            fn from(policy: &$policy) -> Self {
                let $policy { $($field,)* } = *policy;
                // Every key is given: the profile is of no consequence.
                let profile = if policy == &$policy::REFERENCE {
                    Profile::Reference
                } else {
                    Profile::Hardened
                };
                Self { profile, $($($extra: None,)*)? $($key: Some(<$type>::of($field)),)* }
            }
        }

        impl $name {
            fn unchecked(&self) -> $policy {
                let mut policy = match self.profile {
                    Profile::Reference => $policy::REFERENCE,
                    Profile::Hardened => $policy::HARDENED,
                };
                $(if let Some(value) = &self.$key {
                    policy.$field = value.field();
                })*
                policy
            }
        }
    };
}

config! {
    /// Configuration of the router machine.
    RouterConfig of Policy;
    seed: U64 => seed,
    jitter_max_us: Span => jitter_max,
    attempts: u32 => attempts,
    backoff_base_us: Span => backoff_base,
    attempt_timeout_us: Span => attempt_timeout,
    concurrency: u32 => concurrency,
    snapshot_concurrency: u32 => snapshot_concurrency,
    attempt_slice_us: Span => attempt_slice,
    recovery_budget_us: Span => recovery_budget,
    pending_limit: u32 => pending_events,
    pending_bytes: Size => pending_bytes,
    pending_bytes_total: Size => pending_bytes_total,
    rounds: u32 => rounds,
    heal_base_us: Span => heal_base,
    heal_max_us: Span => heal_max,
    probe_first_us: Span => probe_first,
    probe_max_us: Span => probe_max,
    repair_base_us: Span => repair_base,
    repair_max_us: Span => repair_max,
    cool_down_base_us: Span => cool_down_base,
    cool_down_max_us: Span => cool_down_max,
    self_heal: bool => self_heal,
    detect_restart: bool => detect_restart,
    check_tail: bool => check_tail,
    gap_policy: Gap => gap_policy,
    repair: bool => repair,
    reset_on_change: bool => reset_on_change,
    verify_life: bool => verify_life,
    fair_recovery: bool => fair_recovery,
    check_replies: bool => check_replies,
    check_transport: bool => check_transport,
    refetch_overflow: bool => refetch_overflow,
    forget_removed: bool => forget_removed,
    probation: bool => probation,
    check_boot: bool => check_boot,
    bounded_rounds: bool => bounded_rounds,
    split_domains: bool => split_domains,
    keep_on_failure: bool => keep_on_failure,
    optional_cursor: bool => optional_cursor,
    no_dark_state: bool => no_dark_state,
    heed_orphans: bool => heed_orphans,
}

impl RouterConfig {
    /// The policy it means.
    pub(super) fn policy(&self) -> Result<Policy, PolicyError> {
        self.unchecked().validated()
    }
}

config! {
    /// Configuration of the membership machine.
    MembershipConfig of MembershipPolicy {
        // The endpoint of workers that name none.
        serving_endpoint: String,
    };
    workers_max: Size => workers_max,
    ranks_max: Size => ranks_max,
    advertisements_max: Size => advertisements_max,
    advertisements_per_rank_max: Size => advertisements_per_rank_max,
    quarantine_max: Size => quarantine_max,
    idle_ranks_max: Size => idle_ranks_max,
    suspect_grace_us: Span => suspect_grace,
    suspect_discovery: bool => suspect_discovery,
    forget_idle: bool => forget_idle,
    check_boot: bool => check_boot,
    quarantine: bool => quarantine,
}

impl MembershipConfig {
    /// The coordinator it means.
    pub(super) fn coordinator(&self) -> Result<Coordinator, MembershipPolicyError> {
        let serving = self.serving_endpoint.as_deref().unwrap_or("serving");
        Coordinator::new(EndpointName::new(serving), self.unchecked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn read(text: &str) -> Result<Policy, String> {
        let config: RouterConfig = serde_json::from_str(text).map_err(|error| error.to_string())?;
        config.policy().map_err(|error| error.to_string())
    }

    #[test]
    fn keys_override_their_profile() {
        assert_eq!(read("{}"), Ok(Policy::HARDENED));
        assert_eq!(read(r#"{"profile":"hardened"}"#), Ok(Policy::HARDENED));
        assert_eq!(read(r#"{"profile":"reference"}"#), Ok(Policy::REFERENCE));
        let text = r#"{"profile":"reference","jitter_max_us":0,"pending_limit":4,
            "gap_policy":"keep_serving","self_heal":true,"seed":"0xffffffffffffffff"}"#;
        let expected = Policy {
            jitter_max: Micros(0),
            pending_events: 4,
            gap_policy: GapPolicy::KeepServing,
            self_heal: true,
            seed: u64::MAX,
            ..Policy::REFERENCE
        };
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn unknown_keys_and_useless_limits_are_refused() {
        let unknown = read(r#"{"jitter":1}"#).unwrap_err();
        assert!(unknown.contains("unknown field `jitter`"), "{unknown}");
        assert!(unknown.contains("`jitter_max_us`"), "{unknown}");
        assert!(read(r#"{"attempts":0}"#).unwrap_err().contains("attempts"));
        assert!(read(r#"{"profile":"other"}"#).is_err());
    }

    #[test]
    fn a_whole_configuration_means_its_policy() {
        for policy in [Policy::REFERENCE, Policy { rounds: 9, ..Policy::HARDENED }] {
            let text = serde_json::to_string(&RouterConfig::from(&policy)).unwrap();
            assert_eq!(read(&text), Ok(policy), "{text}");
        }
    }
}
