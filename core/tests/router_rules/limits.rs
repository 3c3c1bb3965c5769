//! What waits is bounded by count and by bytes (B13); what was dropped is fetched again.

use crate::rig::{Rig, table};
use kvmirror_core::router::{DiscardReason, Policy};
use kvmirror_core::time::Micros;

fn over_limit(rig: &Rig) -> u64 {
    rig.router.stats().discarded(DiscardReason::OverLimit)
}

#[test]
fn more_messages_than_the_limit_are_fetched_again() {
    let policy = Policy { pending_events: 2, ..Policy::default() };
    let rig = table(
        true,
        policy,
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        live 3 -> - = catching_up(gap) @0
        live 4 -> - = catching_up(gap) @0
        reply 0 1 -> admit 1 = catching_up(gap) @0
        ok -> recovered(healed), gap 2..4, ask 1 = catching_up(gap) @1
        reply 1 2 3 4 -> admit 2+3+4 = catching_up(gap) @1
        ok -> recovered(healed), now exact = exact @4
        ",
    );
    assert_eq!(over_limit(&rig), 3);
}

#[test]
fn more_bytes_than_the_limit_are_fetched_again() {
    let policy = Policy { pending_bytes: 25, ..Policy::default() };
    let rig = table(
        true,
        policy,
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        live 0 -> - = partial(initial_recovery)
        live 1 -> - = partial(initial_recovery)
        live 2 -> - = partial(initial_recovery)
        reply 0 1 2 -> admit 0+1+2 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @2
        ",
    );
    assert_eq!(over_limit(&rig), 3);
}

/// L2: removals among the dropped messages would leave blocks that the worker no longer holds.
#[test]
fn a_live_only_source_over_the_limit_is_reset() {
    let policy = Policy { pending_events: 2, ..Policy::default() };
    let rig = table(
        false,
        policy,
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        live 1 -> - = partial(history_unknown)
        live 2 -> - = partial(history_unknown)
        live 3 -> - = partial(history_unknown)
        ok -> emptying, now fenced, reset(hole) = fenced(resetting) @0
        ok -> initial_told, now partial = partial(history_unknown)
        live 4 -> gap 0..4, admit 4 = partial(history_unknown)
        ok -> - = partial(history_unknown) @4
        ",
    );
    assert_eq!(over_limit(&rig), 3);
}

#[test]
fn a_limit_of_zero_is_refused_by_name() {
    let (good, zero) = (Policy::default(), Micros(0));
    for (name, policy) in [
        ("heal_max", Policy { heal_max: zero, ..good }),
        ("probe_max", Policy { probe_max: zero, ..good }),
        ("repair_max", Policy { repair_max: zero, ..good }),
        ("backoff_base", Policy { backoff_base: zero, ..good }),
        ("heal_base", Policy { heal_base: zero, ..good }),
        ("probe_first", Policy { probe_first: zero, ..good }),
        ("repair_base", Policy { repair_base: zero, ..good }),
        ("attempt_timeout", Policy { attempt_timeout: zero, ..good }),
        ("concurrency", Policy { concurrency: 0, ..good }),
    ] {
        assert_eq!(policy.validated().expect_err(name).name, name);
    }
}
