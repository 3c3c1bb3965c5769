//! A small world around the production router: one raw engine with lives, a ring and a lossy way,
//! a target that takes its time, and an oracle. Random schedules of faults; after each step the
//! safety claims are checked, and after a fair phase that the mirror has converged.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use kvmirror_core::id::{EventId, Generation, PublisherId, RankKey, TargetId};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};
use proptest::prelude::*;

const KEY: RankKey = RankKey::new(1, 0);
const PUBLISHER: PublisherId = PublisherId(77);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    Store(u8),
    Remove(u8),
    Clear,
}

/// One message: which life and sequence it is, and what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Message {
    life: u32,
    seq: u64,
    change: Change,
}

impl Payload for Message {
    fn len(&self) -> u32 {
        1
    }
    fn bytes(&self) -> usize {
        100
    }
    fn slice(&self, _range: Range<u32>) -> Self {
        *self
    }
}

fn run(message: Message) -> Run<Message> {
    Run {
        first: EventId(message.seq),
        len: NonZeroU32::MIN,
        clear: message.change == Change::Clear,
        damaged: false,
        digest: NonZeroU64::new((u64::from(message.life) << 32) + message.seq + 1),
        payload: message,
    }
}

fn applied(state: &mut BTreeSet<u8>, change: Change) {
    match change {
        Change::Store(block) => {
            state.insert(block);
        }
        Change::Remove(block) => {
            state.remove(&block);
        }
        Change::Clear => state.clear(),
    }
}

#[derive(Clone, Debug)]
struct Engine {
    life: u32,
    messages: Vec<Message>,
    truth: Vec<BTreeSet<u8>>,
    ring: usize,
}

impl Engine {
    fn publish(&mut self, change: Change) -> Message {
        let message = Message { life: self.life, seq: self.messages.len() as u64, change };
        let mut state = self.truth.last().cloned().unwrap_or_default();
        applied(&mut state, change);
        self.messages.push(message);
        self.truth.push(state);
        message
    }

    fn restart(&mut self) {
        self.life += 1;
        self.messages.clear();
        self.truth.clear();
    }

    fn replay(&self, start: Option<EventId>) -> Vec<Run<Message>> {
        let oldest = self.messages.len().saturating_sub(self.ring);
        let from = start.map_or(0, |start| usize::try_from(start.0).expect("small")).max(oldest);
        self.messages.get(from..).unwrap_or_default().iter().copied().map(run).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish { change: Change, lost: bool },
    Restart,
    Drop,
    Return,
    Answer { cut: Option<u8>, fail: bool },
    Complete { ok: bool },
    Wait,
    LateDuplicate(u8),
}

struct World {
    router: Router<Message>,
    fx: Effects<Message>,
    engine: Engine,
    up: bool,
    now: Timestamp,
    queries: Vec<(kvmirror_core::id::QueryId, Option<EventId>)>,
    ops: Vec<Command<Message>>,
    target: BTreeSet<u8>,
    /// The message the target applied last, and the truth its engine had after it.
    last: Option<(Message, BTreeSet<u8>)>,
    /// Truths of ended lives, for messages that are applied after their life has ended.
    archive: Vec<Vec<BTreeSet<u8>>>,
}

impl World {
    fn new(ring: usize, recoverable: bool, policy: Policy) -> Self {
        let mut world = Self {
            router: Router::new(policy).expect("policy"),
            fx: Effects::new(),
            engine: Engine { life: 0, messages: vec![], truth: vec![], ring },
            up: true,
            now: Timestamp(1),
            queries: vec![],
            ops: vec![],
            target: BTreeSet::from([250]),
            last: None,
            archive: vec![],
        };
        let source = Source {
            publisher: PUBLISHER,
            target: recoverable.then_some(TargetId(1)),
            first_id: EventId(0),
        };
        let rank =
            MemberRank { key: KEY, generation: Generation(0), status: RankStatus::Active(source) };
        let membership = Membership::new(vec![rank]).expect("one rank");
        world.router.handle_membership(&membership, world.now, &mut world.fx);
        world.collect();
        world
    }

