//! The HTTP API: `/register`, `/unregister`, `/query`, `/query_by_hash`, `/workers`, `/health`,
//! `/metrics`, in the two spellings that clients of KV-cache indexers use (`http-api`).
//!
//! | answer | when |
//! |---|---|
//! | 200 / 201 | as the spelling of the call wants it |
//! | `application/problem+json` | every error; names reason, field, index and what to do |
//!
//! Bodies are JSON of at most 8 MiB (queries) or 2 MiB (the rest), and must arrive within
//! [`BODY_DEADLINE`]. All bodies in work together are bounded by [`BODIES_IN_WORK_BYTES`]; large
//! ones are parsed off the async threads. msgpack is answered with 415.

mod counters;
mod fields;
mod list;
mod problem;
mod query;
mod registration;
mod render;

use crate::backend::{Backend, Query};
use crate::registry::WorkerFilter;
use crate::transport::Endpoint;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use core::net::IpAddr;
use core::time::Duration;
use counters::Counters;
use fields::Spelling;
use kvmirror_core::router::Trust;
use problem::{Problem, Reason};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Largest body of a query, in bytes.
pub const QUERY_BODY_BYTES: usize = 8 << 20;
/// Largest body of any other call, in bytes.
pub const OTHER_BODY_BYTES: usize = 2 << 20;
/// How long a body may take to arrive.
pub const BODY_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of bodies that may be in work at a time, all calls together. Beyond: 429. A body without
/// a declared length counts as the largest allowed one.
pub const BODIES_IN_WORK_BYTES: usize = 256 << 20;
/// Bodies above this many bytes are parsed on a blocking thread.
const PARSE_INLINE_BYTES: usize = 64 << 10;

/// What the HTTP surface is configured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// `min_trust` of a query that names none.
    pub default_min_trust: Trust,
    /// Hosts that a registration may name, compared without case; `*` = any; empty = this machine's
    /// loopback addresses only.
    pub allowed_hosts: Vec<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { default_min_trust: Trust::Suspect, allowed_hosts: Vec::new() }
    }
}

impl HttpOptions {
    /// Whether a registration over HTTP may name `endpoint`.
    pub fn allows(&self, endpoint: &Endpoint) -> bool {
        let Endpoint::Tcp { host, .. } = endpoint else { return false };
        let host = host.to_string();
        if self.allowed_hosts.is_empty() {
            return is_loopback(&host);
        }
        self.allowed_hosts
            .iter()
            .any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(&host))
    }
}

/// Whether a host is this machine by its own words: a name that must be resolved first is not.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

struct Shared<B> {
    backend: Arc<B>,
    options: Arc<HttpOptions>,
    counters: Counters,
    /// One permit per byte of a body in work.
    room: Semaphore,
}

type SharedState<B> = State<Arc<Shared<B>>>;

/// The whole API over `backend`.
pub fn router<B: Backend>(backend: Arc<B>, options: HttpOptions) -> Router {
    let shared = Arc::new(Shared {
        backend,
        options: Arc::new(options),
        counters: Counters::default(),
        room: Semaphore::new(BODIES_IN_WORK_BYTES),
    });
    let queries = Router::new()
        .route("/query", post(query_tokens::<B>))
        .route("/query_by_hash", post(query_hashes::<B>))
        .layer(DefaultBodyLimit::max(QUERY_BODY_BYTES));
    let others = Router::new()
        .route("/register", post(register::<B>))
        .route("/unregister", post(unregister::<B>))
        .route("/workers", get(workers::<B>))
        .route("/health", get(health))
        .route("/metrics", get(metrics::<B>))
        .layer(DefaultBodyLimit::max(OTHER_BODY_BYTES));
    queries
        .merge(others)
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(from_fn_with_state(Arc::clone(&shared), observe::<B>))
        .with_state(shared)
}

/// Counts every answer; refuses POST calls once the process stops, or while there is no room.
async fn observe<B: Backend>(
    State(shared): SharedState<B>,
    request: Request,
    next: Next,
) -> Response {
    let path = counters::known_path(request.uri().path());
    let response = if request.method() != Method::POST {
        next.run(request).await
    } else if shared.backend.stopping() {
        Problem::stopping().into_response()
    } else if let Ok(_room) = shared.room.try_acquire_many(largest_body(&request)) {
        next.run(request).await
    } else {
        let fix = "retry later, or send smaller bodies";
        Problem::new(Reason::RateLimited, "too many bodies are in work", fix).into_response()
    };
    shared.counters.count(path, response.status().as_u16());
    response
}

/// The most bytes the body of `request` can take: what it declares, up to its limit.
fn largest_body(request: &Request) -> u32 {
    let limit = body_limit(request);
    let largest = declared_body(request).unwrap_or(limit).min(limit);
    u32::try_from(largest).unwrap_or(u32::MAX)
}

fn body_limit(request: &Request) -> usize {
    match request.uri().path() {
        "/query" | "/query_by_hash" => QUERY_BODY_BYTES,
        _ => OTHER_BODY_BYTES,
    }
}

