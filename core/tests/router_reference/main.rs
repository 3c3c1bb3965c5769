//! The reference profile of the router, rule by rule. `tests/rules/router.txt` lists the rules;
//! `coverage.rs` holds scenarios and tests against it.

mod coverage;
mod diagnostics;
mod initial;
mod invariants;
mod rig;
mod scenarios;
mod state;
