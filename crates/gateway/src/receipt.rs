//! Receipts as [files with a proof](quorate_node::proof_file).

use quorate_node::proof_file::{self, ProofFile, ProofFileError};
use quorate_types::{Epoch, History, Receipt, Rejected, Request};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Content of a receipt's file, as JSON. The fields beside `proof` are for readers; a check decodes
/// `proof` and trusts nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptFile {
    /// The format: `quorate receipt v3`.
    pub format: String,
    /// The network, in hexadecimal.
    pub network: String,
    /// The epoch that owns the height, whose members sign what it came to.
    pub epoch: u64,
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
    /// The members that signed what the height came to, by index in their epoch. `None` of a
    /// committee with threshold keys, whose signature proves that enough of them did and not which.
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
    /// The file is not what it should be.
    #[error(transparent)]
    File(#[from] ProofFileError),
    /// The epoch is beyond those that the check knows.
    #[error(
        "the receipt is of epoch {}, and the hand-overs that are known here lead to epoch {}: add \
         the later ones", .0.0, .1.0
    )]
    LaterEpoch(Epoch, Epoch),
    /// The proof does not hold.
    #[error("the receipt proves nothing: {0}")]
    Refused(#[from] Rejected),
}

impl ProofFile for ReceiptFile {
    const NAME: &'static str = "receipt";
    const FORMAT: &'static str = "quorate receipt v3";

    fn format(&self) -> &str {
        &self.format
    }

    fn network(&self) -> &str {
        &self.network
    }
}

impl ReceiptFile {
    /// The file of a receipt of one of these epochs.
    ///
    /// # Errors
    /// [`ReceiptError::File`] when the receipt's request is none.
    pub fn new(receipt: &Receipt, history: &History) -> Result<Self, ReceiptError> {
        let form = |error: quorate_types::RequestError| Self::malformed(error.to_string());
        let (request, _) = Request::split_from(&receipt.request).map_err(form)?;
        let header = &receipt.reply.executed.header;
        let committee = history.owner_of(header.height);
        let text = |outcome: &quorate_types::Outcome| {
            let bytes = hex::encode(outcome.bytes());
            match outcome {
                quorate_types::Outcome::Applied(_) => ResultText::Applied(bytes),
                quorate_types::Outcome::Refused(_) => ResultText::Refused(bytes),
            }
        };
        Ok(Self {
            format: Self::FORMAT.to_owned(),
            network: hex::encode(committee.network().0),
            epoch: committee.epoch().0,
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
            proof: proof_file::encode(receipt),
        })
    }

    /// Reads a file. Nothing in it is believed yet.
    ///
    /// # Errors
    /// [`ReceiptError::File`].
    pub fn read(path: &Path) -> Result<Self, ReceiptError> {
        Ok(Self::from_text(&Self::read_text(path)?)?)
    }

    /// Checks everything in it, under the committee of the epoch that owns its height (★), and
    /// returns the receipt.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self, history: &History) -> Result<Receipt, ReceiptError> {
        self.check_head(history.committee().network())?;
        let (epoch, last) = (Epoch(self.epoch), history.committee().epoch());
        if epoch > last {
            return Err(ReceiptError::LaterEpoch(epoch, last));
        }
        let receipt: Receipt = Self::decode(&self.proof)?;
        receipt.verify(history.owner_of(receipt.reply.executed.header.height))?;
        self.compare(&Self::new(&receipt, history)?)?;
        Ok(receipt)
    }
}
