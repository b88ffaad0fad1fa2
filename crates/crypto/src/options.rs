//! Options of voting that are chosen by name: schemes, policies and key caches.

use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;
use std::str::FromStr;

/// Kind of signatures that a committee votes with.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize,
)]
pub enum SchemeKind {
    /// Ed25519 signatures side by side.
    Ed25519,
    /// BLS12-381 signatures added up.
    Bls,
    /// BLS12-381 signatures of shares that a dealer made, interpolated to the group's one
    /// signature.
    BlsThreshold,
    /// Keyed hashes that anyone can compute: for the simulator only.
    #[cfg(feature = "stub")]
    Stub,
}

impl SchemeKind {
    /// Returns `true` if a certificate proves which members signed it. A threshold scheme's proves
    /// that so many did; the bitmap beside it is the word of whoever made it.
    #[must_use]
    pub fn proves_signers(self) -> bool {
        self != Self::BlsThreshold
    }
}

impl fmt::Display for SchemeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ed25519 => "ed25519",
            Self::Bls => "bls",
            Self::BlsThreshold => "bls-threshold",
            #[cfg(feature = "stub")]
            Self::Stub => "stub",
        })
    }
}

impl FromStr for SchemeKind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "ed25519" => Ok(Self::Ed25519),
            "bls" => Ok(Self::Bls),
            "bls-threshold" => Ok(Self::BlsThreshold),
            #[cfg(feature = "stub")]
            "stub" => Ok(Self::Stub),
            _ => Err(UnknownName {
                what: "signature scheme",
                name: name.to_owned(),
                choices: if cfg!(feature = "stub") {
                    "ed25519, bls, bls-threshold, stub"
                } else {
                    "ed25519, bls, bls-threshold"
                },
            }),
        }
    }
}

/// Way to check shares when they are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// Check every share alone.
    Each,
    /// All shares at once with random weights: each is then valid alone.
    Batch,
    /// Add (or interpolate) the shares, check the result once, and look for culprits only if it is
    /// bad. Proves the result alone. For Ed25519, whose shares do not add up, the same as
    /// [`Policy::Batch`].
    #[default]
    Aggregate,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each => "each",
            Self::Batch => "batch",
            Self::Aggregate => "aggregate",
        })
    }
}

impl FromStr for Policy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "each" => Ok(Self::Each),
            "batch" => Ok(Self::Batch),
            "aggregate" => Ok(Self::Aggregate),
            _ => Err(UnknownName {
                what: "way to check shares",
                name: name.to_owned(),
                choices: "each, batch, aggregate",
            }),
        }
    }
}

/// Use that a BLS committee makes of the sum of all its members' keys. Other schemes have no use
/// for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeyCache {
    /// Start from the sum of all keys and subtract the absentees', or add the signers', whichever
    /// takes fewer additions.
    #[default]
    On,
    /// Always start from the sum of all keys and subtract the absentees', as paper 000 (§3) does:
    /// for comparison, since it is never quicker than [`KeyCache::On`].
    Subtract,
    /// Add the signers' keys for every certificate.
    Off,
}

impl fmt::Display for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Subtract => "subtract",
            Self::Off => "off",
        })
    }
}

impl FromStr for KeyCache {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "on" => Ok(Self::On),
            "subtract" => Ok(Self::Subtract),
            "off" => Ok(Self::Off),
            _ => Err(UnknownName {
                what: "key cache setting",
                name: name.to_owned(),
                choices: "on, subtract, off",
            }),
        }
    }
}

/// A name that is none of the choices of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a {what}; choose one of: {choices}")]
pub struct UnknownName {
    /// Option that the name was given for.
    pub what: &'static str,
    /// Name that was given.
    pub name: String,
    /// The names there are.
    pub choices: &'static str,
}

#[cfg(test)]
mod tests {
    use super::SchemeKind;

    /// Whoever relies on the names in a certificate asks first: of dealt keys they prove nothing.
    #[test]
    fn certificates_of_dealt_keys_prove_no_signers() {
        let proves = |kind: SchemeKind| kind.proves_signers();
        assert!([SchemeKind::Ed25519, SchemeKind::Bls].into_iter().all(proves));
        assert!(!proves(SchemeKind::BlsThreshold));
    }
}
