//! The key-value store over HTTP, for applications that have no client of their own.
//!
//! ```text
//! GET    /v1/kv/{key}           a value: proven by one member, or read through the order
//! PUT    /v1/kv/{key}           sets it, or compares and swaps
//! DELETE /v1/kv/{key}           removes it
//! GET    /v1/kv                 keys in order
//! POST   /v1/batch              several steps, all or none
//! POST   /v1/receipts/verify    whether a receipt holds
//! GET    /v1/status             the gateway's view of the committee
//! GET    /openapi.json          all of this, for programs
//! ```
//!
//! **Whom to trust.** The gateway checks what members tell it; whoever asks over HTTP trusts the
//! gateway, and the network in between where it is not encrypted. A receipt needs no trust: it can
//! be checked anywhere. It shows a whole request, with operations of others that shared it.
//!
//! **Bounds.** Bodies, connections, requests at once and the time of each step have limits
//! ([`RestLimits`]). Beyond them a request is refused with a status that says so.

mod about;
pub(crate) mod access;
mod batch;
pub(crate) mod failure;
mod grants;
mod keys;
mod order;
pub(crate) mod origin;
pub(crate) mod parameters;
mod receipts;
pub(crate) mod server;
#[cfg(test)]
mod tests;

pub use grants::{Grant, User};
pub use origin::WebPages;
pub use server::{Gateway, GatewayConfig, GatewayError};

use crate::KvClient;
use access::Admission;
use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use failure::Failure;
use quorate_node::connections::ConnectionLimits;
use quorate_node::descriptors::GATEWAY_MAX;
use quorate_node::http_access::{UserEntry, Users};
use quorate_node::http_server::HEAD_TIMEOUT;
use std::sync::Arc;
use std::time::Duration;

/// The gateway's description of itself, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("rest/openapi.json");

/// Limits on the work and the time that callers can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestLimits {
    /// Requests about keys, batches and receipts under way at once, at least 1; more are answered
    /// with 503.
    pub requests_max: usize,
    /// Connections at once: the least recently used gives way to one more.
    pub connections: ConnectionLimits,
    /// Longest time for a request's head to come, and for a connection to be idle.
    pub head_timeout: Duration,
    /// Longest time for a request's body to come.
    pub body_timeout: Duration,
}

impl RestLimits {
    /// These limits with so many connections.
    #[must_use]
    pub fn with_connections(self, total: usize) -> Self {
        Self { connections: ConnectionLimits::of(total), ..self }
    }
}

impl Default for RestLimits {
    /// 256 requests, 1024 connections, 30 s for a head, 10 s for a body.
    fn default() -> Self {
        Self {
            requests_max: 256,
            connections: ConnectionLimits::of(GATEWAY_MAX),
            head_timeout: HEAD_TIMEOUT,
            body_timeout: Duration::from_secs(10),
        }
    }
}

/// State that all handlers share.
struct Shared {
    client: KvClient,
    limits: RestLimits,
}

/// A path with one method.
pub(crate) struct Route<S> {
    pub(crate) path: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the description"))]
    pub(crate) method: Method,
    handler: MethodRouter<Arc<S>>,
}

impl<S> Route<S> {
    pub(crate) fn new(method: Method, path: &'static str, handler: MethodRouter<Arc<S>>) -> Self {
        Self { path, method, handler }
    }
}

/// The pages of the gateway. With users, all but the status and the description ask for a token.
pub fn router(client: KvClient, users: Option<Arc<Users<User>>>, limits: RestLimits) -> Router {
    let admission = Admission::new(users, Arc::new(WebPages::Refused), &limits);
    pages(guarded_routes(), open_routes(), admission, Arc::new(Shared { client, limits }))
}

/// Routes of which some pass admission; any other path is refused in JSON.
pub(crate) fn pages<S: Send + Sync + 'static, U: UserEntry>(
    guarded: Vec<Route<S>>,
    open: Vec<Route<S>>,
    admission: Arc<Admission<U>>,
    shared: Arc<S>,
) -> Router {
    build(guarded)
        .route_layer(from_fn_with_state(admission, access::guard))
        .merge(build(open))
        .fallback(Failure::no_such_path)
        .method_not_allowed_fallback(Failure::no_such_method)
        .with_state(shared)
}

fn build<S: Send + Sync + 'static>(routes: Vec<Route<S>>) -> Router<Arc<S>> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler))
}

fn guarded_routes() -> Vec<Route<Shared>> {
    vec![
        Route::new(Method::GET, "/v1/kv/{key}", get(keys::read)),
        Route::new(Method::PUT, "/v1/kv/{key}", put(keys::write)),
        Route::new(Method::DELETE, "/v1/kv/{key}", delete(keys::remove)),
        Route::new(Method::GET, "/v1/kv", get(keys::scan)),
        Route::new(Method::POST, "/v1/batch", post(batch::execute)),
        Route::new(Method::POST, "/v1/receipts/verify", post(receipts::verify)),
    ]
}

fn open_routes() -> Vec<Route<Shared>> {
    vec![
        Route::new(Method::GET, "/v1/status", get(about::status)),
        Route::new(Method::GET, "/openapi.json", get(about::openapi)),
    ]
}
