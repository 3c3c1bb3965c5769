//! §4.3: what is told of a worker's sources.

use crate::rig::Rig;
use kvmirror_core::membership::MembershipPolicy;
use kvmirror_core::membership::health::{
    ChangedWorkers, Requirement, SourceDiagnostic, SourceHealth, SourceHealthCode,
};
use kvmirror_core::time::{Micros, Timestamp};

const REQUIRED: Requirement = Requirement::CacheAwareRouting;

/// A coordinator and what is told of it; each line is `SECONDS input -> worker code ranks waited`.
struct Ward {
    rig: Rig,
    health: SourceHealth,
}

impl Ward {
    fn new() -> Self {
        let rig = Rig::new(MembershipPolicy::REFERENCE);
        Self { rig, health: SourceHealth::new() }
    }

    fn look(&mut self, at: u64, input: &str, requirement: Requirement) -> String {
        let mut out = Vec::new();
        let changed = if input.is_empty() || self.rig.feed(input) == "-" {
            &[]
        } else {
            self.rig.coordinator.changed_workers()
        };
        let now = Timestamp::ZERO.after(Micros::from_secs(at));
        let view = self.rig.coordinator.view();
        let changed = ChangedWorkers::Some(changed);
        self.health.handle_view(view, changed, requirement, now, &mut out);
        let told: Vec<String> = out.iter().map(render).collect();
        if told.is_empty() { "-".to_owned() } else { told.join("; ") }
    }

    fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (left, want) = line.split_once(" -> ").expect("a line is `input -> output`");
            let (at, input) = left.split_once(' ').unwrap_or((left, ""));
            let at = at.parse().expect("seconds come first");
            assert_eq!(self.look(at, input, REQUIRED), want, "`{left}` in\n{script}");
        }
    }
}

fn render(told: &SourceDiagnostic) -> String {
    let ranks: Vec<String> = told.ranks.iter().map(ToString::to_string).collect();
    let code = match told.code {
        SourceHealthCode::PublisherDisabled => "disabled",
        SourceHealthCode::NotObserved => "absent",
        SourceHealthCode::Ambiguous => "ambiguous",
        SourceHealthCode::Recovered => "recovered",
    };
    format!("{} {code} {} {}s", told.worker, ranks.join(","), told.waited.0 / 1_000_000)
}

fn play(script: &str) -> Ward {
    let mut ward = Ward::new();
    ward.play(script);
    ward
}

// rule: 4.3/1
#[test]
fn of_a_worker_that_does_not_say_nothing_is_told_and_all_is_forgotten() {
    play(
        "
        0 expect 7:0+1~mute -> -
        100 -> -
        100 expect 7:0+1~off -> 7 disabled 0 0s
        101 expect 7:0+1~mute -> -
        102 expect 7:0+1~off -> 7 disabled 0 0s
        ",
    );
}

// rule: 4.3/2
#[test]
fn a_worker_that_does_not_publish_is_told_once_with_all_its_ranks() {
    play(
        "
        0 expect 7:0+2~off -> 7 disabled 0,1 0s
        1 ad 1 7/0 -> -
        2 expect 7:0+3~off -> -
        90 -> -
        ",
    );
}

// rule: 4.3/3
#[test]
fn an_ambiguous_source_is_told_at_once_with_the_ranks_of_that_moment() {
    play(
        "
        0 expect 7:0+3 -> -
        1 ad 1 7/1 -> -
        2 ad 2 7/1 -> 7 ambiguous 1 0s
        3 ad 3 7/2 -> -
        4 ad 4 7/2 -> -
        5 del 2 -> -
        6 del 4 -> -
        ",
    );
}

// rule: 4.3/4
#[test]
fn an_absent_source_has_thirty_seconds() {
    let mut ward = play(
        "
        5 expect 7:0+2 -> -
        6 ad 1 7/0 -> -
        34 -> -
        35 -> 7 absent 1 30s
        36 del 1 -> -
        90 -> -
        ",
    );
    assert_eq!(ward.health.next_deadline(), None);
    ward.play(
        "
        90 expect 7:0+2 8:0+1 -> -
        100 expect 7:0+2 8:0+1 9:0+1 -> -
        200 -> 8 absent 0 110s; 9 absent 0 100s
        ",
    );
}

// rule: 4.3/4
#[test]
fn the_next_deadline_is_the_earliest_grace() {
    let ward = play(
        "
        5 expect 7:0+1 -> -
        9 expect 7:0+1 8:0+1 -> -
        ",
    );
    let due = Timestamp::ZERO.after(Micros::from_secs(35));
    assert_eq!(ward.health.next_deadline(), Some(due));
}

// rule: 4.3/4
#[test]
fn another_warning_is_forgotten_while_waiting() {
    play(
        "
        0 expect 7:0+1~off -> 7 disabled 0 0s
        1 expect 7:0+1 -> -
        2 ad 1 7/0 -> -
        ",
    );
}

// rule: 4.3/5
#[test]
fn a_recovery_names_the_ranks_of_the_warning_and_how_long_it_lasted() {
    play(
        "
        0 expect 7:0+2 -> -
        1 ad 1 7/0 -> -
        40 -> 7 absent 1 40s
        50 ad 2 7/1 -> 7 recovered 1 50s
        51 ad 3 7/1 -> 7 ambiguous 1 0s
        61 del 3 -> 7 recovered 1 10s
        62 ad 2 7/1 -> -
        ",
    );
    // A wait that ended in time is no warning.
    play(
        "
        0 expect 7:0+1 -> -
        29 ad 1 7/0 -> -
        90 -> -
        ",
    );
}

// rule: 4.3/immediate
#[test]
fn a_warning_of_another_code_replaces_the_first() {
    play(
        "
        0 expect 7:0+1 -> -
        1 ad 1 7/0 -> -
        2 ad 2 7/0 -> 7 ambiguous 0 0s
        10 expect 7:0+1~off -> 7 disabled 0 0s
        20 expect 7:0+1 -> 7 ambiguous 0 0s
        30 del 2 -> 7 recovered 0 10s
        ",
    );
}

// rule: 4.3/absent-worker
#[test]
fn a_worker_that_left_is_forgotten() {
    play(
        "
        0 expect 7:0+1~off -> 7 disabled 0 0s
        1 expect -> -
        2 expect 7:0+1~off -> 7 disabled 0 0s
        3 expect 7:0+1 8:0+1 -> -
        4 expect 8:0+1 -> -
        33 -> 8 absent 0 30s
        ",
    );
}

// rule: 4.3/not-required
#[test]
fn a_router_that_needs_no_source_is_told_nothing_and_remembers_nothing() {
    for requirement in [Requirement::NotRequired, Requirement::Unknown] {
        let mut ward = play("0 expect 7:0+1~off 8:0+1 -> 7 disabled 0 0s");
        assert_eq!(ward.look(1, "", requirement), "-");
        assert_eq!(ward.health, SourceHealth::new());
        assert_eq!(ward.look(2, "", REQUIRED), "7 disabled 0 0s", "all workers are looked at anew");
        assert_eq!(ward.look(32, "", REQUIRED), "8 absent 0 30s");
    }
}

// rule: 4.3/codes
#[test]
fn codes_are_stable() {
    let codes = SourceHealthCode::ALL.map(|code| (code.name(), code.is_warning()));
    assert_eq!(
        codes,
        [
            ("kv_event_publisher_disabled", true),
            ("kv_event_source_not_observed", true),
            ("kv_event_source_ambiguous", true),
            ("kv_event_source_recovered", false),
        ]
    );
}
