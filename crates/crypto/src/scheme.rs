//! How a committee votes: shares, certificates, and the trait that makes one from the others.

use crate::bls::BlsScheme;
use crate::ed25519::Ed25519Scheme;
use crate::error::{KeyError, SignatureError, UnknownName};
use crate::mutants::{self, Mutant};
use crate::{Bitmap, PossessionProof, VotingKey};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A committee's voting keys, in member order, and what can be checked with them.
///
/// Messages are domain-separated by the caller. Nothing here knows thresholds: a caller looks at
/// [`Certificate::signers`] before it asks for the far dearer [`Scheme::verify`].
pub trait Scheme: Send + Sync + fmt::Debug {
    /// Which scheme this is.
    fn kind(&self) -> SchemeKind;

    /// How many members the committee has.
    fn members(&self) -> usize;

    /// Bytes of a well-formed share.
    fn share_bytes(&self) -> usize;

    /// Bytes of the aggregate of a certificate with that many signers.
    fn aggregate_bytes(&self, signers: usize) -> usize;

    /// Checks one member's share alone.
    fn verify_share(
        &self,
        message: &[u8],
        signer: usize,
        share: &Share,
    ) -> Result<(), SignatureError>;

    /// Makes a certificate from shares over one message, leaving out the bad ones. A threshold scheme
    /// makes none of fewer good shares than its threshold, and uses no more of them.
    ///
    /// The certificate passes [`Scheme::verify`]. It proves the *sum* of its shares: whether each was
    /// valid alone is not said and need not be so, except for `suspects` (and under [`Policy::Each`]
    /// and [`Policy::Batch`] for all), which are checked before they join. Of several shares by one
    /// signer only the first counts.
    ///
    /// # Panics
    /// If a signer is not below [`Scheme::members`]: shares are attributed before they get here.
    fn combine(
        &self,
        message: &[u8],
        shares: &[(usize, Share)],
        suspects: &Bitmap,
        policy: Policy,
    ) -> Combined;

    /// Checks a certificate: its bitmap first, then its length, then its signature.
    fn verify(&self, message: &[u8], certificate: &Certificate) -> Result<(), SignatureError>;

    /// Checks certificates over different messages, such as those of a timeout certificate, all at
    /// once. Succeeds exactly when [`Scheme::verify`] would for each; an error does not say which
    /// failed. Nothing to check is no error.
    fn verify_many(&self, items: &[(&[u8], &Certificate)]) -> Result<(), SignatureError> {
        items.iter().try_for_each(|(message, certificate)| self.verify(message, certificate))
    }

    /// The one key that a certificate of these signers is checked against, encoded; `None` for a
    /// scheme that has no such key, and for signers of another committee.
    ///
    /// Computed as [`Scheme::verify`] computes it, anew each time: measurements call it to tell the
    /// key's part of a check from the pairing's.
    fn signers_key(&self, signers: &Bitmap) -> Option<Vec<u8>> {
        let _ = signers;
        None
    }
}

/// Builds the scheme for a committee, from each member's voting key and proof of possession.
///
/// Refuses keys that are malformed, not canonical, the identity or outside the prime-order subgroup,
/// proofs that do not verify (without them a member could choose a key that cancels the others' out
/// of every aggregate), duplicates, and a committee of nobody. Keys for threshold signatures come with
/// their groups', from a dealer: [`threshold_schemes`](crate::threshold_schemes) takes those.
pub fn committee_scheme(
    kind: SchemeKind,
    keys: &[(VotingKey, PossessionProof)],
    cache: KeyCache,
) -> Result<Arc<dyn Scheme>, KeyError> {
    if keys.is_empty() {
        return Err(KeyError::NoMembers);
    }
    if keys.len() > usize::from(u16::MAX) {
        return Err(KeyError::TooManyMembers { members: keys.len() });
    }
    refuse_duplicates(keys)?;
    #[cfg(feature = "stub")]
    if crate::stand_in::active() && matches!(kind, SchemeKind::Ed25519 | SchemeKind::Bls) {
        return Ok(Arc::new(crate::stand_in::StandInScheme::new(kind, keys, cache)));
    }
    Ok(match kind {
        SchemeKind::Ed25519 => Arc::new(Ed25519Scheme::new(keys)?),
        SchemeKind::Bls => Arc::new(BlsScheme::new(keys, cache)?),
        SchemeKind::BlsThreshold => return Err(KeyError::Dealt { kind }),
        #[cfg(feature = "stub")]
        SchemeKind::Stub => Arc::new(crate::stub::StubScheme::new(keys)?),
    })
}

