//! Reading a JSON body field by field, so that every error names its field.
//!
//! Fields stay raw text until they are asked for: unknown ones cost nothing, and a list of a
//! million numbers is read straight into its final form (`list`).

use super::problem::{Problem, Reason};
use crate::registry::InstanceName;
use core::fmt;
use core::num::NonZeroU32;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Every field any call reads. Others are ignored (`http-api` rule 3).
const KNOWN: &[&str] = &[
    "instance_id",
    "endpoint",
    "replay_endpoint",
    "model",
    "model_name",
    "modelname",
    "block_size",
    "type",
    "dp_rank",
    "tenant_id",
    "routing_group",
    "lora_name",
    "lora_id",
    "additional_salt",
    "additionalsalt",
    "cache_salt",
    "duplicates",
    "eagle",
    "image_token_id",
    "video_token_id",
    "token_ids",
    "block_hashes",
    "seq_hashes",
    "block_hash",
    "hashes",
    "min_trust",
];

/// Names a fact goes by (`http-api` rule 2), the one used in errors first.
pub(crate) const MODEL: &[&str] = &["model_name", "modelname", "model"];
pub(crate) const TENANT: &[&str] = &["tenant_id", "routing_group"];
pub(crate) const SALT: &[&str] = &["additional_salt", "additionalsalt"];

/// How a call is spelled (`http-api` rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Dynamo's: the body has `model_name`.
    D,
    /// Mooncake's: any other.
    M,
}

/// The known, non-null fields of a body.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    present: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// Parses a body, which must be one JSON object. Of a field given twice the last counts.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        FieldsSeed
            .deserialize(&mut reader)
            .and_then(|fields| reader.end().map(|()| fields))
            .map_err(|error| {
                if error.is_data() {
                    return Problem::new(
                        Reason::InvalidType,
                        "the body must be a JSON object",
                        "send one object with the fields of the call",
                    );
                }
                Problem::new(
                    Reason::InvalidJson,
                    format!("the body is not JSON: {error}"),
                    "send one JSON object",
                )
            })
    }

    pub(crate) fn spelling(&self) -> Spelling {
        if self.raw("model_name").is_some() { Spelling::D } else { Spelling::M }
    }

    /// The raw text of a present field.
    pub(crate) fn raw(&self, name: &'static str) -> Option<&'a str> {
        self.present.iter().find(|(known, _)| *known == name).map(|(_, raw)| raw.get())
    }

    /// A text; `""` is given back as it is.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if !raw.starts_with('"') {
            return Err(wrong_type(name, "a string"));
        }
        serde_json::from_str(raw).map(Some).map_err(|_| {
            Problem::new(
                Reason::InvalidValue,
                format!("{name} is not valid text"),
                "send text without lone surrogates",
            )
            .field(name)
        })
    }

    /// A text, where `""` is absent.
    pub(crate) fn non_empty(&self, name: &'static str) -> Result<Option<String>, Problem> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    /// One fact under several names: equal values are fine, different ones are not.
    pub(crate) fn aliased<T: PartialEq>(
        &self,
        names: &[&'static str],
        read: impl Fn(&Self, &'static str) -> Result<Option<T>, Problem>,
    ) -> Result<Option<T>, Problem> {
        let mut found: Option<(T, &'static str)> = None;
        for &name in names {
            let Some(value) = read(self, name)? else { continue };
            match &found {
                Some((first, first_name)) if *first != value => {
                    return Err(contradiction(name, first_name));
                }
                Some(_) => {}
                None => found = Some((value, name)),
            }
        }
        Ok(found.map(|(value, _)| value))
    }

    /// An integer within `min..=max`.
    pub(crate) fn integer(
        &self,
        name: &'static str,
        min: i128,
        max: i128,
    ) -> Result<Option<i128>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if !raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            || raw.contains(['.', 'e', 'E'])
        {
            return Err(wrong_type(name, "an integer"));
        }
        // What does not even fit an i128 is far out of every range.
        match raw.parse::<i128>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            Ok(_) | Err(_) => Err(Problem::new(
                Reason::OutOfRange,
                format!("{name} is out of range"),
                format!("send an integer from {min} to {max}"),
            )
            .field(name)),
        }
    }

    /// A `u32` of at least `min`.
    pub(crate) fn number(&self, name: &'static str, min: u32) -> Result<Option<u32>, Problem> {
        let number = self.integer(name, min.into(), u32::MAX.into())?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    }

    pub(crate) fn block_size(&self) -> Result<Option<NonZeroU32>, Problem> {
        Ok(self.number("block_size", 1)?.and_then(NonZeroU32::new))
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.raw(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(wrong_type(name, "true or false")),
        }
    }

    /// An instance name: a string or an integer 0…2⁶⁴−1 (`http-api` rule 4).
    pub(crate) fn instance(&self) -> Result<Option<InstanceName>, Problem> {
        const NAME: &str = "instance_id";
        let Some(raw) = self.raw(NAME) else { return Ok(None) };
        if raw.starts_with('"') {
            return Ok(self.text(NAME)?.map(InstanceName::text));
        }
        if !raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Err(wrong_type(NAME, "a string or an integer"));
        }
        let number = self.integer(NAME, 0, u64::MAX.into())?;
        Ok(number.and_then(|number| u64::try_from(number).ok()).map(InstanceName::integer))
    }

    /// The model, required and not empty.
    pub(crate) fn model(&self) -> Result<String, Problem> {
        let model = self.aliased(MODEL, Self::text)?.ok_or_else(|| Problem::missing(MODEL[0]))?;
        if model.is_empty() {
            return Err(Problem::new(
                Reason::InvalidValue,
                "model_name must not be empty",
                "send the name of the model the engine serves",
            )
            .field(MODEL[0]));
        }
        Ok(model)
    }
}

