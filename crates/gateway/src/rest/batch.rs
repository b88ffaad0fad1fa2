//! Several steps that take effect together or not at all.

use super::Shared;
use super::failure::Failure;
use super::grants::Grant;
use super::order::{self, Proof};
use super::parameters::{Parameters, body};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use quorate_ledger::kv::{Operation, Output, Step, StepOutput};
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// Most bytes of a batch's text: a batch of the largest size, in hexadecimal, and room to spare.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A step as it is written. Keys and values are in hexadecimal; `null` is no value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum StepText {
    Get { key: Hex },
    Put { key: Hex, value: Hex },
    Delete { key: Hex },
    CompareAndSwap { key: Hex, expected: Option<Hex>, new: Option<Hex> },
}

/// Bytes that JSON carries in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hex(Bytes);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let bytes = hex::decode(digits).map_err(|error| {
            serde::de::Error::custom(format!("not in hexadecimal digits: {error}"))
        })?;
        Ok(Self(bytes.into()))
    }
}

impl From<StepText> for Step {
    fn from(text: StepText) -> Self {
        match text {
            StepText::Get { key } => Self::get(key.0),
            StepText::Put { key, value } => Self::put(key.0, value.0),
            StepText::Delete { key } => Self::delete(key.0),
            StepText::CompareAndSwap { key, expected, new } => {
                Self::compare_and_swap(key.0, expected.map(|hex| hex.0), new.map(|hex| hex.0))
            }
        }
    }
}

/// Result of one step of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum StepResult {
    Value(Option<String>),
    Replaced(bool),
    Swapped(bool),
}

impl From<StepOutput> for StepResult {
    fn from(output: StepOutput) -> Self {
        match output {
            StepOutput::Value(value) => Self::Value(value.map(hex::encode)),
            StepOutput::Done { replaced } => Self::Replaced(replaced),
            StepOutput::Swapped => Self::Swapped(true),
            // A batch with such a step is refused as a whole.
            StepOutput::NotSwapped { .. } => Self::Swapped(false),
        }
    }
}

#[derive(Serialize)]
struct Executed {
    height: u64,
    results: Vec<StepResult>,
    #[serde(flatten)]
    proof: Proof,
}

pub(super) async fn execute(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    request: Request,
) -> Result<Response, Failure> {
    let mut parameters = Parameters::of(request.uri())?;
    let is_receipt_wanted = parameters.flag("receipt")?;
    parameters.finish()?;
    let text = body(request, BODY_BYTES_MAX, &shared.limits).await?;
    let operation = parse(&text)?;
    grant.allows(&operation)?;
    grant.allows_receipt(is_receipt_wanted)?;
    let done = order::execute(&shared, &operation).await?;
    let (output, proof) = order::read(&shared, &done, is_receipt_wanted)?;
    let Output::Batch(outputs) = output else { return Err(Failure::other_answer()) };
    let results = outputs.into_iter().map(StepResult::from).collect();
    Ok(Json(Executed { height: done.height.0, results, proof }).into_response())
}

fn parse(text: &[u8]) -> Result<Operation, Failure> {
    let steps: Vec<StepText> = serde_json::from_slice(text).map_err(|error| {
        Failure::bad_input(format!("the body is no list of steps: {error}; see /openapi.json"))
    })?;
    Ok(Operation::batch(steps.into_iter().map(Step::from)))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use quorate_ledger::kv::{Operation, Step};

    #[test]
    fn steps_are_read_from_json() {
        let text = r#"[
            {"op": "get", "key": "6b"},
            {"op": "put", "key": "6B", "value": ""},
            {"op": "delete", "key": "6b"},
            {"op": "compare_and_swap", "key": "6b", "expected": null, "new": "76"},
            {"op": "compare_and_swap", "key": "6b", "expected": "76"}
        ]"#;
        let expected = Operation::batch([
            Step::get("k"),
            Step::put("k", ""),
            Step::delete("k"),
            Step::compare_and_swap("k", None, Some("v".into())),
            Step::compare_and_swap("k", Some("v".into()), None),
        ]);
        assert_eq!(parse(text.as_bytes()).expect("a batch"), expected);
    }

    #[test]
    fn what_is_no_step_is_refused_with_its_place() {
        for (text, reason) in [
            ("{", "no list of steps"),
            ("[{\"op\": \"fly\", \"key\": \"6b\"}]", "unknown variant `fly`"),
            ("[{\"op\": \"get\", \"key\": \"6\"}]", "not in hexadecimal digits"),
            ("[{\"op\": \"get\", \"key\": \"6b\", \"value\": \"\"}]", "unknown field `value`"),
            ("[{\"op\": \"put\", \"key\": \"6b\"}]", "missing field `value`"),
            ("[\"get\"]", "no list of steps"),
        ] {
            let failure = parse(text.as_bytes()).expect_err("refused");
            assert_eq!(failure.status, 400);
            assert!(failure.error.contains(reason), "{text}: {}", failure.error);
        }
    }
}
