//! Payments that somebody orders.

use super::rights::Action;
use super::{Asker, ORDER_BYTES_MAX, Shared, read};
use crate::rest::failure::Failure;
use crate::rest::parameters::Parameters;
use crate::wallet::{Order, Payment, PaymentState, Purpose, Wallet, WalletError};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use quorate_crypto::{Digest, IdentityKey};
use quorate_payments::TxId;
use serde::Deserialize;
use std::sync::Arc;

/// The header that names a payment.
const KEY: &str = "idempotency-key";

/// Prefix of a payment's name in a path.
const PAYMENT: &str = "/v1/payments/";

/// Body of a request to pay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PayText {
    to: String,
    value: u64,
    memo: Option<String>,
}

pub(super) async fn pay(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    asked: Request,
) -> Result<Response, Failure> {
    asker.check(Action::Pay)?;
    Parameters::of(asked.uri())?.finish()?;
    let key = key(asked.headers())?;
    let text: PayText = read(asked, ORDER_BYTES_MAX, "payment", &shared.limits).await?;
    let payee: IdentityKey = text
        .to
        .parse()
        .map_err(|_| Failure::bad_input("'to' is an address of 64 hexadecimal digits"))?;
    let purpose = Purpose::Pay { payee, value: text.value };
    let order = Order { purpose, memo: text.memo };
    let by = asker.orderer();
    let paid = shared.service.pay_for(order, Some(key), by, shared.timeout).await?;
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

pub(super) async fn payment(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    asker.check(Action::LookAtPayment)?;
    Parameters::of(&uri)?.finish()?;
    let id = uri.path().strip_prefix(PAYMENT).unwrap_or_default();
    let id = Digest::from_hex(id)
        .map_err(|_| Failure::bad_input("a payment is named by 64 hexadecimal digits"))?;
    let look = move |wallet: &mut Wallet| {
        let payment = wallet.payment(TxId(id))?;
        // What is another's is as if it were not there.
        let is_shown = asker.sees(payment.by.as_deref());
        if is_shown { Ok(wallet.view(&payment)) } else { Err(WalletError::NoPayment(TxId(id))) }
    };
    Ok(Json(shared.service.with_blocking(look).await?).into_response())
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
    let is_refused = matches!(payment.state, PaymentState::Refused { .. });
    let view = shared.service.with_blocking(move |wallet| wallet.view(&payment)).await;
    if status != StatusCode::CONFLICT {
        return Ok((status, Json(view)).into_response());
    }
    let error = match &view.reason {
        _ if view.state == "releasing" => "it lost against another transaction of this wallet's key, and its \
                                          coins are under release"
            .to_owned(),
        _ if view.state == "refunded" => "it lost against another transaction of this wallet's key, and its \
                                         coins came back"
            .to_owned(),
        Some(reason) if is_refused => {
            format!("the authorities refused it: {reason}; its coins are free again")
        }
        Some(reason) => format!("it will never be certified: {reason}"),
        None => "it is a double spend: another transaction of this wallet's key took one of its coins, and \
                 its coins are frozen. Was a copy of the wallet used?"
            .to_owned(),
    };
    let view = serde_json::to_value(view).expect("plain fields have a JSON form");
    Err(Failure::new(status, error).with("payment", view))
}
