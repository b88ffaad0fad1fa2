//! Proofs of accounts and storage, for whoever holds a certificate of a height.
//!
//! ```text
//! state of the height = H("quorate v1 evm root", root of the map ‖ hash of the newest block)
//! ```
//!
//! A proof names the block's hash, the root of the map follows from each key's proof, and both must
//! come to the certified state. What the proofs themselves are is [`crate::map`]'s.

use super::history::Meta;
use super::world::{self, Account, account_key, slot_key};
use super::{service_root, stored};
use crate::map::{self, Tree};
use alloy_primitives::{Address, B256, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{Proven, State, StateError};

/// Most slots of one query: it is to fit into a frame of 8 KiB.
pub const PROVEN_SLOTS_MAX: usize = 200;

/// Query for a proof: an account and slots of its storage.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ProofOf {
    /// Address of the account.
    pub address: Address,
    /// Slots of its storage, at most [`PROVEN_SLOTS_MAX`].
    pub slots: Vec<U256>,
}

/// Account as the state holds it, with proofs. The [`Proven::answer`] to a [`ProofOf`]; the
/// [`Proven::proof`] is empty.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountProof {
    /// The newest block's hash.
    pub block: B256,
    /// The root of the map.
    pub map: Digest,
    /// The account; `None` where there is none.
    pub account: Option<Account>,
    /// Proof of the account, or of its absence.
    pub proof: Bytes,
    /// Each slot's value with what shows it, in the query's order.
    pub slots: Vec<(U256, Bytes)>,
}

/// Reason for which a proof shows nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFailure {
    /// The answer is not in the form of one.
    #[error("the proof cannot be read")]
    Form,
    /// Map and block do not come to the certified state.
    #[error("the proof is of another state")]
    OtherState,
    /// A key's proof does not hold.
    #[error("the proof of {0} does not hold")]
    Key(&'static str),
}

impl ProofOf {
    /// The bytes of this query.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        stored::encode(self)
    }

    /// Reads a query.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let query = Self::try_from_slice(bytes);
        let query = query.map_err(|error| format!("this is no question: {error}"))?;
        query.check().map(|()| query)
    }

    /// Checks that a member would answer it.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self) -> Result<(), String> {
        if self.slots.len() > PROVEN_SLOTS_MAX {
            return Err(format!("one question is of at most {PROVEN_SLOTS_MAX} slots"));
        }
        Ok(())
    }
}

/// Root of the service's state.
pub(super) fn root(map: &Digest, newest: &B256) -> Digest {
    service_root(map, newest)
}

/// Proves an account of the state as it is.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn prove(
    tree: &Tree,
    newest: &Meta,
    state: &dyn State,
    of: &ProofOf,
) -> Result<Proven, StateError> {
    let prove = |key: &[u8]| tree.prove(state, Some(key), Some(key));
    let slot = |slot: &U256| {
        let value = world::slot(state, of.address, *slot)?;
        Ok((value, prove(&slot_key(of.address, *slot))?))
    };
    let answer = AccountProof {
        block: newest.hash,
        map: tree.root(),
        account: world::account(state, of.address)?,
        proof: prove(&account_key(of.address))?,
        slots: of.slots.iter().map(slot).collect::<Result<_, StateError>>()?,
    };
    Ok(Proven { answer: stored::encode(&answer).into(), proof: Bytes::new() })
}

/// Checks an answer under the certified state of a height (★).
///
/// # Errors
/// [`ProofFailure`].
pub fn verify_account(
    state: Digest,
    of: &ProofOf,
    proven: &Proven,
) -> Result<AccountProof, ProofFailure> {
    let answer = AccountProof::try_from_slice(&proven.answer).map_err(|_| ProofFailure::Form)?;
    let is_certified =
        service_root(&answer.map, &answer.block) == state || mutants::active(Mutant::EvmTrustProof);
    if !is_certified || answer.slots.len() != of.slots.len() {
        return Err(ProofFailure::OtherState);
    }
    let holds = |key: &[u8], value: Option<Vec<u8>>, proof: &Bytes| {
        let shown = map::verify_get(answer.map, key, proof);
        shown.is_ok_and(|shown| shown == value.as_deref().map(map::value_hash))
    };
    let account = answer.account.as_ref().map(stored::encode);
    if !holds(&account_key(of.address), account, &answer.proof) {
        return Err(ProofFailure::Key("the account"));
    }
    for (slot, (value, proof)) in of.slots.iter().zip(&answer.slots) {
        let value = (!value.is_zero()).then(|| value.to_be_bytes::<32>().to_vec());
        if !holds(&slot_key(of.address, *slot), value, proof) {
            return Err(ProofFailure::Key("a slot"));
        }
    }
    Ok(answer)
}
