//! Configuration of `kvmirror serve`: TOML, or `--source` texts on the command line.
//!
//! Every key has a default except the required ones of a `[[source]]`; `docs/serve.example.toml`
//! shows them all. An unknown key is an error, and every error names the file, the key and what to
//! do. Durations are texts of a number and a unit (`"250us"`, `"200ms"`, `"5s"`, `"2m"`, `"1h"`)
//! or integers of milliseconds.

mod duration;
mod follow;
mod source;
#[cfg(test)]
mod tests;

pub use follow::FollowConfig;
pub use source::SourceConfig;

use crate::http::HttpOptions;
use crate::record::RecordOptions;
use crate::registry::{Registration, Registry, RegistryError, RegistryLimits};
use core::net::SocketAddr;
use kvmirror_core::router::Trust;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest configuration file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Default listen address: loopback, the port of the HTTP API.
const DEFAULT_LISTEN: &str = "127.0.0.1:7117";

/// The configuration of `kvmirror serve`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// `listen`: address and port of the HTTP API. Default `127.0.0.1:7117`. An address that is
    /// not loopback is refused unless `allow_remote` is set.
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    /// `allow_remote`: allow `listen` to be reachable from other machines. Default false: the API
    /// has no authentication, whoever reaches it may register sources.
    pub allow_remote: bool,
    /// `allowed_hosts`: hosts that a registration over HTTP may name, compared without case.
    /// Default empty: loopback addresses only; `["*"]`: any. Sources of this file are not
    /// restricted.
    pub allowed_hosts: Vec<String>,
    /// `default_min_trust`: `min_trust` of queries that name none: `exact`, `catching_up`,
    /// `partial` or `suspect`. Default `suspect`.
    #[serde(deserialize_with = "minimum_trust")]
    pub default_min_trust: Trust,
    /// `max_registrations`: followed ranks, this file's sources included. Default 65536.
    pub max_registrations: u32,
    /// `[follow]`: how sources are followed.
    pub follow: FollowConfig,
    /// `[[source]]`: ranks that are followed from the start. Default none.
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
    /// Where to record to: of the command line only, since each run wants a file of its own.
    #[serde(skip)]
    pub record: Option<RecordOptions>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7117)),
            allow_remote: false,
            allowed_hosts: Vec::new(),
            default_min_trust: Trust::Suspect,
            max_registrations: RegistryLimits::default().registrations,
            follow: FollowConfig::default(),
            sources: Vec::new(),
            record: None,
        }
    }
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// The file is too large to be a configuration.
    #[error("{}: is larger than {MAX_FILE_BYTES} bytes; name the configuration file", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Not TOML, an unknown key, a value of the wrong type. The message shows the place.
    #[error("{origin}: {message}")]
    Parse {
        /// The file, or the text of the command line.
        origin: String,
        /// What is wrong where, and what would be right.
        message: String,
    },
    /// A value that cannot be used.
    #[error("{origin}: {key}: {problem}; {fix}")]
    Value {
        /// The file, or the text of the command line.
        origin: String,
        /// The key.
        key: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        fix: String,
    },
}

/// A refusal without its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    pub(crate) key: String,
    pub(crate) problem: String,
    pub(crate) fix: String,
}

impl BadValue {
    pub(crate) fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), problem: problem.into(), fix: fix.into() }
    }

    fn at(self, origin: &str) -> ConfigError {
        ConfigError::Value {
            origin: origin.to_owned(),
            key: self.key,
            problem: self.problem,
            fix: self.fix,
        }
    }
}

