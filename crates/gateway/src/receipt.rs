//! Receipts as files: one JSON object, for people above and for machines below.
//!
//! `proof` is the receipt itself (borsh, in hexadecimal); everything else in the file is there to
//! be read, and is compared with it: a file that says anything else than its proof is refused.

use quorate_types::{Committee, Receipt, Rejected, Request};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Content of a receipt's file, as JSON. The fields beside `proof` are for readers; a check decodes
/// `proof` and trusts nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptFile {
    /// The format: `quorate receipt v1`.
    pub format: String,
    /// The chain, in hexadecimal.
    pub chain: String,
    /// Identity key that signed the request, in hexadecimal.
    pub client: String,
    /// Sequence number of the request among its client's.
    pub sequence: u64,
    /// Height at which the request was executed.
    pub height: u64,
    /// Time at which that height was proposed, in milliseconds since the Unix epoch.
    pub proposed_at_ms: u64,
    /// The operations, in hexadecimal.
    pub operations: Vec<String>,
    /// Result of each operation, in the operations' order.
    pub results: Vec<ResultText>,
    /// The members that signed what the height came to, by index. `None` of a committee with
    /// threshold keys, whose signature proves that enough of them did and not which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signers: Option<Vec<usize>>,
    /// Encoded receipt, in hexadecimal.
    pub proof: String,
}

/// Result of an operation in a receipt's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultText {
    /// The operation took effect; holds the service's result in hexadecimal.
    Applied(String),
    /// The operation changed nothing; holds the service's reason in hexadecimal.
    Refused(String),
}

/// Error of a receipt that proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the receipt's file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no receipt.
    #[error("this is no receipt: {0}")]
    Form(String),
    /// The receipt is of another committee's chain.
    #[error("the receipt is of chain {found}; the committee's is {expected}")]
    OtherChain {
        /// Chain that the receipt names.
        found: String,
        /// Chain of the committee.
        expected: String,
    },
    /// The proof does not hold.
    #[error("the receipt proves nothing: {0}")]
    Refused(#[from] Rejected),
    /// The text is not what the proof shows.
    #[error("the receipt's '{0}' is not what its proof shows")]
    OtherText(&'static str),
}

const FORMAT: &str = "quorate receipt v1";

impl ReceiptFile {
    /// The file of a receipt.
    ///
    /// # Errors
    /// [`ReceiptError::Form`] when the receipt's request is none.
    pub fn new(receipt: &Receipt, committee: &Committee) -> Result<Self, ReceiptError> {
        let form = |error: quorate_types::RequestError| ReceiptError::Form(error.to_string());
        let (request, _) = Request::split_from(&receipt.request).map_err(form)?;
        let header = &receipt.reply.executed.header;
        let text = |outcome: &quorate_types::Outcome| {
            let bytes = hex::encode(outcome.bytes());
            match outcome {
                quorate_types::Outcome::Applied(_) => ResultText::Applied(bytes),
                quorate_types::Outcome::Refused(_) => ResultText::Refused(bytes),
            }
        };
        Ok(Self {
            format: FORMAT.to_owned(),
            chain: hex::encode(committee.chain().0),
            client: request.client.0.to_string(),
            sequence: request.sequence,
            height: header.height.0,
            proposed_at_ms: header.proposed_at_ms,
            operations: request.operations.iter().map(hex::encode).collect(),
            results: receipt.results().iter().map(text).collect(),
            signers: committee
                .scheme_kind()
                .proves_signers()
                .then(|| receipt.reply.executed.certificate.signers.iter().collect()),
            proof: hex::encode(borsh::to_vec(receipt).expect("encoding into memory cannot fail")),
        })
    }

    /// Reads a file. Nothing in it is believed yet.
    ///
    /// # Errors
    /// [`ReceiptError::Read`] and [`ReceiptError::Form`].
    pub fn read(path: &Path) -> Result<Self, ReceiptError> {
        let failed = |source| ReceiptError::Read { path: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| ReceiptError::Form(error.to_string()))
    }

    /// Encodes the file as indented JSON, with a newline at the end.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("plain fields have a JSON form");
        text + "\n"
    }

    /// Checks everything in it under a committee, and returns the receipt.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self, committee: &Committee) -> Result<Receipt, ReceiptError> {
        if self.format != FORMAT {
            return Err(ReceiptError::Form(format!("its format is '{}'", self.format)));
        }
        let expected = hex::encode(committee.chain().0);
        if self.chain != expected {
            return Err(ReceiptError::OtherChain { found: self.chain.clone(), expected });
        }
        let bytes = hex::decode(&self.proof)
            .map_err(|error| ReceiptError::Form(format!("its proof: {error}")))?;
        let receipt: Receipt = borsh::from_slice(&bytes)
            .map_err(|error| ReceiptError::Form(format!("its proof: {error}")))?;
        receipt.verify(committee)?;
        self.compare(&Self::new(&receipt, committee)?)?;
        Ok(receipt)
    }

    fn compare(&self, shown: &Self) -> Result<(), ReceiptError> {
        let same = [
            ("client", self.client == shown.client),
            ("sequence", self.sequence == shown.sequence),
            ("height", self.height == shown.height),
            ("proposed_at_ms", self.proposed_at_ms == shown.proposed_at_ms),
            ("operations", self.operations == shown.operations),
            ("results", self.results == shown.results),
            ("signers", self.signers == shown.signers),
            ("proof", self.proof == shown.proof),
        ];
        match same.into_iter().find(|(_, same)| !same) {
            Some((name, _)) => Err(ReceiptError::OtherText(name)),
            None => Ok(()),
        }
    }
}
