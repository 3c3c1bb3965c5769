//! What holds at every moment (§9.1), under any inputs: three ranks, small limits, a host that
//! completes commands and answers questions whenever it likes, or never.

use crate::rig::*;
use kvmirror_core::id::{Epoch, EventId, OpId, PublisherId, QueryId, RankKey};
use kvmirror_core::router::*;
use kvmirror_core::time::Micros;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const RANKS: [u64; 3] = [1, 2, 3];
const PENDING: u32 = 4;

/// One rank's word in a snapshot.
#[derive(Clone, Copy, Debug)]
struct Word {
    generation: u64,
    /// 0: missing.
    publisher: u64,
    recoverable: bool,
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Snapshot { last: u64 },
    Events { from: u64, many: u64 },
    SnapshotFailed { last: u64 },
    TooNew,
    Failed,
    Foreign,
}

#[derive(Clone, Debug)]
enum Step {
    View([Option<Word>; 3]),
    Live { rank: usize, publisher: u64, ids: Vec<u64>, clears: bool },
    Answer { rank: usize, said: Said },
    Done { rank: usize, ok: bool },
    Fault { rank: usize, epoch: u64 },
    Reject { rank: usize, epoch: u64 },
    Lost { rank: usize, publisher: u64 },
    Tick { micros: u64 },
}

fn word() -> impl Strategy<Value = Option<Word>> {
    let word =
        (0_u64..3, 0_u64..3, any::<bool>()).prop_map(|(generation, publisher, recoverable)| Word {
            generation,
            publisher,
            recoverable,
        });
    prop_oneof![1 => Just(None), 6 => word.prop_map(Some)]
}

fn step() -> impl Strategy<Value = Step> {
    let rank = || 0_usize..3;
    let said = prop_oneof![
        4 => (0_u64..12).prop_map(|last| Said::Snapshot { last }),
        4 => (0_u64..12, 0_u64..4).prop_map(|(from, many)| Said::Events { from, many }),
        1 => (0_u64..12).prop_map(|last| Said::SnapshotFailed { last }),
        1 => Just(Said::TooNew),
        2 => Just(Said::Failed),
        1 => Just(Said::Foreign),
    ];
    let ids = prop_oneof![
        3 => (1_u64..14, 1_u64..4).prop_map(|(from, many)| (from..from + many).collect()),
        1 => proptest::collection::vec(0_u64..14, 0..6),
    ];
    prop_oneof![
        3 => [word(), word(), word()].prop_map(Step::View),
        12 => (rank(), 1_u64..3, ids, prop::bool::weighted(0.1))
            .prop_map(|(rank, publisher, ids, clears)| Step::Live { rank, publisher, ids, clears }),
        8 => (rank(), said).prop_map(|(rank, said)| Step::Answer { rank, said }),
        16 => (rank(), prop::bool::weighted(0.9)).prop_map(|(rank, ok)| Step::Done { rank, ok }),
        1 => (rank(), 0_u64..3).prop_map(|(rank, epoch)| Step::Fault { rank, epoch }),
        1 => (rank(), 0_u64..3).prop_map(|(rank, epoch)| Step::Reject { rank, epoch }),
        1 => (rank(), 1_u64..3).prop_map(|(rank, publisher)| Step::Lost { rank, publisher }),
        3 => prop_oneof![Just(300_000_u64), Just(3_000), Just(31_000_000)]
            .prop_map(|micros| Step::Tick { micros }),
    ]
}

/// Publishers are a rank's own.
fn publisher(rank: usize, publisher: u64) -> u64 {
    RANKS[rank] * 10 + publisher
}

#[derive(Debug, Default)]
struct Seen {
    /// The incomplete command, and what becomes of the rank when it ends well.
    open: Option<(OpId, After)>,
    query: Option<QueryId>,
    fenced: bool,
    corrupt: bool,
    /// Epochs of the last activation that admitted, and of the last reset that completed.
    admitted: Option<Epoch>,
    reset: Option<Epoch>,
    /// Ids that the cursor may have.
    marks: BTreeSet<EventId>,
}

#[derive(Clone, Copy, Debug)]
enum After {
    Admitted(EventId),
    Replaced(EventId),
    Reset(Epoch),
}

/// Plays steps and looks at every command.
struct Play {
    rig: Rig,
    seen: BTreeMap<RankKey, Seen>,
    concurrency: usize,
    /// What each rank was told to do, ids apart.
    story: BTreeMap<RankKey, Vec<String>>,
}

