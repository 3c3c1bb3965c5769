//! The machine that a header asks for.

use super::header::{Header, Machine as Which};
use super::machine::Machine;
use super::membership::MembershipHost;
use super::router::RouterHost;
use crate::router::Router;
use alloc::boxed::Box;
use alloc::string::{String, ToString};

/// The machine in its initial state.
pub(super) fn machine(header: &Header) -> Result<Box<dyn Machine>, String> {
    match &header.machine {
        Which::Router(config) => {
            let policy = config.policy().map_err(|error| error.to_string())?;
            let router = Router::new(policy).map_err(|error| error.to_string())?;
            Ok(Box::new(RouterHost::new(router, header.host)))
        }
        Which::Membership(config) => {
            let coordinator = config.coordinator().map_err(|error| error.to_string())?;
            Ok(Box::new(MembershipHost::new(coordinator)))
        }
    }
}
