//! The router machine's hosts, and what a line means to the machine.

use super::super::header::Host;
use super::super::payload::EventPayload;
use super::super::router::{RouterHost, RouterMachine};
use super::super::{Mode, Replay, TraceEvent, What};
use crate::id::{
    BootId, Epoch, EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId,
};
use crate::membership::{Membership, RankStatus, Source, SourceKind};
use crate::router::{
    Clears, Command, Completion, Effects, Flaw, Input, LiveBatch, Origin, QueryFailure,
    RecoveryOutcome, ResetReason, Scope, SourceRejection, TargetFault, TransportChange, Watermark,
};
use crate::time::Timestamp;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

type Fed = Rc<RefCell<Vec<(u64, Input<EventPayload>)>>>;

/// Remembers what it is fed; wants what its script says.
#[derive(Debug, Default)]
struct Script {
    fed: Fed,
    turns: VecDeque<Vec<Command<EventPayload>>>,
    deadlines: VecDeque<u64>,
}

impl RouterMachine for Script {
    fn handle(
        &mut self,
        input: Input<EventPayload>,
        now: Timestamp,
        fx: &mut Effects<EventPayload>,
    ) {
        if input == Input::Timeout {
            self.deadlines.pop_front();
        }
        self.fed.borrow_mut().push((now.0, input));
        for command in self.turns.pop_front().unwrap_or_default() {
            fx.command(command);
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.front().copied().map(Timestamp)
    }
}

fn reset(worker: u64, op: u64) -> Command<EventPayload> {
    Command::Reset {
        op: OpId(op),
        rank: RankKey::new(worker, 0),
        epoch: Epoch(0),
        scope: Scope::All,
        reason: ResetReason::Lifecycle,
    }
}

fn query(query: u64, publisher: u64) -> Command<EventPayload> {
    Command::Query {
        query: QueryId(query),
        rank: RankKey::new(1, 0),
        publisher: PublisherId(publisher),
        target: TargetId(7),
        start: None,
    }
}

/// What the machine is fed by `lines`, which begin with `at` 0; its turns want `turns`.
fn fed(
    host: Host,
    turns: Vec<Vec<Command<EventPayload>>>,
    deadlines: Vec<u64>,
    lines: &[&str],
) -> Vec<(u64, Input<EventPayload>)> {
    let fed = Fed::default();
    let script = Script { fed: fed.clone(), turns: turns.into(), deadlines: deadlines.into() };
    let machine = Box::new(RouterHost::new(script, host));
    let mut replay = Replay::with_machine(machine, Mode::Print, host == Host::Manual);
    for line in lines {
        replay.line(line).unwrap();
    }
    replay.finish().unwrap();
    fed.take()
}

/// What one input means, after a membership with an agent (publisher 10) on rank 1/0, an engine
/// (publisher 20) on rank 2/0, and the query 5 to the agent and 6 to the engine.
fn meaning(input: &str) -> Input<EventPayload> {
    let membership = r#"{"at":0,"in":{"membership":{"ranks":[
        {"worker":1,"rank":0,"generation":0,"status":{"recoverable":{"publisher":10,"target":"t"}}},
        {"worker":2,"rank":0,"generation":0,"status":{"live_only":{"publisher":20,"engine":true}}}]}}}"#;
    let line = alloc::format!(r#"{{"at":0,"in":{input}}}"#);
    let asked = vec![query(5, 10), query(6, 20)];
    let mut fed = fed(Host::Manual, vec![asked], Vec::new(), &[membership, &line]);
    assert_eq!(fed.len(), 2, "{input}");
    fed.pop().unwrap().1
}

fn done(op: u64) -> Input<EventPayload> {
    Input::Completion(Completion { op: OpId(op), ok: true, flaw: None })
}

const LOST: &str = r#"{"at":0,"in":{"transport_lost":{"publisher":1}}}"#;
const LOST_LATER: &str = r#"{"at":9,"in":{"transport_lost":{"publisher":1}}}"#;

fn lost() -> Input<EventPayload> {
    Input::Transport(PublisherId(1), TransportChange::Lost)
}