fn declared_body(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn register<B: Backend>(
    State(shared): SharedState<B>,
    request: Request,
) -> Result<Response, Problem> {
    let options = Arc::clone(&shared.options);
    let (spelling, registration) =
        parsed(request, move |body| registration::registration(body, &options)).await?;
    let name = registration.instance.clone();
    shared.backend.register(registration).await?;
    let status = match spelling {
        Spelling::D => StatusCode::CREATED,
        Spelling::M => StatusCode::OK,
    };
    Ok((status, Json(render::registered(spelling, &name))).into_response())
}

async fn unregister<B: Backend>(
    State(shared): SharedState<B>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let (spelling, wish) = parsed(request, registration::unregistration).await?;
    let done = shared.backend.unregister(wish).await?;
    Ok(Json(render::unregistered(spelling, &done)))
}

async fn query_tokens<B: Backend>(
    State(shared): SharedState<B>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let default = shared.options.default_min_trust;
    let asked = parsed(request, move |body| query::by_tokens(body, default)).await?;
    answered(&*shared.backend, asked).await
}

async fn query_hashes<B: Backend>(
    State(shared): SharedState<B>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let default = shared.options.default_min_trust;
    let asked = parsed(request, move |body| query::by_hashes(body, default)).await?;
    answered(&*shared.backend, asked).await
}

/// An unknown model is an error in D spelling and an answer without rows in M spelling.
async fn answered<B: Backend>(
    backend: &B,
    (spelling, query): (Spelling, Query),
) -> Result<Json<Value>, Problem> {
    let min_trust = query.min_trust;
    let unknown = format!("no indexer for model={} routing_group={}", query.model, query.tenant);
    let answer = backend.query(query).await?;
    if !answer.known && spelling == Spelling::D {
        let fix = "register a rank of this model and tenant first";
        return Err(Problem::new(Reason::NotFound, unknown, fix));
    }
    Ok(Json(render::answer(&answer, min_trust)))
}

async fn workers<B: Backend>(
    State(shared): SharedState<B>,
    pairs: Result<axum::extract::Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let pairs = pairs.map_err(|_| {
        let fix = "send model_name and routing_group as URL-encoded text";
        Problem::new(Reason::InvalidValue, "the query string cannot be read", fix)
    })?;
    let filter = WorkerFilter {
        model: filter_value(&pairs, fields::MODEL)?,
        tenant: filter_value(&pairs, fields::TENANT)?,
    };
    let listed = shared.backend.workers(filter).await?;
    Ok(Json(render::workers(&listed)))
}

/// The value of one fact under all its names; `""` is absent.
fn filter_value(
    pairs: &[(String, String)],
    names: &[&'static str],
) -> Result<Option<String>, Problem> {
    let mut found: Option<(&String, &'static str)> = None;
    for (key, value) in pairs {
        let Some(&name) = names.iter().find(|name| *name == key) else { continue };
        match found {
            _ if value.is_empty() => {}
            Some((first, first_name)) if first != value => {
                return Err(fields::contradiction(name, first_name));
            }
            Some(_) => {}
            None => found = Some((value, name)),
        }
    }
    Ok(found.map(|(value, _)| value.clone()))
}

async fn health() -> StatusCode {
    StatusCode::OK
}

async fn metrics<B: Backend>(State(shared): SharedState<B>) -> Response {
    let mut text = shared.backend.metrics().await;
    text.push_str(&shared.counters.render());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn unknown_path() -> Problem {
    let fix = "use /register, /unregister, /query, /query_by_hash, /workers, /health or /metrics";
    Problem::new(Reason::NotFound, "there is nothing at this path", fix)
}

async fn unknown_method() -> Problem {
    let fix = "use a method that the allow header names";
    Problem::new(Reason::MethodNotAllowed, "this path has no such method", fix)
}

/// Reads and parses a body.
async fn parsed<T: Send + 'static>(
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    check_encoding(request.headers())?;
    // Refused before the first byte of it is asked for.
    if declared_body(&request) > Some(body_limit(&request)) {
        return Err(too_large());
    }
    let body = tokio::time::timeout(BODY_DEADLINE, Bytes::from_request(request, &()))
        .await
        .map_err(|_| broken_body("the body did not arrive in time"))?
        .map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            _ => broken_body("the body did not arrive whole"),
        })?;
    if body.len() <= PARSE_INLINE_BYTES {
        return parse(&body);
    }
    tokio::task::spawn_blocking(move || parse(&body)).await.map_err(|_| Problem::internal())?
}

fn too_large() -> Problem {
    let fix = "send at most 8 MiB to a query and 2 MiB to any other call";
    Problem::new(Reason::TooLarge, "the body is too large", fix)
}

fn broken_body(detail: &'static str) -> Problem {
    Problem::new(Reason::InvalidJson, detail, "send the whole body without long pauses")
}

/// `application/json`, any `+json` type, or nothing; no content coding.
fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let coded = headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if coded {
        let fix = "send the body without content-encoding";
        let detail = "content codings are not supported";
        return Err(Problem::new(Reason::UnsupportedMediaType, detail, fix));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = kind.to_str().ok().and_then(|kind| kind.split(';').next()).map(str::trim);
    let json = essence.is_some_and(|essence| {
        let essence = essence.to_ascii_lowercase();
        essence == "application/json"
            || essence.strip_prefix("application/").is_some_and(|rest| rest.ends_with("+json"))
    });
    if json {
        return Ok(());
    }
    let fix = "send JSON with content-type: application/json, or without a content type";
    let detail = "the body is not declared as JSON";
    Err(Problem::new(Reason::UnsupportedMediaType, detail, fix))
}
