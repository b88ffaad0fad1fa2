//! Public voting keys, and proofs that their secrets are held.

use crate::error::KeyError;
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;
use std::str::FromStr;

/// A public voting key, as the scheme encodes it: 32 bytes for Ed25519, 96 for BLS, 288 for
/// threshold BLS, whose members have a public share for each [`Sharing`](crate::Sharing). Shown in
/// hexadecimal. Unchecked until it joins a committee.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct VotingKey(pub Vec<u8>);

/// Evidence that whoever published a key holds its secret. Shown in hexadecimal.
///
/// 64 bytes for an identity key; 48 for a BLS voting key. Empty for voting keys that are never
/// added up, and for those that a dealer made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct PossessionProof(pub Vec<u8>);

macro_rules! hexadecimal {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let shown = hex::encode(&self.0[..self.0.len().min(4)]);
                write!(f, "{}({shown})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = KeyError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                hex::decode(text).map(Self).map_err(|_| KeyError::Hex)
            }
        }
    };
}

hexadecimal!(VotingKey);
hexadecimal!(PossessionProof);