/// One member's signature, as the scheme encodes it: 64 bytes for Ed25519, 48 for BLS of either kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Share(pub Vec<u8>);

/// Several members' signatures combined: 64 bytes a signer, in signer order, for Ed25519; 48 bytes in
/// all for BLS.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Aggregate(pub Vec<u8>);

/// Who signed, and their combined signature.
///
/// Two certificates for one statement can differ in both; whatever identifies a certificate must be
/// the statement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    /// The members that signed. Proven by the signature, except for threshold schemes: theirs proves
    /// that so many signed, and this says who did as far as whoever made it tells the truth.
    pub signers: Bitmap,
    /// Their signatures.
    pub aggregate: Aggregate,
}

/// What became of shares that were to be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The certificate over all shares but the bad ones; `None` when no good one is left, or too few
    /// for a threshold scheme.
    ///
    /// Also `None` in the freak case that the good shares' keys cancel out, which takes a committee's
    /// members in collusion and nobody else among the signers.
    pub certificate: Option<Certificate>,
    /// Signers whose shares are bad, ascending. Each was refused alone, so blaming them is safe.
    pub bad: Vec<usize>,
}

/// How voters sign.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize,
)]
pub enum SchemeKind {
    /// Ed25519 signatures side by side.
    Ed25519,
    /// BLS12-381 signatures added up.
    Bls,
    /// BLS12-381 signatures of shares that a dealer made, interpolated to the group's one signature.
    BlsThreshold,
    /// Keyed hashes that anyone can compute: for the simulator only.
    #[cfg(feature = "stub")]
    Stub,
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

/// How shares are checked when they are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// Every share alone.
    Each,
    /// All shares at once with random weights: each is then valid alone.
    Batch,
    /// Add (or interpolate) the shares, check the result once, and look for culprits only if it is bad.
    /// Proves the result alone. For Ed25519, whose shares do not add up, the same as [`Policy::Batch`].
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

/// Whether a BLS committee keeps the sum of all its members' keys. Other schemes have no use for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeyCache {
    /// Start from the sum of all keys and subtract the absentees', or add the signers', whichever
    /// takes fewer additions.
    #[default]
    On,
    /// Always start from the sum of all keys and subtract the absentees', as paper 000 (§3) does: for
    /// comparison, since it is never quicker than [`KeyCache::On`].
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

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({})", abbreviate(&self.0))
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregate({})", abbreviate(&self.0))
    }
}

/// The first four bytes, and how many there are.
fn abbreviate(bytes: &[u8]) -> String {
    format!("{}, {} bytes", hex::encode(&bytes[..bytes.len().min(4)]), bytes.len())
}

/// Refuses a signer outside the committee.
pub(crate) fn check_signer(signer: usize, members: usize) -> Result<(), SignatureError> {
    if signer < members { Ok(()) } else { Err(SignatureError::Signer { signer, members }) }
}

/// Refuses a bitmap for another committee or of nobody.
pub(crate) fn check_signers(signers: &Bitmap, members: usize) -> Result<(), SignatureError> {
    if signers.members() != members {
        return Err(SignatureError::Committee { members, found: signers.members() });
    }
    if signers.is_empty() && !mutants::active(Mutant::AcceptNoSigners) {
        return Err(SignatureError::NoSigners);
    }
    Ok(())
}

/// The first share of each signer, in signer order.
pub(crate) fn distinct(shares: &[(usize, Share)], members: usize) -> Vec<(usize, &Share)> {
    let mut first = BTreeMap::new();
    for (signer, share) in shares {
        assert!(*signer < members, "a share came attributed to {signer}, of {members} members");
        first.entry(*signer).or_insert(share);
    }
    first.into_iter().collect()
}

fn refuse_duplicates(keys: &[(VotingKey, PossessionProof)]) -> Result<(), KeyError> {
    let mut seen = BTreeMap::new();
    for (second, (key, _)) in keys.iter().enumerate() {
        if let Some(first) = seen.insert(key, second) {
            return Err(KeyError::Duplicate { first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
