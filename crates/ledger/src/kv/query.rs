//! Queries of the state, and the check of their answers.

use super::changes;
use super::operation::{FormError, Scan, check_key};
use super::result::Page;
use crate::map::{ProofError, Tree, entries, hashes, verify_get, verify_range};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Header;
use quorate_types::service::{KeyRange, Proven, State, StateError};
use std::ops::ControlFlow;

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

    /// The answer of the map in this state to an encoded query, with its proof; the inner error is
    /// for whoever asked.
    ///
    /// # Errors
    /// When the state cannot be read or is not the one that the tree knows.
    pub(crate) fn answer_encoded(
        tree: &Tree,
        state: &dyn State,
        query: &[u8],
    ) -> Result<Result<Proven, String>, StateError> {
        match Self::decode(query) {
            Ok(query) => query.answer(tree, state).map(Ok),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    fn answer(&self, tree: &Tree, state: &dyn State) -> Result<Proven, StateError> {
        match self {
            Self::Get { key } => {
                let entry = entries::get(state, key)?;
                let value = entry.as_deref().map(entries::decode).transpose()?;
                let answer = Answer::Value(value.map(|(_, value)| Bytes::copy_from_slice(value)));
                let proof = tree.newest().prove(state, Some(key), Some(key))?;
                Ok(Proven { answer: super::encode(&answer), proof })
            }
            Self::Scan(scan) => {
                let page = changes::page(state, scan)?;
                let proof = prove_page(tree, state, scan, &page)?;
                Ok(Proven { answer: super::encode(&Answer::Page(page)), proof })
            }
        }
    }
}

/// Shows the page's entries, the key before the range, and the one after it unless there are
/// more in the range.
fn prove_page(
    tree: &Tree,
    state: &dyn State,
    scan: &Scan,
    page: &Page,
) -> Result<Bytes, StateError> {
    let before = tree.newest().last_below(state, &scan.from)?;
    let after = match (page.entries.last().filter(|_| page.more), &scan.to) {
        (Some(last), _) => Some(last.key.to_vec()),
        (None, Some(to)) => first_from(state, to)?,
        (None, None) => None,
    };
    tree.newest().prove(state, before.as_deref(), after.as_deref())
}

/// The first key from `from` on.
fn first_from(state: &dyn State, from: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
    let mut first = None;
    entries::scan(state, KeyRange { from, to: None }, &mut |key, _, _| {
        first = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(first)
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

/// [`verify_answer`] as a check of answers that a client's session takes.
///
/// # Errors
/// What is wrong with the answer, in words.
pub fn check_answer(query: &[u8], header: &Header, proven: &Proven) -> Result<(), String> {
    let query = Query::decode(query).map_err(|error| error.to_string())?;
    verify_answer(header.state, &query, proven).map(drop).map_err(|error| error.to_string())
}

fn is_value(value: &[u8], hash: Digest) -> bool {
    mutants::active(Mutant::KvTrustValues) || hashes::value(value) == hash
}
