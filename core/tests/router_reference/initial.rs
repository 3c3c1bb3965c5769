//! When the end of a first recovery is told (§6.11): once for each launch that asked for the whole
//! and was not cancelled, however it ended.

use crate::rig::*;
use kvmirror_core::router::{Notice, Origin, Policy, QueryFailure, RecoveryOutcome};

fn told(rig: &Rig) -> usize {
    let initial = |notice: &&Notice| matches!(notice, Notice::InitialRecoveryComplete { .. });
    rig.notices.iter().filter(initial).count()
}

// rule: 6.11/activation
#[test]
fn an_activation_tells_when_its_answer_has_been_accepted() {
    let mut rig = Rig::asked(POLICY);
    rig.live(&[event(2)]);
    rig.answer(snapshot(1));
    rig.done(true);
    assert_eq!(told(&rig), 0, "the drained events are not accepted yet");
    rig.done(true);
    assert_eq!(told(&rig), 1);
    rig.live(&[event(3)]);
    rig.done(true);
    assert_eq!(told(&rig), 1);
}

// rule: 6.11/first-live
#[test]
fn a_first_event_asks_and_tells_again() {
    let mut rig = Rig::asked(POLICY);
    rig.answer(RecoveryOutcome::InvalidRange);
    assert_eq!(told(&rig), 1);
    rig.live(&[event(4)]);
    rig.answer(snapshot(4));
    rig.done(true);
    assert_eq!(told(&rig), 2);
}

// rule: 6.11/gap
#[test]
fn a_gap_asks_and_tells_again() {
    let mut rig = Rig::followed(POLICY, 1);
    rig.live(&[event(4)]);
    rig.done(true);
    rig.answer(snapshot(4));
    assert_eq!(told(&rig), 1);
    rig.done(true);
    assert_eq!(told(&rig), 2);
}

// rule: 6.11/fault
#[test]
fn a_fault_asks_and_tells_again() {
    let mut rig = Rig::followed(POLICY, 1);
    rig.fault();
    rig.answer(snapshot(1));
    rig.done(true);
    assert_eq!(told(&rig), 2);
}

// rule: 6.11/degraded
#[test]
fn a_degraded_end_is_told() {
    let failed = || RecoveryOutcome::Failed(QueryFailure::Transport);
    let too_new = || RecoveryOutcome::TooNew { newest: None };
    for outcome in [failed(), too_new(), RecoveryOutcome::InvalidRange] {
        let mut rig = Rig::asked(Policy { attempts: 1, ..POLICY });
        rig.live(&[event(4)]);
        rig.answer(outcome);
        assert_eq!(told(&rig), 0);
        rig.done(true);
        assert_eq!(told(&rig), 1);
    }
}

// rule: 6.11/fenced
#[test]
fn an_end_that_fences_is_told() {
    let refused = |outcome: RecoveryOutcome<Word>| {
        let mut rig = Rig::asked(POLICY);
        rig.live(&[event(2)]);
        rig.answer(outcome);
        rig.done(false);
        rig
    };
    let last = kvmirror_core::id::EventId(1);
    for outcome in [
        snapshot(1),
        events(&[1]),
        RecoveryOutcome::SnapshotFailed { last },
        RecoveryOutcome::InvalidRange,
    ] {
        assert_eq!(told(&refused(outcome.clone())), 1, "{outcome:?}");
    }
    let mut rig = Rig::asked(POLICY);
    rig.answer(snapshot(1));
    rig.done(true);
    assert_eq!(told(&rig), 1);
    for ok in [true, false] {
        let mut rig = Rig::asked(POLICY);
        rig.answer_from(Origin::Foreign, snapshot(1));
        rig.done(ok);
        assert_eq!(told(&rig), 1, "corrupt, reset {ok}");
    }
}

// rule: 6.11/not-follow-up
#[test]
fn a_follow_up_tells_nothing() {
    let mut rig = Rig::asked(POLICY);
    rig.live(&[event(4)]);
    rig.answer(snapshot(1));
    rig.done(true);
    assert_eq!(told(&rig), 1);
    rig.answer(events(&[2, 3]));
    rig.done(true);
    assert_eq!((told(&rig), rig.rank().cursor), (1, Some(event(4).first)));
}

// rule: 6.11/not-cleared
#[test]
fn a_launch_that_a_clear_ends_tells_nothing() {
    let mut rig = Rig::asked(POLICY);
    rig.live(&[clear(3)]);
    rig.done(true);
    rig.answer(snapshot(1));
    assert_eq!(told(&rig), 0);
}

// rule: 6.11/not-cancelled
#[test]
fn a_launch_that_is_cancelled_tells_nothing() {
    let ends: [fn(&mut Rig); 4] = [
        |rig| rig.view(&[(RANK, 1, Recoverable(SOURCE))]),
        |rig| rig.view(&[]),
        Rig::lost,
        |rig| rig.fault(),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let mut rig = Rig::asked(POLICY);
        let query = rig.query;
        end(&mut rig);
        let after = rig.query;
        rig.query = query;
        rig.answer(snapshot(1));
        assert_eq!(told(&rig), 0, "{at}");
        if after != query {
            rig.query = after;
            rig.answer(snapshot(1));
            rig.done(true);
            assert_eq!(told(&rig), 1, "the launch that took its place, {at}");
        }
    }
}
