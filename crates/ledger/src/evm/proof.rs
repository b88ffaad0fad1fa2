//! Proofs of accounts and storage, for whoever holds a certificate of a height.
//!
//! ```text
//! state of the height = H("quorate v1 evm root", root of the map ‖ hash of the newest block)
//! ```
//!
//! A proof names the block's hash, the root of the map follows from each key's proof, and both must
//! come to the certified state. What the proofs themselves are is [`crate::map`]'s. They are of the
//! newest block, or of one before it for which the tree has a version.

use super::history::{self, Meta};
use super::world::{Account, account_in, account_key, slot_in, slot_key};
use super::{service_root, stored};
use crate::map::{self, Tree, UPDATES_MAX, Version};
use alloy_primitives::{Address, B256, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{Proven, State, StateError};

/// Most slots of one query: it is to fit into a frame of 8 KiB.
pub const PROVEN_SLOTS_MAX: usize = 200;

/// Blocks before the newest for which there can be proofs.
pub const PROVEN_BLOCKS_MAX: u64 = UPDATES_MAX as u64;

/// Query for a proof: an account and slots of its storage.
///
/// Its bytes are Borsh's, but that a height stands at the end, or is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOf {
    /// Address of the account.
    pub address: Address,
    /// Slots of its storage, at most [`PROVEN_SLOTS_MAX`].
    pub slots: Vec<U256>,
    /// Height of the block after which it is asked for; `None` for the newest.
    pub height: Option<u64>,
}

/// Account as the state holds it, with proofs. The [`Proven::answer`] to a [`ProofOf`]; the
/// [`Proven::proof`] is empty.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountProof {
    /// Hash of the block after which it is.
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
        let mut bytes = stored::encode(&(self.address, &self.slots));
        bytes.extend(self.height.iter().flat_map(|height| height.to_le_bytes()));
        bytes
    }

    /// Reads a query.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let query = Self::read(bytes);
        let query = query.map_err(|error| format!("this is no question: {error}"))?;
        query.check().map(|()| query)
    }

    fn read(mut bytes: &[u8]) -> std::io::Result<Self> {
        let (address, slots) = BorshDeserialize::deserialize(&mut bytes)?;
        let height = (!bytes.is_empty()).then(|| u64::try_from_slice(bytes)).transpose()?;
        Ok(Self { address, slots, height })
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

/// Proves an account after the block that is asked for; or says why it cannot.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn prove(
    tree: &Tree,
    newest: &Meta,
    state: &dyn State,
    of: &ProofOf,
) -> Result<Result<Proven, String>, StateError> {
    let height = of.height.unwrap_or(newest.height);
    let Some(after) = newest.height.checked_sub(height) else {
        return Ok(Err(format!("block {height} is not executed yet")));
    };
    let Some(version) = usize::try_from(after).ok().and_then(|after| tree.version(after)) else {
        let oldest = newest.height.saturating_sub(tree.versions() as u64);
        return Ok(Err(format!(
            "the member asked has proofs from block {oldest} on: none of block {height}"
        )));
    };
    let block = history::block(state, height)?.ok_or_else(stored::damaged)?;
    prove_version(version, block.hash, state, of).map(Ok)
}

fn prove_version(
    version: Version<'_>,
    block: B256,
    state: &dyn State,
    of: &ProofOf,
) -> Result<Proven, StateError> {
    let prove = |key: &[u8]| -> Result<(Option<Vec<u8>>, Bytes), StateError> {
        Ok((version.entry(state, key)?, version.prove(state, Some(key), Some(key))?))
    };
    let slot = |slot: &U256| {
        let (entry, proof) = prove(&slot_key(of.address, *slot))?;
        Ok((slot_in(entry.as_deref())?, proof))
    };
    let (account, proof) = prove(&account_key(of.address))?;
    let answer = AccountProof {
        block,
        map: version.root(),
        account: account_in(account.as_deref())?,
        proof,
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
