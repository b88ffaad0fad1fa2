//! Secret voting keys: what a member holds to take part in a committee's [`Scheme`](crate::Scheme).

use crate::bls;
use crate::error::KeyError;
use crate::identity::IdentitySecret;
use crate::options::SchemeKind;
use crate::scheme::Share;
use crate::threshold::{self, BySharing, Sharing};
use crate::voting_key::{PossessionProof, VotingKey};
use std::fmt;
use zeroize::Zeroizing;

const SECRET_BYTES: usize = 32;

/// A member's secret voting key. Wiped from memory when dropped; never printed.
#[derive(Clone)]
pub struct VotingSecret(Inner);

#[derive(Clone)]
enum Inner {
    Ed25519(IdentitySecret),
    Bls(Box<bls::SecretKey>),
    Threshold(Box<BySharing<bls::SecretKey>>),
    #[cfg(feature = "stub")]
    Stub(Zeroizing<[u8; SECRET_BYTES]>),
    /// Stand-in for a BLS secret, see [`crate::stand_in`].
    #[cfg(feature = "stub")]
    StandIn(Zeroizing<[u8; SECRET_BYTES]>, Box<[u8; 96]>),
    /// Stand-in for shares that a dealer made.
    #[cfg(feature = "stub")]
    StandInThreshold(Box<crate::stand_in::Shares>),
}

impl VotingSecret {
    /// The secret that a 32-byte seed determines: RFC 8032 for Ed25519, `KeyGen` of the IETF's BLS
    /// draft for BLS. For threshold BLS it is what the only member of a committee of one is dealt
    /// with this seed, and of no use to a larger committee: see [`deal`](crate::deal).
    pub fn from_seed(kind: SchemeKind, seed: &[u8; 32]) -> Self {
        Self(match kind {
            SchemeKind::Ed25519 => Inner::Ed25519(IdentitySecret::from_seed(*seed)),
            #[cfg(feature = "stub")]
            SchemeKind::Bls if crate::stand_in::active() => {
                Inner::StandIn(Zeroizing::new(*seed), Box::new(crate::stand_in::bls_key(seed)))
            }
            SchemeKind::Bls => Inner::Bls(Box::new(bls::generate(seed))),
            SchemeKind::BlsThreshold => return Self::alone(seed),
            #[cfg(feature = "stub")]
            SchemeKind::Stub => Inner::Stub(Zeroizing::new(*seed)),
        })
    }

    /// Secret of the only member of a committee of one.
    fn alone(seed: &[u8; 32]) -> Self {
        #[cfg(feature = "stub")]
        if crate::stand_in::active() {
            return Self::from_stand_ins(crate::stand_in::Shares::deal(seed, 0));
        }
        let polynomials = threshold::polynomials(1, &BySharing::from_fn(|_| 1), seed);
        Self::from_shares(threshold::member_shares(&polynomials, 0))
    }

    /// A member's shares of each sharing.
    pub(crate) fn from_shares(shares: BySharing<bls::SecretKey>) -> Self {
        Self(Inner::Threshold(Box::new(shares)))
    }

    /// The shares that [`VotingSecret::from_shares`] was made from; `None` of other secrets.
    pub(crate) fn shares(&self) -> Option<&BySharing<bls::SecretKey>> {
        match &self.0 {
            Inner::Threshold(shares) => Some(shares),
            _ => None,
        }
    }

    #[cfg(feature = "stub")]
    pub(crate) fn from_stand_ins(shares: crate::stand_in::Shares) -> Self {
        Self(Inner::StandInThreshold(Box::new(shares)))
    }

    /// Number of bytes that a secret of this kind takes.
    pub(crate) const fn bytes(kind: SchemeKind) -> usize {
        match kind {
            SchemeKind::BlsThreshold => threshold::SECRET_BYTES,
            _ => SECRET_BYTES,
        }
    }

    /// Reads what [`VotingSecret::to_bytes`] wrote.
    pub fn from_bytes(kind: SchemeKind, bytes: &[u8]) -> Result<Self, KeyError> {
        if kind == SchemeKind::BlsThreshold {
            return threshold::read_secrets(bytes).map(Self::from_shares);
        }
        let seed: &[u8; SECRET_BYTES] = bytes.try_into().map_err(|_| KeyError::Length {
            kind,
            what: "secret key",
            expected: SECRET_BYTES,
            found: bytes.len(),
        })?;
        Ok(match kind {
            SchemeKind::Bls => Self(Inner::Bls(Box::new(bls::read_secret(seed)?))),
            _ => Self::from_seed(kind, seed),
        })
    }

