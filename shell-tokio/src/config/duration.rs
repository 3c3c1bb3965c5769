//! Durations in configuration values.

use core::fmt;
use core::time::Duration;
use serde::de::{Deserializer, Error, Visitor};

/// Longest accepted duration: a day. Longer ones are typing errors.
const MAX: Duration = Duration::from_secs(86_400);

const HELP: &str = "write a number and a unit (us, ms, s, m, h), like \"200ms\" or \"5s\", or an \
                    integer of milliseconds, at most a day";

/// Parses `"200ms"`.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let micros = match unit.trim_start() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    within(Duration::from_micros(number.checked_mul(micros)?))
}

fn within(duration: Duration) -> Option<Duration> {
    (duration <= MAX).then_some(duration)
}

/// For `#[serde(deserialize_with)]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Duration, D::Error> {
    reader.deserialize_any(DurationVisitor)
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a duration: {HELP}")
    }

    fn visit_i64<E: Error>(self, millis: i64) -> Result<Duration, E> {
        u64::try_from(millis)
            .ok()
            .and_then(|millis| within(Duration::from_millis(millis)))
            .ok_or_else(|| E::custom(format!("{millis} is out of range: {HELP}")))
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<Duration, E> {
        within(Duration::from_millis(millis))
            .ok_or_else(|| E::custom(format!("{millis} is out of range: {HELP}")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).ok_or_else(|| E::custom(format!("{text:?} is not a duration: {HELP}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (text, expected) in [
            ("250us", Some(Duration::from_micros(250))),
            ("200ms", Some(Duration::from_millis(200))),
            ("5s", Some(Duration::from_secs(5))),
            ("5 s", Some(Duration::from_secs(5))),
            ("2m", Some(Duration::from_secs(120))),
            ("24h", Some(Duration::from_secs(86_400))),
            ("0s", Some(Duration::ZERO)),
            ("25h", None),
            ("5", None),
            ("s", None),
            ("-5s", None),
            ("1.5s", None),
            ("5 parsecs", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
