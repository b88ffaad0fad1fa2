//! Single keys, and keys in order.

use super::Shared;
use super::failure::Failure;
use super::grants::Grant;
use super::order::{self, Proof};
use super::parameters::{Parameters, body, key};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use quorate_ledger::kv::{Operation, Output, Page, Scan, Step, StepOutput, VALUE_BYTES_MAX};
use quorate_types::Height;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Entries of a scan that names no limit.
const SCAN_ENTRIES: u32 = 100;

const HEIGHT: HeaderName = HeaderName::from_static("quorate-height");
const AGE_MS: HeaderName = HeaderName::from_static("quorate-age-ms");

/// Something read, and of when it is.
struct Seen<T> {
    value: T,
    height: Height,
    /// `None` for a read in the order, which is of now.
    age: Option<Duration>,
}

impl<T> Seen<T> {
    fn age_ms(&self) -> Option<u64> {
        self.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    uri: Uri,
) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(&uri)?;
    let is_linearizable = parameters.is_linearizable()?;
    parameters.finish()?;
    grant.allows(&Operation::get(key(&uri)))?;
    let seen = if is_linearizable {
        get_in_order(&shared, key(&uri)).await?
    } else {
        let certified = shared.client.get_certified(key(&uri)).await?;
        let (value, height, age) = (certified.value, certified.height, certified.age);
        Seen { value, height, age: Some(age) }
    };
    value_response(seen)
}

async fn get_in_order(shared: &Shared, key: Bytes) -> Result<Seen<Option<Bytes>>, Failure> {
    let done = order::execute(shared, &Operation::get(key)).await?;
    match order::read(shared, &done, false)?.0 {
        Output::Step(StepOutput::Value(value)) => {
            Ok(Seen { value, height: done.height, age: None })
        }
        _ => Err(Failure::other_answer()),
    }
}

/// The value as it is, with its height and age in headers.
fn value_response(seen: Seen<Option<Bytes>>) -> Result<Response, Failure> {
    let age_ms = seen.age_ms();
    let Some(value) = seen.value else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "there is no such key")
            .with("height", seen.height.0)
            .with("age_ms", age_ms));
    };
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let height = (HEIGHT, HeaderValue::from(seen.height.0));
    let age = age_ms.map(|age_ms| (AGE_MS, HeaderValue::from(age_ms)));
    let mut response = value.into_response();
    response.headers_mut().extend([content_type, height].into_iter().chain(age));
    Ok(response)
}

/// Result of a change to a key.
#[derive(Serialize)]
struct Changed {
    height: u64,
    /// True if the key had a value before.
    replaced: bool,
    #[serde(flatten)]
    proof: Proof,
}

pub(super) async fn write(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    request: Request,
) -> Result<Response, Failure> {
    let key = key(request.uri());
    let mut parameters = Parameters::of(request.uri())?;
    let is_receipt_wanted = parameters.flag("receipt")?;
    let expected = parameters.hex("expected")?;
    let is_absence_expected = parameters.flag("expected_absent")?;
    parameters.finish()?;
    if expected.is_some() && is_absence_expected {
        let error = "'expected' and 'expected_absent' exclude one another: give one";
        return Err(Failure::bad_input(error));
    }
    let value = body(request, VALUE_BYTES_MAX, &shared.limits).await?;
    let step = if expected.is_some() || is_absence_expected {
        Step::compare_and_swap(key, expected, Some(value))
    } else {
        Step::put(key, value)
    };
    change(&shared, &grant, step, is_receipt_wanted).await
}

pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    uri: Uri,
) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(&uri)?;
    let is_receipt_wanted = parameters.flag("receipt")?;
    parameters.finish()?;
    change(&shared, &grant, Step::delete(key(&uri)), is_receipt_wanted).await
}

async fn change(
    shared: &Shared,
    grant: &Grant,
    step: Step,
    is_receipt_wanted: bool,
) -> Result<Response, Failure> {
    let is_value_expected = matches!(step, Step::CompareAndSwap { expected: Some(_), .. });
    let operation = Operation::Step(step);
    grant.allows(&operation)?;
    grant.allows_receipt(is_receipt_wanted)?;
    let done = order::execute(shared, &operation).await?;
    let (output, proof) = order::read(shared, &done, is_receipt_wanted)?;
    let replaced = match output {
        Output::Step(StepOutput::Done { replaced }) => replaced,
        Output::Step(StepOutput::Swapped) => is_value_expected,
        Output::Step(StepOutput::NotSwapped { actual }) => {
            let error = "the value is another than was expected: nothing was changed";
            let failure =
                Failure::new(StatusCode::CONFLICT, error).with("actual", actual.map(hex::encode));
            return Err(proof.add_to(failure, &done));
        }
        _ => return Err(Failure::other_answer()),
    };
    Ok(Json(Changed { height: done.height.0, replaced, proof }).into_response())
}

/// A part of the keys in order.
#[derive(Serialize)]
struct Listing {
    entries: Vec<EntryText>,
    more: bool,
    height: u64,
    age_ms: Option<u64>,
}

/// A key with its value, both in hexadecimal.
#[derive(Serialize)]
struct EntryText {
    key: String,
    value: String,
}

pub(super) async fn scan(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    uri: Uri,
) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(&uri)?;
    let is_linearizable = parameters.is_linearizable()?;
    let scan = Scan {
        from: parameters.hex("from")?.unwrap_or_default(),
        to: parameters.hex("to")?,
        limit: parameters.number("limit")?.unwrap_or(SCAN_ENTRIES),
    };
    parameters.finish()?;
    grant.allows(&Operation::Scan(scan.clone()))?;
    let seen = if is_linearizable {
        scan_in_order(&shared, scan).await?
    } else {
        let certified = shared.client.scan_certified(scan).await?;
        let (value, height, age) = (certified.value, certified.height, certified.age);
        Seen { value, height, age: Some(age) }
    };
    Ok(Json(Listing::of(&seen)).into_response())
}

async fn scan_in_order(shared: &Shared, scan: Scan) -> Result<Seen<Page>, Failure> {
    let done = order::execute(shared, &Operation::Scan(scan)).await?;
    match order::read(shared, &done, false)?.0 {
        Output::Page(value) => Ok(Seen { value, height: done.height, age: None }),
        _ => Err(Failure::other_answer()),
    }
}

impl Listing {
    fn of(seen: &Seen<Page>) -> Self {
        let text = |entry: &quorate_ledger::kv::Entry| EntryText {
            key: hex::encode(&entry.key),
            value: hex::encode(&entry.value),
        };
        Self {
            entries: seen.value.entries.iter().map(text).collect(),
            more: seen.value.more,
            height: seen.height.0,
            age_ms: seen.age_ms(),
        }
    }
}