impl Play {
    fn new(policy: Policy) -> Self {
        let seen = RANKS.map(|worker| (key(worker), Seen::default()));
        Self {
            rig: Rig::new(policy),
            seen: seen.into(),
            concurrency: policy.concurrency as usize,
            story: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::View(words) => {
                let words = words.iter().zip(RANKS).enumerate();
                let ranks: Vec<_> = words
                    .filter_map(|(at, (word, worker))| {
                        let word = (*word)?;
                        let status = match (word.publisher, word.recoverable) {
                            (0, _) => Missing,
                            (number, true) => Recoverable(publisher(at, number)),
                            (number, false) => LiveOnly(publisher(at, number)),
                        };
                        Some((worker, word.generation, status))
                    })
                    .collect();
                self.rig.view(&ranks);
            }
            Step::Live { rank, publisher: number, ids, clears } => {
                let runs: Vec<_> =
                    ids.iter().map(|id| if *clears { clear(*id) } else { event(*id) }).collect();
                let publisher = publisher(*rank, *number);
                let followed = self
                    .rig
                    .router
                    .ranks()
                    .any(|rank| rank.publisher == Some(PublisherId(publisher)));
                self.rig.notices.clear();
                self.rig.live_from(publisher, Origin::Own, &runs);
                let nobody = self.rig.notices.iter().any(|notice| {
                    matches!(
                        notice,
                        Notice::Discarded { reason: DiscardReason::InactivePublisher, .. }
                    )
                });
                // rule: 9.1/I5
                assert_eq!(nobody, !followed, "publisher {publisher}");
            }
            Step::Answer { rank, said } => self.answer(key(RANKS[*rank]), *said),
            Step::Done { rank, ok } => self.done(key(RANKS[*rank]), *ok),
            Step::Fault { rank, epoch } => self.rig.input(Input::TargetFault(TargetFault {
                rank: key(RANKS[*rank]),
                epoch: Epoch(*epoch),
                barrier_failed: false,
            })),
            Step::Reject { rank, epoch } => {
                let (rank, epoch) = (key(RANKS[*rank]), Epoch(*epoch));
                self.rig.input(Input::SourceRejection(SourceRejection { rank, epoch }));
            }
            Step::Lost { rank, publisher: number } => {
                let publisher = PublisherId(publisher(*rank, *number));
                self.rig.input(Input::Transport(publisher, TransportChange::Lost));
            }
            Step::Tick { micros } => {
                self.rig.now = self.rig.now.after(Micros(*micros));
                self.rig.input(Input::Timeout);
            }
        }
        self.look();
    }

    fn answer(&mut self, rank: RankKey, said: Said) {
        let seen = self.seen.get_mut(&rank).expect("known");
        let Some(query) = seen.query.take() else { return };
        let outcome = match said {
            Said::Snapshot { last } => snapshot(last),
            Said::Events { from, many } => {
                let runs: Vec<_> = (from..from + many).map(event).collect();
                let last = EventId((from + many).saturating_sub(1));
                seen.marks.insert(last);
                RecoveryOutcome::Events { runs, last: Some(last), complete: true }
            }
            Said::SnapshotFailed { last } => {
                seen.marks.insert(EventId(last));
                RecoveryOutcome::SnapshotFailed { last: EventId(last) }
            }
            Said::TooNew => RecoveryOutcome::TooNew { newest: None },
            Said::Failed => RecoveryOutcome::Failed(QueryFailure::Transport),
            Said::Foreign => snapshot(3),
        };
        let origin = match said {
            Said::Foreign => Origin::Foreign,
            Said::Snapshot { .. }
            | Said::Events { .. }
            | Said::SnapshotFailed { .. }
            | Said::TooNew
            | Said::Failed => Origin::Own,
        };
        self.rig.query = Some(query);
        self.rig.answer_from(origin, outcome);
    }

    fn done(&mut self, rank: RankKey, ok: bool) {
        let seen = self.seen.get_mut(&rank).expect("known");
        let Some((op, after)) = seen.open.take() else { return };
        if ok {
            match after {
                After::Admitted(last) | After::Replaced(last) => {
                    seen.marks.insert(last);
                }
                After::Reset(epoch) => {
                    seen.reset = Some(epoch);
                    seen.fenced = seen.corrupt;
                }
            }
        } else {
            seen.fenced = true;
        }
        seen.corrupt = false;
        self.rig.op = Some(op);
        self.rig.done(ok);
    }

    fn look(&mut self) {
        let corrupt: Vec<RankKey> = self
            .rig
            .notices
            .drain(..)
            .filter_map(|notice| {
                let Notice::Reset { rank, cause: ResetCause::Corrupt } = notice else {
                    return None;
                };
                Some(rank)
            })
            .collect();
        for command in std::mem::take(&mut self.rig.commands) {
            self.command(&command, &corrupt);
        }
        let live: Vec<_> = self.seen.values().filter_map(|seen| seen.query).collect();
        // rule: 9.1/I2
        assert!(live.len() <= self.concurrency);
        assert_eq!(self.rig.router.queries_in_flight() as usize, live.len());
        for (rank, seen) in &self.seen {
            let Some(view) = self.rig.router.rank(*rank) else { continue };
            if seen.open.is_none() {
                // rule: 9.1/I3
                assert!(view.pending_events <= u64::from(PENDING), "{view:?}");
            }
            // rule: 9.1/I4
            assert!(view.cursor.is_none_or(|cursor| seen.marks.contains(&cursor)), "{view:?}");
        }
    }

