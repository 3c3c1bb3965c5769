//! Refusals, flaws, foreign words, damage.

use crate::rig::{asked, followed, live_only, recoverable};

#[test]
fn a_refused_admit_fences_and_heals() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        refuse -> now fenced = fenced(target_fault) @0
        live 2 -> - = fenced(target_fault) @0
        wait -> emptying, reset(lifecycle) = fenced(target_fault) @0
        live 3 -> discarded(inactive_publisher) = fenced(target_fault) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 2 3 -> admit 0+1+2+3 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @3
        ",
    );
}

#[test]
fn a_refused_reset_is_retried_ever_later() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        refuse -> now fenced = fenced(target_fault)
        wait -> emptying, reset(lifecycle) = fenced(target_fault)
        refuse -> - = fenced(target_fault)
        wait -> emptying, reset(lifecycle) = fenced(target_fault)
        refuse -> - = fenced(target_fault)
        wait -> emptying, reset(lifecycle) = fenced(target_fault)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_foreign_live_message_changes_nothing() {
    followed(
        0,
        "
        live 1 foreign -> discarded(foreign) = exact @0
        live 1 -> admit 1 = exact @0
        ok -> - = exact @1
        ",
    );
}

#[test]
fn a_foreign_reply_fences() {
    asked(
        "
        reply foreign -> recovered(corrupt), initial_told, emptying, now fenced, reset(corrupt) = fenced(resetting)
        live 0 -> - = fenced(resetting)
        wait -> - = fenced(resetting)
        ok -> now fenced = fenced(rejected)
        wait -> ask = fenced(rejected)
        reply 0 -> replace 0 = fenced(rejected)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_foreign_reply_waits_for_the_incomplete_admit() {
    followed(
        0,
        "
        wait -> ask 0 = exact @0
        live 1 -> admit 1 = exact @0
        reply foreign -> - = exact @0
        wait -> - = exact @0
        ok -> recovered(corrupt), emptying, now fenced, reset(corrupt) = fenced(resetting) @1
        ok -> now fenced = fenced(rejected)
        wait -> ask = fenced(rejected)
        reply 0 1 -> replace 0+1 = fenced(rejected)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}

#[test]
fn a_refusal_after_a_foreign_reply_fences_once() {
    followed(
        0,
        "
        wait -> ask 0 = exact @0
        live 1 -> admit 1 = exact @0
        reply foreign -> - = exact @0
        refuse -> now fenced = fenced(target_fault) @0
        wait -> emptying, reset(lifecycle) = fenced(target_fault) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 -> admit 0+1 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}

#[test]
fn damage_is_partial_until_a_clear() {
    followed(
        0,
        "
        live 1d -> admit 1 = exact @0
        ok -> now partial = partial(damaged) @1
        live 2 -> admit 2 = partial(damaged) @1
        ok -> - = partial(damaged) @2
        live 3c -> admit 3 = partial(damaged) @2
        ok -> now exact = exact @3
        live 4cd -> admit 4 = exact @3
        ok -> now partial = partial(damaged) @4
        ",
    );
}

#[test]
fn damage_is_partial_until_a_new_life() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0d -> admit 0 = partial(history_unknown)
        ok -> now partial = partial(damaged) @0
        live 0' -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @0
        ok -> initial_told, now partial, admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        ",
    );
}

#[test]
fn a_damaged_answer_is_partial() {
    asked(
        "
        reply 0 1d 2 -> admit 0+1+2 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now partial = partial(damaged) @2
        ",
    );
}

#[test]
fn an_orphan_is_partial_until_a_clear() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        orphan -> now partial = partial(orphan) @1
        live 2 -> admit 2 = partial(orphan) @1
        ok -> - = partial(orphan) @2
        live 3c -> admit 3 = partial(orphan) @2
        ok -> now exact = exact @3
        ",
    );
}

#[test]
fn a_full_target_is_partial_until_a_clear() {
    asked(
        "
        reply 0 -> admit 0 = partial(initial_recovery)
        full -> recovered(healed), initial_told, now partial = partial(capacity) @0
        live 1c -> admit 1 = partial(capacity) @0
        ok -> now exact = exact @1
        ",
    );
}

#[test]
fn a_flaw_of_a_partial_rank_changes_no_reason() {
    asked(
        "
        reply 5 -> admit 5 = partial(initial_recovery)
        ok -> recovered(restarted), initial_told, now partial = partial(history_unknown) @5
        live 6 -> admit 6 = partial(history_unknown) @5
        orphan -> - = partial(history_unknown) @6
        ",
    );
}
