//! What must hold (`system.md` §5): for a command when it is asked for, for an answer, and after
//! every input.

use kvmirror_core::id::Epoch;
use kvmirror_core::membership::{RankStatus, SourceKind};
use kvmirror_core::router::{Command, Input, Origin, RankView, Run, Trust};

use crate::history::{EVENT_BYTES, Part, State, Way};
use crate::profile::Profile;
use crate::world::{Question, Touches, World};

/// Events of the largest message.
const LARGEST: usize = 5;
/// Timers that one rank may have set at a time: one of each kind.
const TIMERS: usize = 5;

impl World {
    /// What an input may touch, judged by what the world knows of it.
    pub(crate) fn touches(&self, input: &Input<Part>) -> Touches {
        let due = self.router.next_deadline().is_some_and(|at| at <= self.now);
        let rank_or_due = |rank: usize| if due { Touches::Anything } else { Touches::Rank(rank) };
        let nothing = if due { Touches::Anything } else { Touches::Nothing };
        let followed = |publisher| {
            self.ranks.iter().position(|rank| {
                self.router.rank(rank.key).is_some_and(|view| view.publisher == Some(publisher))
            })
        };
        let open_op =
            |op| self.ranks.iter().position(|rank| rank.op.as_ref().and_then(op_of) == Some(op));
        match input {
            // Shutdown silences everything but completions.
            Input::Completion(done) => open_op(done.op).map_or(nothing, rank_or_due),
            _ if self.shut => Touches::Nothing,
            Input::Live(batch) if batch.origin == Origin::Foreign => nothing,
            Input::Live(batch) => followed(batch.publisher).map_or(nothing, rank_or_due),
            Input::Watermark(sign) => followed(sign.publisher).map_or(nothing, rank_or_due),
            Input::Recovery(response) => self
                .questions
                .iter()
                .find(|open| open.query == response.query)
                .map_or(nothing, |open| rank_or_due(open.rank)),
            Input::Transport(publisher, _) => self
                .publishers
                .iter()
                .find(|source| source.id() == *publisher)
                .map_or(nothing, |source| rank_or_due(source.rank)),
            Input::TargetFault(fault) => {
                self.fault_touches(self.rank_of(fault.rank), fault.epoch, fault.barrier_failed, due)
            }
            Input::SourceRejection(rejection) => {
                self.fault_touches(self.rank_of(rejection.rank), rejection.epoch, false, due)
            }
            Input::MembershipEnded if due => Touches::Anything,
            Input::MembershipEnded => Touches::Rank(usize::MAX),
            Input::Membership(_) | Input::Timeout | Input::Shutdown => Touches::Anything,
        }
    }

    /// A fault of a rank that does nothing else is judged at once; one of another epoch is late.
    fn fault_touches(&self, rank: usize, epoch: Epoch, barrier_failed: bool, due: bool) -> Touches {
        let idle = self.ranks[rank].op.is_none();
        let late = idle && (epoch != self.epoch(rank, false) || barrier_failed);
        match (due, late) {
            (true, _) => Touches::Anything,
            (false, true) => Touches::Nothing,
            (false, false) => Touches::Rank(rank),
        }
    }

    /// S1, S2, S3, S8 for a command that has just been asked for.
    pub(crate) fn check_command(&mut self, rank: usize, epoch: Epoch, command: &Command<Part>) {
        let before = self.ranks[rank].op.clone();
        self.require(before.is_none(), || format!("S3: {command:?} before {before:?} has ended"));
        let runs: &[Run<Part>] = match command {
            Command::Admit { runs, .. } => runs,
            Command::Replace { runs, .. } => runs,
            Command::Reset { .. } | Command::Query { .. } | Command::Cancel { .. } => return,
        };
        let (profile, selected) = (self.profile, self.selected(rank));
        let first = runs.first().and_then(|run| run.payload.0.first());
        if first.is_some_and(|first| {
            Some(self.publishers[first.source].id()) != self.ranks[rank].followed
        }) {
            self.ranks[rank].target.last_live = None;
        }
        let target = &mut self.ranks[rank].target;
        let (refused, content) = (target.refused, target.epoch);
        let ids = match command {
            Command::Admit { runs, .. } if runs.is_empty() => {
                Err("an admit of nothing".to_string())
            }
            Command::Admit { runs, .. } => target.take_ids(runs, profile),
            Command::Replace { .. }
            | Command::Reset { .. }
            | Command::Query { .. }
            | Command::Cancel { .. } => Ok(()),
        };
        let replaces = matches!(command, Command::Replace { .. });
        self.require(!refused, || format!("S8: {command:?} before a reset"));
        if let Err(why) = ids {
            self.require(false, || format!("{why}: {command:?}"));
        }
        if profile == Profile::Subset {
            return;
        }
        let inherits = replaces || content.is_none_or(|content| content == epoch);
        self.require(inherits, || format!("S1: {command:?} on content of {content:?}"));
        if profile == Profile::Hardened {
            let mut events = runs.iter().flat_map(|run| &run.payload.0);
            let alien = events.find(|event| Some(event.source) != selected);
            self.require(alien.is_none(), || format!("S1: {alien:?}, not of {selected:?}"));
            self.check_lives(rank, command);
        }
    }