#[test]
fn an_accepting_host_completes_first_in_first_out_before_the_next_input() {
    let turns = vec![vec![reset(1, 1), query(9, 1), reset(2, 2)], vec![reset(1, 3)]];
    let fed = fed(Host::Accept, turns, Vec::new(), &[LOST, LOST_LATER]);
    assert_eq!(fed, [(0, lost()), (0, done(1)), (0, done(2)), (0, done(3)), (9, lost())]);
}

#[test]
fn an_accepting_host_completes_before_the_next_deadline() {
    let turns = vec![vec![reset(1, 1)], vec![], vec![reset(2, 2)], vec![]];
    let fed = fed(Host::Accept, turns, vec![3, 3], &[LOST_LATER]);
    let timeout = Input::Timeout;
    assert_eq!(fed, [(3, timeout.clone()), (3, done(1)), (3, timeout), (3, done(2)), (9, lost())]);
}

#[test]
fn a_manual_host_completes_nothing_by_itself() {
    let turns = vec![vec![reset(1, 1)]];
    let label = r#"{"out":{"reset":{"worker":1,"rank":0,"op":"o"}}}"#;
    let ok = r#"{"at":1,"in":{"done":{"op":"o","ok":true}}}"#;
    let error = r#"{"at":2,"in":{"done":{"op":77,"error":"no"}}}"#;
    let fed = fed(Host::Manual, turns, Vec::new(), &[LOST, label, ok, error]);
    let failed = Completion { op: OpId(77), ok: false, flaw: None };
    assert_eq!(fed, [(0, lost()), (1, done(1)), (2, Input::Completion(failed))]);
}

