//! `[[source]]` tables and `--source` texts.

use super::BadValue;
use crate::registry::{
    DEFAULT_TENANT, EngineKind, InstanceName, ParsedKind, Registration, parse_duplicates,
};
use crate::transport::Endpoint;
use core::fmt;
use core::num::NonZeroU32;
use kvmirror_core::id::Rank;
use kvmirror_core::index::Duplicates;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// One rank to follow: the fields of `/register`, plus `topic`. The second names are the short
/// ones for the command line; both work in both places.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// `instance_id` or `instance`: text or integer. Required.
    #[serde(alias = "instance", deserialize_with = "instance_name")]
    pub instance_id: InstanceName,
    /// `endpoint`: live PUB address, `tcp://host:port` or `ipc://path`. Required.
    pub endpoint: String,
    /// `replay_endpoint` or `replay`: where missed messages can be asked for. Default none.
    #[serde(alias = "replay", default)]
    pub replay_endpoint: String,
    /// `topic`: subscription prefix. Default empty: everything the endpoint publishes.
    #[serde(default)]
    pub topic: String,
    /// `model`, `model_name` or `modelname`. Required.
    #[serde(alias = "model_name", alias = "modelname")]
    pub model: String,
    /// `block_size`: tokens per block. Required.
    pub block_size: NonZeroU32,
    /// `dp_rank` or `rank`. Default 0.
    #[serde(alias = "rank", default)]
    pub dp_rank: u32,
    /// `tenant_id`, `tenant` or `routing_group`. Default `default`.
    #[serde(alias = "tenant", alias = "routing_group", default)]
    pub tenant_id: String,
    /// `additional_salt`, `additionalsalt` or `salt`. Default none.
    #[serde(alias = "additionalsalt", alias = "salt", default)]
    pub additional_salt: String,
    /// `lora_name` or `lora`: adapter of stores that name none. Default the base model.
    #[serde(alias = "lora", default)]
    pub lora_name: String,
    /// `type`: `vLLM` or `SGLang`, in any case; a hint. Default `vLLM`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// `duplicates`: how repeated stores are read, `counted` or `set`. Default `counted`.
    #[serde(default)]
    pub duplicates: String,
    /// `eagle`: whether tokens are hashed in pairs. Default false.
    #[serde(default)]
    pub eagle: bool,
    /// `image_token_id`: placeholder token of images. Default none.
    #[serde(default)]
    pub image_token_id: Option<u32>,
    /// `video_token_id`: placeholder token of videos. Default none.
    #[serde(default)]
    pub video_token_id: Option<u32>,
}

/// Keys whose values are integers.
const INTEGERS: [&str; 5] = ["block_size", "dp_rank", "rank", "image_token_id", "video_token_id"];

const PAIRS: &str = "write key=value pairs separated by commas, like \
     instance=engine-a,endpoint=tcp://127.0.0.1:5557,model=m,block_size=16";

impl SourceConfig {
    /// Reads a `--source` text: `key=value` pairs separated by commas, with the keys of a
    /// `[[source]]` table. A value cannot contain a comma (use the file for such a one).
    ///
    /// An instance whose text is exactly a number is taken as one.
    pub(crate) fn from_pairs(text: &str) -> Result<Self, BadValue> {
        let mut table = toml::Table::new();
        for pair in text.split(',').map(str::trim) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(BadValue::new(pair, "is not key=value", PAIRS));
            };
            let (key, value) = (key.trim(), value.trim());
            if table.insert(key.to_owned(), typed(key, value)?).is_some() {
                return Err(BadValue::new(key, "is given twice", "give it once"));
            }
        }
        let source: Self = table
            .try_into()
            .map_err(|error: toml::de::Error| BadValue::new("source", error.message(), PAIRS))?;
        let instance_id = match source.instance_id.number() {
            Some(number) => InstanceName::integer(number),
            None => source.instance_id,
        };
        Ok(Self { instance_id, ..source })
    }

    /// The registration this source asks for.
    pub(super) fn registration(&self) -> Result<Registration, BadValue> {
        let endpoint = endpoint("endpoint", &self.endpoint)?;
        let replay_endpoint = match self.replay_endpoint.as_str() {
            "" => None,
            text => Some(self::endpoint("replay_endpoint", text)?),
        };
        let tenant = match self.tenant_id.as_str() {
            "" => DEFAULT_TENANT,
            text => text,
        };
        Ok(Registration {
            rank: Rank(self.dp_rank),
            replay_endpoint,
            topic: self.topic.clone(),
            tenant: tenant.to_owned(),
            salt: self.additional_salt.clone(),
            kind: self.engine_kind()?,
            lora: self.lora_name.clone(),
            duplicates: self.duplicate_policy()?,
            eagle: self.eagle,
            image_token_id: self.image_token_id,
            video_token_id: self.video_token_id,
            ..Registration::new(
                self.instance_id.clone(),
                endpoint,
                self.model.clone(),
                self.block_size,
            )
        })
    }

    fn engine_kind(&self) -> Result<EngineKind, BadValue> {
        if self.kind.is_empty() {
            return Ok(EngineKind::default());
        }
        match EngineKind::parse(&self.kind) {
            Some(ParsedKind::Engine(kind)) => Ok(kind),
            Some(ParsedKind::SharedStore) => Err(BadValue::new(
                "type",
                "shared stores (Mooncake) are not supported",
                "name the engines themselves",
            )),
            None => Err(BadValue::new(
                "type",
                format!("{:?} is no known engine", self.kind),
                "write vLLM or SGLang, or leave it out",
            )),
        }
    }

    fn duplicate_policy(&self) -> Result<Duplicates, BadValue> {
        if self.duplicates.is_empty() {
            return Ok(Duplicates::default());
        }
        parse_duplicates(&self.duplicates).ok_or_else(|| {
            BadValue::new(
                "duplicates",
                format!("{:?} is no known policy", self.duplicates),
                "write counted or set, or leave it out",
            )
        })
    }
}

fn endpoint(key: &str, text: &str) -> Result<Endpoint, BadValue> {
    Endpoint::parse(text, None)
        .map_err(|error| BadValue::new(key, error.to_string(), "correct the address"))
}

fn typed(key: &str, value: &str) -> Result<toml::Value, BadValue> {
    if key == "block_size" && value.parse() == Ok(0) {
        return Err(BadValue::new(key, "is 0", "write the engine's tokens per block, at least 1"));
    }
    if INTEGERS.contains(&key) {
        return value.parse().map(toml::Value::Integer).map_err(|_| {
            BadValue::new(key, format!("{value:?} is not an integer"), "write an integer")
        });
    }
    if key == "eagle" {
        return value.parse().map(toml::Value::Boolean).map_err(|_| {
            BadValue::new(key, format!("{value:?} is not a flag"), "write true or false")
        });
    }
    Ok(toml::Value::String(value.to_owned()))
}

fn instance_name<'de, D: Deserializer<'de>>(reader: D) -> Result<InstanceName, D::Error> {
    reader.deserialize_any(NameVisitor)
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = InstanceName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instance name: text or an integer of at least 0")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<InstanceName, E> {
        u64::try_from(number)
            .map(InstanceName::integer)
            .map_err(|_| E::custom("an instance number cannot be negative; write it as text"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<InstanceName, E> {
        Ok(InstanceName::text(text))
    }
}