    /// B7, B17, B34: what waited when a new life was found is not handed over to it, and no state
    /// falls back.
    fn check_lives(&mut self, rank: usize, command: &Command<Part>) {
        let state = &self.ranks[rank];
        let (runs, last): (&[Run<Part>], _) = match command {
            Command::Admit { runs, .. } => (runs, None),
            Command::Replace { last, .. } => (&[], Some(last.0)),
            Command::Reset { .. } | Command::Query { .. } | Command::Cancel { .. } => return,
        };
        let old = runs.iter().flat_map(|run| &run.payload.0).copied().find(|event| {
            let key = (event.source, event.life, event.id);
            let arrived = state.arrived.get(&key).copied().unwrap_or(u64::MAX);
            event.way == Way::Live && arrived < state.new_life_at
        });
        // An engine's whole replay that ends lower is another life's, and swaps the state as such.
        let agent = state
            .answered
            .is_some_and(|(source, _)| self.publishers[source].kind() == SourceKind::Agent);
        let before = state.target.last.filter(|_| agent);
        self.require(old.is_none(), || format!("B7: an ended life's {old:?}: {command:?}"));
        let falls = last.is_some() && last < before;
        self.require(!falls, || format!("B34: below {before:?}: {command:?}"));
    }

    /// S5 and B9 for a question that has just been asked. `recalled`: the permit came free before the
    /// same input took the question back.
    pub(crate) fn check_question(&mut self, question: Question, recalled: bool) {
        let Question { rank, source, target, .. } = question;
        let fair = self.policy.fair_recovery;
        let open = &self.questions;
        let same_rank = open.iter().any(|open| open.rank == rank);
        let same_target = fair && open.iter().any(|open| open.target == target);
        let whole = open.iter().filter(|open| open.start.is_none()).count();
        let fresh = open.iter().chain(&self.cancelled).all(|open| open.query != question.query);
        let own = self.ranks[rank].sources.contains(&source);
        let named = self.selected(rank) == Some(source);
        self.require(!self.shut, || format!("after the shutdown: {question:?}"));
        self.require(!same_rank, || format!("S5: two questions of one rank: {question:?}"));
        self.require(!same_target, || format!("B9: two questions to one target: {question:?}"));
        self.require(fresh && own, || format!("S5: an odd question: {question:?}"));
        if fair && question.start.is_none() {
            let limit = self.policy.snapshot_concurrency as usize;
            self.require(whole < limit, || format!("B9: {whole} whole ones: {question:?}"));
        }
        if self.profile == Profile::Hardened && !recalled {
            self.require(named, || format!("S4: asked a source that is gone: {question:?}"));
        }
    }

    /// What must hold after every input.
    pub(crate) fn check(&mut self) {
        let open = self.questions.len();
        let counted = self.router.queries_in_flight() as usize;
        let limit = self.policy.concurrency as usize;
        self.require(open <= limit, || format!("S5: {open} questions, {limit} allowed"));
        self.require(open == counted, || format!("{open} questions, {counted} permits"));
        let views: Vec<RankView> = self.router.ranks().collect();
        let timers = self.router.timers();
        let most = views.len() * TIMERS;
        self.require(timers <= most, || format!("{timers} timers of {} ranks", views.len()));
        for rank in 0..self.ranks.len() {
            let listed = views.iter().any(|view| view.key == self.ranks[rank].key);
            let idle = self.ranks[rank].op.is_none();
            self.require(listed || idle, || format!("rank {rank} is gone before its command"));
        }
        let bytes: usize = views.iter().map(|view| view.pending_bytes).sum();
        if self.policy.refetch_overflow {
            let slack = views.len() * LARGEST * EVENT_BYTES;
            let limit = self.policy.pending_bytes_total + slack;
            self.require(bytes <= limit, || format!("B13: {bytes} bytes wait in all"));
        }
        for view in views {
            let rank = self.rank_of(view.key);
            if self.ranks[rank].followed != view.publisher {
                // W-S9: another activation, perhaps without a barrier.
                self.ranks[rank].followed = view.publisher;
                self.ranks[rank].target.last_live = None;
                self.hear_advertisement(rank);
            }
            self.check_limits(&view);
            self.check_trust(&view);
        }
    }

