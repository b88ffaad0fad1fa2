//! A wallet over HTTP, for tills and shops.
//!
//! ```text
//! POST   /v1/payments            pays; the header Idempotency-Key names the payment
//! GET    /v1/payments/{id}       how a payment stands, with its receipt
//! GET    /v1/balance             what the wallet is worth
//! POST   /v1/requests            a request for payment, for a payer's wallet
//! GET    /v1/requests            requests and how they stand; /{id} for one
//! DELETE /v1/requests/{id}       cancels one
//! GET    /v1/requests/{id}/code  its code, for a payer's device to read
//! POST   /v1/receipts            takes a receipt's coins in, or only checks it
//! GET    /v1/history             everything that happened
//! GET    /openapi.json           all of this, for programs
//! GET    /                       the page of a till
//! ```
//!
//! Whoever shows a token does what [it is for](Right), and no more. Plain HTTP is for the loopback
//! interface; TLS is for any other. Web pages of others are told by [`WebPages`].
//!
//! A payment is stored before an authority sees it, and an answer that is lost costs nothing: the
//! same request with the same key is the same payment.
//!
//! **Strangers** bring receipts: one proves itself, and is taken in without a token where it pays
//! a request that is open. What they can store is bounded by what tills ask for.

mod page;
mod payments;
mod receipts;
mod requests;
mod rights;

pub use rights::{Right, WalletGrant, WalletUser};

use super::{PaymentFileError, PaymentService, WalletError};
use crate::rest::access::Admission;
use crate::rest::failure::Failure;
use crate::rest::origin;
use crate::rest::parameters::{Parameters, body};
use crate::rest::{RestLimits, Route, WebPages, pages, server};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Json, Router};
use prometheus_client::metrics::counter::Counter;
use quorate_node::connections::ConnectionLimiter;
use quorate_node::http_access::Users;
use quorate_node::http_server::DoorRules;
use rights::Action;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The description of it all, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("rest/openapi.json");

/// Most bytes of a payment's or a request's text.
const ORDER_BYTES_MAX: usize = 16 << 10;

/// Lines of a list that is asked for without a limit, and most of one answer.
const LINES: u32 = 1_000;

/// State that all handlers share.
struct Shared {
    service: Arc<PaymentService>,
    timeout: Duration,
    limits: RestLimits,
}

/// Whoever asks, as admission found it.
type Asker = Extension<Arc<WalletGrant>>;

/// The pages of a wallet. A payment is answered within `timeout`, whether its outcome is known or
/// not. Without users everybody may do everything.
pub fn router(
    service: Arc<PaymentService>,
    users: Option<Arc<Users<WalletUser>>>,
    web_pages: WebPages,
    timeout: Duration,
    limits: RestLimits,
) -> Router {
    let (shared, web_pages) = (Arc::new(Shared { service, timeout, limits }), Arc::new(web_pages));
    let admission = Admission::new(users, Arc::clone(&web_pages), &limits);
    pages(guarded_routes(), open_routes(), admission, shared)
        .layer(from_fn_with_state(web_pages, origin::guard))
}

/// Serves a wallet for ever.
pub async fn serve(listener: TcpListener, pages: Router, limits: RestLimits, rules: DoorRules) {
    let connections = ConnectionLimiter::new(limits.connections, Counter::default());
    server::serve(listener, pages, limits, (connections, rules)).await;
}

fn guarded_routes() -> Vec<Route<Shared>> {
    vec![
        Route::new(Method::POST, "/v1/payments", post(payments::pay)),
        Route::new(Method::GET, "/v1/payments/{id}", get(payments::payment)),
        Route::new(Method::GET, "/v1/balance", get(balance)),
        Route::new(Method::POST, "/v1/requests", post(requests::make)),
        Route::new(Method::GET, "/v1/requests", get(requests::list)),
        Route::new(Method::GET, "/v1/requests/{id}", get(requests::show)),
        Route::new(Method::DELETE, "/v1/requests/{id}", delete(requests::cancel)),
        Route::new(Method::GET, "/v1/requests/{id}/code", get(requests::code)),
        Route::new(Method::POST, "/v1/receipts", post(receipts::receive)),
        Route::new(Method::GET, "/v1/history", get(history)),
    ]
}

