//! Refusals: a status, and a JSON object that says what is wrong and what to do.

use crate::{CallError, KvError};
use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use quorate_ledger::kv::{FormError, OutcomeError, Refusal};
use quorate_node::http_access::Refused;
use serde_json::{Map, Value};
use std::time::Duration;

/// A request that came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    /// Further members of the answer's object.
    pub(crate) details: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), details: Map::new() }
    }

    pub(crate) fn bad_input(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn too_large(error: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    pub(crate) fn slow_body(timeout: Duration) -> Self {
        let error = format!(
            "the request's body did not come within {} s: send it again, faster",
            timeout.as_secs_f64()
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, error)
    }

    pub(crate) fn busy() -> Self {
        let error = "too many requests are under way: try again in a second";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    pub(crate) fn share_taken() -> Self {
        let error = "your share of this gateway's requests is under way: try again in a second";
        Self::new(StatusCode::TOO_MANY_REQUESTS, error)
    }

    pub(crate) fn no_json() -> Self {
        let error = "the body must say that it is JSON: send 'Content-Type: application/json'";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error)
    }

    pub(crate) fn no_token() -> Self {
        Refused::NoToken.into()
    }

    /// The committee's answers do not fit the question.
    pub(crate) fn other_answer() -> Self {
        OutcomeError::Undecodable.into()
    }

    /// The handler of paths that are none.
    pub(crate) async fn no_such_path(uri: Uri) -> Self {
        let error =
            format!("there is nothing at {}: /openapi.json describes what there is", uri.path());
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The handler of methods that a path does not have.
    pub(crate) async fn no_such_method(method: Method, uri: Uri) -> Self {
        let error = format!("{method} is none of the methods of {}: see /openapi.json", uri.path());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, error)
    }

    /// Adds a member to the answer's object.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    fn header(&self) -> Option<(header::HeaderName, HeaderValue)> {
        let (name, value) = match self.status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                (header::RETRY_AFTER, "1")
            }
            StatusCode::UNAUTHORIZED => (header::WWW_AUTHENTICATE, "Bearer"),
            _ => return None,
        };
        Some((name, HeaderValue::from_static(value)))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let header = self.header();
        let mut content = self.details;
        content.insert("error".to_owned(), Value::from(self.error));
        let mut response = (self.status, Json(content)).into_response();
        response.headers_mut().extend(header);
        response
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::NoToken => StatusCode::UNAUTHORIZED,
            Refused::ReadOnly => StatusCode::FORBIDDEN,
            Refused::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
        };
        Self::new(status, refused.to_string())
    }
}

impl From<FormError> for Failure {
    fn from(error: FormError) -> Self {
        match error {
            FormError::ValueBytes(_) => Self::too_large(error.to_string()),
            _ => Self::bad_input(error.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let status = match error {
            CallError::Overloaded { .. } => StatusCode::TOO_MANY_REQUESTS,
            CallError::DiskFull(_) => StatusCode::INSUFFICIENT_STORAGE,
            CallError::Timeout(_) | CallError::CutOff(_) | CallError::Outdated(_) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            CallError::NotAdmitted(_) => StatusCode::FORBIDDEN,
            CallError::Unanswered(_) | CallError::TurnedAway(_) => StatusCode::BAD_GATEWAY,
            CallError::Ended => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<OutcomeError> for Failure {
    fn from(error: OutcomeError) -> Self {
        let text = error.to_string();
        match error {
            OutcomeError::Undecodable => Self::new(
                StatusCode::BAD_GATEWAY,
                format!("{text}: the committee may replicate another service"),
            ),
            OutcomeError::Refused(Refusal::NotAdmitted(_)) => Self::bad_input(text),
            OutcomeError::Refused(Refusal::ResultTooLong) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{text}: get fewer at once"))
            }
            OutcomeError::Refused(Refusal::NotSwapped { step, actual }) => {
                Self::new(StatusCode::CONFLICT, format!("{text}: nothing was changed"))
                    .with("step", step)
                    .with("actual", actual.map(hex::encode))
            }
        }
    }
}

impl From<KvError> for Failure {
    fn from(error: KvError) -> Self {
        match error {
            KvError::Call(error) => error.into(),
            KvError::Outcome(error) => error.into(),
            KvError::Form(error) => error.into(),
        }
    }
}
