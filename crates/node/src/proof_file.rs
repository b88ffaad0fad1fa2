//! Proofs as files: one JSON object, for people above and for machines below.
//!
//! The proof itself is in hexadecimal (borsh). Everything else in the file is there to be read, and
//! is compared with what the proof shows: a file that says anything else is refused.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::NetworkId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longest file that is read, in bytes.
const BYTES_MAX: u64 = 32 << 20;

/// Error of a file that is not what it should be, whatever its proof is worth.
#[derive(Debug, thiserror::Error)]
pub enum ProofFileError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: io::Error,
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
    #[error("the {what} is of network {found}; the committee's is {expected}")]
    OtherNetwork {
        /// Kind of file, in a word.
        what: &'static str,
        /// Network that the file names.
        found: String,
        /// Network that was expected.
        expected: String,
    },
    /// The text is not what the proof shows.
    #[error("its '{0}' is not what its proof shows")]
    OtherText(String),
}

/// File of one kind, with a proof in it.
pub trait ProofFile: Serialize + DeserializeOwned {
    /// Kind of file, in a word.
    const NAME: &'static str;

    /// Content of its field `format`, with the version.
    const FORMAT: &'static str;

    /// Kind and version that it names.
    fn format(&self) -> &str;

    /// Network that it names, in hexadecimal.
    fn network(&self) -> &str;

    /// Reads a file as text. Nothing in it is believed yet.
    ///
    /// # Errors
    /// [`ProofFileError::Read`].
    fn read_text(path: &Path) -> Result<String, ProofFileError> {
        let failed = |source| ProofFileError::Read { path: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        Ok(text)
    }

    /// Decodes a text, of which nothing is believed.
    ///
    /// # Errors
    /// [`ProofFileError::Form`].
    fn from_text(text: &str) -> Result<Self, ProofFileError> {
        serde_json::from_str(text).map_err(|error| Self::malformed(error.to_string()))
    }

    /// Checks that it is of this kind and network.
    ///
    /// # Errors
    /// [`ProofFileError::Form`] and [`ProofFileError::OtherNetwork`].
    fn check_head(&self, network: NetworkId) -> Result<(), ProofFileError> {
        if self.format() != Self::FORMAT {
            return Err(Self::malformed(format!("its format is '{}'", self.format())));
        }
        let expected = hex::encode(network.0);
        if self.network() == expected {
            return Ok(());
        }
        let found = self.network().to_owned();
        Err(ProofFileError::OtherNetwork { what: Self::NAME, found, expected })
    }

    /// Decodes a proof.
    ///
    /// # Errors
    /// [`ProofFileError::Form`].
    fn decode<T: BorshDeserialize>(proof: &str) -> Result<T, ProofFileError> {
        let bytes =
            hex::decode(proof).map_err(|error| Self::malformed(format!("its proof: {error}")))?;
        borsh::from_slice(&bytes).map_err(|error| Self::malformed(format!("its proof: {error}")))
    }

    /// Checks that the text says what `shown` does, which was made from the proof.
    ///
    /// # Errors
    /// [`ProofFileError::OtherText`].
    fn compare(&self, shown: &Self) -> Result<(), ProofFileError> {
        let plain = |file: &Self| serde_json::to_value(file).expect("plain fields");
        let (said, shown) = (plain(self), plain(shown));
        let fields = said.as_object().expect("an object").keys();
        match fields.into_iter().find(|field| said[*field] != shown[*field]) {
            Some(field) => Err(ProofFileError::OtherText(field.clone())),
            None => Ok(()),
        }
    }

    /// Encodes the file as indented JSON, with a newline at the end.
    fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain fields have a JSON form") + "\n"
    }

    /// Error of a text that is no such file.
    fn malformed(problem: String) -> ProofFileError {
        ProofFileError::Form { expected: Self::FORMAT, problem }
    }
}

/// Encodes a proof in hexadecimal.
pub fn encode(proof: &impl BorshSerialize) -> String {
    hex::encode(borsh::to_vec(proof).expect("encoding into memory cannot fail"))
}
