//! The demo as a client of its own HTTP API.

use super::engines::Engine;
use crate::player::PlayerHandle;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// Prompts of each engine that are asked for; the one with the longest match is shown.
const PROMPTS: usize = 12;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No answer.
    #[error("HTTP API: {0}")]
    Http(#[from] reqwest::Error),
    /// A refusal.
    #[error("HTTP API: {path} answered {status}: {body}")]
    Refused {
        /// The path.
        path: &'static str,
        /// The status.
        status: u16,
        /// What it said.
        body: String,
    },
}

/// Registers an engine that is being played.
pub(super) async fn register(
    api: SocketAddr,
    engine: &Engine,
    player: &PlayerHandle,
) -> Result<(), AskError> {
    for played in player.ranks() {
        let body = json!({
            "instance_id": engine.name,
            "dp_rank": played.rank,
            "endpoint": played.publish.to_string(),
            "replay_endpoint": played.replay.as_ref().map(ToString::to_string),
            "model": engine.name,
            "block_size": engine.block_size,
        });
        post(api, "/register", &body).await?;
    }
    Ok(())
}

/// For each engine the prompt that finds most of itself: one readable line.
pub(super) async fn prompts(api: SocketAddr, engines: &[Engine]) -> Result<Vec<String>, AskError> {
    let mut lines = Vec::new();
    for engine in engines {
        let mut best: Option<(u64, usize, String)> = None;
        for prompt in engine.prompts.iter().rev().take(PROMPTS) {
            let body = json!({ "model": engine.name, "token_ids": prompt });
            let answer = post(api, "/query", &body).await?;
            let row = &answer["instances"][engine.name];
            let matched = row["longest_matched"].as_u64().unwrap_or_default();
            if best.as_ref().is_none_or(|(most, ..)| matched > *most) {
                let trust = row["ranks"]
                    .as_object()
                    .and_then(|ranks| ranks.values().next())
                    .and_then(|rank| rank["trust"].as_str())
                    .unwrap_or("unknown");
                best = Some((matched, prompt.len(), trust.to_owned()));
            }
        }
        if let Some((matched, tokens, trust)) = best {
            lines.push(format!(
                "query: a prompt of {tokens} tokens; {} holds the first {matched} of them ({trust})",
                engine.name
            ));
        }
    }
    Ok(lines)
}

async fn post(api: SocketAddr, path: &'static str, body: &Value) -> Result<Value, AskError> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build()?;
    let answer = client.post(format!("http://{api}{path}")).json(body).send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        return Err(AskError::Refused { path, status: status.as_u16(), body: text });
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
}
