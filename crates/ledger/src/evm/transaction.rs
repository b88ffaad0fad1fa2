//! Ethereum's transactions: what of them is taken, and who sent them.

use super::history::StoredTransaction;
use super::stored::damaged;
use alloy_consensus::{Transaction as _, TxEnvelope};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip7702::{RecoveredAuthority, RecoveredAuthorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Signature, TxKind, U256, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{EcdsaSignature, SignatureError};
use quorate_types::service::StateError;
use revm::context::TxEnv;
use revm::context::either::Either;

/// Most bytes of a transaction.
pub const TRANSACTION_BYTES_MAX: usize = 128 * 1024;

/// A transaction with its sender and its hash, all of the same bytes: reading them is the one way
/// to have it.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Transaction with its signature.
    pub envelope: TxEnvelope,
    /// Address whose key signed it.
    pub sender: Address,
    hash: B256,
}

/// Chains whose transactions are taken, and kinds of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ChainRules {
    /// Chain that a transaction must name (EIP-155).
    pub chain_id: u64,
    /// Legacy transactions that name none are taken too: anybody may bring them from another chain.
    pub takes_unprotected: bool,
    /// Those with delegations are taken (EIP-7702), in blocks whose fork knows them.
    pub takes_delegations: bool,
}

impl ChainRules {
    /// ★ Checks that a transaction is for this chain.
    fn check(self, envelope: &TxEnvelope) -> Result<(), TransactionError> {
        let found = envelope.chain_id();
        let is_taken = match found {
            Some(id) => id == self.chain_id,
            None => self.takes_unprotected && envelope.is_legacy(),
        };
        if is_taken || mutants::active(Mutant::EvmAnyChain) {
            Ok(())
        } else {
            Err(TransactionError::Chain { found, expected: self.chain_id })
        }
    }
}

/// Reason for which bytes are no transaction of a chain. Nothing of the chain's state decides it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// More than [`TRANSACTION_BYTES_MAX`] bytes.
    #[error("a transaction has at most {TRANSACTION_BYTES_MAX} bytes")]
    TooLong,
    /// Bytes not in the form of EIP-2718, or followed by something.
    #[error("this is no transaction: {0}")]
    Form(String),
    /// A kind that this ledger has no rules for: blobs (EIP-4844), and delegations (EIP-7702) by
    /// the first version of the service.
    #[error("transactions of type {0} are not taken: use legacy (EIP-155), EIP-2930 or EIP-1559")]
    Kind(u8),
    /// A transaction for another chain, or for all of them where those are not taken.
    #[error("invalid chain id: the transaction names {found}, this chain is {expected}", found = found.map_or("none".to_owned(), |id| id.to_string()))]
    Chain {
        /// Chain that it names, if any.
        found: Option<u64>,
        /// Chain that this ledger is.
        expected: u64,
    },
    /// The signature is nobody's.
    #[error("invalid signature: {0}")]
    Signature(String),
}

