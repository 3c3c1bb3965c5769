//! The coordinator against its naive model, and against what a consumer of its snapshots relies on.

use crate::generators::inputs;
use crate::model::{Model, Shown, Status, serving};
use kvmirror_core::id::{Generation, RankKey, SnapshotId, WorkerId};
use kvmirror_core::membership::health::{ChangedWorkers, Requirement, SourceHealth};
use kvmirror_core::membership::{
    Ambiguity, Coordinator, MemberRank, MembershipInput, MembershipPolicy, RankStatus, Update,
};
use kvmirror_core::time::Timestamp;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a coordinator shows, in the model's words.
fn shown(coordinator: &Coordinator) -> Shown {
    let view = coordinator.view();
    let ranks = view.membership().ranks().map(|member| {
        let status = match (member.status, view.ambiguity(member.key)) {
            (RankStatus::Missing, None) => Status::Missing,
            (RankStatus::Active(source), None) => Status::Active(source),
            (RankStatus::Ambiguous, Some(Ambiguity::EndpointMapping(names))) => {
                Status::Mapping(names.to_vec())
            }
            (RankStatus::Ambiguous, Some(Ambiguity::ConflictingDescriptor(publisher))) => {
                Status::Conflict(publisher)
            }
            (RankStatus::Ambiguous, Some(Ambiguity::Incarnations(publishers))) => {
                Status::Many(publishers.to_vec())
            }
            (status, why) => panic!("{status:?} does not go with {why:?}"),
        };
        (member.key, member.generation.0, status)
    });
    Shown {
        suspect: view.membership().suspect(),
        resolution: view.resolution().clone(),
        ranks: ranks.collect(),
        workers: view.workers().cloned().collect(),
    }
}

/// A consumer that applies each snapshot's difference to what it has, and remembers under which
/// generations a rank's activation has ended: a consumer that missed the end must be able to tell.
#[derive(Default)]
struct Consumer {
    id: Option<SnapshotId>,
    ranks: BTreeMap<RankKey, MemberRank>,
    over: BTreeSet<(RankKey, Generation)>,
}

impl Consumer {
    fn apply(&mut self, coordinator: &Coordinator) {
        let next = coordinator.membership();
        if let Some((predecessor, changed)) = next.since() {
            assert_eq!(Some(predecessor), self.id, "each snapshot follows the one before");
            let mut ranks = self.ranks.clone();
            for key in changed {
                match next.get(*key) {
                    Some(member) => ranks.insert(*key, *member),
                    None => ranks.remove(key),
                };
            }
            assert!(ranks.values().eq(next.ranks()), "what is not named has not changed");
        }
        for before in self.ranks.values().filter(|member| is_active(member)) {
            if next.get(before.key) != Some(before) {
                self.over.insert((before.key, before.generation));
            }
        }
        for member in next.ranks().filter(|member| is_active(member)) {
            let activation = (member.key, member.generation);
            assert!(!self.over.contains(&activation), "{} came back unnoticed", member.key);
        }
        self.ranks = next.ranks().map(|member| (member.key, *member)).collect();
        self.id = next.id();
    }
}

fn is_active(member: &MemberRank) -> bool {
    matches!(member.status, RankStatus::Active(_))
}

fn check(policy: MembershipPolicy, inputs: Vec<(u64, MembershipInput)>) {
    let mut coordinator = Coordinator::new(serving(), policy).expect("valid");
    let mut model = Model::new(policy);
    let mut consumer = Consumer::default();
    let (mut some, mut all) = (SourceHealth::new(), SourceHealth::new());
    let mut now = Timestamp::ZERO;
    for (wait, input) in inputs {
        now.0 += wait * 1_000_000;
        let want = model.step(&input, now);
        let got = coordinator.handle(input.clone(), now);
        assert_eq!(got, want, "{input:?}");
        assert_eq!(shown(&coordinator), model.shown, "after {input:?}");
        assert_eq!(coordinator.view().mismatch(), model.mismatch(), "after {input:?}");
        assert_eq!(coordinator.next_deadline(), model.until, "after {input:?}");
        if got == Update::Snapshot {
            consumer.apply(&coordinator);
        }
        let changed: &[WorkerId] =
            if got == Update::Unchanged { &[] } else { coordinator.changed_workers() };
        let (mut few, mut many) = (Vec::new(), Vec::new());
        let view = coordinator.view();
        let class = Requirement::CacheAwareRouting;
        some.handle_view(view, ChangedWorkers::Some(changed), class, now, &mut few);
        all.handle_view(view, ChangedWorkers::All, class, now, &mut many);
        assert_eq!(few, many, "only changed workers have anything to tell");
        assert_eq!(some, all);
    }
    let sizes = (coordinator.tracked_ranks(), model.tracks.len());
    assert_eq!(sizes.0, sizes.1, "tracked ranks");
}

/// Limits that are met all the time: the model does not know them, a consumer's guarantees hold.
fn check_limits(policy: MembershipPolicy, inputs: Vec<(u64, MembershipInput)>) {
    let policy = MembershipPolicy {
        ranks_max: 5,
        advertisements_max: 3,
        advertisements_per_rank_max: 2,
        quarantine_max: 1,
        idle_ranks_max: 1,
        ..policy
    };
    let mut coordinator = Coordinator::new(serving(), policy).expect("valid");
    let mut consumer = Consumer::default();
    let mut now = Timestamp::ZERO;
    for (wait, input) in inputs {
        now.0 += wait * 1_000_000;
        if coordinator.handle(input, now) == Update::Snapshot {
            consumer.apply(&coordinator);
        }
        assert!(coordinator.membership().len() <= 5);
        assert!(coordinator.advertisements() <= 6, "the known ones and the new list");
        assert!(coordinator.tracked_ranks() <= coordinator.membership().len() + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_reference_equals_its_model(inputs in inputs()) {
        check(MembershipPolicy::REFERENCE, inputs);
    }

    #[test]
    fn the_hardened_profile_equals_its_model(inputs in inputs()) {
        check(MembershipPolicy::HARDENED, inputs);
    }

    #[test]
    fn limits_hold_and_lose_no_fence(inputs in inputs()) {
        check_limits(MembershipPolicy::REFERENCE, inputs.clone());
        check_limits(MembershipPolicy::HARDENED, inputs);
    }
}
