//! The scenario files: every snapshot they expect, in full, and none they do not.

use kvmirror_core::id::{EventId, PublisherId, Rank, RankKey, TargetId, WorkerId};
use kvmirror_core::membership::{
    Advertisement, Coordinator, EndpointName, MembershipInput, MembershipPolicy, Publishing,
    RankStatus, Source, SourceKind, Update, Withdrawal, WorkerExpectation,
};
use kvmirror_core::time::Timestamp;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn every_file_gives_its_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/membership_rules/scenarios");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        replay(&text, &path.display().to_string());
        files += 1;
    }
    assert_eq!(files, 16);
}

#[test]
fn a_snapshot_that_is_not_expected_is_noticed() {
    let text = r#"{"kvmirror_trace":1,"machine":"membership","config":{"profile":"reference"}}
        {"at":0,"in":{"expect":{"workers":[{"worker":1,"first_rank":0,"ranks":1}]}}}"#;
    assert!(std::panic::catch_unwind(|| replay(text, "wrong")).is_err());
}

fn replay(text: &str, file: &str) {
    let lines: Vec<(usize, Value)> = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| (number, serde_json::from_str(line).expect("each line is JSON")))
        .collect();
    let (_, header) = &lines[0];
    assert_eq!(header["config"]["profile"], "reference", "{file}");
    let serving = header["config"]["serving_endpoint"].as_str().unwrap_or("serving");
    let mut coordinator =
        Coordinator::new(serving.into(), MembershipPolicy::REFERENCE).expect("limits are not zero");
    let mut targets = Vec::new();
    let mut steps = lines[1..].iter().peekable();
    while let Some((line, step)) = steps.next() {
        let (kind, fields) = step["in"]
            .as_object()
            .and_then(|input| input.iter().next())
            .expect("a step has an input");
        let at = Timestamp(number(&step["at"]));
        let update = coordinator.handle(input(kind, fields, &mut targets), at);
        let got = (update == Update::Snapshot).then(|| snapshot(&coordinator, &targets));
        let want = steps.next_if(|(_, line)| line.get("out").is_some());
        let want = want.map(|(_, line)| line["out"]["snapshot"].clone());
        assert_eq!(got, want, "{file}:{line}");
    }
}

fn input(kind: &str, fields: &Value, targets: &mut Vec<String>) -> MembershipInput {
    let publisher = || PublisherId(number(&fields["publisher"]));
    let endpoint = || fields["state_endpoint"].as_str().map(EndpointName::new);
    match kind {
        "expect" => MembershipInput::Expectations(
            fields["workers"].as_array().expect("a list").iter().map(expectation).collect(),
        ),
        "advertise" => MembershipInput::Advertisement(Advertisement {
            rank: RankKey {
                worker: WorkerId(number(&fields["worker"])),
                rank: rank(&fields["rank"]),
            },
            endpoint: endpoint(),
            source: Source {
                publisher: publisher(),
                target: fields["target"].as_str().map(|name| target(name, targets)),
                kind: SourceKind::Agent,
                first_id: EventId(1),
                boot: None,
            },
        }),
        "withdraw" => {
            MembershipInput::Withdrawal(Withdrawal { publisher: publisher(), endpoint: endpoint() })
        }
        "invalidate" => MembershipInput::Invalid(publisher()),
        "lost" => MembershipInput::Lost,
        other => panic!("no input `{other}`"),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("an unsigned number")
}

fn rank(value: &Value) -> Rank {
    Rank(u32::try_from(number(value)).expect("32 bits"))
}

fn target(name: &str, targets: &mut Vec<String>) -> TargetId {
    let known = targets.iter().position(|target| target == name);
    TargetId(known.unwrap_or_else(|| {
        targets.push(name.to_owned());
        targets.len() - 1
    }) as u64)
}

fn expectation(worker: &Value) -> WorkerExpectation {
    WorkerExpectation {
        worker: WorkerId(number(&worker["worker"])),
        first_rank: rank(&worker["first_rank"]),
        ranks: rank(&worker["ranks"]).0,
        publishing: match worker["publishes"].as_bool() {
            Some(true) => Publishing::Enabled,
            Some(false) => Publishing::Disabled,
            None => Publishing::Undeclared,
        },
        recovery_expected: worker["recovery_expected"].as_bool().unwrap_or(false),
        endpoint: worker["state_endpoint"].as_str().map(EndpointName::new),
    }
}

fn snapshot(coordinator: &Coordinator, targets: &[String]) -> Value {
    let view = coordinator.view();
    let ranks = view.membership().ranks().map(|member| {
        let status = match member.status {
            RankStatus::Missing => json!("missing"),
            RankStatus::Ambiguous => {
                let why = view.ambiguity(member.key).expect("it says why");
                let publishers: Vec<u64> = why.publishers().iter().map(|id| id.0).collect();
                json!({ "ambiguous": { "publishers": publishers } })
            }
            RankStatus::Active(Source { publisher, target: None, .. }) => {
                json!({ "live_only": { "publisher": publisher.0 } })
            }
            RankStatus::Active(Source { publisher, target: Some(target), .. }) => {
                let name = &targets[usize::try_from(target.0).expect("interned here")];
                json!({ "recoverable": { "publisher": publisher.0, "target": name } })
            }
        };
        json!({
            "worker": member.key.worker.0,
            "rank": member.key.rank.0,
            "generation": member.generation.0,
            "status": status,
        })
    });
    json!({ "endpoint": view.resolution().name(), "ranks": ranks.collect::<Vec<_>>() })
}
