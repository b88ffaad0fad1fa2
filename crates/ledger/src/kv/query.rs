//! Queries of the state, and the check of their answers.

use super::operation::{FormError, Scan, check_key};
use super::result::Page;
use crate::map::{ProofError, hashes, verify_get, verify_range};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::Proven;

/// A query, encoded with borsh.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Query {
    /// The value of a key.
    Get {
        /// Key whose value is asked for.
        key: Bytes,
    },
    /// Scan of keys in order.
    Scan(Scan),
}

/// An answer, encoded with borsh; of the same kind as its query.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Answer {
    /// The value, if there is one.
    Value(Option<Bytes>),
    /// Entries that a scan finds.
    Page(Page),
}

impl Query {
    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        super::encode(self)
    }

    /// A query within its limits.
    ///
    /// # Errors
    /// Why the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormError> {
        let query: Self = super::decode(bytes)?;
        match &query {
            Self::Get { key } => check_key(key)?,
            Self::Scan(scan) => scan.check()?,
        }
        Ok(query)
    }
}

/// The answer to `query`, if it is true of the state with this root (★).
///
/// A page that is not complete may be shorter than was asked for, and say that there is more though
/// there is not; whoever asks for the rest learns it.
///
/// # Errors
/// When the proof does not show the answer.
pub fn verify_answer(
    state_root: Digest,
    query: &Query,
    proven: &Proven,
) -> Result<Answer, ProofError> {
    let answer = Answer::try_from_slice(&proven.answer).map_err(|_| ProofError::OtherAnswer)?;
    let is_shown = match (query, &answer) {
        (Query::Get { key }, Answer::Value(value)) => {
            let shown = verify_get(state_root, key, &proven.proof)?;
            match (value, shown) {
                (Some(value), Some(hash)) => is_value(value, hash),
                (value, shown) => value.is_none() && shown.is_none(),
            }
        }
        (Query::Scan(scan), Answer::Page(page)) => {
            let (to, limit) = (scan.to.as_deref(), scan.limit as usize);
            let shown = verify_range(state_root, &scan.from, to, limit, &proven.proof)?;
            let mut pairs = page.entries.iter().zip(&shown.entries);
            page.more != shown.complete
                && page.entries.len() == shown.entries.len()
                && pairs
                    .all(|(entry, (key, hash))| entry.key == key && is_value(&entry.value, *hash))
        }
        _ => false,
    };
    if is_shown { Ok(answer) } else { Err(ProofError::OtherAnswer) }
}

fn is_value(value: &[u8], hash: Digest) -> bool {
    mutants::active(Mutant::KvTrustValues) || hashes::value(value) == hash
}
