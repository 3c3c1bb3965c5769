//! What is printed is read back, and no text whatever breaks the reader.

use super::super::config::RouterConfig;
use super::super::header::{Header, Host, Machine};
use super::super::ranks::MembershipLine;
use super::super::targets::Targets;
use super::super::{Mode, replay};
use super::strategies::{event, membership, membership_input, output, router_input};
use crate::router::Policy;
use alloc::string::String;
use core::fmt::Debug;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&read, value, "{text}");
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

/// Texts that are nearly traces: pieces of lines, whole lines, and anything else.
fn nearly_a_trace() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => router_input().prop_map(|i| serde_json::to_string(&i).unwrap()),
        2 => membership_input().prop_map(|i| serde_json::to_string(&i).unwrap()),
        2 => output().prop_map(|output| output.line() + "\n"),
        4 => prop::sample::select([
            "{\"at\":", "0", "1000000", ",\"in\":", "}\n", "\n", "{\"out\":", "{", "}", "[", "]", "#",
            "{\"kvmirror_trace\":1,\"machine\":\"membership\"}\n",
            "{\"kvmirror_trace\":1,\"machine\":\"router\",\"host\":\"manual\"}\n",
        ].to_vec()).prop_map(String::from),
        1 => any::<String>(),
    ];
    (any::<bool>(), vec(piece, 0..12)).prop_map(|(membership, pieces)| {
        let machine = if membership { "membership" } else { "router" };
        alloc::format!("{{\"kvmirror_trace\":1,\"machine\":\"{machine}\"}}\n{}", pieces.concat())
    })
}

proptest! {
    #[test]
    fn events_come_back(event in event()) {
        comes_back(&event);
    }

    #[test]
    fn router_inputs_come_back(input in router_input()) {
        comes_back(&input);
    }

    #[test]
    fn membership_inputs_come_back(input in membership_input()) {
        comes_back(&input);
    }

    #[test]
    fn outputs_come_back(output in output()) {
        comes_back(&output);
    }

    #[test]
    fn headers_come_back(name in any::<String>(), attempts in 1_u32.., seed in any::<u64>(), manual in any::<bool>()) {
        let policy = Policy { attempts, seed, ..Policy::HARDENED };
        let header = Header {
            name,
            machine: Machine::Router(RouterConfig::from(&policy)),
            host: if manual { Host::Manual } else { Host::Accept },
        };
        prop_assert_eq!(Header::read(&header.line()), Ok(header));
    }

    #[test]
    fn membership_lines_mean_what_they_say(line in membership()) {
        let mut targets = Targets::default();
        if let Ok(membership) = line.read(&mut targets) {
            let again = MembershipLine::of(&membership, &targets);
            prop_assert_eq!(again.read(&mut targets), Ok(membership));
        }
    }

    #[test]
    fn no_text_breaks_the_reader(text in nearly_a_trace()) {
        for mode in [Mode::Print, Mode::Check, Mode::Exact, Mode::Rewrite] {
            let _ = replay(&text, mode);
        }
    }
}
