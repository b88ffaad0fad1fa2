//! Payment files, which payers and payees exchange: a request for payment, a receipt, the evidence
//! of a double spend. The latter two are [files with a proof](quorate_node::proof_file).

use quorate_crypto::IdentityKey;
use quorate_node::proof_file::{self, ProofFile, ProofFileError};
use quorate_payments::{Equivocation, Memo, Network, Origin, PayReceipt, ReceiptError, TxId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Error of a file that proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum PaymentFileError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the payment file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The text is something else.
    #[error("this is no {expected}: {problem}")]
    Form {
        /// Kind of file that was expected.
        expected: &'static str,
        /// Difference from that form.
        problem: String,
    },
    /// The file is of another network.
    #[error("it is of network {found}; the network file is of {expected}")]
    OtherNetwork {
        /// Network that the file names.
        found: String,
        /// Network of the network file.
        expected: String,
    },
    /// The receipt's proof does not hold.
    #[error("the receipt proves nothing: {0}")]
    Receipt(#[from] ReceiptError),
    /// The evidence's proof does not hold.
    #[error(
        "the evidence proves nothing: these are not two transactions that one payer signed over one coin"
    )]
    Unproven,
    /// The text is not what the proof shows.
    #[error("its '{0}' is not what its proof shows")]
    OtherText(String),
}

impl From<ProofFileError> for PaymentFileError {
    fn from(error: ProofFileError) -> Self {
        match error {
            ProofFileError::Read { path, source } => Self::Read { path, source },
            ProofFileError::Form { expected, problem } => Self::Form { expected, problem },
            ProofFileError::OtherNetwork { found, expected, .. } => {
                Self::OtherNetwork { found, expected }
            }
            ProofFileError::OtherText(field) => Self::OtherText(field),
        }
    }
}

/// Reads a text, of which nothing is believed but that it is of this kind and network.
fn parse_for<T: ProofFile>(text: &str, network: &Network) -> Result<T, PaymentFileError> {
    let file = T::from_text(text)?;
    file.check_head(network.id())?;
    Ok(file)
}

/// Request of a payee to be paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentRequest {
    /// `quorate payment request v1`.
    pub format: String,
    /// The network, in hexadecimal.
    pub network: String,
    /// Key of the payee: 64 hexadecimal digits.
    pub payee: String,
    /// Value to be paid, in the smallest unit.
    pub value: u64,
    /// Memo that the payer is to sign: an invoice's number, perhaps.
    #[serde(default)]
    pub memo: Option<String>,
}

impl ProofFile for PaymentRequest {
    const NAME: &'static str = "request";
    const FORMAT: &'static str = "quorate payment request v1";

    fn format(&self) -> &str {
        &self.format
    }

    fn network(&self) -> &str {
        &self.network
    }
}

impl PaymentRequest {
    /// Asks for a payment.
    #[must_use]
    pub fn new(network: &Network, payee: IdentityKey, value: u64, memo: Option<String>) -> Self {
        Self {
            format: Self::FORMAT.to_owned(),
            network: hex::encode(network.id().0),
            payee: payee.to_string(),
            value,
            memo,
        }
    }

    /// Reads a request of this network.
    ///
    /// # Errors
    /// When it is none, or another network's.
    pub fn read(path: &Path, network: &Network) -> Result<Self, PaymentFileError> {
        Self::parse(&Self::read_text(path)?, network)
    }

    /// As [`PaymentRequest::read`], from a text.
    ///
    /// # Errors
    /// When it is none, or another network's.
    pub fn parse(text: &str, network: &Network) -> Result<Self, PaymentFileError> {
        parse_for(text, network)
    }

    /// Key of the payee, decoded.
    ///
    /// # Errors
    /// When the text is no key.
    pub fn payee(&self) -> Result<IdentityKey, PaymentFileError> {
        self.payee.parse().map_err(|error: quorate_crypto::KeyError| PaymentFileError::Form {
            expected: Self::FORMAT,
            problem: format!("its payee: {error}"),
        })
    }
}

/// A receipt: what one transaction paid to one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentReceipt {
    /// `quorate payment receipt v1`.
    pub format: String,
    /// The network, in hexadecimal.
    pub network: String,
    /// Identifier of the transaction, in hexadecimal.
    pub transaction: String,
    /// Key of the payer; absent for an output of the genesis.
    pub payer: Option<String>,
    /// Key of the payee, in hexadecimal.
    pub payee: String,
    /// Sum of the payee's outputs, in the smallest unit.
    pub value: u64,
    /// Memo that the payer signed.
    pub memo: Option<String>,
    /// The authorities that voted for it, by index; empty for what the network began with, and
    /// where the scheme's certificates prove that enough voted and not which.
    pub authorities: Vec<usize>,
    /// Encoded receipt, in hexadecimal.
    pub proof: String,
}

