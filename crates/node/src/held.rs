//! A validator that must not be started again before somebody has looked: its process stays and
//! takes no part.
//!
//! What starts every process again that ends, whatever its exit code, would start it too. It stays
//! alive to that, is not ready, and says why.

use crate::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::http::StatusDoor;
use crate::http_server;
use crate::validator::{bind, start_runtime};
use crate::{NodeConfig, NodeError, Shutdown};
use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::runtime::Runtime;

/// Most connections at once, all of them of whoever probes it.
const CONNECTIONS: usize = 32;

/// Stays until it is asked to stop. Meanwhile the status page answers, 200 at /healthz and 503 with
/// the reason at all else; where it cannot be opened, the log says so and nothing answers.
pub fn hold(config: &NodeConfig, door: &StatusDoor, reason: &str, shutdown: &Shutdown) {
    tracing::error!(
        reason,
        "this validator is held: it takes no part, and is not started again by itself"
    );
    let serving = serve(config, door, reason);
    if let Err(error) = &serving {
        tracing::error!(%error, "nothing answers in its place");
    }
    shutdown.wait();
}

/// Answers for as long as the runtime is kept.
fn serve(config: &NodeConfig, door: &StatusDoor, reason: &str) -> Result<Runtime, NodeError> {
    let runtime = start_runtime(1)?;
    let socket = runtime.block_on(bind(&config.http, "status and metrics"))?;
    let limiter = ConnectionLimiter::new(ConnectionLimits::of(CONNECTIONS), Counter::default());
    let acceptor = Acceptor::new(socket, limiter, CONNECTIONS);
    let reasons = json!({ "ready": false, "reasons": [reason] });
    let refusal = move || async move { (StatusCode::SERVICE_UNAVAILABLE, Json(reasons)) };
    let pages = Router::new().route("/healthz", get(|| async { "held\n" })).fallback(refusal);
    runtime.spawn(http_server::serve(acceptor, pages, door.rules.clone()));
    Ok(runtime)
}
