//! §3.7: what is published, and what a consumer may rely on.

use crate::rig::{Rig, hardened, reference};
use kvmirror_core::id::{Generation, RankKey};
use kvmirror_core::membership::{MembershipPolicy, Update};
use kvmirror_core::time::Timestamp;

// rule: 3.7/M8
#[test]
fn only_what_differs_is_published() {
    let mut rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        expect 7:0+1 -> -
        expect 7:0+1~off~rec -> view
        expect 7:0+1~off~rec~serving -> view
        ad 1 7/9 -> -
        expect -> none
        lost -> -
        expect 7:0+0~a 8:0+0~b -> unresolved none
        expect 7:0+0~a 8:0+0~c -> view
        expect 7:0+0~a 8:0+0~a -> none
        expect 7:0+0~d 8:0+0~d -> view
        ",
    );
    let id = rig.coordinator.membership().id();
    assert_eq!(rig.coordinator.stats().snapshots, 4);
    let _ = rig.feed("lost");
    assert_eq!(rig.coordinator.membership().id(), id, "an unpublished view has no name");
}

#[test]
fn a_snapshot_names_its_predecessor_and_only_what_changed() {
    let mut rig = reference(
        "
        expect 7:0+3 -> 7/0.0 missing; 7/1.0 missing; 7/2.0 missing
        ad 1 7/1 -> 7/0.0 missing; 7/1.0 1 live; 7/2.0 missing
        ",
    );
    let before = rig.coordinator.membership().id().expect("named");
    let _ = rig.feed("ad 2 7/2");
    let (predecessor, changed) = rig.coordinator.membership().since().expect("it follows one");
    assert_eq!((predecessor, changed), (before, [RankKey::new(7, 2)].as_slice()));
}

#[test]
fn nothing_is_gated() {
    let rig = reference("expect 7:0+1 -> 7/0.0 missing");
    assert!(rig.coordinator.membership().ranks().all(|member| member.ready));
}

// rule: 3.7/M10
#[test]
fn the_first_view_shows_every_rank_missing_in_generation_0() {
    reference("expect 7:0+2 -> 7/0.0 missing; 7/1.0 missing");
    reference("expect 7:0+1~a 8:0+1~b -> unresolved 7/0.0 mapping a,b; 8/0.0 mapping a,b");
}

// rule: 3.7/M13
#[test]
fn another_endpoint_is_published_before_anything_is_listed_there() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        expect 7:0+1~kv -> 7/0.1 missing
        ad 2 7/0 @kv -> 7/0.2 2 live
        ",
    );
}

// rule: 3.7/M14
#[test]
fn the_reference_ends_silently() {
    let rig = reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        ended -> -
        del 1 -> -
        bad 1 -> -
        lost -> -
        listed -> -
        expect -> -
        worker 8:0+1 -> -
        gone 7 -> -
        ended -> -
        wait 100 -> -
        ",
    );
    assert_eq!(rig.render(), "7/0.0 1 live");
    assert_eq!(rig.coordinator.stats().after_end, 8);
}

// rule: B35
#[test]
fn hardened_an_input_that_ended_is_suspect_until_a_new_stream_is_listed() {
    let rig = hardened(
        "
        expect 7:0+1 8:0+1 -> 7/0.0 missing; 8/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live; 8/0.0 missing
        ended -> suspect 7/0.0 1 live; 8/0.0 missing
        ended -> -
        wait 86400 -> -
        expect 7:0+1 -> suspect 7/0.0 1 live
        lost -> -
        wait 86400 -> -
        ad 2 7/0 -> -
        listed -> 7/0.1 2 live
        ",
    );
    assert_eq!(rig.coordinator.next_deadline(), None);
}

// rule: B35
#[test]
fn hardened_an_end_lifts_the_time_limit_of_a_loss() {
    hardened(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 -> 7/0.0 1 live
        lost -> suspect 7/0.0 1 live
        ended -> -
        wait 61 -> -
        expect 7:0+1~kv -> suspect 7/0.1 missing
        ad 2 7/0 @kv -> -
        listed -> 7/0.2 2 live
        ",
    );
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut rig = Rig::new(MembershipPolicy::HARDENED);
    let _ = rig.feed("expect 7:0+1");
    let mut other = rig.coordinator.clone();
    assert_eq!(other, rig.coordinator);
    assert_eq!(other.handle_lost(Timestamp(5)), Update::Snapshot);
    assert_ne!(other, rig.coordinator);
    let member = rig.coordinator.membership().get(RankKey::new(7, 0)).expect("expected");
    assert_eq!(member.generation, Generation(0));
}
