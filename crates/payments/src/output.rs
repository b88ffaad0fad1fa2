//! Outputs and their names.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, IdentityKey, hash_keyed};
use std::fmt;

/// Names a transaction: the hash of everything that it does, and of no signature.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct TxId(pub Digest);

impl fmt::Display for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// Names an output (★): its transaction and its place in it. Nobody chooses it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct OutputId {
    /// The transaction that made it.
    pub tx: TxId,
    /// Index among that transaction's outputs, from 0.
    pub index: u16,
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tx, self.index)
    }
}

/// Money of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Output {
    /// Key that may spend it. Any 32 bytes: an encoding of no key is never spent.
    pub owner: IdentityKey,
    /// Value in the smallest unit; at least 1.
    pub value: u64,
}

impl Output {
    const LEAF: &[u8; 32] = b"quorate v1 payments: an output  ";

    /// Pays to nobody: how money is redeemed. The issuer pays it out elsewhere, and what was burnt
    /// is proven by the transaction's certificate.
    pub const BURNT: IdentityKey = IdentityKey(*b"quorate payments: redeemed money");

    /// Its hash as a leaf of its transaction's tree.
    pub(crate) fn leaf(&self) -> Digest {
        let mut bytes = [0; 40];
        bytes[..32].copy_from_slice(&self.owner.0);
        bytes[32..].copy_from_slice(&self.value.to_le_bytes());
        hash_keyed(Self::LEAF, &bytes)
    }
}
