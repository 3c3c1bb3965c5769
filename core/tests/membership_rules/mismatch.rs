//! §4.2: how many ranks lack a source they should have.

use crate::rig::reference;
use kvmirror_core::membership::health::{
    Mismatch, MismatchScope, Requirement, mismatch_after_shutdown,
};

use Requirement::{CacheAwareRouting, ConditionalDecodeCache, NotRequired, Unknown};

const COUNTS: Mismatch = Mismatch { expected: 9, bad: 3, unmet: 5 };

#[test]
fn each_scope_reads_its_own_number() {
    for (scope, gauge, unsubscribed) in [
        // rule: 4.2/not-required
        (MismatchScope::Router(NotRequired), 0, 0),
        // rule: 4.2/generic
        (MismatchScope::Generic, 3, 9),
        (MismatchScope::Router(Unknown), 3, 9),
        // rule: 4.2/requires
        (MismatchScope::Router(CacheAwareRouting), 5, 9),
        (MismatchScope::Router(ConditionalDecodeCache), 5, 9),
    ] {
        assert_eq!(scope.gauge(COUNTS), gauge, "{scope:?}");
        // rule: 4.2/failure
        assert_eq!(scope.gauge_unsubscribed(COUNTS), unsubscribed, "{scope:?}");
    }
}

// rule: 4.2/shutdown
#[test]
fn only_a_cancellation_clears_the_gauge() {
    assert_eq!((mismatch_after_shutdown(4, true), mismatch_after_shutdown(4, false)), (0, 4));
}

// rule: 4.2/bad
#[test]
fn bad_ranks_are_counted_as_they_change() {
    let mut rig = reference("expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing");
    for (input, bad, unmet, why) in [
        ("lost", 2, 2, "missing"),
        ("ad 1 7/0", 1, 1, "live-only, recovery not expected"),
        ("expect 7:0+2~rec", 2, 2, "live-only, recovery expected"),
        ("ad 2 7/1 5", 1, 1, "recoverable"),
        ("expect 7:0+2~rec~off", 1, 2, "does not publish"),
        ("expect 7:0+2~off", 0, 2, "does not publish, but nothing is bad"),
        ("ad 3 7/1", 1, 2, "ambiguous"),
        ("expect 7:0+2~mute", 1, 1, "does not say whether it publishes"),
        ("expect 7:0+1", 0, 0, "the ambiguous one is not expected"),
        ("expect 7:0+1 8:0+1~kv", 2, 2, "ambiguous mapping"),
        ("expect", 0, 0, "nothing is expected"),
    ] {
        let _ = rig.feed(input);
        let got = rig.coordinator.view().mismatch();
        assert_eq!((got.bad, got.unmet), (bad, unmet), "{input}: {why}");
    }
}
