//! A fleet around the production router: three ranks that share one or two permits; engines that
//! restart unnoticed, answer late, wrongly or not at all; membership that changes at any moment; and
//! an oracle that knows every life's truth. See `world.rs` for what is checked after each step.

mod world;

use kvmirror_core::router::{Flaw, Policy, Trust};
use kvmirror_sim::engine::Change;
use proptest::prelude::*;
use world::{Fate, KEYS, Reply, Step, World};

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0u8..8).prop_map(Change::Store),
        4 => (0u8..8).prop_map(Change::Remove),
        1 => Just(Change::Clear),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        20 => Just(Fate::Delivered),
        4 => Just(Fate::Lost),
        2 => Just(Fate::Delayed),
        1 => Just(Fate::Foreign),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    (
        any::<bool>(),
        prop::option::weighted(0.2, 0usize..4),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(stale, cut, fail, foreign)| Reply { stale, cut, fail, foreign })
}

fn flaw() -> impl Strategy<Value = Option<Flaw>> {
    prop::option::weighted(0.03, prop_oneof![Just(Flaw::Orphan), Just(Flaw::Capacity)])
}

fn step() -> impl Strategy<Value = Step> {
    let rank = || 0usize..KEYS.len();
    prop_oneof![
        30 => (rank(), change(), prop::bool::weighted(0.03), fate())
            .prop_map(|(rank, change, damaged, fate)| Step::Publish { rank, change, damaged, fate }),
        3 => (rank(), 0usize..4).prop_map(|(rank, which)| Step::Deliver { rank, which }),
        3 => (rank(), any::<bool>()).prop_map(|(rank, noticed)| Step::Restart { rank, noticed }),
        2 => rank().prop_map(Step::Drop),
        5 => rank().prop_map(Step::Return),
        16 => (0usize..3, reply()).prop_map(|(which, reply)| Step::Answer { which, reply }),
        2 => (0usize..9, reply()).prop_map(|(which, reply)| Step::LateAnswer { which, reply }),
        36 => (0usize..3, prop::bool::weighted(0.95), flaw())
            .prop_map(|(which, ok, flaw)| Step::Complete { which, ok, flaw }),
        1 => (0usize..99, any::<bool>())
            .prop_map(|(which, ok)| Step::StaleCompletion { which, ok }),
        2 => (rank(), 0usize..20).prop_map(|(rank, back)| Step::LateDuplicate { rank, back }),
        9 => Just(Step::Wait),
        1 => rank().prop_map(Step::Remove),
        2 => (rank(), any::<bool>(), any::<bool>()).prop_map(|(rank, fresh_engine, recoverable)| {
            Step::Add { rank, fresh_engine, recoverable }
        }),
        1 => rank().prop_map(Step::Bump),
        1 => rank().prop_map(Step::Ambiguous),
    ]
}

/// So many cases, unless `PROPTEST_CASES` wants others.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = std::env::var_os("PROPTEST_CASES").map_or(usual, |_| default.cases);
    ProptestConfig { cases, ..default }
}

fn rings() -> impl Strategy<Value = [usize; 3]> {
    let ring = || prop_oneof![Just(0usize), Just(3), Just(8), Just(10_000), Just(10_000)];
    [ring(), ring(), ring()]
}

fn policy(seed: u64, concurrency: u32) -> Policy {
    Policy { seed, concurrency, pending_events: 6, attempts: 3, ..Policy::default() }
}

/// L1 to L3, after a fair phase in which every engine also published a few more messages.
fn check_converged(world: &World) -> Result<(), TestCaseError> {
    for (rank, key) in KEYS.into_iter().enumerate() {
        let Some(recoverable) = world.recoverable(rank) else { continue };
        let view = world.router.rank(key).expect("expected");
        prop_assert!(view.trust >= Trust::Partial, "dark: {:?}", view);
        let target = &world.targets[rank];
        let life = world.lives.get(world.running[rank]);
        if target.seam {
            continue;
        }
        let newest = life.messages.last().map(|message| message.seq);
        if recoverable && world.rings[rank] > 0 {
            prop_assert_eq!(view.cursor.map(|cursor| cursor.0), newest, "not level: {:?}", view);
        }
        if life.damaged {
            continue;
        }
        let truth = world.lives.truth_now(world.running[rank]);
        let blocks = &target.blocks;
        prop_assert!(blocks.is_subset(&truth), "{:?} above {:?}: {:?}", blocks, truth, view);
        let whole = recoverable && life.messages.len() <= world.rings[rank];
        if whole && !target.flawed {
            prop_assert_eq!(view.trust, Trust::Exact, "{:?}", view);
            prop_assert_eq!(blocks, &truth);
        }
    }
    Ok(())
}

fn run(world: &mut World, steps: &[Step], tail: &[Change]) {
    for step in steps {
        world.step(*step);
    }
    world.fair(60);
    for change in tail {
        for rank in 0..KEYS.len() {
            let (change, fate) = (*change, Fate::Delivered);
            world.step(Step::Publish { rank, change, damaged: false, fate });
            world.fair(2);
        }
    }
    world.fair(60);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn a_fleet_is_mirrored(
        (seed, concurrency) in (any::<u64>(), 1u32..3),
        rings in rings(),
        recoverable in prop::array::uniform3(prop::bool::weighted(0.7)),
        steps in prop::collection::vec(step(), 0..250),
        tail in prop::collection::vec(change(), 4..6),
    ) {
        let mut world = World::new(rings, recoverable, policy(seed, concurrency));
        run(&mut world, &steps, &tail);
        check_converged(&world)?;
        world.remove_all();
    }
}

proptest! {
    #![proptest_config(cases(100))]

    /// B43: the same inputs give the same commands and notices, byte for byte.
    #[test]
    fn the_same_inputs_give_the_same_outputs(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 0..250),
    ) {
        let play = || {
            let mut world = World::new([3, 8, 10_000], [true; 3], policy(seed, 1));
            run(&mut world, &steps, &[]);
            world.log().to_owned()
        };
        prop_assert_eq!(play(), play());
    }
}
