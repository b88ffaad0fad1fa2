//! Identity keys: Ed25519 under ZIP-215.
//!
//! ZIP-215 fixes which signatures are valid where RFC 8032 leaves it open: points need not be
//! canonically encoded, `s` must be below the group's order, and the equation is the cofactored
//! `[8][s]B = [8]R + [8][k]A`. The equation without cofactor, which the usual libraries use for
//! single signatures, disagrees with any batch check about points of small order; then one replica
//! accepts what another refuses.

use crate::counts;
use crate::ed25519::batch;
use crate::error::{KeyError, SignatureError};
use crate::mutants::{self, Mutant};
use crate::stand_in;
use crate::voting_key::PossessionProof;
use borsh::{BorshDeserialize, BorshSerialize};
use curve25519_dalek::edwards::EdwardsPoint;
use ed25519_zebra::{SigningKey, VerificationKey, VerificationKeyBytes};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Label of the statement by which an identity's holder proves its secret, before the key itself.
/// Nothing else that is signed begins so.
pub const IDENTITY_POSSESSION: &str = "quorate/v1/POSSESSION/";

/// The secret half of an identity. Wiped from memory when dropped; never printed.
#[derive(Clone)]
pub struct IdentitySecret(Box<Zeroizing<SigningKey>>);

impl IdentitySecret {
    /// The key that RFC 8032 derives from a 32-byte seed.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        Self(Box::new(Zeroizing::new(SigningKey::from_bytes(&seed))))
    }

    /// The seed it was made from.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(*self.0.as_bytes())
    }

    /// The public key that this secret signs for.
    pub fn public(&self) -> IdentityKey {
        IdentityKey(VerificationKeyBytes::from(&**self.0).into())
    }

    /// Signs `message`; the same message always gives the same signature.
    pub fn sign(&self, message: &[u8]) -> Signature {
        counts::add(|count| count.ed25519_sign += 1);
        if stand_in::active() {
            return Signature(stand_in::signature(&self.public().0, message));
        }
        Signature(self.0.sign(message).to_bytes())
    }

    /// Proves that this secret is held, to whoever takes the public half into a committee.
    ///
    /// As the proof of a voting key it names no committee: entries are made before there is one.
    /// Whoever copies both into another committee's file gets a member there that never speaks, for
    /// all that members sign names the chain.
    pub fn prove_possession(&self) -> PossessionProof {
        PossessionProof(self.sign(&possession_statement(&self.public())).0.to_vec())
    }
}

fn possession_statement(key: &IdentityKey) -> Vec<u8> {
    [IDENTITY_POSSESSION.as_bytes(), &key.0].concat()
}

impl fmt::Debug for IdentitySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdentitySecret({})", self.public())
    }
}

/// The public half of an identity: 32 bytes, shown in hexadecimal. Any bytes can be put here; bytes
/// that encode no point verify nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct IdentityKey(pub [u8; 32]);

impl IdentityKey {
    /// Checks `signature` on `message`.
    ///
    /// Decompresses the key each time; [`PreparedIdentity`] does so once.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        counts::add(|count| count.ed25519_key_reads += 1);
        if stand_in::active() {
            counts::add(|count| count.ed25519_verify += 1);
            return stand_in::check(&self.0, message, &signature.0);
        }
        self.prepare()?.verify(message, signature)
    }

    /// Decompresses the key. [`SignatureError::Key`] if it encodes no point.
    pub fn prepare(&self) -> Result<PreparedIdentity, SignatureError> {
        let key = VerificationKey::try_from(self.0).map_err(|_| SignatureError::Key)?;
        Ok(PreparedIdentity { key })
    }

    /// Refuses what no honest member has for its key: bytes that are no point's one encoding,
    /// points of small order, under which anyone can sign, and those outside the prime-order
    /// subgroup.
    pub fn check(&self) -> Result<(), KeyError> {
        self.member_point().map(drop)
    }

    /// The key's point, if [`IdentityKey::check`] finds nothing.
    pub(crate) fn member_point(&self) -> Result<EdwardsPoint, KeyError> {
        let point = batch::decompress(&self.0).ok_or(KeyError::Encoding)?;
        if point.compress().to_bytes() != self.0 {
            return Err(KeyError::Encoding);
        }
        if point.is_small_order() && !mutants::active(Mutant::AcceptIdentity) {
            return Err(KeyError::Identity);
        }
        if !point.is_torsion_free() {
            return Err(KeyError::Subgroup);
        }
        Ok(point)
    }

    /// Checks that the key's holder made this proof (★): nobody takes part under a key that it
    /// copied. The key itself is [`IdentityKey::check`]'s to judge.
    pub fn check_possession(&self, proof: &PossessionProof) -> Result<(), KeyError> {
        if mutants::active(Mutant::AcceptUnheldIdentity) {
            return Ok(());
        }
        if proof.0.is_empty() {
            return Err(KeyError::NoIdentityProof);
        }
        let bytes = proof.0[..].try_into().map_err(|_| KeyError::Possession)?;
        self.verify(&possession_statement(self), &Signature(bytes))
            .map_err(|_| KeyError::Possession)
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::Hex)?;
        Ok(Self(bytes))
    }
}

impl FromStr for IdentityKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text)
    }
}

impl fmt::Display for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdentityKey({})", hex::encode(&self.0[..4]))
    }
}

/// An Ed25519 signature: `R` and `s`, 32 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", hex::encode(&self.0[..4]))
    }
}

/// An identity key decompressed once, for a peer whose signatures are checked again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PreparedIdentity {
    key: VerificationKey,
}

impl PreparedIdentity {
    /// The key that was prepared, in its encoding.
    pub fn key(&self) -> IdentityKey {
        IdentityKey(self.key.into())
    }

    /// Checks `signature` on `message`.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        counts::add(|count| count.ed25519_verify += 1);
        if stand_in::active() {
            return stand_in::check(&self.key().0, message, &signature.0);
        }
        self.key
            .verify(&ed25519_zebra::Signature::from_bytes(&signature.0), message)
            .map_err(|_| SignatureError::Mismatch)
    }
}

impl fmt::Debug for PreparedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedIdentity({})", self.key())
    }
}

/// Checks many signatures at once, at about half the cost of one by one.
///
/// Accepts exactly the batches whose every signature [`IdentityKey::verify`] accepts (but for a
/// chance of 2⁻¹²⁸). An error says only that some signature is bad; check singly to learn which. An
/// empty batch is accepted.
pub fn verify_batch(items: &[(IdentityKey, &[u8], Signature)]) -> Result<(), SignatureError> {
    if stand_in::active() {
        stand_in::count_batch(items.len(), true);
        return items.iter().try_for_each(|(key, message, signature)| {
            stand_in::check(&key.0, message, &signature.0)
        });
    }
    let mut parsed = Vec::with_capacity(items.len());
    for (key, message, signature) in items {
        let point = batch::decompress(&key.0).ok_or(SignatureError::Key)?;
        parsed.push((point, batch::Item::parse(&key.0, message, &signature.0)?));
    }
    batch::check(&parsed)
}

#[cfg(test)]
pub(crate) mod tests;
