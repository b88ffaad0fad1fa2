//! Verification of receipts that callers send.

use super::Shared;
use super::failure::Failure;
use super::parameters::{Parameters, body};
use crate::receipt::ReceiptFile;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Most bytes of a receipt's text: it holds its operations twice and their results twice, all in
/// hexadecimal.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Statement that a valid receipt proves.
#[derive(Serialize)]
struct Verified {
    /// Always true: a receipt that does not hold is answered with 422.
    valid: bool,
    epoch: u64,
    client: String,
    sequence: u64,
    height: u64,
    proposed_at_ms: u64,
    operations: usize,
    /// Left out where the committee's certificates do not prove them.
    #[serde(skip_serializing_if = "Option::is_none")]
    signers: Option<Vec<usize>>,
}

pub(super) async fn verify(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Failure> {
    Parameters::of(request.uri())?.finish()?;
    let text = body(request, BODY_BYTES_MAX, &shared.limits).await?;
    // Signatures of a whole committee: not on the threads that move bytes.
    let checked = spawn_blocking(move || check(&shared, &text)).await;
    let checked = checked.map_err(|error| {
        let error = format!("the check was not finished: {error}; try again");
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, error)
    })?;
    Ok(Json(checked?).into_response())
}

fn check(shared: &Shared, text: &[u8]) -> Result<Verified, Failure> {
    let file: ReceiptFile = serde_json::from_slice(text)
        .map_err(|error| Failure::bad_input(format!("the body is no receipt: {error}")))?;
    file.verify(&shared.client.connection().history()).map_err(|error| {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).with("valid", false)
    })?;
    Ok(Verified {
        valid: true,
        epoch: file.epoch,
        client: file.client,
        sequence: file.sequence,
        height: file.height,
        proposed_at_ms: file.proposed_at_ms,
        operations: file.operations.len(),
        signers: file.signers,
    })
}
