//! A coordinator driven by a script: `input -> what it publishes` per line.
//!
//! Inputs: `expect W:FIRST+RANKS[~mode]...` (modes: `off`, `mute`, `rec`, else an endpoint),
//! `worker W:FIRST+RANKS...`, `gone W`, `ad P W/R [target] [@endpoint] [boot=N]`, `del P
//! [@endpoint]`, `bad P`, `lost`, `listed`, `ended`, `wait SECONDS`.
//! Output: `-`, `view`, or the whole snapshot: `W/R.GENERATION status` entries, `;` between them,
//! behind `suspect` and `unresolved` where they apply; `none` without ranks.

use kvmirror_core::id::{BootId, EventId, PublisherId, Rank, RankKey, TargetId, WorkerId};
use kvmirror_core::membership::{
    Advertisement, Ambiguity, Coordinator, EndpointName, MembershipInput, MembershipPolicy,
    Publishing, RankStatus, Resolution, Source, SourceKind, Update, Withdrawal, WorkerExpectation,
};
use kvmirror_core::time::{Micros, Timestamp};

pub(crate) struct Rig {
    pub(crate) coordinator: Coordinator,
    pub(crate) now: Timestamp,
}

/// Runs a script against a new coordinator, and returns it for further questions.
pub(crate) fn run(policy: MembershipPolicy, script: &str) -> Rig {
    let mut rig = Rig::new(policy);
    rig.play(script);
    rig
}

pub(crate) fn reference(script: &str) -> Rig {
    run(MembershipPolicy::REFERENCE, script)
}

pub(crate) fn hardened(script: &str) -> Rig {
    run(MembershipPolicy::HARDENED, script)
}

impl Rig {
    pub(crate) fn new(policy: MembershipPolicy) -> Self {
        let serving = EndpointName::new("serving");
        let coordinator = Coordinator::new(serving, policy).expect("limits are not zero");
        Self { coordinator, now: Timestamp::ZERO }
    }

    pub(crate) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (input, want) = line.split_once(" -> ").expect("a line is `input -> output`");
            assert_eq!(self.feed(input), want, "after `{input}` in\n{script}");
        }
    }

    /// Feeds one input and renders what it publishes.
    pub(crate) fn feed(&mut self, input: &str) -> String {
        let (verb, rest) = input.split_once(' ').unwrap_or((input, ""));
        let mut words = rest.split_whitespace();
        let input = match verb {
            "expect" => MembershipInput::Expectations(words.map(expectation).collect()),
            "worker" => MembershipInput::Expected(expectation(rest)),
            "gone" => MembershipInput::Unexpected(WorkerId(number(rest))),
            "ad" => MembershipInput::Advertisement(advertisement(rest)),
            "del" => MembershipInput::Withdrawal(Withdrawal {
                publisher: PublisherId(number(words.next().expect("a publisher"))),
                endpoint: words.next().map(|word| EndpointName::new(&word[1..])),
            }),
            "bad" => MembershipInput::Invalid(PublisherId(number(rest))),
            "lost" => MembershipInput::Lost,
            "listed" => MembershipInput::Listed,
            "ended" => MembershipInput::Ended,
            "wait" => {
                self.now = self.now.after(Micros::from_secs(number(rest)));
                MembershipInput::Timeout
            }
            other => panic!("no input `{other}`"),
        };
        match self.coordinator.handle(input, self.now) {
            Update::Unchanged => "-".to_owned(),
            Update::View => "view".to_owned(),
            Update::Snapshot => self.render(),
        }
    }

    pub(crate) fn render(&self) -> String {
        let view = self.coordinator.view();
        let mut out = String::new();
        if view.membership().suspect() {
            out.push_str("suspect ");
        }
        if let Resolution::Ambiguous(_) = view.resolution() {
            out.push_str("unresolved ");
        }
        let ranks: Vec<String> = view
            .membership()
            .ranks()
            .map(|member| {
                let mut text = format!("{}.{} ", member.key, member.generation);
                match (member.status, view.ambiguity(member.key)) {
                    (RankStatus::Missing, None) => text.push_str("missing"),
                    (RankStatus::Active(source), None) => match source.target {
                        Some(target) => text.push_str(&format!("{} t{target}", source.publisher)),
                        None => text.push_str(&format!("{} live", source.publisher)),
                    },
                    (RankStatus::Ambiguous, Some(why)) => text.push_str(&ambiguity(why)),
                    (status, why) => panic!("{status:?} does not go with {why:?}"),
                }
                text
            })
            .collect();
        out.push_str(&if ranks.is_empty() { "none".to_owned() } else { ranks.join("; ") });
        out
    }
}

fn ambiguity(why: Ambiguity<'_>) -> String {
    match why {
        Ambiguity::EndpointMapping(endpoints) => {
            let names: Vec<&str> = endpoints.iter().map(EndpointName::as_str).collect();
            format!("mapping {}", names.join(","))
        }
        Ambiguity::ConflictingDescriptor(publisher) => format!("conflict {publisher}"),
        Ambiguity::Incarnations(publishers) => {
            let ids: Vec<String> = publishers.iter().map(ToString::to_string).collect();
            format!("ambiguous {}", ids.join(","))
        }
    }
}

pub(crate) fn number<N: std::str::FromStr>(word: &str) -> N {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

pub(crate) fn expectation(word: &str) -> WorkerExpectation {
    let mut parts = word.split('~');
    let (worker, ranks) = parts.next().and_then(|part| part.split_once(':')).expect("W:FIRST+N");
    let (first, count) = ranks.split_once('+').expect("FIRST+N");
    let mut expectation = WorkerExpectation {
        worker: WorkerId(number(worker)),
        first_rank: Rank(number(first)),
        ranks: number(count),
        publishing: Publishing::Enabled,
        recovery_expected: false,
        endpoint: None,
    };
    for mode in parts {
        match mode {
            "off" => expectation.publishing = Publishing::Disabled,
            "mute" => expectation.publishing = Publishing::Undeclared,
            "rec" => expectation.recovery_expected = true,
            endpoint => expectation.endpoint = Some(EndpointName::new(endpoint)),
        }
    }
    expectation
}

fn advertisement(rest: &str) -> Advertisement {
    let mut words = rest.split_whitespace();
    let publisher = PublisherId(number(words.next().expect("a publisher")));
    let (worker, rank) = words.next().and_then(|word| word.split_once('/')).expect("W/R");
    let mut advertisement = Advertisement {
        rank: RankKey::new(number(worker), number(rank)),
        endpoint: None,
        source: Source {
            publisher,
            target: None,
            kind: SourceKind::Agent,
            first_id: EventId(1),
            boot: None,
        },
    };
    for word in words {
        if let Some(endpoint) = word.strip_prefix('@') {
            advertisement.endpoint = Some(EndpointName::new(endpoint));
        } else if let Some(boot) = word.strip_prefix("boot=") {
            advertisement.source.boot = Some(BootId(number(boot)));
        } else {
            advertisement.source.target = Some(TargetId(number(word)));
        }
    }
    advertisement
}
