//! What each step does to the world.

use kvmirror_core::id::{BootId, EventId, PublisherId};
use kvmirror_core::membership::{Membership, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};

use crate::checks::op_of;
use crate::history::Part;
use crate::profile::Profile;
use crate::source::{Message, Twist, Words};
use crate::steps::{Fate, Member, Pass, Step, Who};
use crate::target::{Position, Target};
use crate::world::{Place, Question, RankWorld, Status, World};

impl World {
    pub(crate) fn step(&mut self, step: &Step) {
        self.now = self.now.after(Micros::from_millis(1));
        self.late = self.now.0.is_multiple_of(7);
        match step {
            Step::Publish { rank, who, changes, fate } => {
                let Some(source) = self.source(*rank, *who) else { return };
                let message = self.publishers[source].publish(changes);
                self.carry(source, message, *fate);
            }
            Step::Deliver { rank, who, which } => {
                let Some(source) = self.source(*rank, *who) else { return };
                let delayed = &mut self.publishers[source].delayed;
                let at = which % delayed.len().max(1);
                if let Some(message) = delayed.remove(at) {
                    self.live(source, &message, Origin::Own);
                }
            }
            Step::Repeat { rank, who, which } => {
                let Some(source) = self.source(*rank, *who) else { return };
                let sent = &self.publishers[source].sent;
                if let Some(message) = sent.get(which % sent.len().max(1)).cloned() {
                    self.live(source, &message, Origin::Own);
                }
            }
            Step::Stranger { watermark } => self.stranger(*watermark),
            Step::Rebirth { rank, who, noticed, unseen } => {
                let Some(source) = self.source(*rank, *who) else { return };
                if *noticed {
                    self.transport(source, TransportChange::Lost);
                }
                self.publishers[source].begin_life();
                for change in unseen {
                    self.publishers[source].publish(&[(*change, false)]);
                }
            }
            Step::Transport { rank, who, back } => {
                let Some(source) = self.source(*rank, *who) else { return };
                let change = if *back { TransportChange::Back } else { TransportChange::Lost };
                if self.publishers[source].up != *back {
                    self.transport(source, change);
                }
            }
            Step::Watermark { rank, who, behind } => {
                let Some(source) = self.source(*rank, *who) else { return };
                self.watermark(source, *behind);
            }
            Step::Answer { which, twist } => {
                if !self.questions.is_empty() {
                    let question = self.questions[which % self.questions.len()];
                    self.answer(question, *twist);
                }
            }
            Step::LateAnswer { which, twist } => {
                if !self.cancelled.is_empty() {
                    let question = self.cancelled[which % self.cancelled.len()];
                    self.answer(question, *twist);
                }
            }
            Step::Complete { rank, ok, flaw } => self.complete(rank % self.ranks.len(), *ok, *flaw),
            Step::LateCompletion { which, ok } => {
                if !self.ended.is_empty() {
                    let op = self.ended[which % self.ended.len()];
                    self.feed(Input::Completion(Completion { op, ok: *ok, flaw: None }));
                }
            }
            Step::Change { rank, to, moves } => self.change(rank % self.ranks.len(), *to, *moves),
            Step::Suspect(suspect) => {
                self.suspect = *suspect;
                self.tell(false, false);
            }
            Step::Tell { whole, twice } => self.tell(*whole, *twice),
            Step::Fault { rank, late, barrier_failed } => {
                let rank = rank % self.ranks.len();
                self.owe_fault_reply(rank);
                let (key, epoch) = (self.ranks[rank].key, self.epoch(rank, *late));
                let barrier_failed = *barrier_failed;
                self.feed(Input::TargetFault(TargetFault { rank: key, epoch, barrier_failed }));
            }
            Step::Reject { rank, late } => {
                let rank = rank % self.ranks.len();
                self.owe_fault_reply(rank);
                let (key, epoch) = (self.ranks[rank].key, self.epoch(rank, *late));
                self.feed(Input::SourceRejection(SourceRejection { rank: key, epoch }));
            }
            Step::Pass(pass) => self.pass(*pass),
            Step::MembershipEnded => {
                if !self.shut {
                    self.suspect = true;
                    self.feed(Input::MembershipEnded);
                }
            }
            Step::Shutdown => self.shut_down(),
        }
    }

    /// The publisher that a step is about.
    fn source(&self, rank: usize, who: Who) -> Option<usize> {
        let rank = &self.ranks[rank % self.ranks.len()];
        match (who, rank.place.map(|place| place.status)) {
            (Who::Named, Some(Status::Named(source))) => Some(source),
            (Who::Named, Some(Status::Missing | Status::Ambiguous) | None) => None,
            (Who::Any(which), _) => Some(rank.sources[which % rank.sources.len()]),
        }
    }

