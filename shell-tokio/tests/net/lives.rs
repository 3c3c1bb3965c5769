//! Restarts, as a subscriber sees them.

use crate::common::{
    ask, follow, live, made, pairs, plan, played, publish_at, quick, read, replay_at, start, until,
    within,
};
use kvmirror_tokio::player::{PlayPlan, Speed};
use kvmirror_tokio::replay::ReplayEnd;
use kvmirror_tokio::source::SourceEvent;
use std::time::Duration;

#[tokio::test]
async fn a_restart_is_seen_and_begins_at_zero_with_an_empty_ring() {
    let streams = made(30, Duration::from_millis(20));
    let sent = pairs(&streams[0].lives[0]);
    let plan = PlayPlan { restart_at: Some(10), speed: Speed::Paced(1.0), ..plan(streams) };
    let (player, mut following) = live(plan, 256).await;
    assert_eq!(following.messages_to(10).await, sent[..=10]);
    assert!(matches!(following.next().await, SourceEvent::Down { .. }));
    following.expect_up().await;
    let second = following.messages_to(29).await;
    assert_eq!(second, sent[30 - second.len()..], "a suffix of the new life, in order");
    assert_eq!(player.progress().lives, 2);
    let outcome = ask(&replay_at(&player, 0), 0).await;
    assert_eq!(outcome.end, ReplayEnd::EndMarker);
    assert_eq!(outcome.messages, sent, "the new life only");
}

#[tokio::test]
async fn the_second_life_of_a_capture_has_sockets_and_a_ring_of_its_own() {
    let capture = read("vllm-0.32.0/restart.jsonl");
    let lives = capture.ranks[0].lives.clone();
    let (player, mut following) = live(plan(capture.ranks), 4_096).await;
    let first = pairs(&lives[0]);
    assert_eq!(following.messages_to(first.last().unwrap().0).await, first);
    assert!(matches!(following.next().await, SourceEvent::Down { .. }));
    within("played", player.played()).await;
    assert_eq!(player.progress().lives, 2);
    assert_eq!(ask(&replay_at(&player, 0), 0).await.messages, pairs(&lives[1]));
}

#[tokio::test]
async fn a_loop_renumbers_a_capture_that_begins_late() {
    let mut streams = made(8, Duration::ZERO);
    streams[0].lives[0].drain(..5);
    let sent = pairs(&streams[0].lives[0]);
    assert_eq!(sent[0].0, 5);
    let player = start(PlayPlan { repeat: true, ..plan(streams) }).await;
    until("a third life", || player.progress().lives >= 3).await;
    until("its messages", || player.progress().published >= 9).await;
    player.stop();
    let progress = within("stop", player.wait()).await.unwrap();
    assert!(progress.lives >= 3);
}

#[tokio::test]
async fn a_killed_publisher_and_its_return_are_noticed() {
    let first = played(plan(made(3, Duration::ZERO))).await;
    let (publish, replay) = (publish_at(&first, 0), replay_at(&first, 0));
    let mut following = follow(publish.clone(), quick(), 64);
    following.expect_up().await;
    for _ in 0..3 {
        drop_and_forget(&mut following).await;
    }
    drop(first);
    assert!(matches!(following.next().await, SourceEvent::Down { .. }));
    let mut again = plan(made(3, Duration::ZERO));
    (again.publish, again.replay) = (publish, Some(replay));
    again.hold = true;
    // The old sockets close in the background when a player is dropped.
    let second = within("rebind", async {
        loop {
            let transport = kvmirror_tokio::transport::zeromq::ZeroMq;
            if let Ok(player) =
                kvmirror_tokio::player::Player::start(transport, again.clone()).await
            {
                return player;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    loop {
        match following.next().await {
            SourceEvent::Up => break,
            SourceEvent::Down { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    for _ in 0..3 {
        assert!(ask(&replay_at(&second, 0), 0).await.messages.is_empty());
    }
    second.release();
    assert_eq!(following.messages_to(2).await.len(), 3);
    assert!(following.source.counters().downs() >= 1);
}

/// Nothing may be waiting: the capture was over before the subscription.
async fn drop_and_forget(following: &mut crate::common::Following) {
    tokio::task::yield_now().await;
    assert!(following.events.try_recv().is_err());
}
