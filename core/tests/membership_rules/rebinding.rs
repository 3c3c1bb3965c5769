//! §3.7 M12: when a discovery stream is bound again.

use kvmirror_core::membership::Rebind;
use kvmirror_core::time::Timestamp;

const START: Timestamp = Timestamp(1_000_000);

/// Waits after failures, in milliseconds, each measured from the failure.
fn waits(rebind: &mut Rebind, failures: usize) -> Vec<u64> {
    (0..failures)
        .map(|_| {
            rebind.failed(START);
            rebind.due().expect("a retry is due").since(START).as_millis()
        })
        .collect()
}

// rule: 3.7/M12
#[test]
fn the_wait_doubles_to_five_seconds_and_a_success_shortens_it() {
    let mut rebind = Rebind::new(true, START);
    assert_eq!(rebind.due(), Some(START));
    assert_eq!(waits(&mut rebind, 8), [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    rebind.bound();
    assert_eq!(rebind.due(), None);
    assert_eq!(waits(&mut rebind, 2), [100, 200]);
}

// rule: 3.7/M12
#[test]
fn nothing_is_due_while_the_mapping_is_ambiguous() {
    let mut rebind = Rebind::new(false, START);
    assert_eq!(rebind.due(), None);
    rebind.failed(START);
    assert_eq!(rebind.due(), None);
    rebind.endpoint_changed(true, Timestamp(7));
    assert_eq!(rebind.due(), Some(Timestamp(7)));
    rebind.failed(Timestamp(7));
    rebind.endpoint_changed(false, Timestamp(8));
    assert_eq!(rebind.due(), None);
}
