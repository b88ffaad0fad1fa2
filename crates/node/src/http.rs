//! The operator's view: `/status` (JSON), `/metrics` (Prometheus), `/healthz` (its threads run) and
//! `/readyz` (it is of use), and the dashboard with its `/events`, over plain HTTP, or TLS where
//! the configuration says so.
//!
//! Who may read is the configuration's to say ([`crate::http_access`]): on the loopback interface,
//! which is the default, everybody. `/healthz` and `/readyz` ask nobody for a token.

use crate::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::dashboard;
use crate::http_access::{Access, DoorUser, Users, guard};
use crate::http_server::{self, DoorRules};
use crate::http_tls::{HttpTls, HttpTlsFiles};
use crate::metrics::exposition;
use crate::quotas::{AddressRates, RateLimit};
pub use crate::shown::{NodeStatus, Queues, Shown, Summary};
use crate::{NodeConfig, NodeError};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;

/// The content of `/readyz`.
#[derive(Clone, Debug, Serialize)]
struct Readiness {
    ready: bool,
    reasons: Vec<String>,
}

/// Who is let in at the status page, and how: read once for a process, whose validator may begin
/// one epoch after the other, and again on SIGHUP.
#[derive(Clone, Debug, Default)]
pub struct StatusDoor {
    /// Its users; `None` where everybody is let in.
    pub users: Option<Arc<Users<DoorUser>>>,
    /// Its certificate and rates.
    pub rules: DoorRules,
}

impl StatusDoor {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    /// When one is refused.
    pub fn load(config: &NodeConfig) -> Result<Self, NodeError> {
        let files = config.tls_files().filter(|_| config.http_tls);
        let limit = RateLimit { per_second: config.http_requests_per_second };
        Self::of(&config.http_access(), files, limit)
    }

    /// Reads the files of a status page, a validator's or an authority's.
    pub(crate) fn of(
        access: &Access,
        tls: Option<HttpTlsFiles>,
        limit: RateLimit,
    ) -> Result<Self, NodeError> {
        let rules = DoorRules {
            tls: tls.map(HttpTls::load).transpose()?,
            rates: AddressRates::new(limit),
            ..DoorRules::default()
        };
        Ok(Self { users: access.load()?, rules })
    }
}

/// Serves the pages to so many at once, for ever.
pub async fn serve(socket: TcpListener, shown: Shown, limits: ConnectionLimits, door: StatusDoor) {
    let cut = shown.metrics.cut_counter("too-many-status");
    let acceptor = Acceptor::new(socket, ConnectionLimiter::new(limits, cut), limits.total);
    http_server::serve(acceptor, pages(door.users).with_state(shown), door.rules).await;
}

/// All pages. With users, those that tell something of the network ask for a token.
fn pages(users: Option<Arc<Users<DoorUser>>>) -> Router<Shown> {
    guarded(guarded_pages(), users).merge(open_pages())
}

/// The same pages, for whoever shows a token where there are users.
pub(crate) fn guarded<S: Clone + Send + Sync + 'static>(
    pages: Router<S>,
    users: Option<Arc<Users<DoorUser>>>,
) -> Router<S> {
    match users {
        Some(users) => pages.route_layer(from_fn_with_state(users, guard)),
        None => pages,
    }
}

/// Pages for those who may read.
fn guarded_pages() -> Router<Shown> {
    Router::new()
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/events", get(dashboard::events))
}

/// Pages for everybody: whoever probes a validator (an orchestrator, a load balancer) can rarely
/// hold a token, and learns no more than whether it runs and is of use. The dashboard's files are
/// the same for everybody; what they show, they ask for at `/events`.
fn open_pages() -> Router<Shown> {
    let probes = Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz));
    probes.merge(dashboard::files())
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
