//! Routes that need no token: the status and the API's description.

use super::failure::Failure;
use super::parameters::Parameters;
use super::{OPENAPI, Shared};
use axum::Json;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use quorate_ledger::kv::Kv;
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct GatewayStatus {
    version: &'static str,
    network: String,
    epoch: u64,
    members: usize,
    members_connected: usize,
    service: &'static str,
}

pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    let connection = shared.client.connection();
    let history = connection.history();
    let committee = history.committee();
    let status = GatewayStatus {
        version: env!("CARGO_PKG_VERSION"),
        network: hex::encode(committee.network().0),
        epoch: committee.epoch().0,
        members: committee.size(),
        members_connected: connection.members_connected(),
        service: Kv::NAME,
    };
    Ok(Json(status).into_response())
}

pub(super) async fn openapi(uri: Uri) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    Ok(([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response())
}
