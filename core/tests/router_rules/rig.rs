//! Plays a table of `input -> effects = state` lines against one rank of the production router.
//!
//! | input | meaning |
//! |---|---|
//! | `up`, `up p2`, `up g1` | membership: active; another publisher; another generation |
//! | `missing`, `ambiguous`, `gone`, `shutdown` | membership without a source; the end |
//! | `live 3`, `live 3' 4'` | one batch; a quote marks the second life's message |
//! | `live 3c`, `live 3d`, `live 3 foreign` | with a clear; damaged; of another rank |
//! | `reply 0 1`, `reply 0 cut`, `reply foreign`, `fail` | the answer to the open question |
//! | `ok`, `refuse`, `orphan`, `full` | completion of the open command |
//! | `lost`, `back` | transport |
//! | `wait` | the clock jumps from deadline to deadline until something happens |
//! | `again reply …`, `again ok` | the same for what has been answered or completed already |
//!
//! Effects: notices, then commands, in order of emission. `-` is none.

use std::fmt::Write;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use kvmirror_core::id::{EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::Timestamp;

pub(crate) const KEY: RankKey = RankKey::new(1, 0);

/// `bytes` wide, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Word(pub(crate) usize);

impl Payload for Word {
    fn len(&self) -> u32 {
        1
    }
    fn bytes(&self) -> usize {
        self.0
    }
    fn slice(&self, _range: Range<u32>) -> Self {
        self.clone()
    }
}

pub(crate) fn run(word: &str) -> Run<Word> {
    let digits = word.trim_end_matches(['\'', 'c', 'd']);
    let seq: u64 = if digits == "max" { u64::MAX } else { digits.parse().expect("an id") };
    let life = u64::from(word.contains('\'')) + 1;
    Run {
        first: EventId(seq),
        len: NonZeroU32::MIN,
        clears: if word.contains('c') { Clears::Everything } else { Clears::Nothing },
        damaged: word.contains('d'),
        digest: NonZeroU64::new((life << 40) ^ seq.wrapping_add(1)),
        payload: Word(10),
    }
}

pub(crate) struct Rig {
    pub(crate) router: Router<Word>,
    pub(crate) fx: Effects<Word>,
    pub(crate) now: Timestamp,
    recoverable: bool,
    publisher: PublisherId,
    op: Option<OpId>,
    query: Option<QueryId>,
    /// Of the last reset.
    cause: &'static str,
}

impl Rig {
    pub(crate) fn new(recoverable: bool, policy: Policy) -> Self {
        Self {
            router: Router::new(policy).expect("policy"),
            fx: Effects::new(),
            now: Timestamp(1_000_000),
            recoverable,
            publisher: PublisherId(1),
            op: None,
            query: None,
            cause: "",
        }
    }

    fn member(&self, generation: u64, active: Option<bool>) -> Membership {
        let source = Source {
            publisher: self.publisher,
            target: self.recoverable.then_some(TargetId(9)),
            kind: SourceKind::Engine,
            first_id: EventId(0),
            boot: None,
        };
        let status = match active {
            Some(true) => RankStatus::Active(source),
            Some(false) => RankStatus::Ambiguous,
            None => RankStatus::Missing,
        };
        let rank = MemberRank { key: KEY, generation: Generation(generation), status, ready: true };
        Membership::new(vec![rank]).expect("one rank")
    }

    fn membership(&mut self, membership: &Membership) {
        self.router.handle_membership(membership, self.now, &mut self.fx);
    }

    fn complete(&mut self, ok: bool, flaw: Option<Flaw>) {
        let op = self.op.expect("a command has been emitted");
        self.router.handle_completion(Completion { op, ok, flaw }, self.now, &mut self.fx);
    }

    fn respond(&mut self, origin: Origin, outcome: RecoveryOutcome<Word>) {
        let query = self.query.expect("a question has been asked");
        let response = RecoveryResponse { query, origin, boot: None, outcome };
        self.router.handle_recovery(response, self.now, &mut self.fx);
    }

    pub(crate) fn play(&mut self, input: &str) -> String {
        let words: Vec<&str> = input.split_whitespace().collect();
        let words = words.strip_prefix(&["again"]).unwrap_or(&words);
        match words {
            ["up", rest @ ..] => {
                let of = |mark: char| rest.iter().find_map(|word| word.strip_prefix(mark));
                if let Some(publisher) = of('p') {
                    self.publisher = PublisherId(publisher.parse().expect("a number"));
                }
                let generation = of('g').map_or(0, |number| number.parse().expect("a number"));
                let membership = self.member(generation, Some(true));
                self.membership(&membership);
            }
            ["missing"] => self.membership(&self.member(0, None)),
            ["ambiguous"] => self.membership(&self.member(0, Some(false))),
            ["gone"] => self.membership(&Membership::default()),
            ["shutdown"] => self.router.handle_shutdown(self.now, &mut self.fx),
            ["live", ids @ ..] => {
                let foreign = ids.last() == Some(&"foreign");
                let ids = ids.strip_suffix(&["foreign"]).unwrap_or(ids);
                let batch = LiveBatch {
                    publisher: self.publisher,
                    seq: None,
                    origin: if foreign { Origin::Foreign } else { Origin::Own },
                    runs: ids.iter().map(|word| run(word)).collect(),
                };
                self.router.handle_live(batch, self.now, &mut self.fx);
            }
            ["reply", "foreign"] => {
                let last = Some(EventId(0));
                let outcome =
                    RecoveryOutcome::Events { runs: vec![run("0")], last, complete: true };
                self.respond(Origin::Foreign, outcome);
            }
            ["reply", ids @ ..] => {
                let complete = ids.last() != Some(&"cut");
                let ids = ids.strip_suffix(&["cut"]).unwrap_or(ids);
                let runs: Vec<_> = ids.iter().map(|word| run(word)).collect();
                let last = runs.last().map(Run::last);
                self.respond(Origin::Own, RecoveryOutcome::Events { runs, last, complete });
            }
            ["fail"] => {
                self.respond(Origin::Own, RecoveryOutcome::Failed(QueryFailure::Transport));
            }
            ["ok"] => self.complete(true, None),
            ["refuse"] => self.complete(false, None),
            ["orphan"] => self.complete(true, Some(Flaw::Orphan)),
            ["full"] => self.complete(true, Some(Flaw::Capacity)),
            ["lost"] => self.transport(TransportChange::Lost),
            ["back"] => self.transport(TransportChange::Back),
            // Timers that find nothing to do pass in silence.
            ["wait"] => {
                for _ in 0..200 {
                    let Some(at) = self.router.next_deadline() else { break };
                    self.now = self.now.max(at);
                    self.router.handle_timeout(self.now, &mut self.fx);
                    if !self.fx.is_empty() {
                        break;
                    }
                }
            }
            other => panic!("no such input: {other:?}"),
        }
        self.told()
    }

    fn transport(&mut self, change: TransportChange) {
        self.router.handle_transport(self.publisher, change, self.now, &mut self.fx);
    }

    /// Takes the effects as text.
    pub(crate) fn told(&mut self) -> String {
        self.fx.drain_replies().for_each(drop);
        for told in self.fx.notices() {
            if let Notice::Reset { cause, .. } = told {
                self.cause = cause.name();
            }
        }
        let mut said: Vec<String> = self.fx.drain_notices().filter_map(notice).collect();
        let commands: Vec<_> = self.fx.drain_commands().collect();
        for command in &commands {
            match command {
                Command::Admit { op, .. }
                | Command::Replace { op, .. }
                | Command::Reset { op, .. } => self.op = Some(*op),
                Command::Query { query, .. } => self.query = Some(*query),
                Command::Cancel { .. } => {}
            }
        }
        let cause = self.cause;
        said.extend(commands.into_iter().map(|command| text(command, cause)));
        if said.is_empty() { "-".to_owned() } else { said.join(", ") }
    }

    pub(crate) fn state(&self) -> String {
        let Some(view) = self.router.rank(KEY) else { return "none".to_owned() };
        let mut state = view.trust.name().to_owned();
        if let Some(reason) = view.reason {
            write!(state, "({})", reason.name()).expect("a string");
        }
        if let Some(cursor) = view.cursor {
            write!(state, " @{cursor}").expect("a string");
        }
        state
    }
}

fn span(runs: &[Run<Word>]) -> String {
    runs.iter().map(|run| run.first.to_string()).collect::<Vec<_>>().join("+")
}

fn text(command: Command<Word>, cause: &str) -> String {
    match command {
        Command::Admit { runs, .. } => format!("admit {}", span(&runs)),
        Command::Replace { runs, .. } => format!("replace {}", span(&runs)),
        Command::Cancel { .. } => "cancel".to_owned(),
        Command::Query { start: None, .. } => "ask".to_owned(),
        Command::Query { start: Some(start), .. } => format!("ask {start}"),
        Command::Reset { epoch, .. } if epoch.0 > 0 => format!("reset({cause} e{epoch})"),
        Command::Reset { .. } => format!("reset({cause})"),
    }
}

fn notice(notice: Notice) -> Option<String> {
    Some(match notice {
        Notice::InitialRecoveryComplete { .. } => "initial_told".to_owned(),
        Notice::Gap { expected, got, .. } => format!("gap {expected}..{got}"),
        Notice::NewLife { .. } => "new_life".to_owned(),
        Notice::Skipped { first, last, .. } => format!("skipped {first}-{last}"),
        Notice::Discarded { reason, .. } => format!("discarded({})", reason.name()),
        Notice::Recovered { end, .. } => format!("recovered({})", end.name()),
        Notice::Trust { to, .. } => format!("now {}", to.name()),
        Notice::Reset { .. } => "emptying".to_owned(),
        // Each comes with something that says more.
        Notice::QueryFailed { .. } | Notice::Refused { .. } => return None,
        other @ (Notice::TransportGap { .. } | _) => panic!("a notice without a text: {other:?}"),
    })
}

/// Plays the table; on a difference prints the whole table as it is.
pub(crate) fn table(recoverable: bool, policy: Policy, lines: &str) -> Rig {
    let mut rig = Rig::new(recoverable, policy);
    let (mut wanted, mut got) = (String::new(), String::new());
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (input, expected) = line.split_once("->").unwrap_or((line, ""));
        let effects = rig.play(input.trim());
        writeln!(got, "        {} -> {effects} = {}", input.trim(), rig.state()).expect("a string");
        writeln!(wanted, "        {} -> {}", input.trim(), expected.trim()).expect("a string");
    }
    assert!(wanted == got, "wanted:\n{wanted}\ngot:\n{got}");
    rig
}

pub(crate) fn recoverable(lines: &str) -> Rig {
    table(true, Policy::default(), lines)
}

/// What every recoverable rank does first: emptied, then asked for its history.
const ASKED: &str = "
    up -> emptying, now fenced, reset(lifecycle) = fenced(resetting)
    ok -> now partial = partial(initial_recovery)
    wait -> ask = partial(initial_recovery)
";

/// A table that begins when the source has been asked for its history.
pub(crate) fn asked(lines: &str) -> Rig {
    recoverable(&format!("{ASKED}{lines}"))
}

/// A table that begins when messages 0 to `last` are followed exactly.
pub(crate) fn followed(last: u64, lines: &str) -> Rig {
    let ids: Vec<String> = (0..=last).map(|id| id.to_string()).collect();
    let (reply, admit) = (ids.join(" "), ids.join("+"));
    asked(&format!(
        "reply {reply} -> admit {admit} = partial(initial_recovery)
        ok -> recovered(healed), initial_told, now exact = exact @{last}
        {lines}"
    ))
}

pub(crate) fn live_only(lines: &str) -> Rig {
    table(false, Policy::default(), lines)
}
