//! The router machine beside a naive model of its invariants (`docs/testing.md`).
//!
//! A world of two or three ranks, each with one to three publishers of either kind, whose lives end and
//! begin anew; every input of the machine, right, late and wrong; and a target that knows where each
//! event came from. After every input the world checks what its profile promises. A failing case is
//! played once more with the recorder on, and printed as a trace.

mod checks;
mod fair;
mod history;
mod play;
mod profile;
mod source;
mod steps;
mod target;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use profile::Profile;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestError, TestRunner};
use steps::{Case, End, case};
use world::World;

/// Cases of an ordinary run; `PROPTEST_CASES` overrides it.
const CASES: u32 = 300;

fn play(world: &mut World, case: &Case) {
    world.tell(true, false);
    for (index, step) in case.steps.iter().enumerate() {
        if world.breach.is_some() {
            return;
        }
        if index == case.twin_at {
            world.copy_machine();
        }
        world.step(step);
    }
    world.late = false;
    match case.end {
        End::Shutdown => world.ended(),
        End::Fair | End::Gone if world.shut => world.ended(),
        End::Fair => {
            world.fair(&case.tail);
            world.all_gone();
        }
        End::Gone => world.all_gone(),
    }
}

/// The case as a trace, and what was wrong with it.
fn report(case: &Case) -> String {
    let mut world = World::new(case, true);
    let panicked = catch_unwind(AssertUnwindSafe(|| play(&mut world, case))).is_err();
    let breach = match (&world.breach, panicked) {
        (Some(breach), _) => breach.as_str(),
        (None, true) => "the machine panicked",
        (None, false) => "nothing this time",
    };
    format!("{}{}# {breach}", world.trace(), world.picture())
}

fn check(profile: Profile) {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = ProptestConfig {
        cases: asked.unwrap_or(CASES),
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&case(profile), |case| {
        let mut world = World::new(&case, false);
        play(&mut world, &case);
        world.breach.map_or(Ok(()), |breach| Err(TestCaseError::fail(breach)))
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => {
            panic!("{reason}\n{case:?}\n{}", report(&case));
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[test]
fn the_hardened_profile_keeps_its_promises() {
    check(Profile::Hardened);
}

#[test]
fn the_reference_profile_keeps_its_promises() {
    check(Profile::Reference);
}

#[test]
fn any_set_of_improvements_is_sound() {
    check(Profile::Subset);
}