    pub(crate) fn carry(&mut self, source: usize, message: Message, fate: Fate) {
        match fate {
            _ if !self.publishers[source].up => {}
            Fate::Delivered => self.live(source, &message, Origin::Own),
            Fate::Lost => {}
            Fate::Delayed => self.publishers[source].delayed.push_back(message),
            Fate::Doubled => {
                self.live(source, &message, Origin::Own);
                self.live(source, &message, Origin::Own);
            }
            Fate::Foreign => self.live(source, &message, Origin::Foreign),
        }
    }

    fn live(&mut self, source: usize, message: &Message, origin: Origin) {
        let publisher = &self.publishers[source];
        if !publisher.up {
            return;
        }
        let runs = publisher.cut(&message.events).into_iter().collect();
        let (publisher, rank) = (publisher.id(), publisher.rank);
        let arrival = self.arrivals;
        self.arrivals += 1;
        for event in &message.events {
            self.ranks[rank].arrived.insert((source, event.life, event.id), arrival);
        }
        self.feed(Input::Live(LiveBatch { publisher, seq: message.seq, origin, runs }));
    }

    fn stranger(&mut self, watermark: bool) {
        let publisher = PublisherId(77);
        let input = if watermark {
            Input::Watermark(Watermark { publisher, last: Some(EventId(9)), boot: Some(BootId(1)) })
        } else {
            let runs = self.publishers[0].cut(&self.publishers[0].life().events);
            let runs = runs.into_iter().take(1).collect();
            Input::Live(LiveBatch { publisher, seq: None, origin: Origin::Own, runs })
        };
        self.feed(input);
    }

    pub(crate) fn transport(&mut self, source: usize, change: TransportChange) {
        let publisher = &mut self.publishers[source];
        publisher.up = change == TransportChange::Back;
        publisher.delayed.clear();
        let (id, rank) = (publisher.id(), publisher.rank);
        if change == TransportChange::Lost && !self.shut {
            self.ranks[rank].loss_replies_owed += 1;
        }
        self.feed(Input::Transport(id, change));
    }

    /// An agent's sign of life, as things stood `behind` events ago.
    pub(crate) fn watermark(&mut self, source: usize, behind: usize) {
        let publisher = &self.publishers[source];
        if publisher.kind() == SourceKind::Engine || !publisher.up {
            return;
        }
        let last = publisher.life().as_it_was(behind).newest();
        let (id, boot) = (publisher.id(), publisher.boot());
        let (rank, life) = (publisher.rank, publisher.lives.len() - 1);
        let believes = self.ranks[rank].op.is_none()
            && self.view(rank).is_some_and(|view| {
                view.publisher == Some(id) && view.trust.answers() && view.cursor.is_some()
            });
        let heard = self.ranks[rank].target.heard_of(source);
        self.feed(Input::Watermark(Watermark { publisher: id, last, boot }));
        if boot.is_none() || !believes || self.shut {
            return;
        }
        if self.profile == Profile::Hardened && heard.is_some_and(|heard| heard != life) {
            let resets = matches!(self.ranks[rank].op, Some(Command::Reset { .. }));
            self.require(resets, || format!("B17: {boot:?} says {last:?}, {heard:?} was known"));
        }
        self.ranks[rank].target.heard.insert((source, life));
    }

    pub(crate) fn answer(&mut self, question: Question, twist: Twist) {
        let Question { query, rank, source, start, .. } = question;
        let counts = self.questions.iter().any(|open| open.query == query);
        let idle = self.ranks[rank].op.is_none();
        let answer = self.publishers[source].answer(start, twist);
        if counts {
            self.ranks[rank].answered = Some((source, answer.life));
            self.ranks[rank].target.answered = true;
            self.ranks[rank].lied |= twist.lies();
        }
        let failed = matches!(twist.words, Words::Failed(_)) || twist.other_boot;
        let tells = answer.boot.is_some() && !failed && !twist.foreign;
        self.feed(Input::Recovery(RecoveryResponse {
            query,
            origin: answer.origin,
            boot: answer.boot,
            outcome: answer.outcome,
        }));
        if !counts || !idle || self.cancelled.iter().any(|open| open.query == query) {
            return;
        }
        if twist.foreign && !failed {
            let convicted = matches!(self.ranks[rank].op, Some(Command::Reset { .. }));
            self.require(convicted, || format!("S6: a foreign answer to {question:?}"));
        }
        let other = question.known.is_some_and(|known| known != answer.life);
        if tells && other && self.profile == Profile::Hardened {
            let resets = matches!(self.ranks[rank].op, Some(Command::Reset { .. }));
            self.require(resets, || format!("B17: {:?} answers {question:?}", answer.boot));
        }
        if tells && !other {
            self.ranks[rank].target.heard.insert((source, answer.life));
        }
    }

    fn complete(&mut self, rank: usize, ok: bool, flaw: Option<Flaw>) {
        let Some(op) = self.ranks[rank].op.as_ref().and_then(op_of) else { return };
        self.feed(Input::Completion(Completion { op, ok, flaw: flaw.filter(|_| ok) }));
    }

