//! What no command shows: state that a status query sees, and the order of ranks.

use crate::rig::*;
use kvmirror_core::id::EventId;
use kvmirror_core::router::{Command, Run};

// rule: 5.3/S2-removed-first 5.3/S2-ascending
#[test]
fn ranks_that_leave_come_first_then_the_others_ascending() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[1, 2, 3, 4].map(|worker| (worker, 0, LiveOnly(worker))));
    rig.view(&[(1, 1, LiveOnly(1)), (3, 1, LiveOnly(3))]);
    let reset: Vec<u64> = rig
        .commands
        .iter()
        .filter_map(|command| {
            let Command::Reset { rank, .. } = command else { return None };
            Some(rank.worker.0)
        })
        .collect();
    assert_eq!(reset, [2, 4, 1, 3]);
}

// rule: 5.8/S13-cursor 5.8/S13-pending
#[test]
fn a_fence_keeps_the_cursor_and_nothing_else() {
    let mut rig = Rig::followed(POLICY, 1);
    rig.live(&[event(4), event(5)]);
    rig.done(true);
    assert_eq!((rig.rank().pending_events, rig.rank().lag), (2, 4));
    rig.answer(snapshot(3));
    rig.done(false);
    let rank = rig.rank();
    assert_eq!(rank.cursor, Some(EventId(1)));
    assert_eq!((rank.pending_events, rank.lag, rank.recovering), (0, 0, None));
    // Only the reset makes it fresh.
    rig.view(&[(RANK, 0, Recoverable(SOURCE))]);
    assert_eq!(rig.rank().cursor, Some(EventId(1)));
    rig.done(true);
    assert_eq!(rig.rank().cursor, None);
}

// rule: 5.10/health
#[test]
fn what_a_health_snapshot_counts_is_there() {
    let mut rig = Rig::asked(POLICY);
    rig.live(&[event(5), event(7)]);
    rig.view(&[(RANK, 0, Recoverable(SOURCE)), (2, 0, LiveOnly(20)), (3, 0, Missing)]);
    let ranks: Vec<_> = rig.router.ranks().collect();
    assert_eq!(ranks.len(), 3);
    assert_eq!(ranks.iter().filter(|rank| rank.publisher.is_some()).count(), 2);
    assert_eq!(ranks.iter().filter(|rank| rank.recovering.is_some()).count(), 1);
    assert_eq!(ranks.iter().map(|rank| rank.pending_events).sum::<u64>(), 2);
}

// rule: 6.4/P2
#[test]
fn the_buffer_is_bounded_by_count_alone() {
    let mut rig = Rig::asked(POLICY);
    let wide = |id| Run { payload: Word(POLICY.pending_bytes), ..event(id) };
    for id in 5..15 {
        rig.live(&[wide(id)]);
    }
    assert_eq!(rig.rank().pending_events, 10);
    rig.answer(snapshot(4));
    rig.done(true);
    let Some(Command::Admit { runs, .. }) = rig.commands.last() else { panic!("no admit") };
    assert_eq!(runs.len(), 10);
}

// rule: 5.7/S12-used-once
#[test]
fn a_tombstone_is_used_up_by_the_return() {
    let mut rig = Rig::new(POLICY);
    rig.view(&[(RANK, 1, Missing)]);
    rig.view(&[]);
    assert_eq!((rig.router.tombstones(), rig.router.ranks().count()), (1, 0));
    rig.view(&[(RANK, 1, Missing)]);
    assert_eq!((rig.router.tombstones(), rig.router.ranks().count()), (0, 1));
}
