//! Captures, wire variants and the simulated fleet: tests that need more than one crate. This library
//! is empty; everything is under `tests/tests/`.
