//! New lives that the transport does not tell (B2, P01).

use crate::rig::{asked, followed, live_only, recoverable};

#[test]
fn sequence_zero_begins_a_new_life() {
    followed(
        1,
        "
        live 0' -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @1
        ok -> initial_told, now partial, admit 0 = partial(initial_recovery)
        ok -> now exact = exact @0
        live 1' -> admit 1 = exact @0
        ok -> - = exact @1
        ",
    );
}

#[test]
fn sequence_zero_begins_a_new_life_of_a_live_only_source() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        live 1 -> admit 1 = exact @0
        ok -> - = exact @1
        live 0' -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @1
        ok -> initial_told, now partial, admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        ",
    );
}

#[test]
fn a_new_life_waits_for_an_admit() {
    followed(
        1,
        "
        live 2 -> admit 2 = exact @1
        live 0' -> - = exact @1
        live 1' -> - = exact @1
        ok -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @2
        ok -> initial_told, now partial, admit 0+1 = partial(initial_recovery)
        ok -> now exact = exact @1
        ok -> - = exact @1
        ",
    );
}

#[test]
fn a_new_life_drops_the_answer_to_the_old_ones_question() {
    followed(
        1,
        "
        live 3 -> gap 2..3, now catching_up, ask 1 = catching_up(gap) @1
        live 0' -> new_life, emptying, now fenced, cancel, reset(new_life) = fenced(resetting) @1
        again reply 1 2 3 -> - = fenced(resetting) @1
        ok -> initial_told, now partial, admit 0 = partial(initial_recovery)
        ok -> now exact = exact @0
        ",
    );
}

#[test]
fn a_new_life_while_fenced_is_found_afterwards() {
    followed(
        1,
        "
        live 2 -> admit 2 = exact @1
        refuse -> now fenced = fenced(target_fault) @1
        live 0' -> - = fenced(target_fault) @1
        wait -> emptying, reset(lifecycle) = fenced(target_fault) @1
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn another_message_under_a_known_id_is_a_new_life() {
    followed(
        2,
        "
        live 1' -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @2
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' -> admit 0+1 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}

#[test]
fn three_unknown_ids_in_a_row_are_verified() {
    asked(
        "
        reply 40 -> admit 40 = partial(initial_recovery)
        ok -> recovered(restarted), initial_told, now partial = partial(history_unknown) @40
        live 3' -> - = partial(history_unknown) @40
        live 4' -> - = partial(history_unknown) @40
        live 5' -> now suspect, ask 40 = suspect(unverified) @40
        reply -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @40
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' 2' 3' 4' 5' -> admit 0+1+2+3+4+5 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @5
        ",
    );
}

#[test]
fn three_unknown_ids_in_a_row_of_a_live_only_source_are_a_new_life() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 40 -> gap 0..40, admit 40 = partial(history_unknown)
        ok -> - = partial(history_unknown) @40
        live 3' -> - = partial(history_unknown) @40
        live 4' -> - = partial(history_unknown) @40
        live 5' -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @40
        ok -> initial_told, gap 0..5, now partial, admit 5 = partial(history_unknown)
        ok -> - = partial(history_unknown) @5
        live 6' -> admit 6 = partial(history_unknown) @5
        ok -> - = partial(history_unknown) @6
        ",
    );
}

#[test]
fn two_fallen_ids_are_no_evidence() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 40 -> gap 0..40, admit 40 = partial(history_unknown)
        ok -> - = partial(history_unknown) @40
        live 3 -> - = partial(history_unknown) @40
        live 4 -> - = partial(history_unknown) @40
        live 41 -> admit 41 = partial(history_unknown) @40
        ok -> - = partial(history_unknown) @41
        live 5 -> - = partial(history_unknown) @41
        live 6 -> - = partial(history_unknown) @41
        live 42 -> admit 42 = partial(history_unknown) @41
        ok -> - = partial(history_unknown) @42
        ",
    );
}

#[test]
fn another_message_under_a_waiting_id_is_a_new_life() {
    followed(
        1,
        "
        live 3 -> gap 2..3, now catching_up, ask 1 = catching_up(gap) @1
        live 3' -> new_life, emptying, now fenced, cancel, reset(new_life) = fenced(resetting) @1
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' 2' 3' -> admit 0+1+2+3 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @3
        ",
    );
}

#[test]
fn an_answer_of_an_ended_life_is_not_mixed_with_its_successor() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        live 0' -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 2 -> recovered(new_life), initial_told, new_life, emptying, now fenced, reset(new_life) = fenced(resetting)
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_gaps_answer_from_another_life_restarts() {
    followed(
        1,
        "
        live 3' -> gap 2..3, now catching_up, ask 1 = catching_up(gap) @1
        reply 1' 2' 3' -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @1
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' 2' 3' -> admit 0+1+2+3 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @3
        ",
    );
}
