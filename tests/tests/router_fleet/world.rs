//! The fleet around the router: engines, ways, questions, targets; and what must hold after every
//! step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use kvmirror_core::id::{EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};
use kvmirror_sim::engine::{Change, Lives, Message};

pub(crate) const KEYS: [RankKey; 3] = [RankKey::new(1, 0), RankKey::new(1, 1), RankKey::new(2, 0)];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Delivered,
    Lost,
    Delayed,
    Foreign,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The ring as it was when the question was sent, not as it is now.
    pub(crate) stale: bool,
    pub(crate) cut: Option<usize>,
    pub(crate) fail: bool,
    pub(crate) foreign: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Publish { rank: usize, change: Change, damaged: bool, fate: Fate },
    Deliver { rank: usize, which: usize },
    Restart { rank: usize, noticed: bool },
    Drop(usize),
    Return(usize),
    Answer { which: usize, reply: Reply },
    LateAnswer { which: usize, reply: Reply },
    Complete { which: usize, ok: bool, flaw: Option<Flaw> },
    StaleCompletion { which: usize, ok: bool },
    LateDuplicate { rank: usize, back: usize },
    Wait,
    Remove(usize),
    Add { rank: usize, fresh_engine: bool, recoverable: bool },
    Bump(usize),
    Ambiguous(usize),
}

/// One engine behind one rank, as it is registered now.
#[derive(Clone, Debug)]
struct Lane {
    publisher: PublisherId,
    generation: u64,
    recoverable: bool,
    ambiguous: bool,
    up: bool,
    delayed: VecDeque<Message>,
}

#[derive(Clone, Debug)]
struct Question {
    query: QueryId,
    rank: usize,
    start: Option<EventId>,
    at_send: Vec<Run<Message>>,
}

/// One rank's target, and what the checks remember of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub(crate) blocks: BTreeSet<u8>,
    /// The message applied last since the last reset.
    last: Option<Message>,
    /// Highest id admitted since the last barrier.
    admitted: Option<u64>,
    skipped: Vec<(u64, u64)>,
    refused: bool,
    pub(crate) flawed: bool,
    /// A new life went on at exactly the next id of the old one: the stream cannot show it.
    pub(crate) seam: bool,
}

pub(crate) struct World {
    pub(crate) router: Router<Message>,
    fx: Effects<Message>,
    pub(crate) lives: Lives,
    pub(crate) rings: [usize; 3],
    /// The life that runs behind each rank, registered or not.
    pub(crate) running: [usize; 3],
    lanes: [Option<Lane>; 3],
    pub(crate) targets: [Target; 3],
    concurrency: usize,
    now: Timestamp,
    questions: Vec<Question>,
    cancelled: Vec<Question>,
    ops: BTreeMap<usize, Command<Message>>,
    ended: Vec<OpId>,
    next_publisher: u64,
    log: String,
}

fn index_of(key: RankKey) -> usize {
    KEYS.iter().position(|known| *known == key).expect("a rank of the fleet")
}

impl World {
    pub(crate) fn new(rings: [usize; 3], recoverable: [bool; 3], policy: Policy) -> Self {
        let mut lives = Lives::default();
        let running = [lives.begin(), lives.begin(), lives.begin()];
        let dirty = Target { blocks: BTreeSet::from([250]), ..Target::default() };
        let mut world = Self {
            router: Router::new(policy).expect("policy"),
            fx: Effects::new(),
            lives,
            rings,
            running,
            lanes: [None, None, None],
            targets: [dirty.clone(), dirty.clone(), dirty],
            concurrency: usize::try_from(policy.concurrency).expect("small"),
            now: Timestamp(1),
            questions: vec![],
            cancelled: vec![],
            ops: BTreeMap::new(),
            ended: vec![],
            next_publisher: 1,
            log: String::new(),
        };
        for (rank, recoverable) in recoverable.into_iter().enumerate() {
            world.add(rank, false, recoverable);
        }
        world
    }

    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    pub(crate) fn recoverable(&self, rank: usize) -> Option<bool> {
        self.lanes[rank].as_ref().map(|lane| lane.recoverable)
    }

