//! What waits is bounded by count and by bytes (B13); what was dropped is fetched again.

use crate::rig::{Rig, table};
use kvmirror_core::router::{DiscardReason, Policy};

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
        reply 0 -> recovered(healed), initial_told, admit 0 = partial(initial_recovery)
        ok -> now exact = exact @0
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        live 3 -> - = catching_up(gap) @0
        live 4 -> - = catching_up(gap) @0
        reply 0 1 -> recovered(healed), admit 1 = catching_up(gap) @0
        ok -> ask 1 = catching_up(gap) @1
        reply 1 2 3 4 -> recovered(healed), now exact, admit 2+3+4 = exact @1
        ok -> - = exact @4
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
        reply 0 1 2 -> recovered(healed), initial_told, admit 0+1+2 = partial(initial_recovery)
        ok -> now exact = exact @2
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
    let micros = kvmirror_core::time::Micros(0);
    let zeroed: [(&str, fn(&mut Policy, kvmirror_core::time::Micros)); 7] = [
        ("heal_max", |policy, zero| policy.heal_max = zero),
        ("probe_max", |policy, zero| policy.probe_max = zero),
        ("repair_max", |policy, zero| policy.repair_max = zero),
        ("backoff_base", |policy, zero| policy.backoff_base = zero),
        ("heal_base", |policy, zero| policy.heal_base = zero),
        ("probe_first", |policy, zero| policy.probe_first = zero),
        ("repair_base", |policy, zero| policy.repair_base = zero),
    ];
    for (name, zero) in zeroed {
        let mut policy = Policy::default();
        zero(&mut policy, micros);
        assert_eq!(policy.validated().expect_err(name).name, name);
    }
}