    /// The target has done what it was told, or part of it.
    pub(crate) fn carry_out(&mut self, done: Completion) {
        let open = |rank: &RankWorld| rank.op.as_ref().and_then(op_of) == Some(done.op);
        let Some(at) = self.ranks.iter().position(open) else { return };
        let Some(command) = self.ranks[at].op.take() else { return };
        self.ended.push(done.op);
        let answered = self.ranks[at].answered;
        let resets = matches!(command, Command::Reset { .. });
        let Self { ranks, publishers, .. } = self;
        let target = &mut ranks[at].target;
        let apply = |target: &mut Target, runs: &[Run<Part>], count: usize| {
            for event in runs.iter().flat_map(|run| &run.payload.0).take(count) {
                target.apply(*event, publishers[event.source].proof());
            }
        };
        match command {
            Command::Admit { runs, epoch, .. } => {
                apply(target, &runs, if done.ok { usize::MAX } else { 1 });
                target.epoch = Some(epoch);
            }
            Command::Replace { runs, last, epoch, .. } if done.ok => {
                let heard = std::mem::take(&mut target.heard);
                target.reset(Scope::All);
                target.heard = heard;
                apply(target, &runs, usize::MAX);
                target.barrier(Some(last.0));
                target.epoch = Some(epoch);
                target.at = answered.map(|(source, life)| Position { source, life, id: last.0 });
            }
            Command::Reset { scope, .. } if done.ok => target.reset(scope),
            Command::Replace { .. }
            | Command::Reset { .. }
            | Command::Cancel { .. }
            | Command::Query { .. } => {}
        }
        target.flawed |= done.flaw.is_some() && !resets;
        target.refused |= !done.ok;
    }

    fn owe_fault_reply(&mut self, rank: usize) {
        if !self.shut {
            self.ranks[rank].fault_replies_owed += 1;
        }
    }

    fn change(&mut self, rank: usize, to: Member, moves: bool) {
        let state = &mut self.ranks[rank];
        let place = state.place.unwrap_or(Place {
            generation: state.generation,
            status: Status::Missing,
            ready: true,
        });
        let mut next = place;
        match to {
            Member::Gone => {
                state.generation += u64::from(moves);
                state.place = None;
                self.compose();
                return;
            }
            Member::Missing => next.status = Status::Missing,
            Member::Ambiguous => next.status = Status::Ambiguous,
            Member::Named(which) => {
                next.status = Status::Named(state.sources[which % state.sources.len()]);
            }
            Member::Gate => next.ready = !place.ready,
            Member::Described { recoverable } => {
                if let Status::Named(source) = place.status {
                    self.publishers[source].config.recoverable = recoverable;
                }
            }
            Member::Same => {}
        }
        next.generation += u64::from(moves);
        state.generation = next.generation;
        state.place = Some(next);
        self.compose();
    }

    /// Hands the newest snapshot in: with what has changed, or without.
    pub(crate) fn tell(&mut self, whole: bool, twice: bool) {
        self.compose();
        let mut membership = self.membership.clone();
        if whole {
            membership = without_changes(&membership);
        }
        self.feed(Input::Membership(membership.clone()));
        if twice && self.is_settled() {
            self.feed(Input::Timeout);
            let before = self.router.clone();
            self.feed(Input::Membership(membership));
            let same = self.router == before;
            self.require(same, || format!("an equal snapshot changed {before:?}"));
        }
    }

    /// Whether a snapshot that says the same again has nothing to mend.
    fn is_settled(&self) -> bool {
        !self.shut
            && self.ranks.iter().all(|rank| rank.op.is_none())
            && self.router.ranks().all(|view| {
                let rank = self.rank_of(view.key);
                let named = self.selected(rank).map(|source| self.publishers[source].id());
                view.trust != Trust::Fenced
                    && view.publisher == named
                    && self.told.get(view.key).is_some()
            })
    }

    fn pass(&mut self, pass: Pass) {
        let Some(at) = self.router.next_deadline() else { return };
        match pass {
            Pass::Early if at > self.now => {
                self.now = Timestamp(at.0 - 1).max(self.now);
                self.feed(Input::Timeout);
                let none = self.router.next_deadline() == Some(at);
                self.require(none, || format!("a timer fired before {at:?}"));
            }
            Pass::Early => {}
            Pass::Exact => {
                self.now = self.now.max(at);
                self.feed(Input::Timeout);
            }
            Pass::Late(seconds) => {
                self.now = self.now.max(at).after(Micros::from_secs(seconds));
                self.feed(Input::Timeout);
            }
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.feed(Input::Shutdown);
        self.shut = true;
    }
}

/// The same snapshot, which says nothing of the one before.
pub(crate) fn without_changes(membership: &Membership) -> Membership {
    let ranks = membership.ranks().copied().collect();
    Membership::restored(ranks, membership.suspect(), membership.id(), None).expect("each once")
}
