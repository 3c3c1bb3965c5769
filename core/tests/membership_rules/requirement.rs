//! §4.1: whether a router needs sources.

use kvmirror_core::membership::health::{Requirement, RouterSetup, WorkerRole};

use Requirement::{CacheAwareRouting, ConditionalDecodeCache, NotRequired, Unknown};
use WorkerRole::{Aggregated, Decode, Encode, Prefill};

fn class(role: WorkerRole, conditional: bool, remote: bool, subscribed: bool) -> Requirement {
    RouterSetup {
        role,
        remote_indexer: remote,
        subscribed,
        conditional_disaggregation: conditional,
    }
    .requirement()
}

#[test]
fn every_role_and_setup() {
    for conditional in [false, true] {
        for (remote, subscribed) in [(false, false), (true, false), (true, true)] {
            // rule: 4.1/1
            for role in [Prefill, Decode, Aggregated, Encode] {
                assert_eq!(class(role, conditional, remote, subscribed), NotRequired, "{role:?}");
            }
        }
        // rule: 4.1/2
        for role in [Prefill, Aggregated] {
            assert_eq!(class(role, conditional, false, true), CacheAwareRouting, "{role:?}");
        }
        // rule: 4.1/4
        assert_eq!(class(Encode, conditional, false, true), NotRequired);
        // rule: 4.1/5
        for (remote, subscribed) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(class(WorkerRole::Unknown, conditional, remote, subscribed), Unknown);
        }
    }
    // rule: 4.1/3
    assert_eq!(class(Decode, true, false, true), ConditionalDecodeCache);
    // rule: 4.1/4
    assert_eq!(class(Decode, false, false, true), NotRequired);
}

#[test]
fn names_and_who_requires_a_source() {
    for (requirement, name, requires) in [
        (NotRequired, "not_required", false),
        (CacheAwareRouting, "cache_aware_routing", true),
        (ConditionalDecodeCache, "conditional_decode_cache", true),
        (Unknown, "unknown", false),
    ] {
        assert_eq!((requirement.name(), requirement.requires_source()), (name, requires));
    }
}
