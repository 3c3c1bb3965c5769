//! Random inputs from a small world, so that they meet.

use crate::model::serving;
use kvmirror_core::id::{BootId, EventId, PublisherId, Rank, RankKey, TargetId, WorkerId};
use kvmirror_core::membership::{
    Advertisement, EndpointName, MembershipInput, Publishing, Source, SourceKind, Withdrawal,
    WorkerExpectation,
};
use proptest::prelude::*;

fn endpoint() -> impl Strategy<Value = Option<EndpointName>> {
    prop_oneof![
        8 => Just(None),
        1 => Just(Some(serving())),
        2 => Just(Some(EndpointName::new("kv"))),
    ]
}

fn worker() -> impl Strategy<Value = WorkerExpectation> {
    let publishing = prop_oneof![
        4 => Just(Publishing::Enabled),
        1 => Just(Publishing::Disabled),
        1 => Just(Publishing::Undeclared),
    ];
    (
        0_u64..3,
        prop_oneof![0_u32..2, Just(u32::MAX)],
        0_u32..4,
        publishing,
        any::<bool>(),
        endpoint(),
    )
        .prop_map(|(worker, first, ranks, publishing, recovery_expected, endpoint)| {
            WorkerExpectation {
                worker: WorkerId(worker),
                first_rank: Rank(first),
                ranks,
                publishing,
                recovery_expected,
                endpoint,
            }
        })
}

fn advertisement() -> impl Strategy<Value = Advertisement> {
    let target = prop_oneof![3 => Just(None), 1 => Just(Some(TargetId(1)))];
    let boot = prop_oneof![4 => Just(None), 1 => Just(Some(1)), 1 => Just(Some(2))];
    (0_u64..5, 0_u64..3, 0_u32..4, target, boot, endpoint()).prop_map(
        |(publisher, worker, rank, target, boot, endpoint)| Advertisement {
            rank: RankKey::new(worker, rank),
            endpoint,
            source: Source {
                publisher: PublisherId(publisher),
                target,
                kind: SourceKind::Agent,
                first_id: EventId(1),
                boot: boot.map(BootId),
            },
        },
    )
}

fn input() -> impl Strategy<Value = MembershipInput> {
    let publisher = || (0_u64..5).prop_map(PublisherId);
    prop_oneof![
        2 => proptest::collection::vec(worker(), 0..4).prop_map(MembershipInput::Expectations),
        4 => worker().prop_map(MembershipInput::Expected),
        2 => (0_u64..3).prop_map(|worker| MembershipInput::Unexpected(WorkerId(worker))),
        16 => advertisement().prop_map(MembershipInput::Advertisement),
        6 => (publisher(), endpoint()).prop_map(|(publisher, endpoint)| {
            MembershipInput::Withdrawal(Withdrawal { publisher, endpoint })
        }),
        2 => publisher().prop_map(MembershipInput::Invalid),
        1 => Just(MembershipInput::Lost),
        2 => Just(MembershipInput::Listed),
        3 => Just(MembershipInput::Timeout),
    ]
}

/// Inputs with the seconds before each. An end is rare: after it the reference does nothing.
pub(crate) fn inputs() -> impl Strategy<Value = Vec<(u64, MembershipInput)>> {
    let wait = prop_oneof![6 => Just(0_u64), 2 => 0_u64..20, 1 => Just(30_u64), 1 => Just(61_u64)];
    let input = prop_oneof![80 => input(), 1 => Just(MembershipInput::Ended)];
    proptest::collection::vec((wait, input), 0..80)
}
