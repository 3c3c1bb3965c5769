//! Shapes of lines: what is read, what is refused.

use super::super::TraceEvent;
use super::super::config::{MembershipConfig, RouterConfig};
use super::super::input::RouterInput;
use super::strategies::{membership_input, output, router_input};
use crate::id::EventId;
use crate::membership::MembershipPolicy;
use crate::router::Policy;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use serde_json::Value;

fn event(text: &str) -> Result<TraceEvent, String> {
    serde_json::from_str(text).map_err(|error: serde_json::Error| error.to_string())
}

#[test]
fn events_of_every_shape_are_written_as_they_were_read() {
    for text in [
        r#"{"id":0,"store":{"parent":null,"blocks":[]}}"#,
        r#"{"id":1,"store":{"parent":5,"blocks":[["0xfffffffffffffff1","0x8000000000000001"],[1,2]]}}"#,
        r#"{"id":"0xffffffffffffffff","remove":[1,"0x20000000000001"],"tier":"host"}"#,
        r#"{"id":2,"clear":true,"domain":"all"}"#,
        r#"{"id":2,"clear":true,"tier":"external","domain":"cache_owner","worker":7,"rank":3}"#,
        r#"{"id":2,"clear":true,"domain":"worker","bytes":400,"digest":null,"damaged":true}"#,
        r#"{"id":2,"remove":[],"tier":"disk","digest":9}"#,
        r#"{"id":3,"opaque":{"bytes":412,"clear":false}}"#,
        r#"{"id":3,"opaque":{"bytes":0,"digest":"0xffffffffffffffff","clear":true},"damaged":true}"#,
        r#"{"id":3,"opaque":{"bytes":1,"clear":"one_domain","payload":"c0"},"tier":"device"}"#,
    ] {
        let event = event(text).expect(text);
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
}

#[test]
fn events_of_no_shape_are_refused() {
    for (text, words) in [
        (r#"{"id":1}"#, "exactly one of"),
        (r#"{"remove":[]}"#, "missing field `id`"),
        (r#"{"id":1,"remove":[],"clear":true}"#, "exactly one of"),
        (r#"{"id":1,"clear":false}"#, "must be true"),
        (r#"{"id":1,"clear":true,"tiers":"host"}"#, "unknown field `tiers`"),
        (r#"{"id":1,"clear":true,"tier":"tape"}"#, "unknown variant `tape`"),
        (r#"{"id":1,"clear":true,"domain":"both"}"#, "unknown variant `both`"),
        (r#"{"id":1,"remove":[],"domain":"all"}"#, "only a clear"),
        (r#"{"id":1,"remove":[1.5]}"#, "1.5"),
        (r#"{"id":1,"remove":[-1]}"#, "-1"),
        (r#"{"id":1,"store":{"parent":null,"blocks":[[1]]}}"#, "invalid length 1"),
        (r#"{"id":1,"store":{"parent":null,"blocks":[[1,2,3]]}}"#, "trailing characters"),
        (r#"{"id":1,"store":{"parents":null,"blocks":[]}}"#, "unknown field `parents`"),
        (r#"{"id":1,"clear":true,"rank":4294967296}"#, "4294967296"),
        (r#"{"id":1,"clear":true,"digest":0}"#, "never 0"),
        (r#"{"id":1,"opaque":{"bytes":1,"digest":0}}"#, "never 0"),
        (r#"{"id":1,"opaque":{"bytes":1},"digest":5}"#, "within `opaque`"),
        (r#"{"id":1,"opaque":{"bytes":1},"bytes":5}"#, "within `opaque`"),
        (r#"{"id":1,"opaque":{"bytes":1,"clear":"all"}}"#, "one_domain"),
        (r#"{"id":1,"opaque":{"digest":1}}"#, "missing field `bytes`"),
        (r#"{"id":1,"id":2,"clear":true}"#, "duplicate field `id`"),
    ] {
        let error = event(text).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn an_event_has_a_size_and_a_digest_that_do_not_depend_on_what_it_leaves_out() {
    let short = event(r#"{"id":1,"remove":[1,2]}"#).unwrap();
    let long = event(
        r#"{"id":2,"remove":["0x1",2],"tier":"device","domain":"worker","worker":5,"rank":6}"#,
    )
    .unwrap();
    assert_eq!((short.size(), long.size()), (48, 48));
    assert_eq!(short.digest(), long.digest());
    let other = event(r#"{"id":1,"remove":[1,2],"tier":"host"}"#).unwrap();
    assert_ne!(short.digest(), other.digest());
    assert!(short.digest().is_some());
    // A recording's size and digest must mean the same for ever.
    assert_eq!(short.digest().map(|digest| digest.get()), Some(0xf41b_7bee_522d_6486));
    let given = event(r#"{"id":1,"remove":[1,2],"bytes":7,"digest":8}"#).unwrap();
    assert_eq!((given.size(), given.digest().map(|digest| digest.get())), (7, Some(8)));
    let none = event(r#"{"id":1,"remove":[1,2],"digest":null}"#).unwrap();
    assert_eq!(none.digest(), None);
    let opaque = event(r#"{"id":1,"opaque":{"bytes":9}}"#).unwrap();
    assert_eq!((opaque.size(), opaque.digest(), opaque.id), (9, None, EventId(1)));
}

#[test]
fn inputs_that_contradict_themselves_are_refused() {
    for (text, words) in [
        (r#"{"done":{"op":1}}"#, "either `ok` true or `error`"),
        (r#"{"done":{"op":1,"ok":false}}"#, "either `ok` true or `error`"),
        (r#"{"done":{"op":1,"ok":true,"error":"e"}}"#, "either `ok` true or `error`"),
        (r#"{"done":{"op":1,"error":"e","flaw":"orphan"}}"#, "`flaw`"),
        (r#"{"done":{"op":null,"ok":true}}"#, "an id"),
        (r#"{"done":{"ok":true}}"#, "missing field `op`"),
        (r#"{"response":{"query":1}}"#, "exactly one of"),
        (r#"{"response":{"query":1,"error":"e","failed":"f"}}"#, "exactly one of"),
        (r#"{"response":{"query":1,"errors":"e"}}"#, "unknown field `errors`"),
        (r#"{"response":{"query":1,"snapshot":{"events":[]}}}"#, "missing field `last`"),
        (
            r#"{"response":{"query":1,"snapshot":{"events":[],"last":1,"complete":true}}}"#,
            "`complete`",
        ),
        (
            r#"{"membership":{"ranks":[{"worker":1,"rank":0,"generation":0,"status":"gone"}]}}"#,
            "`gone`",
        ),
        (
            r#"{"membership":{"ranks":[{"worker":1,"rank":0,"generation":0,"status":{"live_only":{"publisher":1,"target":"t"}}}]}}"#,
            "unknown field `target`",
        ),
        (r#"{"tick":{"x":1}}"#, "unknown field `x`"),
        (r#"{"tick":null}"#, "null"),
    ] {
        let error = serde_json::from_str::<RouterInput>(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// The page that describes the format.
const PAGE: &str = include_str!("../../../../docs/trace-format.md");

/// The keys of an object, at any depth, that are not on the page.
fn undocumented(value: &Value) -> Vec<String> {
    let mut open = vec![value];
    let mut missing = Vec::new();
    while let Some(value) = open.pop() {
        if let Value::Object(object) = value {
            let named = |key: &&String| {
                PAGE.contains(&format!("`{key}`")) || PAGE.contains(&format!("\"{key}\""))
            };
            missing.extend(object.keys().filter(|key| !named(key)).cloned());
            open.extend(object.values());
        } else if let Value::Array(list) = value {
            open.extend(list);
        }
    }
    missing
}

proptest! {
    #[test]
    fn everything_that_can_be_written_is_documented(
        input in router_input(),
        membership in membership_input(),
        output in output(),
    ) {
        let values = [
            serde_json::to_value(&input),
            serde_json::to_value(&membership),
            serde_json::to_value(&output),
            serde_json::to_value(RouterConfig::from(&Policy::HARDENED)),
            serde_json::to_value(MembershipConfig::from(&MembershipPolicy::HARDENED)),
        ];
        for value in values {
            prop_assert_eq!(undocumented(&value.unwrap()), Vec::<String>::new());
        }
    }
}
