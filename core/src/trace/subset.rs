//! Whether a value has everything that was expected of it.

use super::number::hex;
use alloc::format;
use alloc::string::{String, ToString};
use serde_json::{Map, Value};

/// How much must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Only what the expected value has; lists are as long as expected.
    Subset,
    /// Everything.
    Equal,
}

/// The number a value stands for: itself, or its text `"0x…"`.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => hex(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Compares the fields of an output with what is expected of them; the error names the first field
/// that differs.
///
/// An event means the same whether it says what holds anyway or leaves it out, so with
/// [`Strictness::Subset`] an expected tier, domain, worker or rank is also met by an event that
/// leaves it out, when it is the one that holds.
pub(super) fn compare(
    expected: &Map<String, Value>,
    got: &Map<String, Value>,
    strictness: Strictness,
) -> Result<(), String> {
    let comparison = Comparison { strictness, output: got };
    comparison.objects(expected, got, "")
}

struct Comparison<'a> {
    strictness: Strictness,
    /// The whole output, whose rank an event inherits.
    output: &'a Map<String, Value>,
}

impl Comparison<'_> {
    fn objects(
        &self,
        expected: &Map<String, Value>,
        got: &Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        for (key, value) in expected {
            let path = join(path, key);
            match got.get(key) {
                Some(got) => self.values(value, got, &path)?,
                None if self.holds_anyway(key, value, &path) => {}
                None => return Err(format!("`{path}` is missing, expected {}", short(value))),
            }
        }
        let extra = got.iter().find(|(key, _)| !expected.contains_key(*key));
        if self.strictness == Strictness::Equal
            && let Some((key, value)) = extra
        {
            let path = join(path, key);
            return Err(format!("`{path}` is {}, expected no such field", short(value)));
        }
        Ok(())
    }

    fn values(&self, expected: &Value, got: &Value, path: &str) -> Result<(), String> {
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => self.objects(expected, got, path),
            (Value::Array(expected), Value::Array(got)) => {
                if expected.len() != got.len() {
                    return Err(format!(
                        "`{path}` has {} elements, expected {}",
                        got.len(),
                        expected.len()
                    ));
                }
                let mut pairs = expected.iter().zip(got).enumerate();
                pairs.try_for_each(|(index, (expected, got))| {
                    self.values(expected, got, &format!("{path}[{index}]"))
                })
            }
            (expected, got) if expected == got => Ok(()),
            (expected, got) => match (number(expected), number(got)) {
                (Some(a), Some(b)) if a == b => Ok(()),
                (_, _) => Err(format!("`{path}` is {}, expected {}", short(got), short(expected))),
            },
        }
    }

    fn holds_anyway(&self, key: &str, expected: &Value, path: &str) -> bool {
        if self.strictness == Strictness::Equal || !path.starts_with("events[") {
            return false;
        }
        match key {
            "tier" => expected == "device",
            "domain" => expected == "worker",
            "worker" | "rank" => {
                let own = self.output.get(key).and_then(number);
                own.is_some() && own == number(expected)
            }
            _ => false,
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// A value for people: a long one is cut.
fn short(value: &Value) -> String {
    super::text::cut(&value.to_string(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    fn check(expected: &str, got: &str, strictness: Strictness) -> Result<(), String> {
        compare(&object(expected), &object(got), strictness)
    }

    #[test]
    fn only_expected_keys_are_compared() {
        let got = r#"{"a":1,"b":{"c":[1,{"d":2,"e":3}],"f":null}}"#;
        for (expected, subset) in [
            ("{}", true),
            (r#"{"a":1}"#, true),
            (r#"{"a":2}"#, false),
            (r#"{"x":1}"#, false),
            (r#"{"b":{}}"#, true),
            (r#"{"b":{"c":[1,{"d":2}]}}"#, true),
            (r#"{"b":{"c":[1]}}"#, false),
            (r#"{"b":{"c":[1,{},3]}}"#, false),
            (r#"{"b":{"c":[{},1]}}"#, false),
            (r#"{"b":{"f":null}}"#, true),
            (r#"{"b":{"f":0}}"#, false),
            (r#"{"b":null}"#, false),
        ] {
            assert_eq!(check(expected, got, Strictness::Subset).is_ok(), subset, "{expected}");
            assert!(check(expected, got, Strictness::Equal).is_err(), "{expected}");
        }
        assert_eq!(check(got, got, Strictness::Equal), Ok(()));
    }

    #[test]
    fn a_number_may_be_a_text() {
        let got = r#"{"a":["0xfffffffffffffff1",1]}"#;
        for (expected, equal) in [
            (r#"{"a":[18446744073709551601,"0x1"]}"#, true),
            (r#"{"a":["0xFFFFFFFFFFFFFFF1","0x0001"]}"#, true),
            (r#"{"a":["0xfffffffffffffff2",1]}"#, false),
            (r#"{"a":["0xfffffffffffffff1","1"]}"#, false),
        ] {
            for strictness in [Strictness::Subset, Strictness::Equal] {
                assert_eq!(check(expected, got, strictness).is_ok(), equal, "{expected}");
            }
        }
    }

    #[test]
    fn an_event_may_leave_out_what_holds_anyway() {
        let got = r#"{"worker":1,"rank":2,"events":[{"id":1}]}"#;
        for (expected, subset) in [
            (
                r#"{"events":[{"id":1,"tier":"device","domain":"worker","worker":1,"rank":2}]}"#,
                true,
            ),
            (r#"{"events":[{"tier":"host"}]}"#, false),
            (r#"{"events":[{"domain":"all"}]}"#, false),
            (r#"{"events":[{"worker":2}]}"#, false),
            (r#"{"tier":"device"}"#, false),
        ] {
            assert_eq!(check(expected, got, Strictness::Subset).is_ok(), subset, "{expected}");
            assert!(check(expected, got, Strictness::Equal).is_err(), "{expected}");
        }
    }

    #[test]
    fn the_difference_is_named() {
        let error = check(r#"{"b":[{"c":1}]}"#, r#"{"b":[{"c":2}]}"#, Strictness::Subset);
        assert_eq!(error, Err("`b[0].c` is 2, expected 1".to_string()));
        let error = check(r#"{"b":[1]}"#, r#"{"b":[1,2]}"#, Strictness::Subset);
        assert_eq!(error, Err("`b` has 2 elements, expected 1".to_string()));
    }
}