    fn command(&mut self, command: &Command<crate::rig::Word>, corrupt: &[RankKey]) {
        let (rank, told) = match command {
            Command::Reset { rank, epoch, reason, .. } => {
                (*rank, format!("reset {epoch} {}", reason.name()))
            }
            Command::Admit { rank, epoch, runs, .. } => {
                let ids: Vec<_> = runs.iter().map(|run| run.first.0).collect();
                (*rank, format!("admit {epoch} {ids:?}"))
            }
            Command::Replace { rank, epoch, last, .. } => {
                (*rank, format!("replace {epoch} {last}"))
            }
            Command::Query { rank, start, publisher, .. } => {
                (*rank, format!("query {publisher} {start:?}"))
            }
            Command::Cancel { query } => {
                let owner = self.seen.iter().find(|(_, seen)| seen.query == Some(*query));
                (*owner.expect("only a live query is cancelled").0, "cancel".to_owned())
            }
        };
        self.story.entry(rank).or_default().push(told);
        let seen = self.seen.get_mut(&rank).expect("known");
        let open = match command {
            Command::Cancel { .. } => {
                seen.query = None;
                return;
            }
            Command::Query { query, .. } => {
                // rule: 9.1/I2
                assert_eq!(seen.query.replace(*query), None, "a second query of {rank:?}");
                return;
            }
            Command::Reset { op, epoch, .. } => {
                seen.corrupt = corrupt.contains(&rank);
                (*op, After::Reset(*epoch))
            }
            Command::Admit { op, epoch, runs, .. } => {
                let last = runs.last().expect("not empty").last();
                Self::may_pass(seen, *epoch);
                (*op, After::Admitted(last))
            }
            Command::Replace { op, epoch, last, .. } => {
                Self::may_pass(seen, *epoch);
                (*op, After::Replaced(*last))
            }
        };
        // rule: 9/O1
        assert!(seen.open.replace(open).is_none(), "two open commands of {rank:?}");
        // rule: 9.1/I7
        assert!(self.rig.router.rank(rank).is_some(), "{command:?} of a rank that is gone");
    }

    fn may_pass(seen: &mut Seen, epoch: Epoch) {
        // rule: 9.1/I1
        assert!(!seen.fenced, "something passes a fence");
        // rule: 9.1/I6
        if seen.admitted.is_some_and(|before| before != epoch) {
            assert_eq!(seen.reset, Some(epoch), "another epoch without a reset under it");
        }
        seen.admitted = Some(epoch);
    }
}

fn play(policy: Policy, steps: &[Step]) -> Play {
    let mut play = Play::new(policy);
    steps.iter().for_each(|step| play.step(step));
    play
}

/// The step as it concerns one rank only.
fn only(step: &Step, at: usize) -> Option<Step> {
    match step {
        Step::View(words) => {
            let mut own = [None; 3];
            own[at] = words[at];
            Some(Step::View(own))
        }
        Step::Live { rank, .. }
        | Step::Answer { rank, .. }
        | Step::Done { rank, .. }
        | Step::Fault { rank, .. }
        | Step::Reject { rank, .. }
        | Step::Lost { rank, .. } => (*rank == at).then(|| step.clone()),
        Step::Tick { .. } => Some(step.clone()),
    }
}

fn small() -> Policy {
    Policy { pending_events: PENDING, attempts: 2, concurrency: 2, ..Policy::REFERENCE }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn they_hold_at_every_step(steps in proptest::collection::vec(step(), 1..120)) {
        let first = play(small(), &steps);
        // rule: 9.1/I8
        let again = play(small(), &steps);
        prop_assert_eq!(first.story, again.story);
        prop_assert!(first.rig.router == again.rig.router);
    }

    // rule: 9.1/I9
    #[test]
    fn a_rank_does_not_depend_on_others(steps in proptest::collection::vec(step(), 1..80)) {
        let policy = Policy { jitter_max: Micros(0), concurrency: 16, ..small() };
        let together = play(policy, &steps).story;
        for (at, worker) in RANKS.into_iter().enumerate() {
            let own: Vec<Step> = steps.iter().filter_map(|step| only(step, at)).collect();
            let alone = play(policy, &own).story;
            prop_assert_eq!(alone.get(&key(worker)), together.get(&key(worker)));
        }
    }
}
