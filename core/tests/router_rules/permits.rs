//! Questions in flight: at most so many over all ranks, first come first served (S5, L4).

use crate::rig::{Word, run};
use kvmirror_core::id::{EventId, Generation, OpId, PublisherId, QueryId, RankKey, TargetId};
use kvmirror_core::membership::{MemberRank, Membership, RankStatus, Source, SourceKind};
use kvmirror_core::router::*;
use kvmirror_core::time::{Micros, Timestamp};
use std::collections::BTreeSet;

const RANKS: u32 = 20;

struct Fleet {
    router: Router<Word>,
    fx: Effects<Word>,
    now: Timestamp,
    /// Asked and not cancelled, in order.
    open: Vec<(QueryId, u32)>,
    /// Every rank that was ever asked.
    asked: BTreeSet<u32>,
}

impl Fleet {
    /// All ranks are empty and wait for their first recovery.
    fn new(concurrency: u32) -> Self {
        let policy = Policy { concurrency, snapshot_concurrency: concurrency, ..Policy::default() };
        let router = Router::new(policy).expect("policy");
        let mut fleet = Self {
            router,
            fx: Effects::new(),
            now: Timestamp(1),
            open: vec![],
            asked: BTreeSet::new(),
        };
        fleet.membership(0..RANKS);
        fleet
    }

    fn membership(&mut self, ranks: impl Iterator<Item = u32>) {
        let ranks = ranks.map(|rank| {
            let id = u64::from(rank);
            let source = Source {
                publisher: PublisherId(id),
                target: Some(TargetId(id)),
                kind: SourceKind::Engine,
                first_id: EventId(0),
                boot: None,
            };
            let (generation, status) = (Generation(0), RankStatus::Active(source));
            MemberRank { key: RankKey::new(1, rank), generation, status, ready: true }
        });
        let membership = Membership::new(ranks.collect()).expect("each rank once");
        self.router.handle_membership(&membership, self.now, &mut self.fx);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        loop {
            let commands: Vec<_> = self.fx.drain_commands().collect();
            if commands.is_empty() {
                break;
            }
            for command in commands {
                let op: Option<OpId> = match command {
                    Command::Admit { op, .. }
                    | Command::Replace { op, .. }
                    | Command::Reset { op, .. } => Some(op),
                    Command::Query { query, rank, .. } => {
                        self.asked.insert(rank.rank.0);
                        self.open.push((query, rank.rank.0));
                        None
                    }
                    Command::Cancel { query } => {
                        self.open.retain(|(open, _)| *open != query);
                        None
                    }
                };
                if let Some(op) = op {
                    let done = Completion { op, ok: true, flaw: None };
                    self.router.handle_completion(done, self.now, &mut self.fx);
                }
            }
        }
        let in_flight = usize::try_from(self.router.queries_in_flight()).expect("small");
        assert_eq!(in_flight, self.open.len());
    }

    fn pass(&mut self, time: Micros) {
        self.now = self.now.after(time);
        self.router.handle_timeout(self.now, &mut self.fx);
        self.carry_out();
    }

    /// Answers the oldest open question.
    fn answer(&mut self, ok: bool) {
        let (query, _) = self.open.remove(0);
        let outcome = if ok {
            RecoveryOutcome::Events { runs: vec![run("0")], last: Some(EventId(0)), complete: true }
        } else {
            RecoveryOutcome::Failed(QueryFailure::Transport)
        };
        let response = RecoveryResponse { query, origin: Origin::Own, boot: None, outcome };
        self.router.handle_recovery(response, self.now, &mut self.fx);
        self.carry_out();
    }

    fn open_ranks(&self) -> Vec<u32> {
        self.open.iter().map(|(_, rank)| *rank).collect()
    }
}

#[test]
fn the_seventeenth_waits_and_gets_the_first_permit_that_comes_free() {
    let mut fleet = Fleet::new(16);
    fleet.pass(Micros::from_millis(3));
    assert_eq!(fleet.open.len(), 16);
    let before = fleet.open_ranks();
    fleet.answer(true);
    assert_eq!(fleet.open.len(), 16, "the permit goes on at once");
    let newcomer = fleet.open_ranks().pop().expect("sixteen");
    assert!(!before.contains(&newcomer));
}

#[test]
fn permits_go_to_whoever_waited_longest() {
    // With room for all, the same seed shows in which order the jitters end.
    let mut roomy = Fleet::new(RANKS);
    roomy.pass(Micros::from_millis(3));
    let mut fleet = Fleet::new(1);
    fleet.pass(Micros::from_millis(3));
    let mut served = fleet.open_ranks();
    for _ in 1..RANKS {
        fleet.answer(true);
        served.extend(fleet.open_ranks());
    }
    assert_eq!(served, roomy.open_ranks());
}

#[test]
fn a_permit_is_released_before_the_backoff() {
    let mut fleet = Fleet::new(1);
    fleet.pass(Micros::from_millis(3));
    let failing = fleet.open_ranks();
    fleet.answer(false);
    assert_eq!(fleet.open.len(), 1);
    assert_ne!(fleet.open_ranks(), failing);
}

#[test]
fn hung_sources_give_way_after_a_slice() {
    let mut fleet = Fleet::new(16);
    fleet.pass(Micros::from_millis(3));
    assert_eq!(fleet.asked.len(), 16);
    fleet.pass(Micros::from_secs(1));
    assert_eq!(fleet.asked.len(), RANKS as usize, "{:?}", fleet.asked);
    assert_eq!(fleet.open.len(), 16);
}

#[test]
fn a_rank_that_leaves_the_queue_leaves_no_permit_behind() {
    let mut fleet = Fleet::new(2);
    fleet.pass(Micros::from_millis(3));
    let asked = fleet.open_ranks();
    fleet.membership(0..0);
    assert_eq!(fleet.open.len(), 0);
    assert_eq!(fleet.router.timers(), 0);
    assert_eq!(fleet.router.ranks().count(), 0);
    fleet.membership(0..RANKS);
    fleet.pass(Micros::from_millis(3));
    assert_eq!(fleet.open.len(), asked.len());
}
