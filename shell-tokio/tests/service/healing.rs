//! Loss and new lives, healed over sockets.

use crate::{capture, left_by, plan, register, row_when, service};
use kvmirror_core::id::EventId;
use kvmirror_core::router::Trust;
use kvmirror_tokio::player::{DropRule, PlayPlan, Player, PlayerHandle, Speed};
use kvmirror_tokio::serve::Service;
use kvmirror_tokio::transport::zeromq::ZeroMq;

async fn play(plan: PlayPlan) -> PlayerHandle {
    Player::start(ZeroMq, plan).await.expect("free ports")
}

async fn follow(service: &Service, player: &PlayerHandle) {
    let played = &player.ranks()[0];
    let replay = played.replay.as_ref().expect("a replay socket").to_string();
    register(service, "engine", 0, &played.publish.to_string(), &replay).await;
    row_when(service, "a connection", |row| row.trust >= Trust::Partial).await;
    player.release();
}

async fn ends_equal(plan: PlayPlan, messages: &[kvmirror_tokio::capture::CaptureMessage]) {
    let expected = left_by(messages, 32);
    let last = EventId(messages.last().expect("messages").seq);
    let player = play(plan).await;
    let service = service().await;
    follow(&service, &player).await;
    player.played().await;
    let row = row_when(&service, "the end of the stream", |row| {
        row.cursor == Some(last) && row.trust == Trust::Exact
    })
    .await;
    let blocks = service.follower.blocks(row.key).await.expect("running");
    assert_eq!(blocks.len(), expected.len(), "{row:?}");
    assert_eq!(blocks, expected);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifth_of_the_messages_lost_on_the_way() {
    let capture = capture("vllm-0.32.0/evict.jsonl");
    let messages = capture.ranks[0].lives[0].clone();
    let mut plan = plan(capture);
    plan.speed = Speed::Paced(40.0);
    plan.drop = DropRule::Probability(0.2);
    plan.seed = 7;
    ends_equal(plan, &messages).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_the_middle() {
    let capture = capture("vllm-0.32.0/evict.jsonl");
    let messages = capture.ranks[0].lives[0].clone();
    let mut plan = plan(capture);
    plan.speed = Speed::Paced(40.0);
    plan.restart_at = Some(120);
    ends_equal(plan, &messages).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_with_loss() {
    let capture = capture("vllm-0.32.0/evict.jsonl");
    let messages = capture.ranks[0].lives[0].clone();
    let mut plan = plan(capture);
    plan.speed = Speed::Paced(40.0);
    plan.restart_at = Some(50);
    plan.drop = DropRule::Probability(0.3);
    plan.seed = 3;
    ends_equal(plan, &messages).await;
}
