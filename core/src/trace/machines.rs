//! The machine that a header asks for.

use super::header::{Header, Machine as Which};
use super::machine::Machine;
use super::membership::MembershipHost;
use alloc::boxed::Box;
use alloc::string::{String, ToString};

/// The machine in its initial state.
pub(super) fn machine(header: &Header) -> Result<Box<dyn Machine>, String> {
    match &header.machine {
        Which::Router(config) => {
            let _policy = config.policy().map_err(|error| error.to_string())?;
            Err("machine router is not supported yet by this build".to_string())
        }
        Which::Membership(config) => {
            let coordinator = config.coordinator().map_err(|error| error.to_string())?;
            Ok(Box::new(MembershipHost::new(coordinator)))
        }
    }
}
