//! The schemes by which authorities vote, by name.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::SchemeKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Scheme by which authorities vote (paper 003 §4.1 to §4.3).
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    BorshSerialize,
    BorshDeserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PayScheme {
    /// An Ed25519 signature a vote.
    Plain,
    /// One Ed25519 signature for all votes of a few milliseconds, through a Merkle tree.
    Merkle,
    /// BLS signatures, added up.
    Bls,
    /// BLS signatures of shares that a dealer made, interpolated.
    BlsThreshold,
}

impl PayScheme {
    /// All schemes, as tables list them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Merkle, Self::Bls, Self::BlsThreshold];

    /// The keys that it votes with.
    #[must_use]
    pub fn keys(self) -> SchemeKind {
        match self {
            Self::Plain | Self::Merkle => SchemeKind::Ed25519,
            Self::Bls => SchemeKind::Bls,
            Self::BlsThreshold => SchemeKind::BlsThreshold,
        }
    }
}

impl fmt::Display for PayScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "plain",
            Self::Merkle => "merkle",
            Self::Bls => "bls",
            Self::BlsThreshold => "bls-threshold",
        })
    }
}

/// A text that names no [`PayScheme`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no payment scheme: use plain, merkle, bls or bls-threshold")]
pub struct UnknownPayScheme(String);

impl FromStr for PayScheme {
    type Err = UnknownPayScheme;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.to_string() == name);
        found.ok_or_else(|| UnknownPayScheme(name.to_owned()))
    }
}