    fn collect(&mut self) {
        for command in self.fx.drain_commands() {
            match command {
                Command::Cancel { query } => self.queries.retain(|(open, _)| *open != query),
                Command::Query { query, start, .. } => self.queries.push((query, start)),
                Command::Admit { .. } | Command::Replace { .. } | Command::Reset { .. } => {
                    self.ops.push(command);
                }
            }
        }
        self.fx.drain_notices().for_each(drop);
        assert!(self.ops.len() <= 1, "more than one incomplete command: {:?}", self.ops);
        assert!(self.queries.len() <= 1, "more than one query in flight: {:?}", self.queries);
    }

    fn truth_of(&self, message: Message) -> BTreeSet<u8> {
        let seq = usize::try_from(message.seq).expect("small");
        match self.archive.get(message.life as usize) {
            Some(truth) => truth[seq].clone(),
            None => self.engine.truth[seq].clone(),
        }
    }

    fn apply(&mut self, message: Message) {
        applied(&mut self.target, message.change);
        self.last = Some((message, self.truth_of(message)));
    }

    fn complete(&mut self, ok: bool) {
        let Some(command) = self.ops.pop() else { return };
        let op = match command {
            Command::Admit { op, runs, .. } => {
                for run in runs.iter().take(if ok { usize::MAX } else { 1 }) {
                    self.apply(run.payload);
                }
                op
            }
            Command::Replace { op, runs, .. } => {
                if ok {
                    self.target.clear();
                    runs.iter().for_each(|run| self.apply(run.payload));
                }
                op
            }
            Command::Reset { op, .. } => {
                if ok {
                    self.target.clear();
                    self.last = None;
                }
                op
            }
            Command::Cancel { .. } | Command::Query { .. } => unreachable!("not an op"),
        };
        let done = Completion { op, ok, flaw: None };
        self.router.handle_completion(done, self.now, &mut self.fx);
        self.collect();
    }

    fn live(&mut self, message: Message) {
        let runs = Runs::from_buf([run(message)]);
        let batch = LiveBatch { publisher: PUBLISHER, origin: Origin::Own, runs };
        self.router.handle_live(batch, self.now, &mut self.fx);
        self.collect();
    }

    fn transport(&mut self, change: TransportChange) {
        self.up = change == TransportChange::Back;
        self.router.handle_transport(PUBLISHER, change, self.now, &mut self.fx);
        self.collect();
    }

    fn answer(&mut self, cut: Option<u8>, fail: bool) {
        let Some((query, start)) = self.queries.pop() else { return };
        let outcome = if fail {
            RecoveryOutcome::Failed(QueryFailure::Transport)
        } else {
            let mut runs = self.engine.replay(start);
            let whole = runs.len();
            runs.truncate(cut.map_or(whole, usize::from));
            RecoveryOutcome::Events { runs, complete: cut.is_none() }
        };
        let response = RecoveryResponse { query, origin: Origin::Own, outcome };
        self.router.handle_recovery(response, self.now, &mut self.fx);
        self.collect();
    }

    fn wait(&mut self) {
        if let Some(at) = self.router.next_deadline() {
            self.now = self.now.max(at);
            self.router.handle_timeout(self.now, &mut self.fx);
            self.collect();
        }
    }

    fn step(&mut self, step: Step) {
        self.now = self.now.after(Micros(1_000));
        match step {
            Step::Publish { change, lost } => {
                let message = self.engine.publish(change);
                if self.up && !lost {
                    self.live(message);
                }
            }
            Step::Restart => {
                // A process cannot restart without its connections breaking; the shell notices.
                if self.up {
                    self.transport(TransportChange::Lost);
                }
                self.archive.push(std::mem::take(&mut self.engine.truth));
                self.engine.restart();
            }
            Step::Drop => {
                if self.up {
                    self.transport(TransportChange::Lost);
                }
            }
            Step::Return => {
                if !self.up {
                    self.transport(TransportChange::Back);
                }
            }
            Step::Answer { cut, fail } => self.answer(cut, fail),
            Step::Complete { ok } => self.complete(ok),
            Step::Wait => self.wait(),
            Step::LateDuplicate(back) => self.late_duplicate(usize::from(back)),
        }
        self.check();
    }

    /// Delivers again what was delivered in this life.
    fn late_duplicate(&mut self, back: usize) {
        let at = self.engine.messages.len().checked_sub(1 + back);
        let Some(message) = at.map(|at| self.engine.messages[at]) else { return };
        let seen = self
            .last
            .as_ref()
            .is_some_and(|(last, _)| last.life == message.life && last.seq >= message.seq);
        if self.up && seen {
            self.live(message);
        }
    }

