//! Errors as problem objects (`http-api` §7).

use crate::backend::BackendError;
use crate::registry::RegistryError;
use crate::transport::EndpointError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The stable code of an error; decides the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    InvalidJson,
    Missing,
    InvalidType,
    InvalidValue,
    OutOfRange,
    /// Two parts of one request contradict each other.
    Conflict,
    Unsupported,
    NotFound,
    MethodNotAllowed,
    /// The request contradicts what is registered.
    StateConflict,
    TooLarge,
    UnsupportedMediaType,
    RateLimited,
    Internal,
    Stopping,
}

impl Reason {
    const fn code(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid_json",
            Self::Missing => "missing",
            Self::InvalidType => "invalid_type",
            Self::InvalidValue => "invalid_value",
            Self::OutOfRange => "out_of_range",
            Self::Conflict | Self::StateConflict => "conflict",
            Self::Unsupported => "unsupported",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited => "rate_limited",
            Self::Internal => "internal",
            Self::Stopping => "stopping",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::InvalidJson
            | Self::Missing
            | Self::InvalidType
            | Self::InvalidValue
            | Self::OutOfRange
            | Self::Conflict
            | Self::Unsupported => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::StateConflict => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// One error: what, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    reason: Reason,
    detail: Cow<'static, str>,
    field: Option<&'static str>,
    index: Option<usize>,
    fix: Cow<'static, str>,
}

impl Problem {
    pub(crate) fn new(
        reason: Reason,
        detail: impl Into<Cow<'static, str>>,
        fix: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { reason, detail: detail.into(), field: None, index: None, fix: fix.into() }
    }

    #[must_use]
    pub(crate) const fn field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    #[must_use]
    pub(crate) const fn index(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    pub(crate) fn missing(field: &'static str) -> Self {
        Self::new(Reason::Missing, format!("{field} is missing"), format!("send {field}"))
            .field(field)
    }

    pub(crate) fn stopping() -> Self {
        Self::new(
            Reason::Stopping,
            "the process is stopping",
            "ask another replica, or retry later",
        )
    }

    pub(crate) fn endpoint(field: &'static str, error: &EndpointError) -> Self {
        Self::new(
            Reason::InvalidValue,
            error.to_string(),
            "send tcp://host:port, the host being one that can be connected to",
        )
        .field(field)
    }

    fn body(&self) -> Value {
        let status = self.reason.status();
        let mut body = Map::new();
        body.insert("type".into(), "about:blank".into());
        body.insert("title".into(), status.canonical_reason().unwrap_or("Error").into());
        body.insert("status".into(), status.as_u16().into());
        body.insert("detail".into(), self.detail.as_ref().into());
        body.insert("error".into(), self.detail.as_ref().into());
        body.insert("reason".into(), self.reason.code().into());
        if let Some(field) = self.field {
            body.insert("field".into(), field.into());
        }
        if let Some(index) = self.index {
            body.insert("index".into(), index.into());
        }
        body.insert("fix".into(), self.fix.as_ref().into());
        Value::Object(body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.reason.status(), self.body().to_string()).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

impl From<BackendError> for Problem {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Refused(refusal) => refusal.into(),
            BackendError::Busy => {
                Self::new(Reason::RateLimited, "too many calls are waiting", "retry later")
            }
            BackendError::Stopping => Self::stopping(),
            BackendError::Internal(detail) => {
                tracing::error!(detail, "a call failed inside kvmirror");
                Self::internal()
            }
        }
    }
}

impl Problem {
    pub(crate) fn internal() -> Self {
        Self::new(Reason::Internal, "the call failed inside kvmirror", "see the log of the process")
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        let detail = error.to_string();
        match error {
            RegistryError::Invalid { field, .. } => Self::new(
                Reason::InvalidValue,
                detail,
                "send a text of 1 to 512 bytes (tenant, adapter and salts may be absent)",
            )
            .field(field),
            RegistryError::RankConflict { field, .. } => Self::new(
                Reason::StateConflict,
                detail,
                "repeat the registration unchanged, or unregister the rank first",
            )
            .field(field),
            RegistryError::DomainConflict { field, .. } => Self::new(
                Reason::StateConflict,
                detail,
                "use another instance_id or tenant, or unregister every rank of the instance first",
            )
            .field(field),
            RegistryError::SeveralTenants { .. } => {
                Self::new(Reason::StateConflict, detail, "say which tenant is meant")
                    .field("tenant_id")
            }
            RegistryError::NotFound { .. } => Self::new(
                Reason::NotFound,
                detail,
                "check instance_id, dp_rank, model and tenant against GET /workers",
            ),
            RegistryError::Full { .. } => Self::new(
                Reason::RateLimited,
                detail,
                "unregister ranks that are gone, or raise max_registrations",
            ),
            RegistryError::NoPublisherId => Self::internal(),
        }
    }
}
