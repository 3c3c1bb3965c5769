//! The world around the machine: its sources, targets and open work; and the one way in which the
//! machine is fed. `checks.rs` says what must hold; `play.rs` what a step does.

use std::collections::BTreeMap;
use std::fmt::Write;

use kvmirror_core::id::{
    Epoch, EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId,
};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus};
use kvmirror_core::router::{
    Command, Effects, Input, Notice, Policy, RankView, RecoveryEnd, Reply, Router,
};
use kvmirror_core::time::Timestamp;
use kvmirror_core::trace::Recorder;

use crate::history::Part;
use crate::play::without_changes;
use crate::profile::Profile;
use crate::source::Publisher;
use crate::steps::Case;
use crate::target::Target;

const KEYS: [RankKey; 3] = [RankKey::new(1, 0), RankKey::new(1, 1), RankKey::new(2, 0)];

/// What membership says of a rank, or will say once it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Missing,
    Ambiguous,
    Named(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) generation: u64,
    pub(crate) status: Status,
    pub(crate) ready: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) query: QueryId,
    pub(crate) rank: usize,
    pub(crate) source: usize,
    pub(crate) target: TargetId,
    pub(crate) start: Option<EventId>,
    /// The life whose boot id the machine knew when it asked, as far as the world can tell.
    pub(crate) known: Option<usize>,
}

/// One rank, as the world sees it.
#[derive(Clone, Debug)]
pub(crate) struct RankWorld {
    pub(crate) key: RankKey,
    pub(crate) target: Target,
    /// Its incomplete command.
    pub(crate) op: Option<Command<Part>>,
    /// `None`: not expected.
    pub(crate) place: Option<Place>,
    /// When each event last arrived live.
    pub(crate) arrived: BTreeMap<(usize, usize, u64), u64>,
    /// What arrived before belongs to a life that has been found to have ended.
    pub(crate) new_life_at: u64,
    /// A source of it has answered untruly.
    pub(crate) lied: bool,
    /// The highest generation that it ever had.
    pub(crate) generation: u64,
    /// Its publishers, as indices.
    pub(crate) sources: Vec<usize>,
    /// Whom the machine said it followed.
    pub(crate) followed: Option<PublisherId>,
    /// Whose state the last answer that counted was.
    pub(crate) answered: Option<(usize, usize)>,
    pub(crate) fault_replies_owed: u32,
    pub(crate) loss_replies_owed: u32,
}

/// What an input may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touches {
    /// It no longer counts: nothing.
    Nothing,
    /// Of targets, this rank's only.
    Rank(usize),
    Anything,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) profile: Profile,
    pub(crate) policy: Policy,
    pub(crate) router: Router<Part>,
    /// A copy that is fed the same (B43).
    twin: Option<Router<Part>>,
    pub(crate) now: Timestamp,
    /// What is due does not fire before the next input, but with it.
    pub(crate) late: bool,
    pub(crate) publishers: Vec<Publisher>,
    pub(crate) ranks: Vec<RankWorld>,
    /// What the next snapshot will say.
    pub(crate) membership: Membership,
    /// What the last one said.
    pub(crate) told: Membership,
    pub(crate) questions: Vec<Question>,
    pub(crate) cancelled: Vec<Question>,
    pub(crate) ended: Vec<OpId>,
    pub(crate) shut: bool,
    pub(crate) suspect: bool,
    /// Live messages so far.
    pub(crate) arrivals: u64,
    recorder: Option<(Recorder, String)>,
    pub(crate) breach: Option<String>,
}

impl World {
    pub(crate) fn new(case: &Case, recorded: bool) -> Self {
        let mut publishers = Vec::new();
        let mut ranks = Vec::new();
        for (rank, configs) in case.sources.iter().enumerate() {
            let first = publishers.len();
            for config in configs {
                publishers.push(Publisher::new(publishers.len(), rank, *config));
            }
            ranks.push(RankWorld {
                key: KEYS[rank],
                target: Target::new(),
                op: None,
                place: Some(Place { generation: 0, status: Status::Named(first), ready: true }),
                arrived: BTreeMap::new(),
                new_life_at: 0,
                lied: false,
                generation: 0,
                sources: (first..publishers.len()).collect(),
                followed: None,
                answered: None,
                fault_replies_owed: 0,
                loss_replies_owed: 0,
            });
        }
        let recorder = recorded.then(|| {
            let mut text = String::new();
            let recorder = Recorder::new();
            recorder.header("router model", &case.policy, &mut text);
            (recorder, text)
        });
        Self {
            profile: case.profile,
            policy: case.policy,
            router: Router::new(case.policy).expect("no limit is zero"),
            twin: None,
            now: Timestamp(1_000),
            late: false,
            publishers,
            ranks,
            membership: Membership::default(),
            told: Membership::default(),
            questions: Vec::new(),
            cancelled: Vec::new(),
            ended: Vec::new(),
            shut: false,
            suspect: false,
            arrivals: 1,
            recorder,
            breach: None,
        }
    }

