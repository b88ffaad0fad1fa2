//! Operations that take their place in the order, and the receipts of what they came to.

use super::Shared;
use super::failure::Failure;
use crate::Completed;
use crate::receipt::ReceiptFile;
use quorate_ledger::kv::{Operation, Output};
use quorate_types::Request;
use serde::Serialize;
use serde_json::Value;

/// Proof of a result: empty when the caller did not ask for one.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Proof {
    receipt: Option<ReceiptFile>,
    /// The operation's place among those of the receipt's request.
    receipt_index: Option<usize>,
}

/// Has an operation ordered; it may have been refused.
pub(super) async fn execute(shared: &Shared, operation: &Operation) -> Result<Completed, Failure> {
    let bytes = operation.encode();
    Operation::decode(&bytes)?;
    if bytes.len() > Request::BYTES_MAX {
        return Err(Failure::too_large(format!(
            "an operation takes at most {} bytes with all its keys and values, this one {}: send \
             less at once",
            Request::BYTES_MAX,
            bytes.len()
        )));
    }
    Ok(shared.client.connection().execute(bytes).await?)
}

/// Reads an operation's result, with its proof if that is wanted. A refusal carries the proof too.
pub(super) fn read(
    shared: &Shared,
    completed: &Completed,
    is_receipt_wanted: bool,
) -> Result<(Output, Proof), Failure> {
    let proof = Proof::of(shared, completed, is_receipt_wanted)?;
    match Output::read(&completed.outcome) {
        Ok(output) => Ok((output, proof)),
        Err(error) => Err(proof.add_to(Failure::from(error), completed)),
    }
}

impl Proof {
    fn of(shared: &Shared, completed: &Completed, is_wanted: bool) -> Result<Self, Failure> {
        let Some((receipt, index)) = completed.receipt.as_ref().filter(|_| is_wanted) else {
            return Ok(Self::default());
        };
        let file = ReceiptFile::new(receipt, &shared.client.connection().history());
        let file = file.map_err(|_| Failure::other_answer())?;
        Ok(Self { receipt: Some(file), receipt_index: Some(*index) })
    }

    /// Shows with a refusal where it took its place.
    pub(super) fn add_to(self, failure: Failure, completed: &Completed) -> Failure {
        let receipt = serde_json::to_value(self.receipt).unwrap_or(Value::Null);
        failure
            .with("height", completed.height.0)
            .with("receipt", receipt)
            .with("receipt_index", self.receipt_index)
    }
}
