//! Child processes of the `kvmirror` binary.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a condition may take before the test fails. Far above what it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a condition.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

type Lines = Arc<Mutex<Vec<String>>>;

/// A child: killed when it is dropped; what it wrote is shown when the test fails.
pub(crate) struct Process {
    name: String,
    child: Child,
    out: Lines,
    err: Lines,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts `kvmirror` with arguments separated by blanks.
    pub(crate) fn start(arguments: &str) -> Self {
        Self::start_with(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kvmirror"))
            .args(arguments)
            .env_remove("RUST_LOG")
            .env("KVMIRROR_LOG", "kvmirror_tokio=info,warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (out, err) = (Lines::default(), Lines::default());
        let readers = vec![
            collect(child.stdout.take().expect("piped"), &out),
            collect(child.stderr.take().expect("piped"), &err),
        ];
        Self { name: arguments.join(" "), child, out, err, readers }
    }

    pub(crate) fn err(&self) -> Vec<String> {
        self.err.lock().expect("not poisoned").clone()
    }

    pub(crate) fn out(&self) -> Vec<String> {
        self.out.lock().expect("not poisoned").clone()
    }

    /// Waits for a line on standard error.
    pub(crate) fn line(&mut self, with: &str) -> String {
        let started = Instant::now();
        loop {
            let ended = self.child.try_wait().expect("a child");
            if ended.is_some() {
                self.read_all();
            }
            if let Some(line) = self.err().into_iter().find(|line| line.contains(with)) {
                return line;
            }
            assert!(ended.is_none(), "{}: {ended:?} before {with:?}", self.name);
            assert!(started.elapsed() < PATIENCE, "{}: no {with:?}", self.name);
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until it has ended, at most this long, and gives its exit code; `None` for a signal.
    pub(crate) fn code_within(&mut self, patience: Duration) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                self.read_all();
                return status.code();
            }
            assert!(started.elapsed() < patience, "{}: alive after {patience:?}", self.name);
            std::thread::sleep(LOOK);
        }
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().expect("kill");
        assert!(sent.success(), "{}: {name}", self.name);
    }

    /// Kills it and waits until its ports are free.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.read_all();
    }

    fn read_all(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for Process {
    #[allow(clippy::print_stderr, reason = "what a child said explains a failure")]
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            eprintln!("--- kvmirror {}", self.name);
            for line in self.out().iter().chain(&self.err()) {
                eprintln!("{line}");
            }
        }
    }
}

fn collect(pipe: impl Read + Send + 'static, lines: &Lines) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            lines.lock().expect("not poisoned").push(line);
        }
    })
}

/// The first of `count` free consecutive ports.
///
/// They are below the range that the system gives to outgoing connections: a follower that retries
/// an engine that is away must not take the engine's port for its own end.
pub(crate) fn free_ports(count: u16) -> u16 {
    const FIRST: u16 = 10_000;
    const ROOM: u16 = 20_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(ROOM)).expect("in range");
    for _ in 0..1_000 {
        let offset = TAKEN.fetch_add(count, Ordering::Relaxed);
        let first = FIRST + start.wrapping_add(offset) % ROOM;
        let bound: Result<Vec<_>, _> =
            (first..first + count).map(|port| TcpListener::bind(("127.0.0.1", port))).collect();
        if bound.is_ok() {
            return first;
        }
    }
    panic!("no free ports")
}
