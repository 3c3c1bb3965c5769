//! §3.1: where the fleet's events are published.

use crate::rig::{expectation, reference};
use kvmirror_core::membership::EndpointName;

// rule: 3.1/M1
#[test]
fn a_worker_without_an_endpoint_publishes_at_the_serving_endpoint() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 @serving -> 7/0.0 1 live
        expect 7:0+1~kv -> 7/0.1 missing
        ad 2 7/0 @serving -> -
        ad 2 7/0 @kv -> 7/0.2 2 live
        ",
    );
}

// rule: 3.1/M2
// rule: 3.1/0
#[test]
fn without_workers_it_is_the_serving_endpoint() {
    let rig = reference("ad 1 7/0 -> -");
    assert_eq!(rig.coordinator.view().resolution().endpoint(), Some(&EndpointName::new("serving")));
    assert_eq!(rig.coordinator.advertisements(), 1, "kept, since it is at the resolved endpoint");
}

// rule: 3.1/1
#[test]
fn one_endpoint_is_resolved_however_it_is_written() {
    reference(
        "
        expect 7:0+1 8:0+1~serving -> 7/0.0 missing; 8/0.0 missing
        ad 1 8/0 -> 7/0.0 missing; 8/0.0 1 live
        expect 7:0+1~serving 8:0+1 -> view
        expect 7:0+1~kv 8:0+1~kv -> 7/0.1 missing; 8/0.1 missing
        ",
    );
}

// rule: 3.1/many
// rule: 3.1/M3
#[test]
fn several_endpoints_close_every_rank() {
    let rig = reference(
        "
        expect 7:0+1~x/a/b 8:0+1~x/a 9:0+1~x/ab -> \
            unresolved 7/0.0 mapping x/a,x/a/b,x/ab; 8/0.0 mapping x/a,x/a/b,x/ab; \
            9/0.0 mapping x/a,x/a/b,x/ab
        ad 1 7/0 @x/a -> -
        ad 1 7/0 -> -
        ",
    );
    let resolution = rig.coordinator.view().resolution();
    assert_eq!((resolution.name(), resolution.endpoint()), ("ambiguous", None));
    assert_eq!(rig.coordinator.stats().other_endpoint, 2);
}

#[test]
fn names_are_ordered_part_by_part() {
    // As text `a-b/c` would come first: `-` is below `/`.
    let mut names = ["a/z/z", "a-b/c", "a/b", "b"].map(EndpointName::new);
    names.sort();
    assert_eq!(names.map(|name| name.to_string()), ["a/b", "a/z/z", "a-b/c", "b"]);
}

// rule: 3.5/M7
#[test]
fn only_endpoint_and_ranks_ask_for_new_bindings() {
    let rig =
        reference("expect 7:0+2 8:4+1~serving -> 7/0.0 missing; 7/1.0 missing; 8/4.0 missing");
    let same = |workers: &str| {
        let workers: Vec<_> = workers.split_whitespace().map(expectation).collect();
        rig.coordinator.view().same_binding_inputs(&workers)
    };
    for (workers, expected) in [
        ("7:0+2 8:4+1", true),
        ("8:4+1 7:0+2", true),
        ("7:0+2~off~rec 8:4+1~mute", true),
        ("7:0+2 8:4+1 9:0+0", true),
        ("7:0+2~kv 8:4+1~kv", false),
        ("7:0+2~kv 8:4+1", false),
        ("7:0+2 8:4+1 9:0+0~kv", false),
        ("7:0+2", false),
        ("7:0+1 8:4+1", false),
        ("7:1+2 8:4+1", false),
        ("7:0+2 8:4+1 9:0+1", false),
    ] {
        assert_eq!(same(workers), expected, "{workers}");
    }
}
