//! Whom a case is about: the two profiles, or any set of improvements; and its limits.

use kvmirror_core::router::{GapPolicy, Policy};
use kvmirror_core::time::Micros;
use proptest::prelude::*;

/// What may be expected of a machine (`Policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// S3 to S8; S1 and S2 as far as the reference design keeps them.
    Reference,
    /// Everything.
    Hardened,
    /// Any improvements: S3 to S8.
    Subset,
}

fn improvements(policy: &mut Policy, on: u32) {
    let knobs = [
        &mut policy.self_heal,
        &mut policy.detect_restart,
        &mut policy.check_tail,
        &mut policy.repair,
        &mut policy.reset_on_change,
        &mut policy.verify_life,
        &mut policy.fair_recovery,
        &mut policy.check_replies,
        &mut policy.check_transport,
        &mut policy.refetch_overflow,
        &mut policy.forget_removed,
        &mut policy.probation,
        &mut policy.check_boot,
        &mut policy.bounded_rounds,
        &mut policy.split_domains,
        &mut policy.keep_on_failure,
        &mut policy.optional_cursor,
        &mut policy.no_dark_state,
        &mut policy.heed_orphans,
    ];
    for (knob, bit) in knobs.into_iter().zip(0..) {
        *knob = on & (1 << bit) != 0;
    }
    policy.gap_policy =
        if on & (1 << 31) != 0 { GapPolicy::KeepServing } else { GapPolicy::ResetFirst };
}

/// A policy of `profile` with small limits, so that every one of them is met.
pub(crate) fn policy(profile: Profile) -> impl Strategy<Value = Policy> {
    let on = any::<u32>();
    let limits = (2u32..4, 1u32..4, 1u32..3, 1u32..4);
    // One message always fits.
    let pending = (5u32..14, 50usize..200, 60usize..300);
    let jitter = prop_oneof![Just(Micros(0)), Just(Micros::from_millis(3))];
    (any::<u64>(), on, limits, pending, jitter).prop_map(
        move |(seed, on, limits, pending, jitter_max)| {
            let (attempts, concurrency, snapshot_concurrency, rounds) = limits;
            let (pending_events, pending_bytes, pending_bytes_total) = pending;
            let base = match profile {
                Profile::Reference | Profile::Subset => Policy::REFERENCE,
                Profile::Hardened => Policy::HARDENED,
            };
            let mut policy = Policy {
                seed,
                attempts,
                concurrency,
                snapshot_concurrency,
                rounds,
                jitter_max,
                pending_events,
                pending_bytes,
                pending_bytes_total,
                probe_max: Micros::from_secs(60),
                repair_base: Micros::from_secs(5),
                repair_max: Micros::from_secs(40),
                cool_down_max: Micros::from_secs(40),
                ..base
            };
            if profile == Profile::Subset {
                improvements(&mut policy, on);
            }
            policy
        },
    )
}
