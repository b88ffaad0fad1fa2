//! A wallet over HTTP, for tills and shops.
//!
//! ```text
//! POST   /v1/payments           pays; the header Idempotency-Key names the payment
//! GET    /v1/payments/{id}      how a payment stands, with its receipt
//! GET    /v1/balance            what the wallet is worth
//! POST   /v1/requests           a request for payment, for a payer's wallet
//! POST   /v1/receipts           takes a receipt's coins in, or only checks it
//! GET    /v1/history            everything that happened
//! GET    /openapi.json          all of this, for programs
//! ```
//!
//! **Whoever shows the token spends the money.** Plain HTTP is for the loopback interface; TLS is
//! for any other.
//!
//! A payment is stored before an authority sees it, and an answer that is lost costs nothing: the
//! same request with the same key is the same payment.

use super::{
    Order, Payment, PaymentFileError, PaymentReceipt, PaymentRequest, PaymentService, PaymentState,
};
use super::{Purpose, Wallet, WalletError};
use crate::rest::access::Admission;
use crate::rest::failure::Failure;
use crate::rest::parameters::{Parameters, body};
use crate::rest::{RestLimits, Route, Token, pages, server};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use prometheus_client::metrics::counter::Counter;
use quorate_crypto::{Digest, IdentityKey};
use quorate_node::connections::ConnectionLimiter;
use quorate_node::http_server::DoorRules;
use quorate_payments::TxId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The description of it all, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("rest/openapi.json");

/// The header that names a payment.
const KEY: &str = "idempotency-key";

/// Prefix of a payment's name in a path.
const PAYMENT: &str = "/v1/payments/";

/// Most bytes of a payment's or a request's text.
const ORDER_BYTES_MAX: usize = 16 << 10;

/// Most bytes of a receipt's text.
const RECEIPT_BYTES_MAX: usize = 4 << 20;

/// Lines of a history that is asked for without a limit, and most of one answer.
const LINES: u32 = 1_000;

/// State that all handlers share.
struct Shared {
    service: Arc<PaymentService>,
    timeout: Duration,
    limits: RestLimits,
}

/// The pages of a wallet. A payment is answered within `timeout`, whether its outcome is known or
/// not.
pub fn router(
    service: Arc<PaymentService>,
    token: Option<Token>,
    timeout: Duration,
    limits: RestLimits,
) -> Router {
    let shared = Arc::new(Shared { service, timeout, limits });
    pages(
        guarded_routes(),
        open_routes(),
        Admission::new(token.map(|token| Arc::new(token.into())), &limits),
        shared,
    )
}

/// Serves a wallet for ever.
pub async fn serve(listener: TcpListener, pages: Router, limits: RestLimits, rules: DoorRules) {
    let connections = ConnectionLimiter::new(limits.connections, Counter::default());
    server::serve(listener, pages, limits, (connections, rules)).await;
}

fn guarded_routes() -> Vec<Route<Shared>> {
    vec![
        Route::new(Method::POST, "/v1/payments", post(pay)),
        Route::new(Method::GET, "/v1/payments/{id}", get(payment)),
        Route::new(Method::GET, "/v1/balance", get(balance)),
        Route::new(Method::POST, "/v1/requests", post(request)),
        Route::new(Method::POST, "/v1/receipts", post(receipt)),
        Route::new(Method::GET, "/v1/history", get(history)),
    ]
}

fn open_routes() -> Vec<Route<Shared>> {
    vec![Route::new(Method::GET, "/openapi.json", get(openapi))]
}

/// Body of a request to pay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PayText {
    to: String,
    value: u64,
    memo: Option<String>,
}

async fn pay(State(shared): State<Arc<Shared>>, asked: Request) -> Result<Response, Failure> {
    Parameters::of(asked.uri())?.finish()?;
    let key = key(asked.headers())?;
    let text: PayText = read(asked, ORDER_BYTES_MAX, "payment", &shared.limits).await?;
    let payee: IdentityKey = text
        .to
        .parse()
        .map_err(|_| Failure::bad_input("'to' is an address of 64 hexadecimal digits"))?;
    let purpose = Purpose::Pay { payee, value: text.value };
    let order = Order { purpose, memo: text.memo };
    let paid = shared.service.pay(order, Some(key), shared.timeout).await?;
    answer(&shared, paid).await
}

fn key(headers: &HeaderMap) -> Result<String, Failure> {
    let shown = headers.get(KEY).and_then(|value| value.to_str().ok());
    shown.map(str::to_owned).ok_or_else(|| {
        Failure::bad_input(
            "name the payment in the header Idempotency-Key, 1 to 255 plain characters: when an answer is \
             lost, the same request with the same key is the same payment",
        )
    })
}

