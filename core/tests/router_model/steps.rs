//! What can happen to a world, and how likely it is.

use kvmirror_core::router::{Flaw, Policy, QueryFailure};
use proptest::prelude::*;

use crate::history::Change;
use crate::profile::{Profile, policy};
use crate::source::{Age, Shape, SourceConfig, Twist, Words};

/// What becomes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Delivered,
    Lost,
    Delayed,
    Doubled,
    Foreign,
}

/// Which publisher of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// The one that membership names, if any.
    Named,
    Any(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Member {
    Gone,
    Missing,
    Ambiguous,
    Named(usize),
    /// The ready gate opens or closes.
    Gate,
    /// It is described anew: another boot id, with or without a target.
    Described {
        recoverable: bool,
    },
    /// Nothing but the generation.
    Same,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    Early,
    Exact,
    Late(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Publish {
        rank: usize,
        who: Who,
        changes: Vec<(Change, bool)>,
        fate: Fate,
    },
    Deliver {
        rank: usize,
        who: Who,
        which: usize,
    },
    Repeat {
        rank: usize,
        who: Who,
        which: usize,
    },
    Stranger {
        watermark: bool,
    },
    /// A new life, which has published something before anybody hears of it.
    Rebirth {
        rank: usize,
        who: Who,
        noticed: bool,
        unseen: Vec<Change>,
    },
    Transport {
        rank: usize,
        who: Who,
        back: bool,
    },
    Watermark {
        rank: usize,
        who: Who,
        behind: usize,
    },
    Answer {
        which: usize,
        twist: Twist,
    },
    LateAnswer {
        which: usize,
        twist: Twist,
    },
    Complete {
        rank: usize,
        ok: bool,
        flaw: Option<Flaw>,
    },
    LateCompletion {
        which: usize,
        ok: bool,
    },
    Change {
        rank: usize,
        to: Member,
        moves: bool,
    },
    Suspect(bool),
    Tell {
        whole: bool,
        twice: bool,
    },
    Fault {
        rank: usize,
        late: bool,
        barrier_failed: bool,
    },
    Reject {
        rank: usize,
        late: bool,
    },
    Pass(Pass),
    MembershipEnded,
    Shutdown,
}

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Faults stop, and everything must come right; then every rank leaves.
    Fair,
    /// Every rank leaves at once.
    Gone,
    Shutdown,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) profile: Profile,
    pub(crate) policy: Policy,
    /// For each rank its publishers.
    pub(crate) sources: Vec<Vec<SourceConfig>>,
    /// The step before which the machine is copied.
    pub(crate) twin_at: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) tail: Vec<Change>,
    pub(crate) end: End,
}

pub(crate) fn case(profile: Profile) -> impl Strategy<Value = Case> {
    let publishers = prop::collection::vec(source(), 1..4);
    let tail = prop::collection::vec(change(), 4..6);
    (
        policy(profile),
        prop::collection::vec(publishers, 2..4),
        0usize..40,
        prop::collection::vec(step(), 0..200),
        tail,
        prop_oneof![6 => Just(End::Fair), 1 => Just(End::Gone), 1 => Just(End::Shutdown)],
    )
        .prop_map(move |(policy, sources, twin_at, steps, tail, end)| Case {
            profile,
            policy,
            sources,
            twin_at,
            steps,
            tail,
            end,
        })
}

fn source() -> impl Strategy<Value = SourceConfig> {
    let window = prop_oneof![Just(0usize), Just(3), Just(8), Just(10_000), Just(10_000)];
    let flag = prop::bool::weighted;
    (
        any::<bool>(),
        flag(0.75),
        window,
        flag(0.8),
        any::<bool>(),
        any::<bool>(),
        flag(0.3),
        flag(0.2),
    )
        .prop_map(
            |(engine, recoverable, window, tells_boot, digests, numbered, ranges, shares)| {
                SourceConfig {
                    engine,
                    recoverable,
                    window,
                    tells_boot,
                    digests,
                    numbered,
                    ranges,
                    shares_target: shares,
                }
            },
        )
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => (0u8..7).prop_map(Change::Store),
        8 => (0u8..7).prop_map(Change::Remove),
        3 => (0u8..7).prop_map(Change::Keep),
        2 => (0u8..7).prop_map(Change::Drop),
        1 => Just(Change::ClearOwner),
        2 => Just(Change::ClearAll),
    ]
}

