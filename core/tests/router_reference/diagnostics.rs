//! What the machine says of what happened (§5.11), as a notice or as a counter.

use crate::rig::*;
use kvmirror_core::id::EventId;
use kvmirror_core::router::{
    Clears, DiscardReason, Notice, Origin, Policy, QueryFailure, RecoveryEnd, RecoveryOutcome,
    Trust, TrustReason,
};
use kvmirror_core::time::Micros;

/// Takes what has been said since the last time.
fn said(rig: &mut Rig) -> Vec<Notice> {
    std::mem::take(&mut rig.notices)
}

fn trust_told(notices: &[Notice]) -> Vec<(Trust, Trust, Option<TrustReason>)> {
    let trust = |notice: &Notice| {
        let Notice::Trust { from, to, reason, .. } = *notice else { return None };
        Some((from, to, reason))
    };
    notices.iter().filter_map(trust).collect()
}

// rule: 5.11/batch-inactive-publisher 5.11/batch-foreign 5.11/batch-fenced
#[test]
fn batches_that_nobody_takes() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[(RANK, 0, LiveOnly(SOURCE))]);
    said(&mut rig);
    rig.live_from(99, Origin::Own, &[event(1)]);
    rig.live_from(SOURCE, Origin::Foreign, &[event(1)]);
    let reasons: Vec<DiscardReason> = said(&mut rig)
        .into_iter()
        .filter_map(|notice| {
            let Notice::Discarded { reason, messages: 1, .. } = notice else { return None };
            Some(reason)
        })
        .collect();
    assert_eq!(reasons, [DiscardReason::InactivePublisher, DiscardReason::Foreign]);
    rig.live(&[event(1)]);
    rig.done(false);
    rig.live(&[event(2), event(3)]);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Fenced), 2);
    assert_eq!(rig.router.stats().discarded(DiscardReason::InactivePublisher), 1);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Foreign), 1);
}

// rule: 5.11/rank-live-only
#[test]
fn a_rank_that_cannot_be_asked_says_so() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[(RANK, 0, LiveOnly(SOURCE))]);
    let live_only = (Trust::Missing, Trust::Partial, Some(TrustReason::HistoryUnknown));
    assert_eq!(trust_told(&said(&mut rig)), [live_only]);
    let mut rig = Rig::asked(POLICY);
    let recoverable = (Trust::Missing, Trust::Partial, Some(TrustReason::InitialRecovery));
    assert_eq!(trust_told(&said(&mut rig)), [recoverable]);
}

// rule: 5.11/gap 5.11/duplicate
#[test]
fn gaps_and_repeats() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[(RANK, 0, LiveOnly(SOURCE))]);
    rig.live(&[event(3)]);
    rig.done(true);
    let unknown = |id| kvmirror_core::router::Run { digest: None, ..event(id) };
    rig.live(&[
        event(3),
        event(2),
        unknown(3),
        kvmirror_core::router::Run { clears: Clears::Everything, ..unknown(1) },
    ]);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Duplicate), 1);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Regression), 3);
    said(&mut rig);
    let gaps = rig.router.stats().gaps;
    rig.live(&[event(6)]);
    let gap = said(&mut rig).into_iter().find_map(|notice| {
        let Notice::Gap { expected, got, .. } = notice else { return None };
        Some((expected, got))
    });
    assert_eq!(gap, Some((EventId(4), EventId(6))));
    assert_eq!(rig.router.stats().gaps, gaps + 1);
}

// rule: 5.11/pending-evicted
#[test]
fn evicted_events_are_counted() {
    let mut rig = Rig::asked(Policy { pending_events: 2, ..POLICY });
    rig.live(&[event(5), event(6)]);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Evicted), 0);
    rig.live(&[event(7), event(8), event(9)]);
    assert_eq!(rig.router.stats().discarded(DiscardReason::Evicted), 3);
}