    fn collect(&mut self) {
        let notices: Vec<_> = self.fx.drain_notices().collect();
        for notice in notices {
            writeln!(self.log, "{notice:?}").expect("a string");
            if let Notice::Skipped { rank, first, last } = notice {
                self.targets[index_of(rank)].skipped.push((first.0, last.0));
            }
        }
        let commands: Vec<_> = self.fx.drain_commands().collect();
        for command in commands {
            writeln!(self.log, "{command:?}").expect("a string");
            match command {
                Command::Cancel { query } => {
                    let at = self.questions.iter().position(|open| open.query == query);
                    self.cancelled.push(self.questions.remove(at.expect("an open question")));
                }
                Command::Query { query, rank, start, publisher, .. } => {
                    let rank = index_of(rank);
                    let lane = self.lanes[rank].as_ref().expect("asked while registered");
                    assert_eq!(lane.publisher, publisher, "asked a source that is gone");
                    let at_send = self.lives.replay(self.running[rank], self.rings[rank], start);
                    self.questions.push(Question { query, rank, start, at_send });
                }
                Command::Admit { rank, ref runs, .. } => {
                    self.check_admit(index_of(rank), runs);
                    self.issued(index_of(rank), command);
                }
                Command::Replace { rank, .. } => {
                    assert!(!self.targets[index_of(rank)].refused, "S8: replace before a reset");
                    self.issued(index_of(rank), command);
                }
                Command::Reset { rank, .. } => self.issued(index_of(rank), command),
            }
        }
        self.check_questions();
    }

    fn issued(&mut self, rank: usize, command: Command<Message>) {
        let before = self.ops.insert(rank, command);
        assert!(before.is_none(), "S3: two incomplete commands: {before:?}");
    }

    /// S1, S2, S8 for an admit that has just been asked for.
    fn check_admit(&mut self, rank: usize, runs: &Runs<Message>) {
        let target = &mut self.targets[rank];
        assert!(!target.refused, "S8: admit before a reset");
        assert!(self.lanes[rank].is_some(), "S1: admit for a rank without a source");
        for run in runs {
            let first = run.first.0;
            if let Some(last) = target.admitted {
                assert!(first > last, "S2: {first} after {last}");
                if first > last + 1 {
                    let told = target.skipped.contains(&(last + 1, first - 1));
                    assert!(told, "S2: {first} after {last}, told {:?}", target.skipped);
                }
            }
            target.admitted = Some(run.last().0);
        }
    }

    /// S5.
    fn check_questions(&self) {
        assert!(self.questions.len() <= self.concurrency, "S5: {:?}", self.questions);
        for rank in 0..KEYS.len() {
            let open = self.questions.iter().filter(|open| open.rank == rank).count();
            assert!(open <= 1, "S5: {open} questions for {rank}");
        }
        let counted = usize::try_from(self.router.queries_in_flight()).expect("small");
        assert_eq!(counted, self.questions.len(), "permits and questions differ");
    }

    fn tell_membership(&mut self) {
        let ranks = self.lanes.iter().zip(KEYS).filter_map(|(lane, key)| {
            let lane = lane.as_ref()?;
            let source = Source {
                publisher: lane.publisher,
                target: lane.recoverable.then_some(TargetId(lane.publisher.0)),
                kind: SourceKind::Engine,
                first_id: EventId(0),
                boot: None,
            };
            let status =
                if lane.ambiguous { RankStatus::Ambiguous } else { RankStatus::Active(source) };
            let generation = Generation(lane.generation);
            Some(MemberRank { key, generation, status, ready: true })
        });
        let membership = Membership::new(ranks.collect()).expect("each rank once");
        self.router.handle_membership(&membership, self.now, &mut self.fx);
        self.collect();
    }

    fn add(&mut self, rank: usize, fresh_engine: bool, recoverable: bool) {
        if self.lanes[rank].is_some() {
            return;
        }
        if fresh_engine {
            self.running[rank] = self.lives.begin();
        }
        let publisher = PublisherId(self.next_publisher);
        self.next_publisher += 1;
        self.lanes[rank] = Some(Lane {
            publisher,
            generation: 0,
            recoverable,
            ambiguous: false,
            up: true,
            delayed: VecDeque::new(),
        });
        self.tell_membership();
    }

    fn live(&mut self, rank: usize, message: Message, origin: Origin) {
        let Some(lane) = &self.lanes[rank] else { return };
        let batch = LiveBatch {
            publisher: lane.publisher,
            seq: None,
            origin,
            runs: Runs::from_buf([message.run()]),
        };
        let before = (origin == Origin::Foreign).then(|| self.router.rank(KEYS[rank]));
        self.router.handle_live(batch, self.now, &mut self.fx);
        if let Some(before) = before {
            assert_eq!(before, self.router.rank(KEYS[rank]), "S6: a foreign message had an effect");
        }
        self.collect();
    }

    fn transport(&mut self, rank: usize, change: TransportChange) {
        let Some(lane) = &mut self.lanes[rank] else { return };
        lane.up = change == TransportChange::Back;
        lane.delayed.clear();
        let publisher = lane.publisher;
        self.router.handle_transport(publisher, change, self.now, &mut self.fx);
        self.collect();
    }

