//! The first line of a trace.

use super::config::{MembershipConfig, RouterConfig};
use super::number::json_error;
use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the format that this build reads and writes.
const VERSION: u64 = 1;

/// Who completes commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Host {
    /// A target that accepts at once.
    #[default]
    Accept,
    /// `done` inputs only.
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MachineName {
    Router,
    Agent,
    Membership,
}

/// Which machine, as configured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Machine {
    Router(RouterConfig),
    Membership(MembershipConfig),
}

/// What a header says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) machine: Machine,
    pub(super) host: Host,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine<'a> {
    kvmirror_trace: u64,
    machine: MachineName,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    config: Option<&'a RawValue>,
    #[serde(default)]
    host: Host,
}

#[derive(Serialize)]
struct HeaderOut<'a, C> {
    kvmirror_trace: u64,
    machine: MachineName,
    name: &'a str,
    config: &'a C,
    host: Host,
}

impl Header {
    /// Reads the first line, or says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let line: HeaderLine<'_> =
            serde_json::from_str(text).map_err(|error| json_error(&error, 0))?;
        if line.kvmirror_trace != VERSION {
            return Err(alloc::format!(
                "trace version {} is not known; this build reads {VERSION}",
                line.kvmirror_trace
            ));
        }
        let config = line.config.map_or("{}", RawValue::get);
        let machine = match line.machine {
            MachineName::Router => Machine::Router(config_of(config)?),
            MachineName::Membership => Machine::Membership(config_of(config)?),
            MachineName::Agent => {
                return Err("machine agent is not supported yet by this build".into());
            }
        };
        Ok(Self { name: line.name, machine, host: line.host })
    }

    /// The header as a line, without its end.
    pub(super) fn line(&self) -> String {
        match &self.machine {
            Machine::Router(config) => self.line_of(MachineName::Router, config),
            Machine::Membership(config) => self.line_of(MachineName::Membership, config),
        }
    }

    fn line_of<C: Serialize>(&self, machine: MachineName, config: &C) -> String {
        let (name, host) = (&self.name, self.host);
        let line = HeaderOut { kvmirror_trace: VERSION, machine, name, config, host };
        // Texts and numbers only: nothing of it can fail to be written.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

fn config_of<'a, C: Deserialize<'a>>(text: &'a str) -> Result<C, String> {
    serde_json::from_str(text).map_err(|error| alloc::format!("config: {}", json_error(&error, 0)))
}