// rule: 5.11/query-failed 5.11/recovery-degraded
#[test]
fn failed_attempts_and_what_they_end_in() {
    let mut rig = Rig::asked(Policy { attempts: 2, ..POLICY });
    rig.live(&[event(2), event(5)]);
    said(&mut rig);
    rig.answer(RecoveryOutcome::Failed(QueryFailure::Refused));
    let failed = |notices: Vec<Notice>| {
        let failed = |notice| {
            let Notice::QueryFailed { attempt, failure, .. } = notice else { return None };
            Some((attempt, failure))
        };
        notices.into_iter().find_map(failed)
    };
    assert_eq!(failed(said(&mut rig)), Some((1, Some(QueryFailure::Refused))));
    for _ in 0..2 {
        // The backoff, then the attempt's deadline.
        rig.now = rig.router.next_deadline().expect("a deadline");
        rig.input(kvmirror_core::router::Input::Timeout);
    }
    assert_eq!(rig.now.since(kvmirror_core::time::Timestamp::ZERO), Micros(30_200_000));
    assert_eq!(failed(said(&mut rig)), Some((2, None)));
    rig.done(true);
    let recovered = said(&mut rig).into_iter().find_map(|notice| {
        let Notice::Recovered { end, .. } = notice else { return None };
        Some(end)
    });
    assert_eq!(recovered, Some(RecoveryEnd::Failed));
    assert_eq!(rig.router.stats().recoveries(RecoveryEnd::Failed), 1);
}

// rule: 5.11/recovery-degraded
#[test]
fn holes_that_a_degraded_end_leaves_are_named() {
    let mut rig = Rig::followed(POLICY, 2);
    rig.live(&[event(5), event(9)]);
    rig.done(true);
    said(&mut rig);
    rig.answer(RecoveryOutcome::InvalidRange);
    let skipped: Vec<(u64, u64)> = said(&mut rig)
        .into_iter()
        .filter_map(|notice| {
            let Notice::Skipped { first, last, .. } = notice else { return None };
            Some((first.0, last.0))
        })
        .collect();
    assert_eq!(skipped, [(3, 4), (6, 8)]);
}

// rule: 5.11/recovery-corrupt
#[test]
fn a_corrupt_answer_is_named() {
    let mut rig = Rig::asked(POLICY);
    rig.answer_from(Origin::Foreign, snapshot(1));
    assert_eq!(rig.router.stats().recoveries(RecoveryEnd::Corrupt), 1);
    rig.done(true);
    assert_eq!(rig.rank().reason, Some(TrustReason::ForeignReply));
}

// rule: 5.11/reset-failed 5.11/admit-failed 5.11/replace-failed
#[test]
fn each_refusal_is_said_and_counted() {
    let refused = |rig: &mut Rig| {
        said(rig);
        rig.done(false);
        assert!(said(rig).iter().any(|notice| matches!(notice, Notice::Refused { .. })));
        assert_eq!(rig.router.stats().target_faults, 1);
    };
    let mut rig = Rig::followed(POLICY, 1);
    rig.live(&[event(2)]);
    refused(&mut rig);
    let mut rig = Rig::followed(POLICY, 1);
    rig.live(&[event(3)]);
    refused(&mut rig);
    let mut rig = Rig::asked(POLICY);
    rig.answer(snapshot(1));
    refused(&mut rig);
}

// rule: 5.11/fenced-healed
#[test]
fn a_fence_and_its_end_are_said() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[(RANK, 0, LiveOnly(SOURCE))]);
    rig.live(&[event(1)]);
    said(&mut rig);
    rig.done(false);
    let told = trust_told(&said(&mut rig));
    assert_eq!(
        told.last().map(|told| (told.1, told.2)),
        Some((Trust::Fenced, Some(TrustReason::TargetFault)))
    );
    rig.view(&[(RANK, 0, LiveOnly(SOURCE))]);
    rig.done(true);
    let told = trust_told(&said(&mut rig));
    assert_eq!(told.last().map(|told| (told.0, told.1)), Some((Trust::Fenced, Trust::Partial)));
}