    fn answer(&mut self, question: Question, reply: Reply) {
        let outcome = if reply.fail {
            RecoveryOutcome::Failed(QueryFailure::Transport)
        } else {
            let (life, ring) = (self.running[question.rank], self.rings[question.rank]);
            let mut runs = if reply.stale {
                question.at_send
            } else {
                self.lives.replay(life, ring, question.start)
            };
            runs.truncate(reply.cut.unwrap_or(usize::MAX));
            let last = runs.last().map(Run::last);
            RecoveryOutcome::Events { runs, last, complete: reply.cut.is_none() }
        };
        let origin = if reply.foreign { Origin::Foreign } else { Origin::Own };
        let response = RecoveryResponse { query: question.query, origin, boot: None, outcome };
        self.router.handle_recovery(response, self.now, &mut self.fx);
        self.collect();
    }

    fn apply(&mut self, rank: usize, message: Message) {
        let target = &mut self.targets[rank];
        if let Some(last) = target.last
            && last.life != message.life
            && last.seq + 1 == message.seq
        {
            target.seam = true;
        }
        if message.clears() {
            target.seam = false;
            target.flawed = false;
        }
        if !message.damaged {
            message.change.apply(&mut target.blocks);
        }
        target.last = Some(message);
    }

    fn empty(&mut self, rank: usize) {
        let target = &mut self.targets[rank];
        target.blocks.clear();
        target.last = None;
        target.admitted = None;
        target.skipped.clear();
        target.flawed = false;
        target.seam = false;
    }

    fn complete(&mut self, which: usize, ok: bool, flaw: Option<Flaw>) {
        let ranks: Vec<usize> = self.ops.keys().copied().collect();
        let Some(rank) = ranks.get(which % ranks.len().max(1)).copied() else { return };
        let Some(command) = self.ops.remove(&rank) else { return };
        let mut flaw = flaw.filter(|_| ok);
        let op = match command {
            Command::Admit { op, runs, .. } => {
                for run in runs.iter().take(if ok { usize::MAX } else { 1 }) {
                    self.apply(rank, run.payload);
                }
                op
            }
            Command::Replace { op, runs, .. } => {
                if ok {
                    self.empty(rank);
                    runs.iter().for_each(|run| self.apply(rank, run.payload));
                    self.targets[rank].admitted = runs.last().map(|run| run.last().0);
                }
                op
            }
            Command::Reset { op, .. } => {
                flaw = None;
                if ok {
                    self.empty(rank);
                }
                op
            }
            Command::Cancel { .. } | Command::Query { .. } => unreachable!("not an op"),
        };
        self.targets[rank].flawed |= flaw.is_some();
        self.targets[rank].refused = !ok;
        self.ended.push(op);
        self.router.handle_completion(Completion { op, ok, flaw }, self.now, &mut self.fx);
        self.collect();
    }