impl ServeConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Every [`ConfigError`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(read)?.len() > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge { path: path.to_owned() });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses and checks a text; `origin` names it in errors.
    ///
    /// # Errors
    /// [`ConfigError::Parse`] and [`ConfigError::Value`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::Parse {
            origin: origin.to_owned(),
            message: error.to_string(),
        })?;
        config.check().map_err(|bad| bad.at(origin))?;
        Ok(config)
    }

    /// Adds the sources of `--source` texts (`key=value` pairs separated by commas, with the
    /// keys of a `[[source]]` table) and checks the whole
    /// again.
    ///
    /// # Errors
    /// [`ConfigError::Parse`] and [`ConfigError::Value`], naming the text.
    pub fn add_sources(&mut self, texts: &[impl AsRef<str>]) -> Result<(), ConfigError> {
        for text in texts {
            let text = text.as_ref();
            let origin = format!("--source {text}");
            let source = SourceConfig::from_pairs(text).map_err(|bad| bad.at(&origin))?;
            self.sources.push(source);
            self.check().map_err(|bad| bad.at(&origin))?;
        }
        Ok(())
    }

    /// Checks the whole again after fields were changed; `origin` names who changed them.
    ///
    /// # Errors
    /// [`ConfigError::Value`].
    pub fn checked(&self, origin: &str) -> Result<(), ConfigError> {
        self.check().map_err(|bad| bad.at(origin))
    }

    /// The sources as registrations, in order. They were checked against each other: all of them
    /// can be registered.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when the fields were changed after the check.
    pub fn registrations(&self) -> Result<Vec<Registration>, ConfigError> {
        self.checked_registrations().map_err(|bad| bad.at("configuration"))
    }

    /// The bounds of the registry.
    pub fn registry_limits(&self) -> RegistryLimits {
        RegistryLimits { registrations: self.max_registrations, ..RegistryLimits::default() }
    }

    /// The options of the HTTP surface.
    pub fn http_options(&self) -> HttpOptions {
        HttpOptions {
            default_min_trust: self.default_min_trust,
            allowed_hosts: self.allowed_hosts.clone(),
        }
    }

    fn check(&self) -> Result<(), BadValue> {
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            return Err(BadValue::new(
                "listen",
                format!("{} can be reached from other machines", self.listen),
                format!(
                    "listen on {DEFAULT_LISTEN}, or set allow_remote = true if everyone who can \
                     reach the address may register sources"
                ),
            ));
        }
        if self.max_registrations == 0 {
            return Err(BadValue::new("max_registrations", "is 0", "allow at least 1"));
        }
        self.follow.check()?;
        self.checked_registrations().map(|_| ())
    }

    /// Registers everything in a registry of its own, so that contradictions between sources are
    /// found before anything starts.
    fn checked_registrations(&self) -> Result<Vec<Registration>, BadValue> {
        let mut next = 0;
        let mut registry = Registry::new(self.registry_limits(), move || {
            next += 1;
            next
        });
        let mut registrations = Vec::with_capacity(self.sources.len());
        for (index, source) in self.sources.iter().enumerate() {
            let place = |key: &str| format!("source[{index}].{key}");
            let registration =
                source.registration().map_err(|bad| BadValue { key: place(&bad.key), ..bad })?;
            let registered = registry.register(registration.clone()).map_err(|error| {
                BadValue::new(format!("source[{index}]"), error.to_string(), advice(&error))
            })?;
            if !registered.new {
                return Err(BadValue::new(
                    format!("source[{index}]"),
                    "repeats another source",
                    "remove one of them",
                ));
            }
            registrations.push(registration);
        }
        Ok(registrations)
    }
}

fn advice(error: &RegistryError) -> &'static str {
    match error {
        RegistryError::Invalid { .. } => "write a text of 1 to 512 bytes",
        RegistryError::Full { .. } => "raise max_registrations",
        RegistryError::RankConflict { .. } => "give every source its own instance or rank",
        RegistryError::DomainConflict { .. } => {
            "give all ranks of one instance the same model, block size, salt and hashing options"
        }
        RegistryError::SeveralTenants { .. }
        | RegistryError::NotFound { .. }
        | RegistryError::NoPublisherId => "give every source its own instance and rank",
    }
}

fn listen_address<'de, D: Deserializer<'de>>(reader: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(reader)?;
    text.parse().map_err(|_| {
        D::Error::custom(format!(
            "listen: {text:?} is not an address with a port; write for example {DEFAULT_LISTEN:?} \
             or \"[::1]:7117\""
        ))
    })
}

fn minimum_trust<'de, D: Deserializer<'de>>(reader: D) -> Result<Trust, D::Error> {
    let text = String::deserialize(reader)?;
    Trust::parse_minimum(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "default_min_trust: {text:?} is not a level that may answer; write exact, \
             catching_up, partial or suspect"
        ))
    })
}
