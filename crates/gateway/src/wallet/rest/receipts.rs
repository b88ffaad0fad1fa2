//! Receipts that somebody brings.

use super::rights::Action;
use super::{Asker, Shared};
use crate::rest::failure::Failure;
use crate::rest::parameters::{Parameters, body};
use crate::wallet::{PaymentReceipt, Received, Wallet};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use quorate_payments::{Network, PayReceipt};
use serde_json::json;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Most bytes of a receipt's text, from whoever has a token for it.
const RECEIPT_BYTES_MAX: usize = 4 << 20;

/// Most bytes of a receipt's text from strangers: one coin of a thousand authorities, twice.
const STRANGERS_BYTES_MAX: usize = 512 << 10;

pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    asked: Request,
) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(asked.uri())?;
    let is_only_checked = parameters.flag("check_only")?;
    parameters.finish()?;
    let may_receive = asker.check(Action::Receive).is_ok();
    let most = if may_receive { RECEIPT_BYTES_MAX } else { STRANGERS_BYTES_MAX };
    let text = body(asked, most, &shared.limits).await?;
    let text = String::from_utf8(text.into())
        .map_err(|_| Failure::bad_input("the body is not text in UTF-8"))?;
    let network = shared.service.network();
    // The wallet is not locked for it: strangers must not make tills wait.
    let (paper, receipt) = check(text, Arc::clone(&network)).await?;
    let ended = receipt.former_epoch(&network);
    let take = move |wallet: &mut Wallet| match may_receive {
        true => wallet.receive(&receipt),
        false => wallet.receive_for_request(&receipt),
    };
    let received = if is_only_checked {
        None
    } else {
        let taken = shared.service.receive_as(take, shared.timeout).await?;
        record(&shared, &taken);
        Some(taken)
    };
    Ok(Json(json!({
        "valid": true,
        "transaction": paper.transaction,
        "payer": paper.payer,
        "payee": paper.payee,
        "value": paper.value,
        "memo": paper.memo,
        "ended_epoch": ended.map(|epoch| epoch.0),
        "added": received.as_ref().map(|received| received.added),
        "request": received.and_then(|received| received.request).map(|id| id.to_string()),
    }))
    .into_response())
}

/// Leaves what came in with the authorities, in case this disk is lost.
fn record(shared: &Shared, received: &Received) {
    let (service, timeout) = (Arc::clone(&shared.service), shared.timeout);
    if received.added == 0 {
        return;
    }
    tokio::spawn(async move {
        if let Err(error) = service.tend_records(timeout).await {
            tracing::warn!(%error, "the records at the authorities are not up to date");
        }
    });
}

/// Checks signatures of a quorum: not on the threads that move bytes.
async fn check(
    text: String,
    network: Arc<Network>,
) -> Result<(PaymentReceipt, PayReceipt), Failure> {
    let checked = spawn_blocking(move || PaymentReceipt::parse(&text, &network)).await;
    let checked = checked.map_err(|error| {
        let error = format!("the check was not finished: {error}; try again");
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, error)
    })?;
    Ok(checked?)
}
