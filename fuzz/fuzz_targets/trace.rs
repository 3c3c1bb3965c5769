//! Any text as a trace: no panic in any mode; what a rewriting gives is reproduced exactly and stays as
//! it is when it is rewritten again.
#![no_main]

use kvmirror_core::trace::{Mode, replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for mode in [Mode::Print, Mode::Check, Mode::Exact] {
        let _ = replay(text, mode);
    }
    let Ok(rewritten) = replay(text, Mode::Rewrite) else { return };
    // Where two labels stood for one command only one of them is left.
    if let Ok(again) = replay(&rewritten, Mode::Rewrite) {
        assert_eq!(again, rewritten);
        for mode in [Mode::Exact, Mode::Check] {
            let _ = replay(&rewritten, mode).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
});
