//! Requests for payment that a till makes and looks at.

use super::rights::{Action, WalletGrant};
use super::{Asker, Lines, ORDER_BYTES_MAX, Part, Shared, read};
use crate::rest::failure::Failure;
use crate::rest::parameters::Parameters;
use crate::wallet::{
    PaymentRequest, Request, RequestId, RequestState, RequestView, Wallet, WalletError,
};
use axum::extract::{self, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};
use quorate_node::unix_ms;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Prefix of a request's name in a path.
const REQUEST: &str = "/v1/requests/";

/// Suffix of the path of a request's code.
const CODE: &str = "/code";

/// Time for which a request is open that names none, in seconds.
const OPEN_SECONDS: u64 = 3_600;

/// Body of a request for a payment request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    value: u64,
    memo: Option<String>,
    #[serde(default = "open_seconds")]
    open_s: u64,
}

fn open_seconds() -> u64 {
    OPEN_SECONDS
}

pub(super) async fn make(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    asked: extract::Request,
) -> Result<Response, Failure> {
    asker.check(Action::Request)?;
    Parameters::of(asked.uri())?.finish()?;
    let text: RequestText = read(asked, ORDER_BYTES_MAX, "request", &shared.limits).await?;
    let by = asker.orderer().map(|orderer| orderer.name);
    let make = move |wallet: &mut Wallet| {
        let open_for = Duration::from_secs(text.open_s);
        let made = wallet.request(text.value, text.memo, open_for, by)?;
        Ok::<_, WalletError>(wallet.view_request(&made))
    };
    let view = shared.service.with_blocking(make).await?;
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// A part of the list of requests.
#[derive(Serialize)]
struct Requests {
    requests: Vec<RequestView>,
    /// Value for `from` in the next call; absent at the end.
    next: Option<usize>,
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    asker.check(Action::LookAtRequests)?;
    let mut parameters = Parameters::of(&uri)?;
    let part = Part::of(&mut parameters)?;
    let is_open_wanted = parameters.flag("open")?;
    parameters.finish()?;
    let look = move |wallet: &mut Wallet| {
        let now_ms = unix_ms();
        let is_wanted = |request: &&Request| {
            let is_open = request.state(now_ms) == RequestState::Open;
            asker.sees(request.terms.by.as_deref()) && (is_open || !is_open_wanted)
        };
        // The newest come first: a till looks for what it just made.
        let mut found: Vec<&Request> = wallet.requests().filter(is_wanted).collect();
        found.reverse();
        let Lines { lines, next } = part.cut(found);
        let view = |request| wallet.view_request(request);
        Requests { requests: lines.into_iter().map(view).collect(), next }
    };
    Ok(Json(shared.service.with_blocking(look).await).into_response())
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    let (_, view) = find(&shared, asker, Action::LookAtRequests, &uri).await?;
    Ok(Json(view).into_response())
}

pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    let (id, _) = find(&shared, asker, Action::Request, &uri).await?;
    let cancel = move |wallet: &mut Wallet| {
        let request = wallet.cancel(id)?.clone();
        Ok::<_, WalletError>(wallet.view_request(&request))
    };
    Ok(Json(shared.service.with_blocking(cancel).await?).into_response())
}

/// The request as its payer's wallet takes it, as a code to be read from a screen.
pub(super) async fn code(
    State(shared): State<Arc<Shared>>,
    Extension(asker): Asker,
    uri: Uri,
) -> Result<Response, Failure> {
    let (_, view) = find(&shared, asker, Action::LookAtRequests, &uri).await?;
    let kind = [(header::CONTENT_TYPE, "image/svg+xml")];
    Ok((kind, draw(&view.request)?).into_response())
}

/// Few modules, so that a cheap camera reads them: a screen is clean, and needs little correction.
fn draw(request: &PaymentRequest) -> Result<String, Failure> {
    let text = serde_json::to_string(request).expect("plain fields have a JSON form");
    let code = QrCode::with_error_correction_level(text, EcLevel::L).map_err(|_| {
        Failure::too_large("its memo is too long for a code: show the request as text")
    })?;
    Ok(code.render::<svg::Color<'_>>().min_dimensions(240, 240).build())
}

/// Request that a path names, whatever of it is asked for.
fn name(uri: &Uri) -> Result<RequestId, Failure> {
    let path = uri.path();
    let path = path.strip_suffix(CODE).unwrap_or(path);
    path.strip_prefix(REQUEST).unwrap_or_default().parse().map_err(Failure::bad_input)
}

/// The request that a path names, of those that the asker may do this with.
async fn find(
    shared: &Shared,
    asker: Arc<WalletGrant>,
    action: Action,
    uri: &Uri,
) -> Result<(RequestId, RequestView), Failure> {
    asker.check(action)?;
    Parameters::of(uri)?.finish()?;
    let id = name(uri)?;
    let look = move |wallet: &mut Wallet| {
        let request = wallet.requested(id)?;
        // What is another's is as if it were not there.
        let is_shown = asker.sees(request.terms.by.as_deref());
        if is_shown { Ok(wallet.view_request(request)) } else { Err(WalletError::NoRequest(id)) }
    };
    Ok((id, shared.service.with_blocking(look).await?))
}