async fn payment(State(shared): State<Arc<Shared>>, uri: Uri) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    let id = uri.path().strip_prefix(PAYMENT).unwrap_or_default();
    let id = Digest::from_hex(id)
        .map_err(|_| Failure::bad_input("a payment is named by 64 hexadecimal digits"))?;
    let look = move |wallet: &mut Wallet| wallet.payment(TxId(id)).cloned();
    let payment = shared.service.with_blocking(look).await?;
    let view = shared.service.with_blocking(move |wallet| wallet.view(&payment)).await;
    Ok(Json(view).into_response())
}

/// A payment that was asked for: final, or on its way, or lost.
async fn answer(shared: &Shared, payment: Payment) -> Result<Response, Failure> {
    let status = match payment.state {
        PaymentState::Certified { .. } => StatusCode::OK,
        PaymentState::Begun => StatusCode::ACCEPTED,
        PaymentState::Refused { .. }
        | PaymentState::Conflicting { .. }
        | PaymentState::Released { .. } => StatusCode::CONFLICT,
    };
    let view = shared.service.with_blocking(move |wallet| wallet.view(&payment)).await;
    if status != StatusCode::CONFLICT {
        return Ok((status, Json(view)).into_response());
    }
    let error = match &view.reason {
        Some(reason) => format!("the authorities refused it: {reason}; its coins are free again"),
        None => "it is a double spend: another transaction of this wallet's key took one of its coins, and \
                 its coins are frozen. Was a copy of the wallet used?"
            .to_owned(),
    };
    let view = serde_json::to_value(view).expect("plain fields have a JSON form");
    Err(Failure::new(status, error).with("payment", view))
}

async fn balance(State(shared): State<Arc<Shared>>, uri: Uri) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    let balance = shared.service.with_blocking(|wallet| wallet.balance()).await;
    Ok(Json(balance).into_response())
}

/// Body of a request for a payment request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    value: u64,
    memo: Option<String>,
}

async fn request(State(shared): State<Arc<Shared>>, asked: Request) -> Result<Response, Failure> {
    Parameters::of(asked.uri())?.finish()?;
    let text: RequestText = read(asked, ORDER_BYTES_MAX, "request", &shared.limits).await?;
    if text.value == 0 {
        return Err(Failure::bad_input("'value' is at least 1"));
    }
    let make = move |wallet: &mut Wallet| {
        PaymentRequest::new(wallet.network(), wallet.owner(), text.value, text.memo)
    };
    Ok(Json(shared.service.with_blocking(make).await).into_response())
}

async fn receipt(State(shared): State<Arc<Shared>>, asked: Request) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(asked.uri())?;
    let is_only_checked = parameters.flag("check_only")?;
    parameters.finish()?;
    let text = body(asked, RECEIPT_BYTES_MAX, &shared.limits).await?;
    let text = std::str::from_utf8(&text)
        .map_err(|_| Failure::bad_input("the body is not text in UTF-8"))?
        .to_owned();
    let take = move |wallet: &mut Wallet| -> Result<Value, Failure> {
        let (paper, receipt) = PaymentReceipt::parse(&text, wallet.network())?;
        let added = if is_only_checked { None } else { Some(wallet.receive(&receipt)?.added) };
        Ok(json!({
            "valid": true,
            "transaction": paper.transaction,
            "payer": paper.payer,
            "payee": paper.payee,
            "value": paper.value,
            "memo": paper.memo,
            "added": added,
        }))
    };
    Ok(Json(shared.service.with_blocking(take).await?).into_response())
}

/// A part of the history.
#[derive(Serialize)]
struct Lines<T> {
    lines: Vec<T>,
    /// Value for `from` in the next call; absent at the end.
    next: Option<usize>,
}

async fn history(State(shared): State<Arc<Shared>>, uri: Uri) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(&uri)?;
    let from = parameters.number("from")?.unwrap_or(0) as usize;
    let limit = parameters.number("limit")?.unwrap_or(LINES);
    parameters.finish()?;
    if limit == 0 || limit > LINES {
        return Err(Failure::bad_input(format!("'limit' is 1 to {LINES}")));
    }
    let mut lines = shared.service.with_blocking(|wallet| wallet.history()).await;
    let end = from.saturating_add(limit as usize);
    let next = (end < lines.len()).then_some(end);
    lines.truncate(end);
    let lines: Vec<_> = lines.into_iter().skip(from).collect();
    Ok(Json(Lines { lines, next }).into_response())
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
            WalletError::NoPayment(_) => StatusCode::NOT_FOUND,
            WalletError::KeyTaken { .. }
            | WalletError::TooLittle { .. }
            | WalletError::TooManyCoins { .. }
            | WalletError::NothingToConsolidate => StatusCode::CONFLICT,
            WalletError::Receipt(_) | WalletError::NotMine { .. } | WalletError::Invalid(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            WalletError::NotTheIssuer { .. } => StatusCode::FORBIDDEN,
            WalletError::TooFewAuthorities { .. } => StatusCode::SERVICE_UNAVAILABLE,
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
