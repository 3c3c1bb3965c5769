//! Lists of tokens and hashes: read straight into their final form, errors with field and index.

use super::fields::{Fields, wrong_type};
use super::problem::{Problem, Reason};
use core::fmt;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What kind of numbers a list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// −2³¹…2³²−1; a negative one keeps its 32 bits.
    Tokens,
    /// −2⁶³…2⁶⁴−1, or text, decimal or `0x…`; a negative one keeps its 64 bits.
    Hashes,
}

/// Why an element was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Type,
    Text,
    Range,
}

impl Fields<'_> {
    /// The token list `name`.
    pub(crate) fn tokens(&self, name: &'static str) -> Result<Option<Vec<u32>>, Problem> {
        self.list(name, Numbers::Tokens, low_bits)
    }

    /// The hash list `name`.
    pub(crate) fn hashes(&self, name: &'static str) -> Result<Option<Vec<u64>>, Problem> {
        self.list(name, Numbers::Hashes, |bits| bits)
    }

    fn list<T>(
        &self,
        name: &'static str,
        numbers: Numbers,
        convert: fn(u64) -> T,
    ) -> Result<Option<Vec<T>>, Problem> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        if !raw.starts_with('[') {
            return Err(wrong_type(name, "an array"));
        }
        let mut list = List { items: Vec::new(), numbers, convert, refusal: None };
        let outcome = (&mut list).deserialize(&mut serde_json::Deserializer::from_str(raw));
        match (list.refusal, outcome) {
            (None, Ok(())) => Ok(Some(list.items)),
            (Some(refusal), _) => Err(refused(name, numbers, refusal).index(list.items.len())),
            // The text was checked as JSON before: only a number beyond every float ends up here.
            (None, Err(_)) => Err(refused(name, numbers, Refusal::Range).index(list.items.len())),
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low 32 bits of a checked token are meant")]
const fn low_bits(bits: u64) -> u32 {
    bits as u32
}

fn refused(name: &'static str, numbers: Numbers, refusal: Refusal) -> Problem {
    let (reason, what) = match refusal {
        Refusal::Type => (Reason::InvalidType, "must be an integer"),
        Refusal::Text => (Reason::InvalidValue, "is not a decimal or 0x number"),
        Refusal::Range => (Reason::OutOfRange, "is out of range"),
    };
    let fix = match (numbers, refusal) {
        (Numbers::Tokens, Refusal::Type | Refusal::Text) => "send token ids as integers",
        (Numbers::Tokens, Refusal::Range) => "send token ids from -2147483648 to 4294967295",
        (Numbers::Hashes, Refusal::Type | Refusal::Text) => {
            "send hashes as integers, or as decimal or 0x text"
        }
        (Numbers::Hashes, Refusal::Range) => "send hashes of 64 bits, signed or unsigned",
    };
    Problem::new(reason, format!("{name} element {what}"), fix).field(name)
}

/// Collects a list; `refusal` is set when the element after `items` was refused.
struct List<T> {
    items: Vec<T>,
    numbers: Numbers,
    convert: fn(u64) -> T,
    refusal: Option<Refusal>,
}

impl<'de, T> DeserializeSeed<'de> for &mut List<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de, T> Visitor<'de> for &mut List<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element_seed(Element { numbers: self.numbers })? {
            match element {
                Ok(bits) => self.items.push((self.convert)(bits)),
                Err(refusal) => {
                    self.refusal = Some(refusal);
                    return Err(A::Error::custom("refused element"));
                }
            }
        }
        Ok(())
    }
}

/// Reads one element as 64 bits.
#[derive(Clone, Copy)]
struct Element {
    numbers: Numbers,
}

impl Element {
    fn range(self) -> core::ops::RangeInclusive<i128> {
        match self.numbers {
            Numbers::Tokens => i128::from(i32::MIN)..=i128::from(u32::MAX),
            Numbers::Hashes => i128::from(i64::MIN)..=i128::from(u64::MAX),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number in range keeps exactly its low bits"
    )]
    fn bits(self, number: i128) -> Result<u64, Refusal> {
        if self.range().contains(&number) { Ok(number as u64) } else { Err(Refusal::Range) }
    }

    fn text(self, text: &str) -> Result<u64, Refusal> {
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None => (text, 10),
        };
        let unsigned =
            if radix == 10 { digits.strip_prefix('-').unwrap_or(digits) } else { digits };
        if unsigned.is_empty() || !unsigned.chars().all(|c| c.is_digit(radix)) {
            return Err(Refusal::Text);
        }
        i128::from_str_radix(digits, radix)
            .map_err(|_| Refusal::Range)
            .and_then(|number| self.bits(number))
    }
}

impl<'de> DeserializeSeed<'de> for Element {
    type Value = Result<u64, Refusal>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element {
    type Value = Result<u64, Refusal>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.bits(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(self.bits(number.into()))
    }

    /// The reader gives integers beyond 64 bits as floats, too.
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        const BEYOND: f64 = 9.0e18;
        let integer = number.fract() == 0.0 && number.abs() > BEYOND;
        Ok(Err(if integer { Refusal::Range } else { Refusal::Type }))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(match self.numbers {
            Numbers::Tokens => Err(Refusal::Type),
            Numbers::Hashes => self.text(text),
        })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Err(Refusal::Type))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Err(Refusal::Type))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Err(Refusal::Type))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Err(Refusal::Type))
    }
}