#[test]
fn a_label_that_nothing_bound_is_refused() {
    let script = Script::default();
    let machine = Box::new(RouterHost::new(script, Host::Manual));
    let mut replay = Replay::with_machine(machine, Mode::Print, true);
    let failure = replay.line(r#"{"at":0,"in":{"done":{"op":"o","ok":true}}}"#).unwrap_err();
    assert!(failure.to_string().contains("binds the op label \"o\""), "{failure}");
}

#[test]
fn every_input_has_its_meaning() {
    let rank = RankKey::new(1, 0);
    let publisher = PublisherId(10);
    for (text, expected) in [
        (r#"{"membership_ended":{}}"#, Input::MembershipEnded),
        (r#"{"shutdown":{}}"#, Input::Shutdown),
        (
            r#"{"transport_back":{"publisher":10}}"#,
            Input::Transport(publisher, TransportChange::Back),
        ),
        (
            r#"{"watermark":{"publisher":10,"last":null}}"#,
            Input::Watermark(Watermark { publisher, last: None, boot: None }),
        ),
        (
            r#"{"watermark":{"publisher":10,"last":"0xf","boot":3}}"#,
            Input::Watermark(Watermark {
                publisher,
                last: Some(EventId(15)),
                boot: Some(BootId(3)),
            }),
        ),
        (
            r#"{"target_fault":{"worker":1,"rank":0,"epoch":2,"barrier_failed":true}}"#,
            Input::TargetFault(TargetFault { rank, epoch: Epoch(2), barrier_failed: true }),
        ),
        (
            r#"{"reject_source":{"worker":1,"rank":0,"epoch":2}}"#,
            Input::SourceRejection(SourceRejection { rank, epoch: Epoch(2) }),
        ),
        (
            r#"{"done":{"op":4,"ok":true,"flaw":"orphan"}}"#,
            Input::Completion(Completion { op: OpId(4), ok: true, flaw: Some(Flaw::Orphan) }),
        ),
        (
            r#"{"live":{"publisher":10,"seq":0,"events":[]}}"#,
            Input::Live(LiveBatch {
                publisher,
                seq: Some(0),
                origin: Origin::Own,
                runs: Vec::new().into(),
            }),
        ),
    ] {
        assert_eq!(meaning(text), expected, "{text}");
    }
}

#[test]
fn every_answer_has_its_meaning() {
    use RecoveryOutcome as Is;
    for (text, expected) in [
        (
            r#""events":{"events":[],"last":null}"#,
            Is::Events { runs: vec![], last: None, complete: true },
        ),
        (
            r#""events":{"events":[],"last":3,"complete":false}"#,
            Is::Events { runs: vec![], last: Some(EventId(3)), complete: false },
        ),
        (r#""snapshot":{"events":[],"last":3}"#, Is::Snapshot { runs: vec![], last: EventId(3) }),
        (r#""snapshot_failed":{"last":3,"message":"m"}"#, Is::SnapshotFailed { last: EventId(3) }),
        (r#""too_new":{"start":5,"end":null,"newest":3}"#, Is::TooNew { newest: Some(EventId(3)) }),
        (r#""invalid_range":{"start":5,"end":4}"#, Is::InvalidRange),
        (r#""error":"e""#, Is::Failed(QueryFailure::Refused)),
        (r#""failed":"e""#, Is::Failed(QueryFailure::Transport)),
        (r#""unreadable":"e""#, Is::Failed(QueryFailure::Unreadable)),
    ] {
        let Input::Recovery(response) =
            meaning(&alloc::format!(r#"{{"response":{{"query":5,{text}}}}}"#))
        else {
            panic!("{text} is no response")
        };
        assert_eq!(response.outcome, expected, "{text}");
        assert_eq!((response.query, response.boot), (QueryId(5), None));
        assert_eq!(response.origin, Origin::Own);
    }
}

#[test]
fn a_source_has_the_first_id_of_its_kind() {
    let source = |kind, first_id, target, boot| Source {
        publisher: PublisherId(9),
        target,
        kind,
        first_id: EventId(first_id),
        boot,
    };
    let first_name = Some(TargetId(1 << 63));
    for (text, expected) in [
        (r#"{"live_only":{"publisher":9}}"#, source(SourceKind::Agent, 1, None, None)),
        (
            r#"{"live_only":{"publisher":9,"engine":true}}"#,
            source(SourceKind::Engine, 0, None, None),
        ),
        (
            r#"{"recoverable":{"publisher":9,"target":"a","engine":true,"first_id":4}}"#,
            source(SourceKind::Engine, 4, first_name, None),
        ),
        (
            r##"{"recoverable":{"publisher":9,"target":"#3","boot":8}}"##,
            source(SourceKind::Agent, 1, Some(TargetId(3)), Some(BootId(8))),
        ),
    ] {
        let line = alloc::format!(
            r#"{{"at":0,"in":{{"membership":{{"ranks":[{{"worker":1,"rank":0,"generation":2,"status":{text}}}]}}}}}}"#
        );
        let fed = fed(Host::Manual, Vec::new(), Vec::new(), &[&line]);
        let [(0, Input::Membership(membership))] = fed.as_slice() else { panic!("{fed:?}") };
        let rank = membership.get(RankKey::new(1, 0)).unwrap();
        assert_eq!((rank.status, rank.ready), (RankStatus::Active(expected), true), "{text}");
        assert_eq!(rank.generation, Generation(2));
    }
}

fn membership(text: &str) -> Membership {
    let line = alloc::format!(r#"{{"at":0,"in":{{"membership":{text}}}}}"#);
    match fed(Host::Manual, Vec::new(), Vec::new(), &[&line]).pop() {
        Some((_, Input::Membership(membership))) => membership,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_exact_incarnations_that_are_listed_are_ready() {
    let ranks = r#""ranks":[
        {"worker":1,"rank":0,"generation":2,"status":{"live_only":{"publisher":9}}},
        {"worker":2,"rank":0,"generation":0,"status":{"live_only":{"publisher":8}}},
        {"worker":3,"rank":0,"generation":0,"status":"missing"}]"#;
    let ready = |list: &str| {
        let membership = membership(&alloc::format!("{{{ranks}{list}}}"));
        membership.ranks().map(|rank| rank.ready).collect::<Vec<_>>()
    };
    let list = r#","ready":[{"publisher":9,"generation":1},{"publisher":8,"generation":0}]"#;
    assert_eq!(ready(list), [false, true, true]);
    assert_eq!(ready(r#","ready":[]"#), [false, false, true]);
    assert_eq!(ready(""), [true, true, true]);
}

#[test]
fn a_snapshot_may_name_itself_and_its_difference() {
    let whole = membership(
        r#"{"ranks":[],"suspect":true,"id":5,"since":{"predecessor":4,"changed":[[1,0],[2,3]]}}"#,
    );
    assert!(whole.suspect());
    assert_eq!(whole.id().map(|id| id.0), Some(5));
    let (predecessor, changed) = whole.since().unwrap();
    assert_eq!((predecessor.0, changed), (4, &[RankKey::new(1, 0), RankKey::new(2, 3)][..]));
    let plain = membership(r#"{"ranks":[]}"#);
    assert_eq!((plain.suspect(), plain.id(), plain.since()), (false, None, None));
}

#[test]
fn the_kind_of_a_source_decides_how_its_events_are_cut() {
    let events = r#""events":[{"id":1,"remove":[1]},{"id":2,"remove":[2]},{"id":3,"clear":true}]"#;
    let shape = |input: Input<EventPayload>| -> Vec<(u32, Clears)> {
        let runs = if let Input::Live(batch) = input {
            batch.runs.into_vec()
        } else if let Input::Recovery(response) = input
            && let RecoveryOutcome::Events { runs, .. } = response.outcome
        {
            runs
        } else {
            panic!("no events");
        };
        runs.iter().map(|run| (run.len.get(), run.clears)).collect()
    };
    let agent = [(2, Clears::Nothing), (1, Clears::OneDomain)];
    let engine = [(1, Clears::Nothing), (1, Clears::Nothing), (1, Clears::Everything)];
    let live = |publisher| alloc::format!(r#"{{"live":{{"publisher":{publisher},{events}}}}}"#);
    let answer = |query| {
        alloc::format!(r#"{{"response":{{"query":{query},"events":{{{events},"last":3}}}}}}"#)
    };
    assert_eq!(shape(meaning(&live(10))), agent);
    assert_eq!(shape(meaning(&live(20))), engine);
    assert_eq!(shape(meaning(&live(99))), agent);
    assert_eq!(shape(meaning(&answer(5))), agent);
    assert_eq!(shape(meaning(&answer(6))), engine);
    assert_eq!(shape(meaning(&answer(7))), agent);
}

#[test]
fn an_event_of_another_rank_makes_the_message_foreign() {
    for (text, expected) in [
        (r#"{"live":{"publisher":20,"events":[{"id":1,"clear":true,"worker":2}]}}"#, Origin::Own),
        (
            r#"{"live":{"publisher":20,"events":[{"id":1,"clear":true,"worker":1}]}}"#,
            Origin::Foreign,
        ),
        (r#"{"live":{"publisher":20,"foreign":true,"events":[]}}"#, Origin::Foreign),
        (r#"{"live":{"publisher":99,"events":[{"id":1,"clear":true,"worker":1}]}}"#, Origin::Own),
        (
            r#"{"response":{"query":5,"snapshot":{"events":[{"id":1,"clear":true,"rank":0}],"last":1}}}"#,
            Origin::Own,
        ),
        (
            r#"{"response":{"query":5,"snapshot":{"events":[{"id":1,"clear":true,"rank":1}],"last":1}}}"#,
            Origin::Foreign,
        ),
        (r#"{"response":{"query":5,"foreign":true,"too_new":{"newest":1}}}"#, Origin::Foreign),
    ] {
        let input = meaning(text);
        let origin = if let Input::Live(batch) = &input {
            batch.origin
        } else if let Input::Recovery(response) = &input {
            response.origin
        } else {
            panic!("{input:?}")
        };
        assert_eq!(origin, expected, "{text}");
    }
}

#[test]
fn commands_carry_the_events_as_they_came() {
    let text = r#"{"id":3,"store":{"parent":null,"blocks":[[1,2]]},"tier":"host","worker":1}"#;
    let line = alloc::format!(r#"{{"at":0,"in":{{"live":{{"publisher":1,"events":[{text}]}}}}}}"#);
    let event: TraceEvent = serde_json::from_str(text).unwrap();
    assert!(matches!(event.what, What::Store { .. }));
    let runs = super::super::cut(vec![event], SourceKind::Agent).into();
    let admit = Command::Admit { op: OpId(1), rank: RankKey::new(1, 0), epoch: Epoch(0), runs };
    let script = Script { turns: vec![vec![admit]].into(), ..Script::default() };
    let machine = Box::new(RouterHost::new(script, Host::Manual));
    let mut replay = Replay::with_machine(machine, Mode::Print, true);
    replay.line(&line).unwrap();
    replay.finish().unwrap();
    let expected = alloc::format!(
        "{{\"out\":{{\"admit\":{{\"worker\":1,\"rank\":0,\"epoch\":0,\"ids\":[3],\"events\":[{text}],\"op\":1}}}}}}\n"
    );
    assert_eq!(replay.take_text(), expected);
}
