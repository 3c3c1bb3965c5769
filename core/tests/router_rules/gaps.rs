//! Missing, repeated and late messages of one life.

use crate::rig::{asked, followed, live_only};

#[test]
fn a_gap_is_asked_for_from_the_cursor() {
    followed(
        1,
        "
        live 4 -> gap 2..4, now catching_up, ask 1 = catching_up(gap) @1
        reply 1 2 3 4 -> admit 2+3+4 = catching_up(gap) @1
        ok -> recovered(healed), now exact = exact @4
        ",
    );
}

#[test]
fn what_came_meanwhile_follows_in_one_command() {
    followed(
        0,
        "
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        live 3 -> - = catching_up(gap) @0
        live 4 -> - = catching_up(gap) @0
        reply 0 1 2 -> admit 1+2+3+4 = catching_up(gap) @0
        ok -> recovered(healed), now exact = exact @4
        ok -> - = exact @4
        ",
    );
}

#[test]
fn messages_behind_an_incomplete_admit_leave_together() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        live 2 -> - = exact @0
        live 3 -> - = exact @0
        ok -> admit 2+3 = exact @1
        ok -> - = exact @3
        ",
    );
}

#[test]
fn a_batch_of_several_runs_is_taken_in_order() {
    followed(
        0,
        "
        live 1 2 4 -> admit 1+2 = exact @0
        ok -> gap 3..4, now catching_up, ask 2 = catching_up(gap) @2
        ok -> - = catching_up(gap) @2
        reply 2 3 4 -> admit 3+4 = catching_up(gap) @2
        ok -> recovered(healed), now exact = exact @4
        ",
    );
}

#[test]
fn duplicates_are_inert() {
    followed(
        2,
        "
        live 2 -> - = exact @2
        live 0 -> - = exact @2
        live 2 -> - = exact @2
        live 1 -> - = exact @2
        ",
    );
}

#[test]
fn three_repeated_messages_in_a_row_are_verified() {
    followed(
        3,
        "
        live 0 -> - = exact @3
        live 1 -> - = exact @3
        live 2 -> now suspect, ask 3 = suspect(unverified) @3
        live 4 -> - = suspect(unverified) @3
        reply 3 4 -> admit 4 = suspect(unverified) @3
        ok -> recovered(healed), now exact = exact @4
        ",
    );
}

#[test]
fn a_clear_crosses_a_gap() {
    followed(
        0,
        "
        live 3 -> gap 1..3, now catching_up, ask 0 = catching_up(gap) @0
        live 6c -> recovered(superseded), skipped 1-5, now exact, cancel, admit 6 = exact @0
        ok -> - = exact @6
        again reply 0 1 2 3 -> - = exact @6
        ",
    );
}

#[test]
fn a_hole_that_nobody_can_fill_is_crossed_once() {
    followed(
        1,
        "
        live 4 -> gap 2..4, now catching_up, ask 1 = catching_up(gap) @1
        reply 1 -> recovered(healed) = catching_up(gap) @1
        wait -> ask 1 = catching_up(gap) @1
        reply 1 -> recovered(healed) = catching_up(gap) @1
        wait -> ask 1 = catching_up(gap) @1
        reply 1 -> recovered(healed), skipped 2-3, emptying, now fenced, reset(hole) = fenced(resetting) @1
        ok -> now partial, admit 4 = partial(hole)
        ok -> - = partial(hole) @4
        live 5 -> admit 5 = partial(hole) @4
        ok -> - = partial(hole) @5
        ",
    );
}

#[test]
fn a_live_only_gap_resets() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        live 2 -> gap 1..2, skipped 1-1, emptying, now fenced, reset(hole) = fenced(resetting) @0
        ok -> now partial, admit 2 = partial(hole)
        ok -> - = partial(hole) @2
        live 3 -> admit 3 = partial(hole) @2
        ok -> - = partial(hole) @3
        ",
    );
}

#[test]
fn a_ring_that_has_moved_past_the_cursor_restarts() {
    followed(
        1,
        "
        live 9 -> gap 2..9, now catching_up, ask 1 = catching_up(gap) @1
        reply 7 8 9 -> recovered(restarted), emptying, now fenced, reset(hole) = fenced(resetting) @1
        ok -> now partial, admit 7+8+9 = partial(initial_recovery)
        ok -> now partial = partial(history_unknown) @9
        ",
    );
}

#[test]
fn a_clear_behind_the_cursor_makes_a_restart_exact() {
    followed(
        1,
        "
        live 9 -> gap 2..9, now catching_up, ask 1 = catching_up(gap) @1
        reply 7 8c 9 -> recovered(restarted), emptying, now fenced, reset(hole) = fenced(resetting) @1
        ok -> now partial, admit 8+9 = partial(initial_recovery)
        ok -> now exact = exact @9
        ",
    );
}

#[test]
fn an_answer_with_a_hole_counts_up_to_it() {
    followed(
        1,
        "
        live 6 -> gap 2..6, now catching_up, ask 1 = catching_up(gap) @1
        reply 1 2 4 5 6 -> admit 2 = catching_up(gap) @1
        ok -> - = catching_up(gap) @2
        wait -> ask 2 = catching_up(gap) @2
        reply 2 3 4 5 6 -> admit 3+4+5+6 = catching_up(gap) @2
        ok -> recovered(healed), now exact = exact @6
        ",
    );
}

#[test]
fn ids_below_the_question_are_left_out() {
    followed(
        2,
        "
        live 4 -> gap 3..4, now catching_up, ask 2 = catching_up(gap) @2
        reply 0 1 2 3 4 -> admit 3+4 = catching_up(gap) @2
        ok -> recovered(healed), now exact = exact @4
        ",
    );
}

#[test]
fn the_last_id_of_all_is_an_id() {
    asked(
        "
        reply -> recovered(healed), initial_told, now exact = exact
        live max -> gap 0..18446744073709551615, now catching_up = catching_up(gap)
        wait -> ask = catching_up(gap)
        reply max -> admit 18446744073709551615 = catching_up(gap)
        ok -> recovered(restarted), now partial = partial(history_unknown) @18446744073709551615
        live max -> - = partial(history_unknown) @18446744073709551615
        live 0 -> new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @18446744073709551615
        ",
    );
}
