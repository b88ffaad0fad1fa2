//! Refusals of a door, before anything is done.

use crate::http_server::{refusal, too_many};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;

/// Reason for which a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It shows no token, or none that is let in.
    #[error("this needs a token that is let in here: send 'Authorization: Bearer TOKEN'")]
    NoToken,
    /// The token is for reading alone.
    #[error("this token is for 'read': nothing may be changed or sent with it")]
    ReadOnly,
    /// Its owner has sent more than its rate: the time to wait.
    #[error("this token sends more requests than it may: try again after Retry-After")]
    TooMany(Duration),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let reason = self.to_string();
        match self {
            Self::NoToken => {
                let field = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                refusal(StatusCode::UNAUTHORIZED, &reason, Some(field))
            }
            Self::ReadOnly => refusal(StatusCode::FORBIDDEN, &reason, None),
            Self::TooMany(wait) => too_many(wait, &reason),
        }
    }
}
