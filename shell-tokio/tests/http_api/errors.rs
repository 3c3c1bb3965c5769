//! Errors that are not about a field.

use crate::client::{Answer, Client};
use crate::example::Example;
use axum::body::Body;
use axum::http::Request;
use kvmirror_tokio::backend::BackendError;
use kvmirror_tokio::http::{OTHER_BODY_BYTES, QUERY_BODY_BYTES};
use serde_json::json;
use std::sync::atomic::Ordering;

const POSTS: [&str; 4] = ["/register", "/unregister", "/query", "/query_by_hash"];

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, title: &str, reason: &str) {
    assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem = answer.json();
    assert_eq!(problem["type"], json!("about:blank"));
    assert_eq!(problem["title"], json!(title));
    assert_eq!(problem["status"], json!(status));
    assert_eq!(problem["reason"], json!(reason));
    assert_eq!(problem["detail"], problem["error"]);
    for text in ["detail", "fix"] {
        assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_object() {
    let client = Client::new();
    for path in POSTS {
        for body in
            ["", "{", "{\"model\":}", "{} {}", "{\"a\":1,}", "nonsense", "{\"model\":\"\u{1}\"}"]
        {
            assert_problem(&client.post(path, body).await, 400, "Bad Request", "invalid_json");
        }
        for body in ["[]", "7", "\"x\"", "null", "true"] {
            assert_problem(&client.post(path, body).await, 400, "Bad Request", "invalid_type");
        }
        let binary = client.post(path, vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']).await;
        assert_eq!(binary.status, 400);
        // Nesting without end costs no stack.
        let deep = format!("{{\"x\":{}1{}}}", "[".repeat(500_000), "]".repeat(500_000));
        assert_eq!(client.post(path, deep).await.status, 400);
    }
}

#[tokio::test]
async fn content_types() {
    let client = Client::new();
    let body = r#"{"model":"m","token_ids":[]}"#;
    for (kind, status) in [
        (None, 200),
        (Some("application/json"), 200),
        (Some("Application/JSON; charset=utf-8"), 200),
        (Some("application/vnd.kv+json"), 200),
        (Some("application/msgpack"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("text/plain"), 415),
        (Some(""), 415),
    ] {
        let mut request = Request::post("/query");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let answer = client.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{kind:?}");
        if status == 415 {
            assert_problem(&answer, 415, "Unsupported Media Type", "unsupported_media_type");
        }
    }
    let coded = Request::post("/query").header("content-encoding", "gzip");
    let answer = client.send(coded.body(Body::from(body)).unwrap()).await;
    assert_problem(&answer, 415, "Unsupported Media Type", "unsupported_media_type");
}

#[tokio::test]
async fn body_limits() {
    let client = Client::new();
    for (path, limit) in [
        ("/query", QUERY_BODY_BYTES),
        ("/query_by_hash", QUERY_BODY_BYTES),
        ("/register", OTHER_BODY_BYTES),
        ("/unregister", OTHER_BODY_BYTES),
    ] {
        let fits = format!("{{}}{}", " ".repeat(limit - 2));
        assert_problem(&client.post(path, fits.clone()).await, 400, "Bad Request", "missing");
        let answer = client.post(path, fits + " ").await;
        assert_problem(&answer, 413, "Payload Too Large", "too_large");
    }
}

#[tokio::test]
async fn paths_and_methods() {
    let client = Client::new();
    for path in ["/", "/dump", "/services", "/query/", "/Query"] {
        assert_problem(&client.get(path).await, 404, "Not Found", "not_found");
        assert_problem(&client.post(path, "{}").await, 404, "Not Found", "not_found");
    }
    for path in POSTS {
        let answer = client.get(path).await;
        assert_problem(&answer, 405, "Method Not Allowed", "method_not_allowed");
        assert_eq!(answer.header("allow"), "POST");
    }
    for path in ["/workers", "/health", "/metrics"] {
        let answer = client.post(path, "{}").await;
        assert_problem(&answer, 405, "Method Not Allowed", "method_not_allowed");
        assert_eq!(answer.header("allow"), "GET,HEAD");
    }
}

#[tokio::test]
async fn a_stopping_process_refuses_calls_but_shows_itself() {
    let client = Client::new();
    client.backend.stopping.store(true, Ordering::Relaxed);
    for path in POSTS {
        let answer = client.post(path, "{}").await;
        assert_problem(&answer, 503, "Service Unavailable", "stopping");
    }
    for path in ["/workers", "/health", "/metrics"] {
        assert_eq!(client.get(path).await.status, 200);
    }
}

#[tokio::test]
async fn failures_of_the_backend() {
    for (failure, status, title, reason) in [
        (BackendError::Busy, 429, "Too Many Requests", "rate_limited"),
        (BackendError::Stopping, 503, "Service Unavailable", "stopping"),
        (BackendError::Internal("secret".into()), 500, "Internal Server Error", "internal"),
    ] {
        let client = Client::over(Example::running().failing(failure));
        for (path, body) in [
            ("/query", r#"{"model":"m","token_ids":[]}"#),
            ("/query_by_hash", r#"{"model":"m","seq_hashes":[]}"#),
            ("/unregister", r#"{"instance_id":7}"#),
            ("/register", r#"{"instance_id":7,"endpoint":"tcp://h:1","model":"m","block_size":4}"#),
        ] {
            let answer = client.post(path, body).await;
            assert_problem(&answer, status, title, reason);
            assert!(!answer.text.contains("secret"));
        }
        assert_problem(&client.get("/workers").await, status, title, reason);
    }
}