    /// What was recorded.
    pub(crate) fn trace(&self) -> &str {
        self.recorder.as_ref().map_or("", |(_, text)| text)
    }

    /// Notes the first thing that must hold and does not.
    pub(crate) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds && self.breach.is_none() {
            self.breach = Some(otherwise());
        }
    }

    pub(crate) fn copy_machine(&mut self) {
        self.twin = Some(self.router.clone());
    }

    pub(crate) fn rank_of(&self, key: RankKey) -> usize {
        self.ranks.iter().position(|rank| rank.key == key).expect("a rank of this world")
    }

    pub(crate) fn view(&self, rank: usize) -> Option<RankView> {
        self.router.rank(self.ranks[rank].key)
    }

    /// Whom the last snapshot names for a rank.
    pub(crate) fn selected(&self, rank: usize) -> Option<usize> {
        let entry = self.told.get(self.ranks[rank].key).filter(|entry| entry.ready)?;
        match entry.status {
            RankStatus::Active(source) => usize::try_from(source.publisher.0 - 1).ok(),
            RankStatus::Missing | RankStatus::Ambiguous => None,
        }
    }

    /// Writes into the next snapshot what has become of a rank.
    pub(crate) fn compose(&mut self) {
        let mut next = self.membership.clone();
        let mut guard = next.begin_next();
        guard.set_suspect(self.suspect);
        for rank in &self.ranks {
            let Some(place) = rank.place else {
                guard.remove(rank.key);
                continue;
            };
            let status = match place.status {
                Status::Missing => RankStatus::Missing,
                Status::Ambiguous => RankStatus::Ambiguous,
                Status::Named(source) => RankStatus::Active(self.publishers[source].advertised()),
            };
            let generation = Generation(place.generation);
            guard.set(MemberRank { key: rank.key, generation, status, ready: place.ready });
        }
        self.membership = next;
    }

    /// Feeds an input; what is due fires before it, unless it is to come late. A snapshot never has
    /// both, since the checks go by the newest.
    pub(crate) fn feed(&mut self, input: Input<Part>) {
        let due = |world: &Self| world.router.next_deadline().is_some_and(|at| at <= world.now);
        let late = self.late && !matches!(input, Input::Membership(_));
        if due(self) && !late && input != Input::Timeout {
            self.hand(Input::Timeout);
        }
        self.hand(input);
    }

    fn hand(&mut self, input: Input<Part>) {
        if self.breach.is_some() {
            return;
        }
        let touches = self.touches(&input);
        if let (Input::Membership(membership), false) = (&input, self.shut) {
            for rank in &mut self.ranks {
                // Whatever differs may bind the rank anew, perhaps without a barrier.
                if membership.get(rank.key) != self.told.get(rank.key) {
                    rank.followed = None;
                    rank.target.heard.clear();
                }
            }
            self.told = membership.clone();
        }
        let before = (touches == Touches::Nothing).then(|| self.standing());
        if let Some((recorder, text)) = &mut self.recorder {
            recorder.input(self.now, &input, text);
        }
        let whole = self.whole_snapshot(&input);
        let mut fx = Effects::new();
        self.router.handle(input.clone(), self.now, &mut fx);
        if let Some((recorder, text)) = &mut self.recorder {
            recorder.outputs(&fx, text);
        }
        if let Some(mut twin) = self.twin.take() {
            let mut other = Effects::new();
            twin.handle(input.clone(), self.now, &mut other);
            self.require(fx == other, || format!("B43: {fx:?} and {other:?}"));
            self.twin = Some(twin);
        }
        if let Some((other, other_fx)) = whole {
            // A rank that is busy with something else looks at it again in its turn.
            let busy = self.ranks.iter().any(|rank| rank.op.is_some());
            let same = other_fx == fx && (busy || other == self.router);
            self.require(same, || format!("the whole snapshot does {other_fx:?}, not {fx:?}"));
        }
        if let Some(before) = before {
            let after = self.standing();
            let none = fx.commands().len() == 0;
            self.require(none && before == after, || {
                format!("S4, S6: {input:?} had an effect: {fx:?}, {before:?}, then {after:?}")
            });
        }
        self.mark_new_life(&input, touches, &fx);
        if let Input::Completion(done) = &input {
            self.carry_out(*done);
        }
        if let Input::Recovery(response) = &input {
            let mut recalled = fx.commands().filter_map(cancelled_by);
            if !self.shut && !recalled.any(|query| query == response.query) {
                self.questions.retain(|open| open.query != response.query);
            }
        }
        self.collect(fx, touches);
        self.check();
    }

    /// A rank that does nothing else drops what waits when it learns of a new life.
    fn mark_new_life(&mut self, input: &Input<Part>, touches: Touches, fx: &Effects<Part>) {
        let Touches::Rank(touched) = touches else { return };
        let watermark = matches!(input, Input::Watermark(_));
        let ended =
            |notice: &Notice| matches!(notice, Notice::Recovered { end: RecoveryEnd::NewLife, .. });
        let told = |notice: &Notice| watermark && matches!(notice, Notice::NewLife { .. });
        let found = fx.notices().iter().any(|notice| ended(notice) || told(notice));
        if found && self.ranks[touched].op.is_none() {
            self.ranks[touched].new_life_at = self.arrivals;
        }
    }

    /// A snapshot that says what it changes does the same as one that does not: what that would do.
    fn whole_snapshot(&self, input: &Input<Part>) -> Option<(Router<Part>, Effects<Part>)> {
        let Input::Membership(membership) = input else { return None };
        membership.since()?;
        let (mut other, mut fx) = (self.router.clone(), Effects::new());
        other.handle(Input::Membership(without_changes(membership)), self.now, &mut fx);
        Some((other, fx))
    }

    /// All that an input without effect may not change.
    fn standing(&self) -> (Vec<RankView>, usize, u32, Option<Timestamp>) {
        let router = &self.router;
        (
            router.ranks().collect(),
            router.timers(),
            router.queries_in_flight(),
            router.next_deadline(),
        )
    }

    fn collect(&mut self, mut fx: Effects<Part>, touches: Touches) {
        for notice in fx.drain_notices() {
            if let Notice::Skipped { rank, first, last } = notice {
                let rank = self.rank_of(rank);
                self.ranks[rank].target.skipped.push((first, last));
            }
        }
        for reply in fx.drain_replies() {
            self.replied(reply);
        }
        let recalled: Vec<_> = fx.commands().filter_map(cancelled_by).collect();
        for command in fx.drain_commands() {
            match command {
                Command::Cancel { query } => {
                    let at = self.questions.iter().position(|open| open.query == query);
                    self.require(at.is_some(), || format!("{query} is cancelled, but not open"));
                    if let Some(at) = at {
                        self.cancelled.push(self.questions.remove(at));
                    }
                }
                Command::Query { query, rank, publisher, target, start } => {
                    let rank = self.rank_of(rank);
                    let source = usize::try_from(publisher.0 - 1).expect("small");
                    let known = self.ranks[rank].target.heard_of(source);
                    let question = Question { query, rank, source, target, start, known };
                    self.check_question(question, recalled.contains(&query));
                    self.questions.push(question);
                }
                Command::Admit { rank, epoch, .. }
                | Command::Replace { rank, epoch, .. }
                | Command::Reset { rank, epoch, .. } => {
                    let rank = self.rank_of(rank);
                    let own = match touches {
                        Touches::Nothing => false,
                        Touches::Rank(touched) => touched == rank,
                        Touches::Anything => true,
                    };
                    self.require(own, || format!("S7: {touches:?}, but {command:?}"));
                    self.check_command(rank, epoch, &command);
                    self.ranks[rank].op = Some(command);
                }
            }
        }
    }

    fn replied(&mut self, reply: Reply) {
        let owed = match reply {
            Reply::Fault { rank, .. } => {
                let rank = self.rank_of(rank);
                &mut self.ranks[rank].fault_replies_owed
            }
            Reply::TransportLost { publisher, .. } => {
                let source = usize::try_from(publisher.0 - 1).expect("small");
                let rank = self.publishers[source].rank;
                &mut self.ranks[rank].loss_replies_owed
            }
        };
        let was_owed = *owed > 0;
        *owed = owed.saturating_sub(1);
        self.require(was_owed, || format!("nobody asked for {reply:?}"));
    }

    /// The epoch of a fault: the one in force, or another one.
    pub(crate) fn epoch(&self, rank: usize, late: bool) -> Epoch {
        let current = self.told.get(self.ranks[rank].key).map_or(0, |entry| entry.generation.0);
        if late { Epoch(current.checked_sub(1).unwrap_or(99)) } else { Epoch(current) }
    }

    /// For a failing case: what the ranks and their targets look like.
    pub(crate) fn picture(&self) -> String {
        let mut text = String::new();
        for rank in &self.ranks {
            let view = self.router.rank(rank.key);
            writeln!(text, "# {}: {view:?}\n#   {:?}", rank.key, rank.target).expect("a string");
        }
        text
    }
}

const fn cancelled_by(command: &Command<Part>) -> Option<QueryId> {
    match command {
        Command::Cancel { query } => Some(*query),
        Command::Admit { .. }
        | Command::Query { .. }
        | Command::Replace { .. }
        | Command::Reset { .. } => None,
    }
}
