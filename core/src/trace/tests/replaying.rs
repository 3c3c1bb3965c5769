//! Lines, steps, time, printing and rewriting.

use super::super::bindings::Bindings;
use super::super::machine::{Machine, Refusal};
use super::super::output::Output;
use super::super::{MAX_LINE, Mode, Replay, ReplayFailure, replay};
use super::{output, run};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const MEMBERSHIP: &str = r#"{"kvmirror_trace":1,"machine":"membership"}"#;

fn message(trace: &str) -> String {
    replay(trace, Mode::Check).expect_err(trace).to_string()
}

#[test]
fn a_header_that_says_something_unknown_is_refused() {
    for (header, words) in [
        (r#"{"kvmirror_trace":2,"machine":"router"}"#, "version 2"),
        (r#"{"kvmirror_trace":1,"machine":"agent"}"#, "machine agent is not supported yet"),
        (r#"{"kvmirror_trace":1,"machine":"other"}"#, "unknown variant `other`"),
        (
            r#"{"kvmirror_trace":1,"machine":"membership","hosts":"accept"}"#,
            "unknown field `hosts`",
        ),
        (
            r#"{"kvmirror_trace":1,"machine":"membership","host":"later"}"#,
            "unknown variant `later`",
        ),
        (r#"{"kvmirror_trace":1,"machine":"membership","config":{"x":1}}"#, "unknown field `x`"),
        (r#"{"machine":"membership"}"#, "missing field `kvmirror_trace`"),
        (r#"{"at":0,"in":{"lost":{}}}"#, "unknown field `at`"),
        ("nonsense", "column 2"),
    ] {
        let message = message(header);
        assert!(message.starts_with("1: ") && message.contains(words), "{header}: {message}");
    }
    assert!(message("").contains("empty"));
    assert!(message("# only\n\n").contains("empty"));
}

#[test]
fn a_line_that_says_something_unknown_is_refused() {
    for (line, words) in [
        (r#"{"at":0,"in":{"losst":{}}}"#, "unknown variant `losst`"),
        (r#"{"at":0,"in":{"lost":{"x":1}}}"#, "unknown field `x`"),
        (r#"{"at":0,"in":{"advertise":{"publisher":1,"worker":1,"rank":0,"ranks":1}}}"#, "`ranks`"),
        (r#"{"at":0,"in":{"advertise":{"publisher":-1,"worker":1,"rank":0}}}"#, "-1"),
        (r#"{"at":0,"in":{}}"#, "column 15"),
        (r#"{"at":0,"in":{"lost":{},"tick":{}}}"#, "column 23"),
        (r#"{"at":0,"in":{"lost":{}},"note":1}"#, "unknown field `note`"),
        (r#"{"at":0}"#, "either `at` and `in`, or `out`"),
        (r#"{"in":{"lost":{}}}"#, "either `at` and `in`, or `out`"),
        (r#"{"at":0,"in":{"lost":{}},"out":{"snapshot":{}}}"#, "either `at` and `in`, or `out`"),
        (r#"{"at":0,"at":1,"in":{"lost":{}}}"#, "duplicate field `at`"),
        (r#"{"out":{"snapshot":{}}}"#, "needs an input before it"),
        ("[]", "3"),
        ("{", "3"),
    ] {
        let message = message(&format!("{MEMBERSHIP}\n# a comment\n{line}\n"));
        assert!(message.starts_with("3: ") && message.contains(words), "{line}: {message}");
    }
}

#[test]
fn time_never_goes_back() {
    let trace = |first: u64, second: u64| {
        format!(
            "{MEMBERSHIP}\n{{\"at\":{first},\"in\":{{\"tick\":{{}}}}}}\n{{\"at\":{second},\"in\":{{\"tick\":{{}}}}}}"
        )
    };
    assert!(replay(&trace(5, 5), Mode::Check).is_ok());
    assert_eq!(message(&trace(5, 4)), "3: `at` is 4, but the step before it is at 5");
}

#[test]
fn lines_may_have_comments_blanks_and_carriage_returns_between() {
    let trace = format!(
        "# first\r\n\r\n{MEMBERSHIP}\r\n \t\n  # x\r\n{{\"at\":0,\"in\":{{\"tick\":{{}}}}}}\r\n"
    );
    assert!(replay(&trace, Mode::Check).is_ok());
}

#[test]
fn a_line_over_the_limit_is_refused() {
    let mut replay = Replay::new(Mode::Check);
    let comment = format!("#{}", " ".repeat(MAX_LINE));
    let failure = replay.line(&comment).unwrap_err();
    assert!(failure.to_string().contains("longer"), "{failure}");
    assert!(replay.line("#").is_err(), "it has ended");
    assert!(replay.finish().is_err());
    assert!(Replay::new(Mode::Check).line(&comment[..MAX_LINE]).is_ok());
}

#[test]
fn deeply_nested_lines_are_refused() {
    let deep = format!("{{\"out\":{{\"reset\":{}{}}}}}", "[".repeat(1 << 16), "]".repeat(1 << 16));
    let trace = format!("{MEMBERSHIP}\n{{\"at\":0,\"in\":{{\"tick\":{{}}}}}}\n{deep}");
    assert!(message(&trace).contains("recursion limit"));
    let deep = format!("{{\"at\":0,\"in\":{}{}}}", "[".repeat(1 << 16), "]".repeat(1 << 16));
    assert!(replay(&format!("{MEMBERSHIP}\n{deep}"), Mode::Check).is_err());
}

const R: &str =
    r#"{"reset":{"worker":1,"rank":0,"epoch":3,"reason":"lifecycle","domain":"all","op":7}}"#;
const Q: &str = r#"{"query":{"worker":1,"rank":0,"publisher":9,"target":"t","start":null,"end":null,"query":4}}"#;

fn line(out: &str) -> String {
    format!("{{\"out\":{out}}}\n")
}

#[test]
fn printing_gives_the_outputs_of_every_step() {
    let printed = run(Mode::Print, true, &[(&[R, Q], &[]), (&[], &[R]), (&[R], &[])]);
    assert_eq!(printed.unwrap(), [R, Q, R].map(line).concat());
}

#[test]
fn a_mismatch_shows_what_came_before() {
    let ok: (&[&str], &[&str]) = (&[R], &[R]);
    let steps = [ok, ok, ok, ok, ok, ok, (&[R][..], &[Q][..])];
    let ReplayFailure::Mismatch(mismatch) = run(Mode::Check, true, &steps).unwrap_err() else {
        panic!("no mismatch")
    };
    assert_eq!(mismatch.line, 15);
    assert_eq!(mismatch.expected.as_deref(), Some(line(Q).trim_end()));
    assert_eq!(mismatch.got.as_deref(), Some(line(R).trim_end()));
    // Five steps of one input and one output each, the last one included.
    assert_eq!(mismatch.recent.len(), 10);
    assert!(mismatch.recent[0].starts_with("    6  {\"at\""), "{:?}", mismatch.recent);
    assert!(mismatch.recent[8].starts_with("   14  {\"at\""), "{:?}", mismatch.recent);
    let text = mismatch.to_string();
    assert!(
        text.starts_with("15: rank 1/0: a reset came, expected a query\n  expected  "),
        "{text}"
    );
}

#[test]
fn what_nobody_expects_is_told_at_its_input() {
    let ReplayFailure::Mismatch(mismatch) = run(Mode::Check, true, &[(&[R, Q], &[R])]).unwrap_err()
    else {
        panic!("no mismatch")
    };
    assert_eq!((mismatch.line, mismatch.expected), (2, None));
    assert_eq!(mismatch.got.as_deref(), Some(line(Q).trim_end()));
}

#[test]
fn rewriting_keeps_everything_but_the_outputs() {
    let header = MEMBERSHIP;
    let trace = format!(
        "# a\n{header}\n\n# b\n{{\"at\":0, \"in\":{{\"expect\":{{\"workers\":[{{\"worker\":1,\"first_rank\":0,\"ranks\":1}}]}}}}}}\n\
         # c\n{{\"out\":{{\"snapshot\":{{\"endpoint\":\"ambiguous\"}}}}}}\n{{\"out\":{{\"snapshot\":{{}}}}}}\n# d\n\
         {{\"at\":1,\"in\":{{\"tick\":{{}}}}}}\n# e"
    );
    let once = replay(&trace, Mode::Rewrite).unwrap();
    let expected = format!(
        "# a\n{header}\n\n# b\n{{\"at\":0, \"in\":{{\"expect\":{{\"workers\":[{{\"worker\":1,\"first_rank\":0,\"ranks\":1}}]}}}}}}\n\
         {{\"out\":{{\"snapshot\":{{\"endpoint\":\"resolved\",\"ranks\":[{{\"worker\":1,\"rank\":0,\"generation\":0,\"status\":\"missing\"}}]}}}}}}\n\
         # c\n# d\n{{\"at\":1,\"in\":{{\"tick\":{{}}}}}}\n# e\n"
    );
    assert_eq!(once, expected);
    assert_eq!(replay(&once, Mode::Rewrite).unwrap(), once);
    assert_eq!(replay(&once, Mode::Check).unwrap(), "");
    assert_eq!(replay(&once, Mode::Exact).unwrap(), "");
}

#[test]
fn rewriting_keeps_labels() {
    let reset = r#"{"reset":{"worker":1,"rank":0,"op":"o"}}"#;
    let query = r#"{"query":{"worker":1,"rank":0,"query":"q"}}"#;
    // The order is wrong: labels are bound by kind.
    let steps: [(&[&str], &[&str]); 2] = [(&[R, Q], &[query, reset]), (&[R], &[])];
    let text = run(Mode::Rewrite, true, &steps).unwrap();
    let named = |out: &str| {
        line(&out.replace("\"op\":7", "\"op\":\"o\"").replace("\"query\":4", "\"query\":\"q\""))
    };
    assert!(text.contains(&format!("{}{}", named(R), named(Q))), "{text}");
    assert!(text.ends_with(&named(R)), "{text}");
    // Nobody sees the ops of an accepting host.
    let text = run(Mode::Rewrite, false, &steps).unwrap();
    assert!(!text.contains("\"op\""), "{text}");
}

/// Fires deadlines and tells when.
#[derive(Debug)]
struct Alarm {
    deadlines: Vec<u64>,
}

impl Alarm {
    fn told(kind: &str, at: u64) -> Output {
        output(&format!(r#"{{"note":{{"kind":"{kind}","at":{at}}}}}"#))
    }
}

impl Machine for Alarm {
    fn deadline(&self) -> Option<u64> {
        self.deadlines.first().copied()
    }

    fn fire(&mut self, at: u64, out: &mut Vec<Output>) -> Result<(), Refusal> {
        let deadline = self.deadlines.remove(0);
        out.push(Self::told("fired", at));
        if deadline == 10 {
            self.deadlines.insert(0, at + 5);
        }
        Ok(())
    }

    fn input(
        &mut self,
        _text: &str,
        _offset: usize,
        at: u64,
        _bindings: &Bindings,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        out.push(Self::told("fed", at));
        Ok(())
    }
}

#[test]
fn deadlines_fire_one_by_one_at_their_own_time_before_the_input() {
    // The deadline at 15 is set by the one at 10; the second 20 is late and fires where time stands.
    let machine = Box::new(Alarm { deadlines: [10, 20, 12, 31].to_vec() });
    let mut replay = Replay::with_machine(machine, Mode::Print, true);
    for at in [9, 30, 30, 31] {
        replay.line(&format!("{{\"at\":{at},\"in\":{{}}}}")).unwrap();
    }
    replay.finish().unwrap();
    let expected = [
        ("fed", 9),
        ("fired", 10),
        ("fired", 15),
        ("fired", 20),
        ("fired", 20),
        ("fed", 30),
        ("fed", 30),
        ("fired", 31),
        ("fed", 31),
    ];
    let expected: String = expected.map(|(kind, at)| Alarm::told(kind, at).line() + "\n").concat();
    assert_eq!(replay.take_text(), expected);
}

/// A machine that never comes to rest.
#[derive(Debug)]
struct Restless;

impl Machine for Restless {
    fn deadline(&self) -> Option<u64> {
        Some(0)
    }

    fn fire(&mut self, _at: u64, _out: &mut Vec<Output>) -> Result<(), Refusal> {
        Ok(())
    }

    fn input(
        &mut self,
        _text: &str,
        _offset: usize,
        _at: u64,
        _bindings: &Bindings,
        _out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        Ok(())
    }
}

#[test]
fn a_step_that_never_ends_is_refused() {
    let mut replay = Replay::with_machine(Box::new(Restless), Mode::Print, true);
    let failure = replay.line(r#"{"at":0,"in":{}}"#).unwrap_err();
    assert!(failure.to_string().contains("shorter steps"), "{failure}");
}
