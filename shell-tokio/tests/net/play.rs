//! The player against our own subscriber and replay client.

use crate::common::{
    ask, follow, live, made, pairs, plan, played, publish_at, quick, read, replay_at, start, until,
    within,
};
use bytes::Bytes;
use kvmirror_tokio::capture::CaptureReader;
use kvmirror_tokio::player::args::PlayArgs;
use kvmirror_tokio::player::command::{self, CommandError};
use kvmirror_tokio::player::{DropRule, PlayError, PlayPlan, Player, ReplayLayout, Speed};
use kvmirror_tokio::replay::ReplayEnd;
use kvmirror_tokio::transport::zeromq::ZeroMq;
use kvmirror_tokio::transport::{Endpoint, Requester, Transport};
use kvmirror_tokio::ui::Ui;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

#[tokio::test]
async fn everything_arrives_in_order() {
    let capture = read("vllm-0.22.1/evict.jsonl");
    let sent = pairs(&capture.ranks[0].lives[0]);
    let (player, mut following) = live(plan(capture.ranks), 4_096).await;
    let last = sent.last().unwrap().0;
    assert_eq!(following.messages_to(last).await, sent);
    assert_eq!(player.progress().published, sent.len() as u64);
    assert_eq!(following.source.counters().messages(), sent.len() as u64);
    assert_eq!(following.source.counters().overflow(), 0);
}

#[tokio::test]
async fn replay_answers_as_the_engine_did_in_both_layouts() {
    for (name, layout) in [
        ("vllm-0.32.0/evict-dp2", ReplayLayout::WithTopic),
        ("vllm-0.22.1/evict", ReplayLayout::WithoutTopic),
    ] {
        let capture = read(&format!("{name}.jsonl"));
        let player = played(PlayPlan { layout, ..plan(capture.ranks) }).await;
        for (file, future) in [("mid", false), ("last", false), ("future", true)] {
            let path = crate::common::data(&format!("{name}.replay-{file}.jsonl"));
            let engine: Vec<_> =
                CaptureReader::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
            let first = engine.first().map_or(1_000_000, |message| message.seq);
            assert_eq!(engine.is_empty(), future);
            let ours = ask(&replay_at(&player, 0), first).await;
            assert_eq!(ours.end, ReplayEnd::EndMarker);
            assert_eq!(ours.messages, pairs(&engine), "{name} {file}");
        }
    }
}

#[tokio::test]
async fn frames_of_a_reply_are_the_engines() {
    for (layout, parts) in [(ReplayLayout::WithTopic, 4), (ReplayLayout::WithoutTopic, 3)] {
        let player = played(PlayPlan { layout, ..plan(made(1, Duration::ZERO)) }).await;
        let endpoint = replay_at(&player, 0);
        let mut dealer = ZeroMq.request(&endpoint, Duration::from_secs(5)).await.unwrap();
        let start = Bytes::copy_from_slice(&0_u64.to_be_bytes());
        dealer.send(vec![Bytes::new(), start.clone()]).await.unwrap();
        let message = within("message", dealer.recv()).await.unwrap();
        let end = within("end marker", dealer.recv()).await.unwrap();
        let topic = Bytes::from_static(b"kv-events");
        let mut expected = vec![Bytes::new(), topic, start, Bytes::from_static(b"payload 0")];
        let mut marker = vec![Bytes::new(), Bytes::new(), vec![0xff; 8].into(), Bytes::new()];
        if parts == 3 {
            expected.remove(1);
            marker.remove(1);
        }
        assert_eq!((message, end), (expected, marker));
    }
}

#[tokio::test]
async fn a_ring_that_is_too_small_begins_later() {
    let streams = made(20, Duration::ZERO);
    let sent = pairs(&streams[0].lives[0]);
    let player = played(PlayPlan { ring: 5, ..plan(streams) }).await;
    let outcome = ask(&replay_at(&player, 0), 0).await;
    assert_eq!(outcome.end, ReplayEnd::EndMarker);
    assert_eq!(outcome.messages, sent[15..]);
}

