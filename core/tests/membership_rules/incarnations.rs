//! B17: the boot id that a source is advertised with.

use crate::rig::{hardened, reference};

// rule: B17
#[test]
fn in_the_reference_another_boot_is_a_contradiction() {
    reference(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 5 boot=1 -> 7/0.0 1 t5
        ad 1 7/0 5 boot=2 -> 7/0.1 conflict 1
        ",
    );
}

// rule: B17
#[test]
fn hardened_another_boot_takes_the_place_of_the_old_one() {
    let rig = hardened(
        "
        expect 7:0+1 -> 7/0.0 missing
        ad 1 7/0 5 -> 7/0.0 1 t5
        ad 1 7/0 5 boot=1 -> 7/0.1 1 t5
        ad 1 7/0 5 boot=1 -> -
        ad 1 7/0 5 boot=2 -> 7/0.2 1 t5
        ",
    );
    assert_eq!(rig.coordinator.stats().reboots, 2);
}

// rule: B17
#[test]
fn hardened_a_boot_that_vanishes_or_hides_another_change_is_a_contradiction() {
    for other in ["ad 1 7/0 5", "ad 1 7/0 6 boot=2", "ad 1 7/0 boot=2"] {
        let mut rig = hardened(
            "
            expect 7:0+1 -> 7/0.0 missing
            ad 1 7/0 5 boot=1 -> 7/0.0 1 t5
            ",
        );
        assert_eq!(rig.feed(other), "7/0.1 conflict 1", "{other}");
        assert_eq!(rig.feed("ad 1 7/0 5 boot=3"), "-", "a contradiction lasts until withdrawn");
        assert_eq!(rig.feed("del 1"), "7/0.2 missing");
    }
}