/// The problem of a field of the wrong type.
pub(crate) fn wrong_type(name: &'static str, expected: &'static str) -> Problem {
    Problem::new(
        Reason::InvalidType,
        format!("{name} must be {expected}"),
        format!("send {name} as {expected}"),
    )
    .field(name)
}

/// The problem of two fields that contradict each other.
pub(crate) fn contradiction(name: &'static str, other: &'static str) -> Problem {
    Problem::new(
        Reason::Conflict,
        format!("{name} and {other} differ"),
        format!("send one of {name} and {other}"),
    )
    .field(name)
}

struct FieldsSeed;

impl<'de> DeserializeSeed<'de> for FieldsSeed {
    type Value = Fields<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut present: Vec<(&'static str, &'de RawValue)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let Some(&name) = KNOWN.iter().find(|known| **known == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw = map.next_value::<&'de RawValue>()?;
            present.retain(|(known, _)| *known != name);
            if raw.get() != "null" {
                present.push((name, raw));
            }
        }
        Ok(Fields { present })
    }
}

#[cfg(test)]
mod tests {
    use super::super::HttpOptions;
    use super::super::{query, registration};
    use super::KNOWN;
    use kvmirror_core::router::Trust;
    use proptest::prelude::*;

    /// A value of any shape, or text that is no JSON.
    fn any_raw() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            "\"[a-z0-9x:/.*-]{0,12}\"",
            "\\[([0-9\\-\"x,\\[\\]{}.e]){0,12}\\]",
            "[ -~]{0,8}",
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("\"tcp://h:1\"".to_owned()),
        ]
    }

    fn any_body() -> impl Strategy<Value = String> {
        prop::collection::vec((prop::sample::select(KNOWN), any_raw()), 0..8).prop_map(|fields| {
            let fields: Vec<_> =
                fields.iter().map(|(name, raw)| format!("\"{name}\":{raw}")).collect();
            format!("{{{}}}", fields.join(","))
        })
    }

    proptest! {
        #[test]
        fn no_body_makes_a_parser_panic(body in any_body(), bytes: Vec<u8>) {
            for body in [body.as_bytes(), &bytes] {
                let _ = registration::registration(body, &HttpOptions::default());
                let _ = registration::unregistration(body);
                let _ = query::by_tokens(body, Trust::Suspect);
                let _ = query::by_hashes(body, Trust::Suspect);
            }
        }
    }
}
