//! What the replayer asks of a machine.

use super::bindings::Bindings;
use super::output::Output;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why an input cannot be fed: what is wrong with it.
pub(super) type Refusal = String;

/// A machine with its host: it reads inputs and works until nothing is left to do but wait.
pub(super) trait Machine: fmt::Debug {
    /// When it has something to do by itself, in microseconds.
    fn deadline(&self) -> Option<u64>;

    /// Fires one deadline.
    fn fire(&mut self, at: u64, out: &mut Vec<Output>) -> Result<(), Refusal>;

    /// Feeds one input: what stands behind `in`, `offset` bytes into its line.
    fn input(
        &mut self,
        text: &str,
        offset: usize,
        at: u64,
        bindings: &Bindings,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal>;
}