    /// An activation knows the boot id that its source was advertised with (B17).
    fn hear_advertisement(&mut self, rank: usize) {
        let (Some(source), Some(entry)) =
            (self.selected(rank), self.told.get(self.ranks[rank].key))
        else {
            return;
        };
        let boot = match entry.status {
            RankStatus::Active(source) => source.boot,
            RankStatus::Missing | RankStatus::Ambiguous => None,
        };
        let lives = &self.publishers[source].lives;
        let life = lives.iter().position(|life| Some(life.boot) == boot);
        if let (Some(life), true) = (life, self.ranks[rank].followed.is_some()) {
            self.ranks[rank].target.heard.insert((source, life));
        }
    }

    /// Twice the limit, since both buffers have it, and one message that may just have come.
    fn check_limits(&mut self, view: &RankView) {
        let events = 2 * u64::from(self.policy.pending_events) + LARGEST as u64;
        self.require(view.pending_events <= events, || format!("too much waits: {view:?}"));
        if self.policy.refetch_overflow {
            let bytes = 2 * self.policy.pending_bytes + LARGEST * EVENT_BYTES;
            self.require(view.pending_bytes <= bytes, || format!("B13: too much waits: {view:?}"));
        }
    }

    /// Nothing is answered while a reset is owed or under way, nor of whom membership does not name;
    /// what is exact equals the truth.
    fn check_trust(&mut self, view: &RankView) {
        let rank = self.rank_of(view.key);
        let resetting = matches!(self.ranks[rank].op, Some(Command::Reset { .. }));
        let refused = self.ranks[rank].target.refused;
        let named = self.selected(rank).map(|source| self.publishers[source].id());
        if view.trust.answers() {
            self.require(!resetting && !refused, || format!("answers while fenced: {view:?}"));
            let follows = view.publisher.is_some() && view.publisher == named;
            self.require(follows, || format!("answers of {named:?}: {view:?}"));
        }
        if self.suspect_told() {
            let doubted = view.trust <= Trust::Suspect;
            self.require(doubted, || format!("B8: {view:?}"));
        }
        if self.profile == Profile::Hardened && self.ranks[rank].op.is_none() && !refused {
            self.check_content(rank, view);
        }
    }

    fn check_content(&mut self, rank: usize, view: &RankView) {
        let target = self.ranks[rank].target.clone();
        if view.trust.answers() {
            let selected = self.selected(rank);
            let own = target.origins.iter().all(|source| Some(*source) == selected);
            self.require(own, || format!("S1: from {:?}: {view:?}", target.origins));
            let cursor = view.cursor.map(|cursor| cursor.0);
            self.require(cursor == target.last, || {
                format!("the target is at {:?}: {view:?}", target.last)
            });
        }
        if view.trust != Trust::Exact || target.seam {
            return;
        }
        self.require(!target.flawed, || format!("exact in spite of a flaw: {view:?}"));
        let place = target.at.map(|at| at.id);
        let cursor = view.cursor.map(|cursor| cursor.0);
        self.require(place == cursor, || {
            format!("exact, but the target is at {place:?}: {view:?}")
        });
        let truth = target.at.map_or(Some(State::EMPTY), |at| {
            self.publishers[at.source].lives[at.life].truth_at(at.id)
        });
        self.require(truth == Some(target.content), || {
            format!("false exact: {:?} and not {truth:?}: {view:?}", target.content)
        });
    }

    fn suspect_told(&self) -> bool {
        !self.shut && self.told.suspect()
    }
}

pub(crate) const fn op_of(command: &Command<Part>) -> Option<kvmirror_core::id::OpId> {
    match command {
        Command::Admit { op, .. } | Command::Replace { op, .. } | Command::Reset { op, .. } => {
            Some(*op)
        }
        Command::Cancel { .. } | Command::Query { .. } => None,
    }
}
