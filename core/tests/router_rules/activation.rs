//! What happens between a membership change and the first recovery's end.

use crate::rig::{live_only, recoverable};

#[test]
fn the_target_is_emptied_before_anything_is_asked_or_admitted() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        live 0 -> discarded(inactive_publisher) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_full_history_is_exact() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 2 -> admit 0+1+2 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @2
        live 3 -> admit 3 = exact @2
        ok -> - = exact @3
        ",
    );
}

#[test]
fn a_ring_that_begins_later_is_partial() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 5 6 -> admit 5+6 = partial(initial_recovery)
        ok -> recovered(restarted), initial_told, now partial = partial(history_unknown) @6
        live 7 -> admit 7 = partial(history_unknown) @6
        ok -> - = partial(history_unknown) @7
        ",
    );
}

#[test]
fn a_clear_inside_a_late_ring_is_a_beginning() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 5 6c 7 -> admit 6+7 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @7
        ",
    );
}

#[test]
fn an_empty_answer_is_an_empty_engine() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), initial_told, now exact = exact
        live 0 -> admit 0 = exact
        ok -> - = exact @0
        ",
    );
}

#[test]
fn live_messages_wait_for_the_first_answer() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        live 2 -> - = partial(initial_recovery)
        live 3 -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 2 -> admit 0+1+2+3 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @3
        ok -> - = exact @3
        ",
    );
}

#[test]
fn a_clear_supersedes_the_first_recovery() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        live 7c -> initial_told, recovered(superseded), cancel, admit 7 = partial(initial_recovery)
        ok -> now exact = exact @7
        again reply 0 1 -> - = exact @7
        ",
    );
}

#[test]
fn a_clear_ends_the_jitter_too() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        live 7c -> initial_told, recovered(superseded), admit 7 = partial(initial_recovery)
        ok -> now exact = exact @7
        ",
    );
}

#[test]
fn a_live_only_source_begins_with_its_first_id() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        live 1 -> admit 1 = exact @0
        ok -> - = exact @1
        ",
    );
}

#[test]
fn a_live_only_source_that_is_joined_late_is_partial() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 37 -> gap 0..37, admit 37 = partial(history_unknown)
        ok -> - = partial(history_unknown) @37
        live 38c -> admit 38 = partial(history_unknown) @37
        ok -> now exact = exact @38
        ",
    );
}

#[test]
fn a_missing_source_is_followed_once_it_is_there() {
    recoverable(
        "
        missing -> - = missing(no_source)
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        ",
    );
}

#[test]
fn an_equal_snapshot_has_no_effect() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        up -> - = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        up -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        up -> - = partial(initial_recovery)
        ",
    );
}

#[test]
fn the_publisher_may_have_nothing_when_messages_were_seen() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        live 4 -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), initial_told = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed) = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), admit 4 = partial(initial_recovery)
        ok -> now partial = partial(history_unknown) @4
        live 6 -> gap 5..6, skipped 5-5, emptying, now fenced, reset(hole) = fenced(resetting) @4
        ok -> now partial, admit 6 = partial(hole)
        ok -> - = partial(hole) @6
        live 8 -> gap 7..8, skipped 7-7, emptying, now fenced, reset(hole) = fenced(resetting) @6
        ok -> now partial, admit 8 = partial(hole)
        ok -> - = partial(hole) @8
        wait -> ask = partial(hole) @8
        reply 0 1 2 3 4 5 6 7 8 -> replace 0+1+2+3+4+5+6+7+8 = partial(hole) @8
        ok -> recovered(healed), now exact = exact @8
        ",
    );
}
