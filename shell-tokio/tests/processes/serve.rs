//! `kvmirror serve` as a child, and its HTTP API.

use crate::player::{BLOCK_SIZE, Expected, Ports};
use crate::process::{LOOK, PATIENCE, Process};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::time::Instant;

/// A running service.
pub(crate) struct Serve {
    pub(crate) process: Process,
    pub(crate) url: String,
    client: Client,
}

/// A rank's answer to a question for one hash.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) trust: String,
    pub(crate) cursor: Option<u64>,
    pub(crate) held: bool,
}

/// One listener of `/workers`.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) trust: String,
    pub(crate) reason: Option<String>,
    pub(crate) cursor: Option<u64>,
    pub(crate) status: String,
}

impl Row {
    pub(crate) fn is_exact_at(&self, seq: u64) -> bool {
        self.trust == "exact" && self.cursor == Some(seq)
    }
}

impl Serve {
    /// Starts it on a port of its own choice.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process =
            Process::start_with(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        let line = process.line("listening on http://");
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.expect("an address").trim_end_matches(',').to_owned();
        Self { process, url, client: Client::new() }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}{path}", self.url)).json(body);
        let answer = request.send().await.expect("an answer");
        (answer.status(), answer.json().await.expect("JSON"))
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        let answer = self.client.get(format!("{}{path}", self.url)).send().await;
        answer.expect("an answer").text().await.expect("text")
    }

    pub(crate) async fn register(&self, rank: u16, publish: &str, replay: &str) {
        let body = json!({
            "instance_id": "engine", "endpoint": publish, "replay_endpoint": replay, "model": "m",
            "block_size": BLOCK_SIZE, "dp_rank": rank,
        });
        let (status, body) = self.post("/register", &body).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }

    pub(crate) async fn follow(&self, ports: Ports, rank: u16) {
        self.register(rank, &ports.publish(rank), &ports.replay(rank)).await;
    }

    /// The rank's listener, `None` when it is not followed.
    pub(crate) async fn row(&self, rank: u16) -> Option<Row> {
        let workers: Value = serde_json::from_str(&self.get("/workers").await).expect("JSON");
        let listener = &workers.get(0)?["listeners"].get(rank.to_string())?;
        let text = |name: &str| listener[name].as_str().map(str::to_owned);
        Some(Row {
            trust: text("trust").expect("trust"),
            reason: text("reason"),
            cursor: listener["cursor"].as_u64(),
            status: text("status").expect("status"),
        })
    }

    /// Waits until `done` holds for the rank.
    pub(crate) async fn row_when(&self, rank: u16, what: &str, done: impl Fn(&Row) -> bool) -> Row {
        let started = Instant::now();
        loop {
            let row = self.row(rank).await.expect("followed");
            if done(&row) {
                return row;
            }
            assert!(started.elapsed() < PATIENCE, "{what} did not come: {row:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether the engine's rank holds one block; state and answer belong together.
    pub(crate) async fn sample(&self, rank: u16, hash: u64) -> Sample {
        let body = json!({
            "model": "m", "instance_id": "engine", "hashes": "engine", "seq_hashes": [hash],
        });
        let (status, body) = self.post("/query_by_hash", &body).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let row = &body["instances"]["engine"]["ranks"][rank.to_string()];
        Sample {
            trust: row["trust"].as_str().expect("trust").to_owned(),
            cursor: row["cursor"].as_u64(),
            held: row["matched_blocks"]["device"].as_u64() == Some(1),
        }
    }

    /// Waits for the end of the rank's stream and compares everything that can be asked for with
    /// what the engine held.
    pub(crate) async fn ends_equal(&self, rank: u16, expected: &mut Expected) {
        let last = expected.last;
        self.row_when(rank, "the exact end", |row| row.is_exact_at(last)).await;
        self.is_equal(rank, expected).await;
    }

    /// The comparison of [`Serve::ends_equal`].
    pub(crate) async fn is_equal(&self, rank: u16, expected: &mut Expected) {
        let table = expected.engine_table();
        assert!(!table.is_empty() && expected.ever.len() > table.len(), "a capture with removals");
        for &hash in &expected.ever {
            let sample = self.sample(rank, hash).await;
            assert_eq!(sample.trust, "exact", "{sample:?}");
            assert_eq!(sample.held, table.contains(&hash), "hash {hash}: {sample:?}");
        }
        let mut found = 0;
        for request in expected.truth.requests.clone() {
            let body = json!({
                "model": "m", "block_size": BLOCK_SIZE, "token_ids": request.prompt,
                "lora_name": request.lora, "cache_salt": request.salt,
            });
            let (status, answer) = self.post("/query", &body).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            let tokens = answer["instances"]["engine"]["dp"][rank.to_string()].as_u64();
            let predicted = expected.predicted(&request);
            assert_eq!(tokens, Some(predicted), "request {}: {answer}", request.id);
            found += u64::from(predicted > 0);
        }
        assert!(found > 0, "no prompt is held at all");
        let row = self.row(rank).await.expect("followed");
        assert!(row.is_exact_at(expected.last), "{row:?}");
    }

    /// A metric's samples, summed; of one sample when its labels are given.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await;
        let samples = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        let values = samples.map(|line| line.rsplit(' ').next().expect("a value"));
        values.map(|value| value.parse::<u64>().expect("a number")).sum()
    }
}
