//! Scenario tables of the router: one behaviour per test, every effect and the resulting state
//! asserted after every input. `rig.rs` explains the notation.

mod limits;
mod permits;
mod rig;
mod timing;

mod activation;
mod answers;
mod faults;
mod gaps;
mod lives;
mod membership;
mod transport;