fn changes() -> impl Strategy<Value = Vec<(Change, bool)>> {
    let one = || (change(), prop::bool::weighted(0.01));
    prop_oneof![
        3 => prop::collection::vec(one(), 1..2),
        2 => prop::collection::vec(one(), 2..6),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        20 => Just(Fate::Delivered),
        3 => Just(Fate::Lost),
        2 => Just(Fate::Delayed),
        1 => Just(Fate::Doubled),
        1 => Just(Fate::Foreign),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![14 => Just(Who::Named), 1 => (0usize..3).prop_map(Who::Any)]
}

fn twist() -> impl Strategy<Value = Twist> {
    let age = prop_oneof![
        3 => (1usize..6).prop_map(Age::Behind),
        1 => Just(Age::OldLife),
    ];
    let failure = prop_oneof![
        Just(QueryFailure::Transport),
        Just(QueryFailure::Refused),
        Just(QueryFailure::Unreadable),
    ];
    let words = prop_oneof![
        5 => failure.prop_map(Words::Failed),
        1 => Just(Words::SnapshotFailed),
        1 => Just(Words::InvalidRange),
        1 => prop::option::of(0u64..12).prop_map(Words::TooNew),
    ];
    let shape = prop_oneof![
        4 => (0usize..5).prop_map(Shape::Cut),
        1 => (0usize..5).prop_map(Shape::Hole),
        1 => (0usize..5).prop_map(Shape::Falling),
        1 => any::<bool>().prop_map(Shape::WrongLast),
    ];
    let honest = Twist::HONEST;
    prop_oneof![
        14 => Just(honest),
        2 => age.prop_map(move |age| Twist { age, ..honest }),
        4 => words.prop_map(move |words| Twist { words, ..honest }),
        4 => shape.prop_map(move |shape| Twist { shape, ..honest }),
        1 => Just(Twist { below: true, ..honest }),
        1 => Just(Twist { foreign: true, ..honest }),
        1 => Just(Twist { other_boot: true, ..honest }),
    ]
}

fn flaw() -> impl Strategy<Value = Option<Flaw>> {
    prop::option::weighted(0.03, prop_oneof![Just(Flaw::Orphan), Just(Flaw::Capacity)])
}

fn member() -> impl Strategy<Value = Member> {
    prop_oneof![
        1 => Just(Member::Gone),
        1 => Just(Member::Missing),
        1 => Just(Member::Ambiguous),
        6 => (0usize..3).prop_map(Member::Named),
        1 => Just(Member::Gate),
        1 => prop::bool::weighted(0.8).prop_map(|recoverable| Member::Described { recoverable }),
        1 => Just(Member::Same),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let rank = || 0usize..3;
    let flag = prop::bool::weighted;
    prop_oneof![
        60 => (rank(), who(), changes(), fate())
            .prop_map(|(rank, who, changes, fate)| Step::Publish { rank, who, changes, fate }),
        6 => (rank(), who(), 0usize..4)
            .prop_map(|(rank, who, which)| Step::Deliver { rank, who, which }),
        4 => (rank(), who(), 0usize..12)
            .prop_map(|(rank, who, which)| Step::Repeat { rank, who, which }),
        1 => any::<bool>().prop_map(|watermark| Step::Stranger { watermark }),
        6 => (rank(), who(), any::<bool>(), prop::collection::vec(change(), 0..9)).prop_map(
            |(rank, who, noticed, unseen)| Step::Rebirth { rank, who, noticed, unseen }
        ),
        10 => (rank(), who(), flag(0.7))
            .prop_map(|(rank, who, back)| Step::Transport { rank, who, back }),
        12 => (rank(), who(), prop_oneof![6 => Just(0usize), 1 => 1usize..4])
            .prop_map(|(rank, who, behind)| Step::Watermark { rank, who, behind }),
        36 => (0usize..3, twist()).prop_map(|(which, twist)| Step::Answer { which, twist }),
        4 => (0usize..9, twist()).prop_map(|(which, twist)| Step::LateAnswer { which, twist }),
        72 => (rank(), flag(0.95), flaw())
            .prop_map(|(rank, ok, flaw)| Step::Complete { rank, ok, flaw }),
        2 => (0usize..99, any::<bool>())
            .prop_map(|(which, ok)| Step::LateCompletion { which, ok }),
        12 => (rank(), member(), flag(0.7))
            .prop_map(|(rank, to, moves)| Step::Change { rank, to, moves }),
        1 => flag(0.3).prop_map(Step::Suspect),
        10 => (any::<bool>(), any::<bool>())
            .prop_map(|(whole, twice)| Step::Tell { whole, twice }),
        2 => (rank(), any::<bool>(), flag(0.1)).prop_map(|(rank, late, barrier_failed)| {
            Step::Fault { rank, late, barrier_failed }
        }),
        2 => (rank(), any::<bool>()).prop_map(|(rank, late)| Step::Reject { rank, late }),
        22 => prop_oneof![
            1 => Just(Pass::Early),
            8 => Just(Pass::Exact),
            1 => (1u64..4_000).prop_map(Pass::Late),
        ]
        .prop_map(Step::Pass),
        1 => prop::bool::weighted(0.2)
            .prop_map(|ends| if ends { Step::Shutdown } else { Step::MembershipEnded }),
    ]
}
