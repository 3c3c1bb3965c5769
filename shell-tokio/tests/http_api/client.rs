//! Calls in process, and comparison of answers.

use crate::example::Example;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use kvmirror_tokio::http::{HttpOptions, router};
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt as _;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// The API over a fresh running example.
pub(crate) struct Client {
    pub(crate) backend: Arc<Example>,
    router: Router,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::over(Example::running())
    }

    pub(crate) fn over(backend: Example) -> Self {
        // The literal bodies of the API name hosts of all kinds.
        let options = HttpOptions { allowed_hosts: vec!["*".into()], ..HttpOptions::default() };
        Self::with_options(backend, options)
    }

    pub(crate) fn with_options(backend: Example, options: HttpOptions) -> Self {
        let backend = Arc::new(backend);
        Self { router: router(Arc::clone(&backend), options), backend }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }
}

/// Asserts that everything in `expected` is in `actual` with the same value; objects may have more.
#[track_caller]
pub(crate) fn assert_superset(actual: &Value, expected: &Value) {
    if let Some(path) = missing(actual, expected, String::new()) {
        panic!("{path} differs\nexpected {expected}\nactual   {actual}");
    }
}

fn missing(actual: &Value, expected: &Value, path: String) -> Option<String> {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().find_map(|(key, value)| {
                let path = format!("{path}/{key}");
                match actual.get(key) {
                    Some(actual) => missing(actual, value, path),
                    None => Some(path),
                }
            })
        }
        (Value::Array(actual), Value::Array(expected)) if actual.len() == expected.len() => {
            actual.iter().zip(expected).enumerate().find_map(|(index, (actual, expected))| {
                missing(actual, expected, format!("{path}/{index}"))
            })
        }
        (actual, expected) => (actual != expected).then_some(path),
    }
}
