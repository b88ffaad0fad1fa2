//! Parameters in a request's path and query, and its body.

use super::RestLimits;
use super::failure::Failure;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use tokio::time::timeout;

/// Prefix of a key in a path.
const KEY_PREFIX: &str = "/v1/kv/";

/// The parameters behind a path's question mark. Each is taken once; [`Parameters::finish`] refuses
/// what nobody took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads `name=value` pairs between ampersands, percent-decoded; a plus sign is a plus sign.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Failure> {
        let mut parameters = BTreeMap::new();
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (text(name)?, text(value)?);
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Failure::bad_input(format!("the parameter '{name}' is there twice")));
            }
        }
        Ok(Self(parameters))
    }

    /// Takes bytes in hexadecimal.
    pub(super) fn hex(&mut self, name: &str) -> Result<Option<Bytes>, Failure> {
        let Some(digits) = self.0.remove(name) else { return Ok(None) };
        let bytes = hex::decode(digits).map_err(|error| {
            Failure::bad_input(format!("'{name}' is not in hexadecimal digits: {error}"))
        })?;
        Ok(Some(bytes.into()))
    }

    /// Takes `true` or `false`; false when it is absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Failure> {
        match self.0.remove(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Failure::bad_input(format!("'{name}' is true or false"))),
        }
    }

    /// Takes a decimal number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u32>, Failure> {
        let Some(digits) = self.0.remove(name) else { return Ok(None) };
        let number = digits.parse().map_err(|_| {
            Failure::bad_input(format!("'{name}' is a whole number from 0 to {}", u32::MAX))
        });
        number.map(Some)
    }

    /// Takes `consistency`: whether to read through the order.
    pub(super) fn is_linearizable(&mut self) -> Result<bool, Failure> {
        match self.0.remove("consistency").as_deref() {
            None | Some("certified") => Ok(false),
            Some("linearizable") => Ok(true),
            Some(_) => Err(Failure::bad_input("'consistency' is 'certified' or 'linearizable'")),
        }
    }

    /// Refuses what was not taken: a misspelt name must not change what a request means.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.0.into_keys().next() {
            Some(name) => Err(Failure::bad_input(format!(
                "there is no parameter '{name}' here: /openapi.json names those that there are"
            ))),
            None => Ok(()),
        }
    }
}

fn text(encoded: &str) -> Result<String, Failure> {
    let decoded = percent_decode_str(encoded).decode_utf8();
    let decoded = decoded.map_err(|_| Failure::bad_input("a parameter is not text in UTF-8"))?;
    Ok(decoded.into_owned())
}

/// The key in a path: its last part, percent-decoded, as bytes.
pub(super) fn key(uri: &Uri) -> Bytes {
    let encoded = uri.path().strip_prefix(KEY_PREFIX).unwrap_or_default();
    percent_decode_str(encoded).collect()
}

/// A request's body of at most `most` bytes.
pub(crate) async fn body(
    mut request: Request,
    most: usize,
    limits: &RestLimits,
) -> Result<Bytes, Failure> {
    DefaultBodyLimit::max(most).apply(&mut request);
    let came = timeout(limits.body_timeout, Bytes::from_request(request, &())).await;
    let came = came.map_err(|_| Failure::slow_body(limits.body_timeout))?;
    came.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Failure::too_large(format!("this body has at most {most} bytes: send less at once"))
        }
        _ => Failure::bad_input(format!("the body cannot be read: {}", error.body_text())),
    })
}