impl Recovered {
    /// Reads a transaction and recovers its sender: some 30 µs.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub fn read(bytes: &[u8], rules: ChainRules) -> Result<Self, TransactionError> {
        if bytes.len() > TRANSACTION_BYTES_MAX {
            return Err(TransactionError::TooLong);
        }
        let mut rest = bytes;
        let envelope = TxEnvelope::decode_2718(&mut rest);
        let envelope = envelope.map_err(|error| TransactionError::Form(error.to_string()))?;
        if !rest.is_empty() {
            return Err(TransactionError::Form("bytes follow it".into()));
        }
        // ★ One transaction, one hash: whoever passes it on cannot have it executed under another.
        if envelope.encoded_2718() != bytes {
            return Err(TransactionError::Form("it can be written otherwise".into()));
        }
        if envelope.is_eip4844() || envelope.is_eip7702() && !rules.takes_delegations {
            return Err(TransactionError::Kind(envelope.tx_type() as u8));
        }
        rules.check(&envelope)?;
        let sender = sender(&envelope)?;
        Ok(Self { envelope, sender, hash: keccak256(bytes) })
    }

    /// A transaction that is in a block: its sender was recovered then.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn stored(stored: &StoredTransaction) -> Result<Self, StateError> {
        Self::known(&stored.raw, stored.sender, stored.hash)
    }

    /// A transaction whose sender and hash are known.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn known(mut raw: &[u8], sender: Address, hash: B256) -> Result<Self, StateError> {
        let envelope = TxEnvelope::decode_2718(&mut raw).map_err(|_| damaged())?;
        Ok(Self { envelope, sender, hash })
    }

    /// Hash of the transaction, as Ethereum names it.
    #[must_use]
    pub fn hash(&self) -> B256 {
        self.hash
    }

    /// Environment as the virtual machine takes it, with whose each delegation is: some 30 µs each.
    pub(super) fn env(&self) -> TxEnv {
        self.env_with(authorization)
    }

    /// Environment of a transaction that does not come to its delegations: they are nobody's.
    pub(super) fn terms(&self) -> TxEnv {
        self.env_with(|signed| {
            let (inner, nobody) = (signed.inner().clone(), RecoveredAuthority::Invalid);
            RecoveredAuthorization::new_unchecked(inner, nobody)
        })
    }

    /// Delegations that it brings (EIP-7702).
    pub(super) fn delegations(&self) -> &[SignedAuthorization] {
        self.envelope.authorization_list().unwrap_or_default()
    }

    /// Most wei that it takes of its sender.
    #[must_use]
    pub fn cost(&self) -> U256 {
        let tx = &self.envelope;
        let fee = U256::from(tx.max_fee_per_gas()) * U256::from(tx.gas_limit());
        fee.saturating_add(tx.value())
    }

    fn env_with(&self, owned: fn(&SignedAuthorization) -> RecoveredAuthorization) -> TxEnv {
        let tx = &self.envelope;
        TxEnv {
            tx_type: tx.tx_type() as u8,
            caller: self.sender,
            gas_limit: tx.gas_limit(),
            gas_price: tx.max_fee_per_gas(),
            kind: tx.to().map_or(TxKind::Create, TxKind::Call),
            value: tx.value(),
            data: tx.input().clone(),
            nonce: tx.nonce(),
            chain_id: tx.chain_id(),
            access_list: tx.access_list().cloned().unwrap_or_default(),
            gas_priority_fee: tx.max_priority_fee_per_gas(),
            authorization_list: self.delegations().iter().map(owned).map(Either::Right).collect(),
            ..TxEnv::default()
        }
    }
}

fn sender(envelope: &TxEnvelope) -> Result<Address, TransactionError> {
    let signer = signer_of(envelope.signature_hash(), envelope.signature());
    signer.map_err(|error| TransactionError::Signature(error.to_string()))
}

/// A delegation with whose it is: one that nobody signed is passed over (EIP-7702).
pub(super) fn authorization(signed: &SignedAuthorization) -> RecoveredAuthorization {
    let signature = signed.signature().ok();
    let signer =
        signature.and_then(|signature| signer_of(signed.signature_hash(), &signature).ok());
    let authority = signer.map_or(RecoveredAuthority::Invalid, RecoveredAuthority::Valid);
    RecoveredAuthorization::new_unchecked(signed.inner().clone(), authority)
}

fn signer_of(digest: B256, signature: &Signature) -> Result<Address, SignatureError> {
    let mut scalars = [0; 64];
    scalars[..32].copy_from_slice(&signature.r().to_be_bytes::<32>());
    scalars[32..].copy_from_slice(&signature.s().to_be_bytes::<32>());
    let signature = EcdsaSignature { scalars, is_odd: signature.v() };
    quorate_crypto::recover(&digest.0, &signature).map(|key| address(&key))
}

/// The address of a public key, given by its coordinates.
#[must_use]
pub fn address(key: &[u8; 64]) -> Address {
    Address::from_raw_public_key(key)
}