    /// What is marked exact is never wrong.
    fn check(&self) {
        let view = self.router.rank(KEY).expect("expected");
        // While a command is under way the target may be ahead of the cursor: not asked then.
        if view.trust != Trust::Exact || !self.ops.is_empty() {
            return;
        }
        match (view.cursor, &self.last) {
            (None, None) => assert!(self.target.is_empty(), "exact before the first message"),
            (Some(cursor), Some((last, truth))) => {
                assert_eq!(cursor.0, last.seq, "exact at a cursor the target has not reached");
                assert_eq!(&self.target, truth, "false exact at {cursor}");
            }
            (cursor, last) => panic!("exact at {cursor:?}, but the target is at {last:?}"),
        }
    }

    /// Everything is answered and completed.
    fn quiet(&mut self) {
        while !self.ops.is_empty() || !self.queries.is_empty() {
            self.complete(true);
            self.answer(None, false);
        }
        self.check();
    }

    /// Faults stop; everything is delivered; time passes.
    fn fair(&mut self, minutes: u64) {
        if !self.up {
            self.transport(TransportChange::Back);
        }
        let end = self.now.after(Micros::from_secs(60 * minutes));
        while self.now < end {
            self.quiet();
            let before = self.now;
            self.wait();
            if self.router.next_deadline().is_none() && self.ops.is_empty() && self.now == before {
                break;
            }
        }
        self.quiet();
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0u8..8).prop_map(Change::Store),
        4 => (0u8..8).prop_map(Change::Remove),
        1 => Just(Change::Clear),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (change(), prop::bool::weighted(0.2))
            .prop_map(|(change, lost)| Step::Publish { change, lost }),
        1 => Just(Step::Restart),
        1 => Just(Step::Drop),
        3 => Just(Step::Return),
        6 => (prop::option::weighted(0.2, 0u8..4), prop::bool::weighted(0.2))
            .prop_map(|(cut, fail)| Step::Answer { cut, fail }),
        12 => prop::bool::weighted(0.95).prop_map(|ok| Step::Complete { ok }),
        3 => Just(Step::Wait),
        1 => (0u8..5).prop_map(Step::LateDuplicate),
    ]
}

fn policy(seed: u64) -> Policy {
    Policy { seed, pending_events: 6, attempts: 3, ..Policy::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// L1, L3 and "no false exact" for a raw engine with a replay ring.
    #[test]
    fn a_recoverable_engine_is_mirrored(
        seed in any::<u64>(),
        ring in prop_oneof![Just(3usize), Just(8), Just(10_000)],
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut world = World::new(ring, true, policy(seed));
        for step in steps {
            world.step(step);
        }
        world.fair(60);
        let view = world.router.rank(KEY).expect("expected");
        let truth = world.engine.truth.last().cloned().unwrap_or_default();
        let newest = world.engine.messages.last().map(|message| EventId(message.seq));
        prop_assert!(view.trust >= Trust::Partial, "dark: {view:?}");
        prop_assert_eq!(view.cursor, newest, "not level: {:?}", view);
        prop_assert!(world.target.is_subset(&truth), "{:?} holds more than {truth:?}", world.target);
        if world.engine.messages.len() <= ring {
            prop_assert_eq!(view.trust, Trust::Exact, "{:?}", view);
            prop_assert_eq!(world.target, truth);
        }
    }

    /// L2: a live-only rank's mirror holds no block that the worker does not hold.
    #[test]
    fn a_live_only_engine_is_never_overstated(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 0..120),
        tail in prop::collection::vec(change(), 1..4),
    ) {
        let mut world = World::new(0, false, policy(seed));
        for step in steps {
            world.step(step);
        }
        world.fair(2);
        for change in tail {
            world.step(Step::Publish { change, lost: false });
            world.fair(2);
        }
        let view = world.router.rank(KEY).expect("expected");
        let truth = world.engine.truth.last().cloned().unwrap_or_default();
        prop_assert!(view.trust >= Trust::Partial, "dark: {view:?}");
        prop_assert!(world.target.is_subset(&truth), "{:?} holds more than {truth:?}", world.target);
    }
}