#[tokio::test]
async fn dropped_messages_are_in_the_ring() {
    let streams = made(20, Duration::ZERO);
    let sent = pairs(&streams[0].lives[0]);
    let drop = DropRule::Every(NonZeroU64::new(3).unwrap());
    let (player, mut following) = live(PlayPlan { drop, ..plan(streams) }, 64).await;
    let got = following.messages_to(19).await;
    let survivors: Vec<_> = sent.iter().filter(|(seq, _)| (seq + 1) % 3 != 0).cloned().collect();
    assert_eq!(got, survivors);
    assert_eq!(ask(&replay_at(&player, 0), 0).await.messages, sent);
    let progress = player.progress();
    assert_eq!((progress.published, progress.dropped), (14, 6));
}

#[tokio::test]
async fn lost_messages_leave_no_gap() {
    let streams = made(10, Duration::ZERO);
    let sent = pairs(&streams[0].lives[0]);
    let lose = NonZeroU64::new(4);
    let (player, mut following) = live(PlayPlan { lose, ..plan(streams) }, 64).await;
    let survivors = sent.iter().filter(|(seq, _)| (seq + 1) % 4 != 0);
    let renumbered: Vec<_> =
        survivors.zip(0_u64..).map(|((_, payload), seq)| (seq, payload.clone())).collect();
    assert_eq!(following.messages_to(7).await, renumbered);
    assert_eq!(ask(&replay_at(&player, 0), 0).await.messages, renumbered);
    assert_eq!(player.progress().lost, 2);
}

#[tokio::test]
async fn ranks_have_sockets_of_their_own() {
    let capture = read("vllm-0.32.0/dp2.jsonl");
    let streams = capture.ranks.clone();
    let player = played(plan(capture.ranks)).await;
    for (index, stream) in streams.iter().enumerate() {
        assert_eq!(player.ranks()[index].rank, stream.rank);
        let outcome = ask(&replay_at(&player, index), 0).await;
        assert_eq!(outcome.messages, pairs(&stream.lives[0]));
    }
}

