//! A router of the reference profile with a host that is told what to do, for what no trace shows.

use kvmirror_core::id::{
    Epoch, EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId,
};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

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

/// What a snapshot says of a rank; the number is the publisher's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Missing,
    LiveOnly(u64),
    Recoverable(u64),
}

pub(crate) use Status::{LiveOnly, Missing, Recoverable};

pub(crate) fn key(worker: u64) -> RankKey {
    RankKey::new(worker, 0)
}

/// The rank that tests with one rank use.
pub(crate) const RANK: u64 = 1;
/// Its publisher.
pub(crate) const SOURCE: u64 = 10;

pub(crate) fn event(id: u64) -> Run<Word> {
    Run {
        first: EventId(id),
        len: NonZeroU32::MIN,
        clears: Clears::Nothing,
        damaged: false,
        digest: NonZeroU64::new(id + 1),
        payload: Word(10),
    }
}

pub(crate) fn clear(id: u64) -> Run<Word> {
    Run { clears: Clears::Everything, ..event(id) }
}

pub(crate) fn snapshot(last: u64) -> RecoveryOutcome<Word> {
    RecoveryOutcome::Snapshot { runs: vec![event(1)], last: EventId(last) }
}

pub(crate) fn events(ids: &[u64]) -> RecoveryOutcome<Word> {
    let runs: Vec<_> = ids.iter().copied().map(event).collect();
    let last = runs.last().map(Run::last);
    RecoveryOutcome::Events { runs, last, complete: true }
}

/// Jitter off, so that what is asked for leaves at once.
pub(crate) const POLICY: Policy = Policy { jitter_max: Micros(0), ..Policy::REFERENCE };

pub(crate) struct Rig {
    pub(crate) router: Router<Word>,
    pub(crate) now: Timestamp,
    fx: Effects<Word>,
    /// The last command of any rank that waits to be completed.
    pub(crate) op: Option<OpId>,
    /// The last question sent.
    pub(crate) query: Option<QueryId>,
    pub(crate) commands: Vec<Command<Word>>,
    pub(crate) notices: Vec<Notice>,
}

impl Rig {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            router: Router::new(policy).expect("a policy"),
            now: Timestamp::ZERO,
            fx: Effects::new(),
            op: None,
            query: None,
            commands: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// A recoverable rank whose first question is open.
    pub(crate) fn asked(policy: Policy) -> Self {
        let mut rig = Self::new(policy);
        rig.view(&[(RANK, 0, Recoverable(SOURCE))]);
        rig
    }

    /// A recoverable rank that follows its source up to id `last`.
    pub(crate) fn followed(policy: Policy, last: u64) -> Self {
        let mut rig = Self::asked(policy);
        rig.answer(snapshot(last));
        rig.done(true);
        rig
    }

    pub(crate) fn input(&mut self, input: Input<Word>) {
        self.router.handle(input, self.now, &mut self.fx);
        for command in self.fx.drain_commands() {
            match &command {
                Command::Admit { op, .. }
                | Command::Replace { op, .. }
                | Command::Reset { op, .. } => self.op = Some(*op),
                Command::Query { query, .. } => self.query = Some(*query),
                Command::Cancel { .. } => {}
            }
            self.commands.push(command);
        }
        self.fx.drain_replies().for_each(drop);
        self.notices.extend(self.fx.drain_notices());
    }

    pub(crate) fn view(&mut self, ranks: &[(u64, u64, Status)]) {
        let member = |&(worker, generation, status): &(u64, u64, Status)| {
            let source = |publisher, recoverable: bool| {
                RankStatus::Active(Source {
                    publisher: PublisherId(publisher),
                    target: recoverable.then_some(TargetId(worker)),
                    kind: SourceKind::Agent,
                    first_id: EventId(1),
                    boot: None,
                })
            };
            let status = match status {
                Missing => RankStatus::Missing,
                LiveOnly(publisher) => source(publisher, false),
                Recoverable(publisher) => source(publisher, true),
            };
            let generation = Generation(generation);
            MemberRank { key: key(worker), generation, status, ready: true }
        };
        let membership = Membership::new(ranks.iter().map(member).collect()).expect("each once");
        self.input(Input::Membership(membership));
    }

    pub(crate) fn live(&mut self, runs: &[Run<Word>]) {
        self.live_from(SOURCE, Origin::Own, runs);
    }

    pub(crate) fn live_from(&mut self, publisher: u64, origin: Origin, runs: &[Run<Word>]) {
        let runs = runs.iter().cloned().collect();
        let publisher = PublisherId(publisher);
        self.input(Input::Live(LiveBatch { publisher, seq: None, origin, runs }));
    }

    pub(crate) fn answer(&mut self, outcome: RecoveryOutcome<Word>) {
        self.answer_from(Origin::Own, outcome);
    }

    pub(crate) fn answer_from(&mut self, origin: Origin, outcome: RecoveryOutcome<Word>) {
        let query = self.query.expect("a question has been sent");
        self.input(Input::Recovery(RecoveryResponse { query, origin, boot: None, outcome }));
    }

    pub(crate) fn done(&mut self, ok: bool) {
        let op = self.op.take().expect("a command is open");
        self.input(Input::Completion(Completion { op, ok, flaw: None }));
    }

    pub(crate) fn fault(&mut self) {
        let (rank, epoch) = (key(RANK), Epoch(0));
        self.input(Input::TargetFault(TargetFault { rank, epoch, barrier_failed: false }));
    }

    pub(crate) fn lost(&mut self) {
        self.input(Input::Transport(PublisherId(SOURCE), TransportChange::Lost));
    }

    pub(crate) fn rank(&self) -> RankView {
        self.router.rank(key(RANK)).expect("the rank is there")
    }
}
