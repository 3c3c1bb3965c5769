//! Numbers and ids as the format writes them.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest number that every JSON reader keeps exactly; above it a number is a text.
pub(super) const PLAIN_MAX: u64 = 1 << 53;

/// An unsigned 64-bit number: read from a number or a text `"0x…"`, written as a number up to
/// [`PLAIN_MAX`] and as a text above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct U64(pub(super) u64);

impl Serialize for U64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 <= PLAIN_MAX {
            serializer.serialize_u64(self.0)
        } else {
            serializer.collect_str(&format_args!("{:#x}", self.0))
        }
    }
}

impl<'de> Deserialize<'de> for U64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = U64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an unsigned 64-bit number, or such a number as a text \"0x…\"")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<U64, E> {
        Ok(U64(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<U64, E> {
        hex(text).map(U64).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Reads `0x` and 1 to 16 hexadecimal digits.
pub(super) fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let well = (1..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if well { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// A command's or query's id in a trace: the machine's own number, or a label for whatever number
/// the machine gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum IdRef {
    /// Exactly this number. Always written as a number: a text would be a label.
    Number(u64),
    /// The number bound to this label.
    Label(String),
}

impl fmt::Display for IdRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Label(label) => write!(f, "{label:?}"),
        }
    }
}

impl Serialize for IdRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Label(label) => serializer.serialize_str(label),
        }
    }
}

impl<'de> Deserialize<'de> for IdRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = IdRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id: an unsigned 64-bit number, or a label")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<IdRef, E> {
        Ok(IdRef::Number(value))
    }

    fn visit_str<E: Error>(self, label: &str) -> Result<IdRef, E> {
        Ok(IdRef::Label(label.to_string()))
    }
}

/// Whether a flag is at its default, and left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(super) const fn is_false(value: &bool) -> bool {
    !*value
}

/// What is wrong with a JSON text, and where; `offset` is where the text begins in its line.
pub(super) fn json_error(error: &serde_json::Error, offset: usize) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = whole.strip_suffix(place.as_str()).unwrap_or(&whole);
    format!("column {}: {what}", error.column().saturating_add(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u64> {
        serde_json::from_str::<U64>(text).ok().map(|number| number.0)
    }

    #[test]
    fn numbers_and_texts_are_read() {
        for (text, expected) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("\"0x0\"", Some(0)),
            ("\"0xFfffffffffffffff\"", Some(u64::MAX)),
            ("\"0x00000000000000001\"", None),
            ("\"0x\"", None),
            ("\"0x+1\"", None),
            ("\"7\"", None),
            ("-1", None),
            ("1.0", None),
            ("18446744073709551616", None),
            ("null", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn large_numbers_are_written_as_texts() {
        for (number, expected) in [
            (PLAIN_MAX, "9007199254740992"),
            (PLAIN_MAX + 1, "\"0x20000000000001\""),
            (u64::MAX, "\"0xffffffffffffffff\""),
        ] {
            assert_eq!(serde_json::to_string(&U64(number)).unwrap(), expected);
        }
    }

    #[test]
    fn an_id_above_the_plain_numbers_stays_a_number() {
        let id = IdRef::Number(u64::MAX);
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, "18446744073709551615");
        assert_eq!(serde_json::from_str::<IdRef>(&text).unwrap(), id);
    }
}
