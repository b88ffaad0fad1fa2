//! The operator's view: `/status` (JSON), `/metrics` (Prometheus), `/healthz` (its threads run) and
//! `/readyz` (it is of use), and the dashboard with its `/events`, over plain HTTP, or TLS where
//! the configuration says so.
//!
//! There is no authentication: the default address is on the loopback interface.

use crate::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::dashboard;
use crate::http_server::{self, DoorRules};
use crate::metrics::exposition;
pub use crate::shown::{NodeStatus, Queues, Shown, Summary};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;

/// The content of `/readyz`.
#[derive(Clone, Debug, Serialize)]
struct Readiness {
    ready: bool,
    reasons: Vec<String>,
}

/// Serves the pages to so many at once, for ever.
pub async fn serve(socket: TcpListener, shown: Shown, limits: ConnectionLimits, rules: DoorRules) {
    let cut = shown.metrics.cut_counter("too-many-status");
    let acceptor = Acceptor::new(socket, ConnectionLimiter::new(limits, cut), limits.total);
    let pages = Router::new()
        .merge(dashboard::files())
        .route("/events", get(dashboard::events))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(shown);
    http_server::serve(acceptor, pages, rules).await;
}

async fn status(State(shown): State<Shown>) -> Response {
    aside(move || Json(shown.now())).await
}

async fn metrics(State(shown): State<Shown>, asked: HeaderMap) -> Response {
    aside(move || exposition::answer(&asked, shown.metrics_text())).await
}

/// Looks at files on another thread: a slow disk must not hold up those that carry votes.
async fn aside_of<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(look).await
}

/// Makes a page that looks at files.
async fn aside<R: IntoResponse + Send + 'static>(
    page: impl FnOnce() -> R + Send + 'static,
) -> Response {
    match aside_of(page).await {
        Ok(page) => page.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn healthz(State(shown): State<Shown>) -> Response {
    if shown.healthy.load(Ordering::Relaxed) {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not running\n").into_response()
    }
}

/// 200 if clients may ask it, and 503 with the reasons otherwise.
async fn readyz(State(shown): State<Shown>) -> Response {
    aside(move || {
        let reasons = shown.not_ready(&shown.health.load(), &shown.room.figures());
        let ready = reasons.is_empty();
        let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (code, Json(Readiness { ready, reasons }))
    })
    .await
}
