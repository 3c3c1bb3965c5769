//! Waits: jitter, backoff, probes, healing, and clocks that misbehave.

use crate::rig::{Rig, recoverable, run};
use kvmirror_core::id::PublisherId;
use kvmirror_core::router::{LiveBatch, Origin, Policy, Runs};
use kvmirror_core::time::Timestamp;

fn started(seed: u64) -> Rig {
    let mut rig = Rig::new(true, Policy { seed, ..Policy::default() });
    for input in ["up", "ok"] {
        rig.play(input);
    }
    rig
}

fn following(seed: u64) -> Rig {
    let mut rig = started(seed);
    for input in ["wait", "reply 0", "ok"] {
        rig.play(input);
    }
    rig
}

/// Milliseconds until the next thing happens, and that it is `expected`.
fn until(rig: &mut Rig, expected: &str) -> u64 {
    let before = rig.now;
    assert_eq!(rig.play("wait"), expected);
    rig.now.since(before).as_millis()
}

fn about(measured: u64, wanted: u64) {
    assert!((wanted * 3 / 4..=wanted * 5 / 4).contains(&measured), "{measured} ms for {wanted}");
}

#[test]
fn the_first_question_waits_for_a_jitter_below_three_milliseconds() {
    let waits: Vec<u64> = (0..50).map(|seed| until(&mut started(seed), "ask")).collect();
    assert!(waits.iter().all(|wait| *wait < 3), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait != waits[0]), "no jitter: {waits:?}");
}

#[test]
fn eight_attempts_with_a_doubling_backoff() {
    for seed in 0..50 {
        let mut rig = started(seed);
        rig.play("wait");
        for attempt in 0..7 {
            assert_eq!(rig.play("fail"), "-");
            about(until(&mut rig, "ask"), 200 << attempt);
        }
        assert_eq!(rig.play("fail"), "recovered(failed), initial_told, now partial");
        assert_eq!(rig.router.stats().queries, 8);
    }
}

#[test]
fn an_attempt_is_given_thirty_seconds() {
    let mut rig = started(1);
    rig.play("wait");
    assert_eq!(until(&mut rig, "cancel"), 30_000);
}

#[test]
fn a_fence_heals_ever_later_up_to_thirty_seconds() {
    let mut rig = Rig::new(true, Policy::default());
    rig.play("up");
    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        rig.play("refuse");
        about(until(&mut rig, "emptying, reset(lifecycle)"), seconds * 1_000);
    }
}

#[test]
fn probes_grow_rarer_while_it_is_quiet_and_start_over_with_traffic() {
    let mut rig = following(3);
    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        about(until(&mut rig, "ask 0"), seconds * 1_000);
        assert_eq!(rig.play("reply 0"), "-");
    }
    assert_eq!(rig.play("live 1"), "admit 1");
    assert_eq!(rig.play("ok"), "-");
    about(until(&mut rig, "ask 0"), 1_000);
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut rig = following(0);
    rig.now = Timestamp(0);
    assert_eq!(rig.play("live 1"), "admit 1");
    assert_eq!(rig.play("ok"), "-");
    let deadline = rig.router.next_deadline().expect("a probe");
    rig.router.handle_timeout(Timestamp(0), &mut rig.fx);
    assert_eq!(rig.told(), "-");
    assert_eq!(rig.router.next_deadline(), Some(deadline));
}

#[test]
fn the_end_of_time_ends_every_call() {
    let mut rig = following(0);
    rig.now = Timestamp(u64::MAX);
    for _ in 0..3 {
        rig.router.handle_timeout(rig.now, &mut rig.fx);
    }
    rig.told();
    let effects = rig.play("live 1");
    assert!(effects.ends_with("admit 1"), "{effects}");
}

#[test]
fn a_message_of_nobody_is_told() {
    let mut rig = recoverable("");
    let runs = Runs::from_buf([run("0")]);
    let batch = LiveBatch { publisher: PublisherId(5), seq: None, origin: Origin::Own, runs };
    rig.router.handle_live(batch, rig.now, &mut rig.fx);
    assert_eq!(rig.told(), "discarded(inactive_publisher)");
}
