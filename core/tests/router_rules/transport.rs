//! Interruptions (B6, B7).

use crate::rig::{followed, live_only, recoverable};

#[test]
fn the_same_life_is_verified_and_continued() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1 2 -> admit 2 = suspect(unverified) @1
        ok -> recovered(healed), now exact = exact @2
        ",
    );
}

#[test]
fn a_message_waits_for_the_verification() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        live 2 -> - = suspect(unverified) @1
        reply 1 2 -> admit 2 = suspect(unverified) @1
        ok -> recovered(healed), now exact = exact @2
        ",
    );
}

#[test]
fn another_life_is_reset() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1' 2' -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @1
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' 2' -> admit 0+1+2 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @2
        ",
    );
}

#[test]
fn an_empty_answer_is_another_life() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @1
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply -> recovered(healed), initial_told, now exact = exact
        live 0' -> admit 0 = exact
        ok -> - = exact @0
        ",
    );
}

#[test]
fn a_ring_that_has_moved_past_is_no_proof() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 5 6 -> recovered(restarted), emptying, now fenced, reset(hole) = fenced(resetting) @1
        ok -> now partial, admit 5+6 = partial(initial_recovery)
        ok -> now partial = partial(history_unknown) @6
        ",
    );
}

#[test]
fn an_unanswered_verification_restarts_as_partial() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        live 2 -> - = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> - = suspect(unverified) @1
        wait -> ask 1 = suspect(unverified) @1
        fail -> recovered(failed), emptying, now fenced, reset(hole) = fenced(resetting) @1
        ok -> now partial, admit 2 = partial(initial_recovery)
        ok -> now partial = partial(history_unknown) @2
        wait -> ask 2 = partial(history_unknown) @2
        ",
    );
}

#[test]
fn a_cut_off_proof_is_a_proof() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1 cut -> now catching_up = catching_up(gap) @1
        wait -> ask 1 = catching_up(gap) @1
        reply 1 2 -> admit 2 = catching_up(gap) @1
        ok -> recovered(healed), now exact = exact @2
        ",
    );
}

#[test]
fn a_clear_ends_the_doubt() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        live 4c -> recovered(superseded), skipped 2-3, now exact, cancel, admit 4 = exact @1
        ok -> - = exact @4
        ",
    );
}

#[test]
fn nothing_passes_while_the_connection_is_down() {
    followed(
        1,
        "
        lost -> now suspect = suspect(transport_lost) @1
        live 2 -> - = suspect(transport_lost) @1
        live 3c -> - = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1 2 3c -> admit 2+3 = suspect(unverified) @1
        ok -> recovered(healed), now exact = exact @3
        ",
    );
}

#[test]
fn lost_cancels_the_question() {
    followed(
        1,
        "
        live 3 -> gap 2..3, now catching_up, ask 1 = catching_up(gap) @1
        lost -> now suspect, cancel = suspect(transport_lost) @1
        again reply 1 2 3 -> - = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1 2 3 -> admit 2+3 = suspect(unverified) @1
        ok -> recovered(healed), now exact = exact @3
        ",
    );
}

#[test]
fn lost_during_a_reset() {
    recoverable(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        lost -> - = fenced(resetting)
        ok -> now suspect = suspect(transport_lost)
        back -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn lost_while_an_admit_is_incomplete() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        lost -> now suspect = suspect(transport_lost) @0
        ok -> - = suspect(transport_lost) @1
        back -> now suspect, ask 1 = suspect(unverified) @1
        reply 1 -> recovered(healed), now exact = exact @1
        live 2 -> admit 2 = exact @1
        ok -> - = exact @2
        ",
    );
}

#[test]
fn a_live_only_source_is_reset_when_it_is_lost() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        lost -> emptying, now fenced, reset(transport) = fenced(resetting) @0
        ok -> now suspect = suspect(transport_lost)
        back -> now partial = partial(history_unknown)
        live 5 -> gap 0..5, admit 5 = partial(history_unknown)
        ok -> - = partial(history_unknown) @5
        ",
    );
}

#[test]
fn a_live_only_source_is_reset_when_only_its_return_is_told() {
    live_only(
        "
        up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
        ok -> initial_told, now partial = partial(history_unknown)
        live 0 -> admit 0 = partial(history_unknown)
        ok -> now exact = exact @0
        back -> emptying, now fenced, reset(transport) = fenced(resetting) @0
        ok -> initial_told, now partial = partial(history_unknown)
        live 1 -> gap 0..1, admit 1 = partial(history_unknown)
        ok -> - = partial(history_unknown) @1
        ",
    );
}

#[test]
fn a_quiet_engine_is_asked_for_its_tail() {
    followed(
        1,
        "
        wait -> ask 0 = exact @1
        reply 0 1 2 3 -> admit 2+3 = exact @1
        ok -> - = exact @3
        ",
    );
}

#[test]
fn a_probe_finds_a_life_that_went_on_at_the_next_id() {
    followed(
        2,
        "
        live 3' -> admit 3 = exact @2
        ok -> - = exact @3
        wait -> ask 0 = exact @3
        reply 0' 1' 2' 3' -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @3
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0' 1' 2' 3' -> admit 0+1+2+3 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @3
        ",
    );
}

#[test]
fn a_probe_looks_no_further_back_than_the_last_clear() {
    followed(
        2,
        "
        live 3c' -> admit 3 = exact @2
        ok -> - = exact @3
        live 4' -> admit 4 = exact @3
        ok -> - = exact @4
        wait -> ask 3 = exact @4
        reply 3c' 4' -> - = exact @4
        ",
    );
}

#[test]
fn an_overtaken_probe_concludes_nothing() {
    followed(
        0,
        "
        wait -> ask 0 = exact @0
        live 1 -> admit 1 = exact @0
        ok -> - = exact @1
        reply 0 1 -> - = exact @1
        live 2 -> admit 2 = exact @1
        ok -> - = exact @2
        ",
    );
}

#[test]
fn a_probe_that_finds_fewer_messages_is_another_life() {
    followed(
        2,
        "
        wait -> ask 0 = exact @2
        reply 0 -> recovered(new_life), new_life, emptying, now fenced, reset(new_life) = fenced(resetting) @2
        ok -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 -> admit 0 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @0
        ",
    );
}

#[test]
fn a_probe_gives_way_to_a_gap() {
    followed(
        0,
        "
        wait -> ask 0 = exact @0
        live 2 -> gap 1..2, now catching_up, cancel, ask 0 = catching_up(gap) @0
        reply 0 1 2 -> admit 1+2 = catching_up(gap) @0
        ok -> recovered(healed), now exact = exact @2
        ",
    );
}

#[test]
fn twice_lost_twice_back() {
    followed(
        0,
        "
        lost -> now suspect = suspect(transport_lost) @0
        lost -> - = suspect(transport_lost) @0
        back -> now suspect, ask 0 = suspect(unverified) @0
        back -> cancel, ask 0 = suspect(unverified) @0
        reply 0 1 -> admit 1 = suspect(unverified) @0
        ok -> recovered(healed), now exact = exact @1
        ",
    );
}

#[test]
fn lost_while_fenced() {
    followed(
        0,
        "
        live 1 -> admit 1 = exact @0
        refuse -> now fenced = fenced(target_fault) @0
        lost -> - = fenced(target_fault) @0
        wait -> emptying, reset(lifecycle) = fenced(target_fault) @0
        ok -> now suspect = suspect(transport_lost)
        back -> now partial = partial(initial_recovery)
        wait -> ask = partial(initial_recovery)
        reply 0 1 -> admit 0+1 = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @1
        ",
    );
}
