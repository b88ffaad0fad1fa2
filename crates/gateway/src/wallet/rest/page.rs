//! The page of a till: one file, which asks the wallet that served it and nobody else.

use crate::rest::failure::Failure;
use crate::rest::parameters::Parameters;
use axum::http::{HeaderName, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use quorate_node::testnet::system_random;

const PAGE: &str = include_str!("../../till/index.html");

/// Stands in the page where its style and script begin.
const NONCE: &str = "{nonce}";

pub(super) async fn till(uri: Uri) -> Result<Response, Failure> {
    Parameters::of(&uri)?.finish()?;
    let mut bytes = [0; 16];
    system_random(&mut bytes);
    let nonce = hex::encode(bytes);
    let headers: [(HeaderName, String); 4] = [
        (header::CONTENT_SECURITY_POLICY, policy(&nonce)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Html(PAGE.replace(NONCE, &nonce))).into_response())
}

/// Nothing is loaded from elsewhere, and nothing runs that is not in the page: a memo that came
/// into it as a script would not know the nonce.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