impl ProofFile for PaymentReceipt {
    const NAME: &'static str = "receipt";
    const FORMAT: &'static str = "quorate payment receipt v1";

    fn format(&self) -> &str {
        &self.format
    }

    fn network(&self) -> &str {
        &self.network
    }
}

impl PaymentReceipt {
    /// The file of a receipt.
    ///
    /// # Errors
    /// When the receipt has no coins, or coins worth more than 64 bits hold.
    pub fn new(network: &Network, receipt: &PayReceipt) -> Result<Self, PaymentFileError> {
        let first = receipt.coins.first().ok_or(ReceiptError::Empty)?;
        let mut values = receipt.coins.iter().map(|coin| coin.output.value);
        let value = values.try_fold(0, u64::checked_add);
        let authorities = match &first.origin {
            Origin::Certified(proof) if network.scheme().keys().proves_signers() => {
                proof.certificate.signers().iter().collect()
            }
            Origin::Certified(_) | Origin::Genesis => Vec::new(),
        };
        Ok(Self {
            format: Self::FORMAT.to_owned(),
            network: hex::encode(network.id().0),
            transaction: first.id.tx.to_string(),
            payer: first.payer().map(|payer| payer.to_string()),
            payee: first.output.owner.to_string(),
            value: value.ok_or(ReceiptError::Coin(quorate_payments::Invalid::Overflow))?,
            memo: receipt.memo.as_ref().map(|memo: &Memo| memo.text.clone()),
            authorities,
            proof: proof_file::encode(receipt),
        })
    }

    /// Reads a file and checks everything in it, offline.
    ///
    /// # Errors
    /// What does not hold.
    pub fn read(path: &Path, network: &Network) -> Result<(Self, PayReceipt), PaymentFileError> {
        Self::parse(&Self::read_text(path)?, network)
    }

    /// As [`PaymentReceipt::read`], from a text.
    ///
    /// # Errors
    /// What does not hold.
    pub fn parse(text: &str, network: &Network) -> Result<(Self, PayReceipt), PaymentFileError> {
        let file: Self = parse_for(text, network)?;
        let receipt: PayReceipt = Self::decode(&file.proof)?;
        receipt.check(network)?;
        file.compare(&Self::new(network, &receipt)?)?;
        Ok((file, receipt))
    }
}

/// The evidence that a payer signed two transactions over one coin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// `quorate payment evidence v1`.
    pub format: String,
    /// The network, in hexadecimal.
    pub network: String,
    /// Key that signed both transactions.
    pub payer: String,
    /// The transaction that an authority had locked first.
    pub first: String,
    /// Identifier of the other transaction.
    pub second: String,
    /// Items that both take: coins, as `transaction:index`, or an issuer's serial number under its
    /// hash.
    pub disputed: Vec<String>,
    /// Both transactions, as far as is needed to check the signatures.
    pub proof: String,
}

impl ProofFile for Evidence {
    const NAME: &'static str = "evidence";
    const FORMAT: &'static str = "quorate payment evidence v1";

    fn format(&self) -> &str {
        &self.format
    }

    fn network(&self) -> &str {
        &self.network
    }
}

impl Evidence {
    /// The file of an equivocation.
    #[must_use]
    pub fn new(network: &Network, evidence: &Equivocation) -> Self {
        let Equivocation { first, second } = evidence;
        let disputed = first.locks.iter().filter(|lock| second.locks.contains(lock));
        let name = |id: TxId| id.to_string();
        Self {
            format: Self::FORMAT.to_owned(),
            network: hex::encode(network.id().0),
            payer: first.payer.to_string(),
            first: name(first.id),
            second: name(second.id),
            disputed: disputed.map(ToString::to_string).collect(),
            proof: proof_file::encode(evidence),
        }
    }

    /// Reads a file and checks everything in it, offline.
    ///
    /// # Errors
    /// What does not hold.
    pub fn read(path: &Path, network: &Network) -> Result<Self, PaymentFileError> {
        let file: Self = parse_for(&Self::read_text(path)?, network)?;
        let evidence: Equivocation = Self::decode(&file.proof)?;
        if !evidence.is_proven(network) {
            return Err(PaymentFileError::Unproven);
        }
        file.compare(&Self::new(network, &evidence))?;
        Ok(file)
    }
}

impl From<PaymentReceipt> for Value {
    fn from(receipt: PaymentReceipt) -> Self {
        serde_json::to_value(receipt).expect("plain fields have a JSON form")
    }
}

impl From<Evidence> for Value {
    fn from(evidence: Evidence) -> Self {
        serde_json::to_value(evidence).expect("plain fields have a JSON form")
    }
}