fn open_routes() -> Vec<Route<Shared>> {
    vec![
        Route::new(Method::GET, "/", get(page::till)),
        Route::new(Method::GET, "/openapi.json", get(openapi)),
    ]
}

async fn balance(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    asker.check(Action::Look)?;
    Parameters::of(&uri)?.finish()?;
    let balance = shared.service.with_blocking(|wallet| wallet.balance()).await;
    Ok(Json(balance).into_response())
}

/// Lines of a list.
#[derive(Serialize)]
struct Lines<T> {
    lines: Vec<T>,
    /// Value for `from` in the next call; absent at the end.
    next: Option<usize>,
}

/// A part of a list, from line `from` on.
#[derive(Debug, Clone, Copy)]
struct Part {
    from: usize,
    limit: usize,
}

impl Part {
    fn of(parameters: &mut Parameters) -> Result<Self, Failure> {
        let from = parameters.number("from")?.unwrap_or(0) as usize;
        let limit = parameters.number("limit")?.unwrap_or(LINES);
        if limit == 0 || limit > LINES {
            return Err(Failure::bad_input(format!("'limit' is 1 to {LINES}")));
        }
        Ok(Self { from, limit: limit as usize })
    }

    /// Lines of this part, and the first one behind it.
    fn cut<T>(self, mut lines: Vec<T>) -> Lines<T> {
        let end = self.from.saturating_add(self.limit);
        let next = (end < lines.len()).then_some(end);
        lines.truncate(end);
        Lines { lines: lines.into_iter().skip(self.from).collect(), next }
    }
}

async fn history(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    asker.check(Action::Look)?;
    let mut parameters = Parameters::of(&uri)?;
    let part = Part::of(&mut parameters)?;
    parameters.finish()?;
    let lines = shared.service.with_blocking(|wallet| wallet.history()).await?;
    Ok(Json(part.cut(lines)).into_response())
}

async fn openapi(uri: Uri) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    Ok(([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response())
}

/// A body in JSON.
async fn read<T: DeserializeOwned>(
    asked: Request,
    most: usize,
    what: &str,
    limits: &RestLimits,
) -> Result<T, Failure> {
    let text = body(asked, most, limits).await?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::bad_input(format!("the body is no {what}: {error}; see /openapi.json"))
    })
}

impl From<WalletError> for Failure {
    fn from(error: WalletError) -> Self {
        let status = match error {
            WalletError::Order(_) | WalletError::Payee(_) => StatusCode::BAD_REQUEST,
            WalletError::NoPayment(_)
            | WalletError::NoRequest(_)
            | WalletError::NothingLocked(_) => StatusCode::NOT_FOUND,
            WalletError::KeyTaken { .. }
            | WalletError::TooLittle { .. }
            | WalletError::TooManyCoins { .. }
            | WalletError::NothingToConsolidate
            | WalletError::NotOpen { .. } => StatusCode::CONFLICT,
            WalletError::Receipt(_)
            | WalletError::NotMine { .. }
            | WalletError::FormerEpoch { .. }
            | WalletError::PaysNoRequest
            | WalletError::PaysTooLittle { .. }
            | WalletError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            WalletError::NotTheIssuer { .. } | WalletError::Limit(_) => StatusCode::FORBIDDEN,
            WalletError::TooFewAuthorities { .. }
            | WalletError::NotFollowed(_)
            | WalletError::NoCommittee
            | WalletError::Release(_) => StatusCode::SERVICE_UNAVAILABLE,
            WalletError::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            WalletError::Absent { .. }
            | WalletError::Lost { .. }
            | WalletError::Behind { .. }
            | WalletError::Settings(_)
            | WalletError::Backup(_)
            | WalletError::Exists { .. }
            | WalletError::InUse { .. }
            | WalletError::Io { .. }
            | WalletError::Stopped { .. }
            | WalletError::Damaged { .. }
            | WalletError::Archive { .. }
            | WalletError::Content { .. }
            | WalletError::OtherOwner { .. }
            | WalletError::OtherNetwork { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<PaymentFileError> for Failure {
    fn from(error: PaymentFileError) -> Self {
        let status = match error {
            PaymentFileError::Form { .. } | PaymentFileError::Read { .. } => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, error.to_string()).with("valid", false)
    }
}

#[cfg(test)]
mod tests;
