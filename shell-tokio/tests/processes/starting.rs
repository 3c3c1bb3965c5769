//! How `serve` starts and ends.

use crate::player::{Expected, Ports};
use crate::process::{Process, free_ports};
use crate::serve::Serve;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

const EVICT: &str = "vllm-0.32.0/evict.jsonl";
const SOON: Duration = Duration::from_secs(5);

fn evict() -> Expected {
    Expected::of(EVICT, "vllm-0.32.0/evict.truth.json", 0)
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("serve.toml");
    std::fs::write(&path, text).expect("a file");
    (directory, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_source_on_the_command_line() {
    let ports = Ports::free(1);
    let source = format!(
        "instance=engine,endpoint={},replay={},model=m,block_size=32",
        ports.publish(0),
        ports.replay(0)
    );
    let serve = Serve::start(&["--source", &source]);
    let _player = ports.play(EVICT, "--speed 0");
    serve.ends_equal(0, &mut evict()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_configuration_file() {
    let ports = Ports::free(1);
    let (_directory, path) = file(&format!(
        "listen = \"127.0.0.1:1\"\n[follow]\nprobe_interval = \"100ms\"\n[[source]]\n\
         instance_id = \"engine\"\nendpoint = \"{}\"\nreplay_endpoint = \"{}\"\nmodel = \"m\"\n\
         block_size = 32\n",
        ports.publish(0),
        ports.replay(0)
    ));
    let serve = Serve::start(&["--config", path.to_str().expect("text")]);
    let _player = ports.play(EVICT, "--speed 0 --drop 0.3 --seed 1");
    serve.ends_equal(0, &mut evict()).await;
}

/// Runs `serve` with arguments that it must refuse, and gives what it said.
fn refused(arguments: &[&str]) -> Vec<String> {
    let mut process = Process::start_with(&[&["serve"], arguments].concat());
    assert_eq!(process.code_within(SOON), Some(2), "{:?}", process.err());
    assert!(process.out().is_empty());
    process.err()
}

#[test]
fn a_bad_configuration_is_refused_in_one_line() {
    for (text, word) in [
        ("max_registrations = 0", "max_registrations"),
        ("[follow]\npending_events = 0", "follow.pending_events"),
        ("listen = \"0.0.0.0:7117\"", "allow_remote"),
        (
            "[[source]]\ninstance = 1\nendpoint = \"udp://h:1\"\nmodel = \"m\"\nblock_size = 1",
            "udp",
        ),
        (
            "[[source]]\ninstance = 1\nendpoint = \"tcp://h:0\"\nmodel = \"m\"\nblock_size = 1",
            "port",
        ),
    ] {
        let (_directory, path) = file(text);
        let said = refused(&["--config", path.to_str().expect("text")]);
        let [line] = said.as_slice() else { panic!("one line expected: {said:?}") };
        assert!(line.starts_with("error: ") && line.contains("serve.toml"), "{line}");
        assert!(line.contains(word), "{line}");
    }
    let said = refused(&["--config", "/no/such/file.toml"]);
    assert!(said.len() == 1 && said[0].contains("/no/such/file.toml"), "{said:?}");
    let said = refused(&["--source", "instance=a,endpoint=tcp://h:1,model=m"]);
    assert!(said.len() == 1 && said[0].contains("block_size"), "{said:?}");
}

#[test]
fn what_is_no_configuration_is_refused_with_its_place() {
    for text in ["lissen = \"127.0.0.1:0\"", "listen = 5", "[follow", "\u{0}", "[[source]]"] {
        let (_directory, path) = file(text);
        let said = refused(&["--config", path.to_str().expect("text")]);
        assert!(said[0].starts_with("error: ") && said[0].contains("serve.toml"), "{said:?}");
        assert!(said.iter().any(|line| line.contains("line 1")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("panicked")), "{said:?}");
    }
}

#[test]
fn a_port_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let said = refused(&["--listen", &address]);
    assert!(said.len() == 1 && said[0].contains(&address), "{said:?}");
}

fn ends_soon(serve: &mut Serve, signal: &str) {
    serve.process.signal(signal);
    assert_eq!(serve.process.code_within(SOON), Some(0), "{signal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_a_source_is_connected() {
    for signal in ["TERM", "INT"] {
        let ports = Ports::free(1);
        let mut serve = Serve::start(&[]);
        let _player = ports.play(EVICT, "--speed 1");
        serve.follow(ports, 0).await;
        serve.row_when(0, "a message", |row| row.cursor.is_some()).await;
        ends_soon(&mut serve, signal);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_sources_cannot_be_reached() {
    for signal in ["TERM", "INT"] {
        let (port, hole) = (free_ports(1), TcpListener::bind("127.0.0.1:0").expect("a port"));
        let hole = hole.local_addr().expect("an address").to_string();
        let hosts =
            [format!("127.0.0.1:{port}"), hole, "192.0.2.1:5557".into(), "no.invalid:5557".into()];
        let sources: Vec<String> = hosts
            .iter()
            .enumerate()
            .map(|(rank, host)| {
                let at = format!("tcp://{host}");
                format!(
                    "instance=engine,endpoint={at},replay={at},model=m,block_size=32,rank={rank}"
                )
            })
            .collect();
        let arguments: Vec<&str> =
            sources.iter().flat_map(|source| ["--source", source.as_str()]).collect();
        let mut serve = Serve::start(&arguments);
        for rank in 0..4 {
            assert_eq!(serve.row(rank).await.expect("followed").status, "pending");
        }
        ends_soon(&mut serve, signal);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_requests_never_end() {
    let mut serve = Serve::start(&[]);
    let address = serve.url.trim_start_matches("http://").to_owned();
    let mut half = TcpStream::connect(&address).expect("a connection");
    let head = "POST /query HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    half.write_all(head.as_bytes()).expect("sent");
    let mut silent = TcpStream::connect(&address).expect("a connection");
    silent.write_all(b"GET /hea").expect("sent");
    assert_eq!(serve.metric("kvmirror_ranks").await, 0);
    ends_soon(&mut serve, "TERM");
}

#[test]
fn a_signal_right_after_the_first_line_is_heard() {
    for _ in 0..10 {
        ends_soon(&mut Serve::start(&[]), "TERM");
    }
}
