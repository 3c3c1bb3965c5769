//! Every kind of bad field, with its reason, name and index.

use crate::client::Client;
use crate::example::Example;
use serde_json::{Value, json};

const REGISTER: &str = r#"{"instance_id":"a","endpoint":"tcp://h:1","model":"m","block_size":4}"#;
const TOKENS: &str = r#"{"model":"m","token_ids":[0]}"#;
const HASHES: &str = r#"{"model":"m","block_hashes":[0]}"#;
const LEAVE: &str = r#"{"instance_id":7}"#;

/// `base` with one field replaced by raw text (nothing: the field is left out).
fn with(base: &str, field: &str, raw: &str) -> String {
    let mut body: serde_json::Map<String, Value> = serde_json::from_str(base).unwrap();
    body.remove(field);
    let mut text = Value::Object(body).to_string();
    if !raw.is_empty() {
        let comma = if text == "{}" { "" } else { "," };
        text.truncate(text.len() - 1);
        text.push_str(&format!("{comma}\"{field}\":{raw}}}"));
    }
    text
}

async fn refused(path: &str, body: String, reason: &str, field: &str, index: Option<u64>) {
    let answer = Client::over(Example::empty()).post(path, body.clone()).await;
    assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text);
    let problem = answer.json();
    assert_eq!(problem["reason"], json!(reason), "{body}: {problem}");
    assert_eq!(problem["field"], json!(field), "{body}: {problem}");
    assert_eq!(problem.get("index").and_then(Value::as_u64), index, "{body}: {problem}");
    assert_eq!(problem["detail"], problem["error"]);
    assert!(problem["fix"].as_str().is_some_and(|fix| !fix.is_empty()));
}