    pub(crate) fn wait(&mut self) {
        if let Some(at) = self.router.next_deadline() {
            self.now = self.now.max(at);
            self.router.handle_timeout(self.now, &mut self.fx);
            self.collect();
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.now = self.now.after(Micros(1_000));
        // What is due fires before anything else happens.
        self.router.handle_timeout(self.now, &mut self.fx);
        self.collect();
        writeln!(self.log, "{step:?}").expect("a string");
        match step {
            Step::Publish { rank, change, damaged, fate } => {
                self.publish(rank, change, damaged, fate);
            }
            Step::Deliver { rank, which } => {
                let delayed = self.lanes[rank].as_mut().and_then(|lane| {
                    let at = which % lane.delayed.len().max(1);
                    lane.delayed.remove(at)
                });
                if let Some(message) = delayed {
                    self.live(rank, message, Origin::Own);
                }
            }
            Step::Restart { rank, noticed } => {
                if noticed && self.lanes[rank].as_ref().is_some_and(|lane| lane.up) {
                    self.transport(rank, TransportChange::Lost);
                }
                self.running[rank] = self.lives.begin();
            }
            Step::Drop(rank) => self.transport(rank, TransportChange::Lost),
            Step::Return(rank) => self.come_back(rank),
            Step::Answer { which, reply } => {
                if !self.questions.is_empty() {
                    let question = self.questions.remove(which % self.questions.len());
                    self.answer(question, reply);
                }
            }
            Step::LateAnswer { which, reply } => {
                if !self.cancelled.is_empty() {
                    let question = self.cancelled.remove(which % self.cancelled.len());
                    let before: Vec<_> = self.router.ranks().collect();
                    self.answer(question, reply);
                    let after: Vec<_> = self.router.ranks().collect();
                    assert_eq!(before, after, "S4: an answer that no longer counts");
                }
            }
            Step::Complete { which, ok, flaw } => self.complete(which, ok, flaw),
            Step::StaleCompletion { which, ok } => self.stale_completion(which, ok),
            Step::LateDuplicate { rank, back } => self.late_duplicate(rank, back),
            Step::Wait => self.wait(),
            Step::Remove(rank) => {
                self.lanes[rank] = None;
                self.tell_membership();
            }
            Step::Add { rank, fresh_engine, recoverable } => {
                self.add(rank, fresh_engine, recoverable);
            }
            Step::Bump(rank) => {
                if let Some(lane) = &mut self.lanes[rank] {
                    lane.generation += 1;
                }
                self.tell_membership();
            }
            Step::Ambiguous(rank) => {
                if let Some(lane) = &mut self.lanes[rank] {
                    lane.ambiguous = !lane.ambiguous;
                    // An ambiguous source is not connected; it comes back over a new connection.
                    lane.delayed.clear();
                    lane.up = true;
                }
                self.tell_membership();
            }
        }
        self.check();
    }

    fn publish(&mut self, rank: usize, change: Change, damaged: bool, fate: Fate) {
        let message = self.lives.publish(self.running[rank], change, damaged);
        let Some(lane) = self.lanes[rank].as_mut().filter(|lane| lane.up) else { return };
        match fate {
            Fate::Delivered => self.live(rank, message, Origin::Own),
            Fate::Lost => {}
            Fate::Delayed => lane.delayed.push_back(message),
            Fate::Foreign => self.live(rank, message, Origin::Foreign),
        }
    }

    fn come_back(&mut self, rank: usize) {
        if self.lanes[rank].as_ref().is_some_and(|lane| !lane.up) {
            self.transport(rank, TransportChange::Back);
        }
    }

    fn stale_completion(&mut self, which: usize, ok: bool) {
        let Some(op) = self.ended.get(which % self.ended.len().max(1)).copied() else { return };
        let before = self.router.clone();
        self.router.handle_completion(Completion { op, ok, flaw: None }, self.now, &mut self.fx);
        self.collect();
        assert!(before.ranks().eq(self.router.ranks()), "S4: an op that has ended already");
    }

    /// Delivers again what the target has already.
    fn late_duplicate(&mut self, rank: usize, back: usize) {
        let Some(last) = self.targets[rank].last else { return };
        if !self.lanes[rank].as_ref().is_some_and(|lane| lane.up) || last.life != self.running[rank]
        {
            return;
        }
        let at = usize::try_from(last.seq).expect("small").checked_sub(back);
        if let Some(at) = at {
            let message = self.lives.get(last.life).messages[at];
            self.live(rank, message, Origin::Own);
        }
    }

    /// What is marked exact is never wrong.
    pub(crate) fn check(&self) {
        for view in self.router.ranks() {
            let rank = index_of(view.key);
            let target = &self.targets[rank];
            // While a command is under way the target may be ahead of the cursor: not asked then.
            if view.trust != Trust::Exact || self.ops.contains_key(&rank) || target.seam {
                continue;
            }
            assert!(!target.flawed, "exact in spite of a flaw");
            match (view.cursor, target.last) {
                (None, None) => assert!(target.blocks.is_empty(), "exact before any message"),
                (Some(cursor), Some(last)) => {
                    assert_eq!(cursor.0, last.seq, "exact where the target has not been");
                    let truth = self.lives.truth_at(last);
                    assert_eq!(&target.blocks, truth, "false exact at {cursor} of {}", view.key);
                }
                (cursor, last) => panic!("exact at {cursor:?}, but the target is at {last:?}"),
            }
        }
    }

    /// Everything is answered and completed.
    fn quiet(&mut self) {
        let honest = Reply { stale: false, cut: None, fail: false, foreign: false };
        while !self.ops.is_empty() || !self.questions.is_empty() {
            self.complete(0, true, None);
            if let Some(question) = self.questions.pop() {
                self.answer(question, honest);
            }
        }
        self.check();
    }

    /// Faults stop; everything is delivered; time passes.
    pub(crate) fn fair(&mut self, minutes: u64) {
        for rank in 0..KEYS.len() {
            self.come_back(rank);
            if let Some(lane) = &mut self.lanes[rank] {
                lane.delayed.clear();
                lane.ambiguous = false;
            }
        }
        self.tell_membership();
        let end = self.now.after(Micros::from_secs(60 * minutes));
        loop {
            self.quiet();
            match self.router.next_deadline() {
                Some(at) if at <= end => self.wait(),
                Some(_) | None => break,
            }
        }
        self.now = end;
        self.quiet();
    }

    pub(crate) fn remove_all(&mut self) {
        self.lanes = [None, None, None];
        self.tell_membership();
        self.quiet();
        assert_eq!(self.router.timers(), 0, "a timer is left");
        assert_eq!(self.router.queries_in_flight(), 0, "a permit is left");
        assert_eq!(self.router.ranks().count(), 0, "a rank is left");
        assert_eq!(self.router.next_deadline(), None);
    }
}
