//! Keys that sign transactions: for tests, loads and development.

use super::transaction::address;
use alloy_consensus::transaction::SignableTransaction;
use alloy_consensus::{Signed, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Signature, U256, keccak256};
use bytes::Bytes;
use quorate_crypto::EcdsaSecret;

/// A key with its account's address.
#[derive(Debug)]
pub struct Signer {
    secret: EcdsaSecret,
    address: Address,
}

impl Signer {
    /// The key with these bytes, unless they are zero or beyond the order.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        let secret = EcdsaSecret::from_bytes(bytes)?;
        let address = address(&secret.public());
        Some(Self { secret, address })
    }

    /// The key that follows from a name. Whoever knows the name has it: for tests and development
    /// alone.
    #[must_use]
    pub fn derived(name: &str) -> (Self, [u8; 32]) {
        let bytes = keccak256(name).0;
        (Self::from_bytes(bytes).expect("a hash is beyond the order once in 2^127 times"), bytes)
    }

    /// The keys of development networks, the same everywhere and known to everybody, so that tools
    /// can be set up once. What they hold is worth nothing.
    #[must_use]
    pub fn development() -> Vec<(Self, [u8; 32])> {
        (0..10)
            .map(|index| Self::derived(&format!("quorate development account {index}")))
            .collect()
    }

    /// Address of its account.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// A signed transaction, as it is sent.
    #[must_use]
    pub fn sign<T>(&self, transaction: T) -> Bytes
    where
        T: SignableTransaction<Signature>,
        TxEnvelope: From<Signed<T>>,
    {
        let hash = transaction.signature_hash();
        TxEnvelope::from(transaction.into_signed(self.signature(hash))).encoded_2718().into()
    }

    /// A delegation of its account (EIP-7702), signed.
    #[must_use]
    pub fn authorize(&self, authorization: Authorization) -> SignedAuthorization {
        let signature = self.signature(authorization.signature_hash());
        authorization.into_signed(signature)
    }

    fn signature(&self, digest: B256) -> Signature {
        let signed = self.secret.sign(&digest.0);
        let (r, s) = signed.scalars.split_at(32);
        Signature::new(U256::from_be_slice(r), U256::from_be_slice(s), signed.is_odd)
    }
}