#[tokio::test]
async fn registrations() {
    for (field, raw, reason) in [
        ("instance_id", "", "missing"),
        ("instance_id", "null", "missing"),
        ("instance_id", "\"\"", "invalid_value"),
        ("instance_id", "-1", "out_of_range"),
        ("instance_id", "18446744073709551616", "out_of_range"),
        ("instance_id", "1.5", "invalid_type"),
        ("instance_id", "true", "invalid_type"),
        ("instance_id", "[7]", "invalid_type"),
        ("instance_id", r#""\ud800""#, "invalid_value"),
        ("endpoint", "", "missing"),
        ("endpoint", "5557", "invalid_type"),
        ("endpoint", "\"\"", "invalid_value"),
        ("endpoint", "\"tcp://*:5557\"", "invalid_value"),
        ("endpoint", "\"tcp://0.0.0.0:5557\"", "invalid_value"),
        ("endpoint", "\"tcp://h:0\"", "invalid_value"),
        ("endpoint", "\"ipc:///x\"", "invalid_value"),
        ("endpoint", "\"inproc://x\"", "invalid_value"),
        ("replay_endpoint", "\"tcp://*:5557\"", "invalid_value"),
        ("replay_endpoint", "1", "invalid_type"),
        ("block_size", "", "missing"),
        ("block_size", "0", "out_of_range"),
        ("block_size", "-4", "out_of_range"),
        ("block_size", "4294967296", "out_of_range"),
        ("block_size", "\"4\"", "invalid_type"),
        ("block_size", "4.0", "invalid_type"),
        ("type", "\"trt\"", "invalid_value"),
        ("type", "\"Mooncake\"", "unsupported"),
        ("type", "\"mooncake\"", "unsupported"),
        ("type", "1", "invalid_type"),
        ("dp_rank", "-1", "out_of_range"),
        ("dp_rank", "4294967296", "out_of_range"),
        ("dp_rank", "\"0\"", "invalid_type"),
        ("tenant_id", "1", "invalid_type"),
        ("routing_group", "[]", "invalid_type"),
        ("lora_name", "1", "invalid_type"),
        ("additional_salt", "{}", "invalid_type"),
        ("additionalsalt", "1", "invalid_type"),
        ("duplicates", "\"Set\"", "invalid_value"),
        ("duplicates", "1", "invalid_type"),
        ("eagle", "1", "invalid_type"),
        ("eagle", "\"true\"", "invalid_type"),
        ("image_token_id", "-1", "out_of_range"),
        ("video_token_id", "\"1\"", "invalid_type"),
    ] {
        refused("/register", with(REGISTER, field, raw), reason, field, None).await;
    }
    refused("/register", with(REGISTER, "model", ""), "missing", "model_name", None).await;
    refused("/register", with(REGISTER, "model", "\"\""), "invalid_value", "model_name", None)
        .await;
    refused("/register", with(REGISTER, "model", "1"), "invalid_type", "model", None).await;
    let long = format!("\"{}\"", "x".repeat(513));
    for field in ["instance_id", "tenant_id", "lora_name", "additional_salt"] {
        refused("/register", with(REGISTER, field, &long), "invalid_value", field, None).await;
    }
}

#[tokio::test]
async fn unregistrations() {
    for (field, raw, reason) in [
        ("instance_id", "", "missing"),
        ("instance_id", "{}", "invalid_type"),
        ("dp_rank", "-1", "out_of_range"),
        ("dp_rank", "1e0", "invalid_type"),
        ("tenant_id", "1", "invalid_type"),
        ("model_name", "1", "invalid_type"),
    ] {
        refused("/unregister", with(LEAVE, field, raw), reason, field, None).await;
    }
}

#[tokio::test]
async fn queries() {
    for (base, path) in [(TOKENS, "/query"), (HASHES, "/query_by_hash")] {
        for (field, raw, reason) in [
            ("block_size", "0", "out_of_range"),
            ("block_size", "\"4\"", "invalid_type"),
            ("tenant_id", "1", "invalid_type"),
            ("instance_id", "-1", "out_of_range"),
            ("lora_id", "0", "unsupported"),
            ("lora_id", "3", "unsupported"),
            ("lora_name", "1", "invalid_type"),
            ("cache_salt", "1", "invalid_type"),
            ("min_trust", "\"fenced\"", "invalid_value"),
            ("min_trust", "\"EXACT\"", "invalid_value"),
            ("min_trust", "\"\"", "invalid_value"),
            ("min_trust", "1", "invalid_type"),
        ] {
            refused(path, with(base, field, raw), reason, field, None).await;
        }
        refused(path, with(base, "model", ""), "missing", "model_name", None).await;
        refused(path, with(base, "model_name", "\"n\""), "conflict", "model", None).await;
        let tenants = with(&with(base, "tenant_id", "\"a\""), "routing_group", "\"b\"");
        refused(path, tenants, "conflict", "routing_group", None).await;
    }
}

#[tokio::test]
async fn token_lists() {
    for (raw, reason, index) in [
        ("", "missing", None),
        ("null", "missing", None),
        ("7", "invalid_type", None),
        ("\"0\"", "invalid_type", None),
        ("{}", "invalid_type", None),
        ("[\"0\"]", "invalid_type", Some(0)),
        ("[0,1,null]", "invalid_type", Some(2)),
        ("[0,1.0]", "invalid_type", Some(1)),
        ("[0,[1]]", "invalid_type", Some(1)),
        ("[0,{\"a\":[1]},2]", "invalid_type", Some(1)),
        ("[true]", "invalid_type", Some(0)),
        ("[0,4294967296]", "out_of_range", Some(1)),
        ("[-2147483649]", "out_of_range", Some(0)),
        ("[0,99999999999999999999]", "out_of_range", Some(1)),
        ("[0,1e400]", "out_of_range", Some(1)),
    ] {
        refused("/query", with(TOKENS, "token_ids", raw), reason, "token_ids", index).await;
    }
    // The words of the description's own example.
    let answer = Client::new().post("/query", with(TOKENS, "token_ids", "[\"a\"]")).await;
    let expected: Value = serde_json::from_str(
        r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"token_ids element must be an integer","error":"token_ids element must be an integer","reason":"invalid_type","field":"token_ids","index":0,"fix":"send token ids as integers"}"#,
    )
    .unwrap();
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn hash_lists() {
    for field in ["block_hashes", "seq_hashes", "block_hash"] {
        let base = r#"{"model":"m"}"#;
        for (raw, reason, index) in [
            ("7", "invalid_type", None),
            ("[null]", "invalid_type", Some(0)),
            ("[0,0.5]", "invalid_type", Some(1)),
            ("[0,\"\"]", "invalid_value", Some(1)),
            ("[\"0x\"]", "invalid_value", Some(0)),
            ("[\"0xg\"]", "invalid_value", Some(0)),
            ("[\"-0x1\"]", "invalid_value", Some(0)),
            ("[\"+1\"]", "invalid_value", Some(0)),
            ("[\" 1\"]", "invalid_value", Some(0)),
            ("[18446744073709551616]", "out_of_range", Some(0)),
            ("[-9223372036854775809]", "out_of_range", Some(0)),
            ("[\"18446744073709551616\"]", "out_of_range", Some(0)),
            ("[\"0x1ffffffffffffffff\"]", "out_of_range", Some(0)),
            ("[0,\"99999999999999999999999999999999999999999\"]", "out_of_range", Some(1)),
        ] {
            refused("/query_by_hash", with(base, field, raw), reason, field, index).await;
        }
    }
}

#[tokio::test]
async fn hash_queries_are_unambiguous() {
    for (body, reason, field) in [
        (r#"{"model":"m"}"#, "missing", "block_hashes"),
        (r#"{"model":"m","token_ids":[1]}"#, "missing", "block_hashes"),
        (r#"{"model":"m","block_hashes":[1],"seq_hashes":[1]}"#, "conflict", "block_hashes"),
        (r#"{"model":"m","block_hashes":[1],"block_hash":[1]}"#, "conflict", "block_hashes"),
        (r#"{"model":"m","seq_hashes":[1],"block_hash":[2]}"#, "conflict", "block_hash"),
        (r#"{"model":"m","block_hashes":[1],"hashes":"rolling"}"#, "invalid_value", "hashes"),
        (r#"{"model":"m","block_hashes":[1],"hashes":1}"#, "invalid_type", "hashes"),
        (r#"{"model":"m","block_hashes":[1],"hashes":"engine"}"#, "missing", "instance_id"),
        (r#"{"model":"m","block_hashes":[1],"cache_salt":"c"}"#, "unsupported", "cache_salt"),
        (r#"{"model":"m","seq_hashes":[1],"lora_name":"l"}"#, "unsupported", "lora_name"),
    ] {
        refused("/query_by_hash", body.to_owned(), reason, field, None).await;
    }
}