#[tokio::test]
async fn several_ranks_go_to_port_plus_rank() {
    let capture = read("vllm-0.32.0/dp2.jsonl");
    for _ in 0..20 {
        // Whether the neighbours of a free port are free as well shows only when they are bound.
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let Some(replay) = port.checked_add(10).filter(|port| *port < 65_000) else { continue };
        let mut plan = plan(capture.ranks.clone());
        plan.publish = Endpoint::loopback(port);
        plan.replay = Some(Endpoint::loopback(replay));
        match Player::start(ZeroMq, plan).await {
            Ok(player) => {
                assert_eq!(publish_at(&player, 1), Endpoint::loopback(port + 1));
                assert_eq!(replay_at(&player, 1), Endpoint::loopback(replay + 1));
                return;
            }
            Err(PlayError::Transport { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no free neighbours in 20 tries");
}

#[tokio::test]
async fn malformed_requests_get_no_reply_and_harm_nobody() {
    let player = played(plan(made(3, Duration::ZERO))).await;
    let endpoint = replay_at(&player, 0);
    let mut dealer = ZeroMq.request(&endpoint, Duration::from_secs(5)).await.unwrap();
    let start = Bytes::copy_from_slice(&0_u64.to_be_bytes());
    dealer.send(vec![start.clone()]).await.unwrap();
    dealer.send(vec![Bytes::new(), Bytes::new(), start]).await.unwrap();
    until("both counted", || player.progress().malformed_requests == 2).await;
    // A good one on the same connection: its replies are the first thing that comes.
    dealer.send(vec![Bytes::new(), Bytes::new()]).await.unwrap();
    let first = within("reply", dealer.recv()).await.unwrap();
    assert_eq!(&first[3][..], b"payload 0");
    assert_eq!(player.progress().requests, 1);
}

#[tokio::test]
async fn pacing_follows_the_capture() {
    let streams = made(6, Duration::from_millis(400));
    let begun = Instant::now();
    let player = played(PlayPlan { speed: Speed::Paced(5.0), ..plan(streams) }).await;
    let took = begun.elapsed();
    // Five gaps of 400 ms at five times the speed.
    assert!(took >= Duration::from_millis(400), "{took:?}");
    assert_eq!(player.progress().published, 6);
}

#[tokio::test]
async fn linger_and_stop_end_a_player_and_free_its_ports() {
    let lingering =
        start(PlayPlan { linger: Some(Duration::ZERO), ..plan(made(3, Duration::ZERO)) }).await;
    let at = publish_at(&lingering, 0);
    assert_eq!(within("linger", lingering.wait()).await.unwrap().published, 3);
    let mut again = plan(made(3, Duration::ZERO));
    again.publish = at.clone();
    let player = played(again).await;
    assert_eq!(publish_at(&player, 0), at);
    player.stop();
    within("stop", player.wait()).await.unwrap();
}

#[tokio::test]
async fn a_start_that_fails_leaves_nothing_behind() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut blocked = plan(made(1, Duration::ZERO));
    blocked.replay = Some(Endpoint::loopback(taken.local_addr().unwrap().port()));
    let error = Player::start(ZeroMq, blocked).await.unwrap_err();
    assert!(matches!(error, PlayError::Transport { rank: 0, .. }), "{error}");
    let nothing = Player::start(ZeroMq, plan(Vec::new())).await.unwrap_err();
    assert_eq!(nothing, PlayError::Nothing);
}

#[tokio::test]
async fn a_late_subscriber_misses_what_was_before() {
    let player = played(plan(made(5, Duration::ZERO))).await;
    let mut late = follow(publish_at(&player, 0), quick(), 16);
    late.expect_up().await;
    assert_eq!(ask(&replay_at(&player, 0), 0).await.messages.len(), 5);
    assert!(late.events.try_recv().is_err());
}

#[tokio::test]
async fn ipv6_works_where_the_machine_has_it() {
    let Ok(free) = tokio::net::TcpListener::bind("[::1]:0").await else { return };
    let address = format!("tcp://{}", free.local_addr().unwrap());
    drop(free);
    let mut plan = plan(made(3, Duration::ZERO));
    plan.replay = Some(Endpoint::parse_bind(&address).unwrap());
    let player = played(plan).await;
    assert_eq!(replay_at(&player, 0).to_string(), address);
    assert_eq!(ask(&replay_at(&player, 0), 0).await.messages.len(), 3);
}

#[tokio::test]
async fn the_command_says_what_it_does() {
    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        play: PlayArgs,
    }
    let capture = crate::common::data("vllm-0.32.0/restart.jsonl");
    for _ in 0..20 {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = |free: &tokio::net::TcpListener| format!("tcp://{}", free.local_addr().unwrap());
        let (publish, replay) = (at(&free), at(&other));
        drop((free, other));
        let options = ["--speed", "0", "--linger", "0", "--drop-every", "10"];
        let addresses = ["play", capture.to_str().unwrap(), "--pub", &publish, "--replay", &replay];
        let cli = <Cli as clap::Parser>::parse_from(addresses.iter().chain(&options));
        let mut ui = Ui::new(Vec::new(), false);
        match within("the command", command::run(cli.play, &mut ui)).await {
            // Somebody else was given the port in between.
            Err(CommandError::Play(PlayError::Transport { .. })) => continue,
            outcome => drop(outcome.unwrap()),
        }
        let text = String::from_utf8(ui.into_inner()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                &*format!("rank 0: 132 messages, 2 lives, publish {publish}, replay {replay}"),
                "done: published 119 of 132, 13 dropped; lives 2; replay requests 0, messages 0",
            ]
        );
        return;
    }
    panic!("no free ports in 20 tries");
}

#[tokio::test]
async fn an_unreadable_capture_is_named_by_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.jsonl");
    std::fs::write(&path, "\n{\"frames\":[\"6b76\",\"00\",\"90\"]}\n").unwrap();
    let error = kvmirror_tokio::capture::Capture::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("bad.jsonl:2: a sequence of 1 bytes; expected 8, big-endian"),
        "{error}"
    );
    std::fs::write(&path, "\n\n").unwrap();
    let empty = kvmirror_tokio::capture::Capture::read(&path).unwrap_err().to_string();
    assert!(empty.contains("no message in it"), "{empty}");
    let absent = kvmirror_tokio::capture::Capture::read(&dir.path().join("x")).unwrap_err();
    assert!(absent.to_string().contains("cannot open"), "{absent}");
}