    /// The secret itself, for safekeeping: 32 bytes, or 96 for threshold BLS.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match &self.0 {
            Inner::Ed25519(secret) => secret.seed().to_vec(),
            Inner::Bls(secret) => Zeroizing::new(secret.to_bytes()).to_vec(),
            Inner::Threshold(shares) => threshold::write_secrets(shares),
            #[cfg(feature = "stub")]
            Inner::StandInThreshold(shares) => shares.secrets(),
            #[cfg(feature = "stub")]
            Inner::Stub(seed) | Inner::StandIn(seed, _) => seed.to_vec(),
        })
    }

    /// The scheme this secret is for.
    pub fn kind(&self) -> SchemeKind {
        match &self.0 {
            Inner::Ed25519(_) => SchemeKind::Ed25519,
            Inner::Bls(_) => SchemeKind::Bls,
            Inner::Threshold(_) => SchemeKind::BlsThreshold,
            #[cfg(feature = "stub")]
            Inner::Stub(_) => SchemeKind::Stub,
            #[cfg(feature = "stub")]
            Inner::StandIn(..) => SchemeKind::Bls,
            #[cfg(feature = "stub")]
            Inner::StandInThreshold(_) => SchemeKind::BlsThreshold,
        }
    }

    /// The public key that this secret's shares are checked with.
    pub fn public(&self) -> VotingKey {
        VotingKey(match &self.0 {
            Inner::Ed25519(secret) => secret.public().0.to_vec(),
            Inner::Bls(secret) => secret.sk_to_pk().to_bytes().to_vec(),
            Inner::Threshold(shares) => threshold::public_shares(shares),
            #[cfg(feature = "stub")]
            Inner::Stub(seed) => crate::stub::public(seed).to_vec(),
            #[cfg(feature = "stub")]
            Inner::StandIn(_, key) => key.to_vec(),
            #[cfg(feature = "stub")]
            Inner::StandInThreshold(shares) => shares.publics(),
        })
    }

    /// Proves that this secret is held, to whoever loads the public half into a committee.
    pub fn prove_possession(&self) -> PossessionProof {
        PossessionProof(match &self.0 {
            Inner::Bls(secret) => bls::prove_possession(secret),
            #[cfg(feature = "stub")]
            Inner::StandIn(_, key) => crate::stand_in::bls_share(&key[..], &key[..]).to_vec(),
            _ => Vec::new(),
        })
    }

    /// Signs `message`; the same message always gives the same share. With shares that a dealer
    /// made, as [`Sharing::Slow`] does.
    pub fn sign(&self, message: &[u8]) -> Share {
        self.sign_with(Sharing::Slow, message)
    }

    /// Signs as [`VotingSecret::sign`] does, with the share of one sharing. Schemes whose members
    /// have one key sign with that.
    pub fn sign_with(&self, sharing: Sharing, message: &[u8]) -> Share {
        Share(match &self.0 {
            Inner::Ed25519(secret) => secret.sign(message).0.to_vec(),
            Inner::Bls(secret) => bls::sign(secret, message),
            Inner::Threshold(shares) => bls::sign(shares.get(sharing), message),
            #[cfg(feature = "stub")]
            Inner::Stub(seed) => crate::stub::tag(&crate::stub::public(seed), message).to_vec(),
            #[cfg(feature = "stub")]
            Inner::StandIn(_, key) => {
                crate::stand_in::count_bls_sign();
                crate::stand_in::bls_share(&key[..], message).to_vec()
            }
            #[cfg(feature = "stub")]
            Inner::StandInThreshold(shares) => {
                crate::stand_in::count_bls_sign();
                crate::stand_in::bls_share(shares.public(sharing), message).to_vec()
            }
        })
    }
}

impl fmt::Debug for VotingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VotingSecret({}, {:?})", self.kind(), self.public())
    }
}

#[cfg(test)]
mod tests;
