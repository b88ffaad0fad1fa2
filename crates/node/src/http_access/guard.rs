//! The guard of a door with tokens, in front of its pages.

use super::{DoorUser, Users};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Lets a request through that shows a token of somebody's, who may read at least, within its
/// owner's rate.
pub async fn guard(
    State(users): State<Arc<Users<DoorUser>>>,
    request: Request,
    next: Next,
) -> Response {
    match users.admit(users.shown_by(request.headers())) {
        Ok(_) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}
