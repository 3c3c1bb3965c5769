//! Instance names.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// The name of an instance (`http-api` rule 4).
///
/// A name is text; `7` and `"7"` are one name, `"007"` another. Whether it was given as a JSON
/// integer is remembered, so that it can be given back in the same type, but takes no part in
/// comparisons.
#[derive(Clone, Debug)]
pub struct InstanceName {
    text: String,
    integer: bool,
}

impl InstanceName {
    /// A name given as text. Its length is checked at registration.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), integer: false }
    }

    /// A name given as an integer.
    pub fn integer(number: u64) -> Self {
        Self { text: number.to_string(), integer: true }
    }

    /// The name as a key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number this name is, when it is exactly the decimal text of a `u64`.
    pub fn number(&self) -> Option<u64> {
        let canonical = match self.text.as_bytes() {
            [b'0'] => true,
            [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if canonical { self.text.parse().ok() } else { None }
    }

    /// The name in the JSON type it was given in.
    pub fn to_json(&self) -> serde_json::Value {
        match self.number() {
            Some(number) if self.integer => number.into(),
            Some(_) | None => self.text.as_str().into(),
        }
    }
}

impl PartialEq for InstanceName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for InstanceName {}

impl PartialOrd for InstanceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InstanceName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for InstanceName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_text_are_one_name() {
        assert_eq!(InstanceName::integer(7), InstanceName::text("7"));
        assert_ne!(InstanceName::integer(7), InstanceName::text("007"));
        assert_eq!(InstanceName::integer(7).to_json(), serde_json::json!(7));
        assert_eq!(InstanceName::text("7").to_json(), serde_json::json!("7"));
    }

    #[test]
    fn only_plain_decimal_text_is_a_number() {
        for (text, number) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("007", None),
            ("+7", None),
            ("-1", None),
            ("", None),
            ("7a", None),
        ] {
            assert_eq!(InstanceName::text(text).number(), number, "{text:?}");
        }
        assert_eq!(InstanceName::integer(u64::MAX).to_json(), serde_json::json!(u64::MAX));
    }
}
