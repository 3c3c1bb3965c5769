//! Changes of membership at any moment.

use crate::rig::{asked, followed, recoverable};

#[test]
fn a_removed_rank_is_emptied_and_forgotten() {
    followed(
        0,
        "
        gone -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        ok -> now missing = none
        ",
    );
}

#[test]
fn removed_while_recovering() {
    asked(
        "
        gone -> initial_told, now missing, cancel = none
        ok -> - = none
        again reply 0 -> - = none
        ",
    );
}

#[test]
fn removed_in_the_first_jitter() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        gone -> initial_told, now missing = none
        ",
    );
}

#[test]
fn removed_while_admitting() {
    asked(
        "
        reply 0 -> admit 0 = partial(initial_recovery)
        gone -> initial_told, now missing = missing(no_source)
        ok -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        ok -> now missing = none
        ",
    );
}

#[test]
fn removed_while_fenced() {
    asked(
        "
        reply 0 -> admit 0 = partial(initial_recovery)
        refuse -> recovered(failed), initial_told, now fenced = fenced(target_fault)
        gone -> emptying, reset(lifecycle) = fenced(target_fault)
        ok -> now missing = none
        ",
    );
}

#[test]
fn removed_during_a_reset() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        gone -> - = fenced(resetting)
        ok -> now missing = none
        ",
    );
}

#[test]
fn another_generation_resets() {
    followed(
        0,
        "
        up g1 -> emptying, now fenced, reset(lifecycle e1) = fenced(resetting) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn another_publisher_resets() {
    followed(
        0,
        "
        up p2 -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), initial_told, now exact = exact
        live 0' -> admit 0 = exact
        ok -> - = exact @0
        ",
    );
}

#[test]
fn one_reset_serves_a_flapping_membership() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        up p2 -> - = fenced(resetting)
        up p3 -> - = fenced(resetting)
        missing -> - = fenced(resetting)
        up p4 -> - = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn flapping_while_an_admit_is_incomplete() {
    asked(
        "
        reply 0 -> admit 0 = partial(initial_recovery)
        up p2 -> initial_told, now fenced = fenced(resetting)
        missing -> now missing = missing(no_source)
        up p3 -> now fenced = fenced(resetting)
        live 0' -> discarded(inactive_publisher) = fenced(resetting)
        ok -> emptying, reset(lifecycle) = fenced(resetting) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn an_ambiguous_rank_is_emptied() {
    followed(
        0,
        "
        ambiguous -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        live 1 -> discarded(inactive_publisher) = fenced(resetting) @0
        ok -> now ambiguous = ambiguous(ambiguous)
        up -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 -> admit 0+1 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}

#[test]
fn a_failed_clean_up_is_retried() {
    followed(
        0,
        "
        gone -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        refuse -> now fenced = fenced(target_fault) @0
        wait -> emptying, reset(lifecycle) = fenced(target_fault) @0
        ok -> now missing = none
        ",
    );
}

#[test]
fn shutdown_empties_and_ends() {
    followed(
        0,
        "
        shutdown -> emptying, now fenced, reset(lifecycle) = fenced(resetting) @0
        up -> - = fenced(resetting) @0
        live 1 -> - = fenced(resetting) @0
        ok -> now missing = none
        up -> - = none
        ",
    );
}

/// What waits behind a command when the machine ends has its turn, but nothing is asked for it.
#[test]
fn a_gap_that_waits_at_shutdown_is_not_asked_for() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        live 5 -> - = exact @0
        shutdown -> - = exact @0
        ok -> gap 2..5, emptying, now fenced, reset(lifecycle) = fenced(resetting) @1
        ok -> now missing = none
        ",
    );
}
