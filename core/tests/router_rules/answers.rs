//! Failed, cut-off, late and wrong answers (B10, B18, B33).

use crate::rig::{asked, followed};

#[test]
fn a_cut_off_first_answer_goes_on_as_a_gap() {
    asked(
        "
        reply 0 1 cut -> admit 0+1 = partial(initial_recovery)
        ok -> now catching_up = catching_up(gap) @1
        wait -> ask 1 = catching_up(gap) @1
        reply 1 2 -> admit 2 = catching_up(gap) @1
        ok -> recovered(healed), initial_told, now exact = exact @2
        ",
    );
}

#[test]
fn a_cut_off_gap_keeps_its_progress() {
    followed(
        0,
        "
        live 4 -> gap 1..4, now catching_up, ask 0 = catching_up(gap) @0
        reply 0 1 2 cut -> admit 1+2 = catching_up(gap) @0
        ok -> - = catching_up(gap) @2
        wait -> ask 2 = catching_up(gap) @2
        reply 2 3 4 -> admit 3+4 = catching_up(gap) @2
        ok -> recovered(healed), now exact = exact @4
        ",
    );
}

#[test]
fn nothing_and_cut_off_is_a_failed_attempt() {
    asked(
        "
        reply cut -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_late_answer_after_a_timeout_is_inert() {
    asked(
        "
        wait -> cancel = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 -> admit 0+1 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}

#[test]
fn a_gap_that_stays_unanswered_is_crossed() {
    followed(
        0,
        "
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        fail -> skipped 1-1, admit 2 = catching_up(gap) @0
        ok -> recovered(failed), now partial = partial(hole) @2
        live 3 -> admit 3 = partial(hole) @2
        ok -> - = partial(hole) @3
        ",
    );
}

#[test]
fn the_same_answer_without_progress_does_not_count_for_ever() {
    followed(
        0,
        "
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> - = catching_up(gap) @0
        wait -> ask 0 = catching_up(gap) @0
        reply 0 cut -> skipped 1-1, admit 2 = catching_up(gap) @0
        ok -> recovered(failed), now partial = partial(hole) @2
        ",
    );
}

#[test]
fn an_unanswered_start_is_repaired_in_the_background() {
    asked(
        "
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> recovered(failed), initial_told, now partial = partial(history_unknown)
        live 3 -> admit 3 = partial(history_unknown)
        ok -> - = partial(history_unknown) @3
        live 4 -> admit 4 = partial(history_unknown) @3
        ok -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask = partial(history_unknown) @4
        reply 0 1 2 3 4 -> replace 0+1+2+3+4 = partial(history_unknown) @4
        ok -> recovered(healed), now exact = exact @4
        live 5 -> admit 5 = exact @4
        ok -> - = exact @5
        ",
    );
}

#[test]
fn a_damaged_repair_is_partial() {
    asked(
        "
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> - = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        fail -> recovered(failed), initial_told, now partial = partial(history_unknown)
        live 3 -> admit 3 = partial(history_unknown)
        ok -> - = partial(history_unknown) @3
        live 4 -> admit 4 = partial(history_unknown) @3
        ok -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask 3 = partial(history_unknown) @4
        reply 3 4 -> - = partial(history_unknown) @4
        wait -> ask = partial(history_unknown) @4
        reply 0 1d 2 3 4 -> replace 0+1+2+3+4 = partial(history_unknown) @4
        ok -> recovered(healed), now partial = partial(damaged) @4
        ",
    );
}

#[test]
fn an_unknown_question_is_inert() {
    asked(
        "
        reply 0 -> admit 0 = partial(initial_recovery)
        again reply 0 -> - = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        again ok -> - = exact @0
        again refuse -> - = exact @0
        ",
    );
}

#[test]
fn a_mute_replay_does_not_make_a_rank_exact() {
    asked(
        "
        reply -> recovered(healed), initial_told, now exact = exact
        live 0 -> admit 0 = exact
        ok -> - = exact @0
        live 2 -> gap 1..2, now catching_up, ask 0 = catching_up(gap) @0
        reply -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @0
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), initial_told = partial(initial_recovery)
        live 3 -> gap 0..3 = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed) = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed) = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), admit 3 = partial(initial_recovery)
        ok -> now partial = partial(history_unknown) @3
        live 4 -> admit 4 = partial(history_unknown) @3
        ok -> - = partial(history_unknown) @4
        ",
    );
}
