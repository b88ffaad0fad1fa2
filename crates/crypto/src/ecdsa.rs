//! ECDSA on secp256k1 with recovery of the signer: how Ethereum's accounts sign.
//!
//! Signatures whose `s` is in the upper half of the order are refused: there is then one signature
//! for each that a key makes (EIP-2, ★). All of it is `libsecp256k1`'s.

use crate::SignatureError;
use crate::counts;
use crate::mutants::{self, Mutant};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1, SecretKey};

/// A signature that shows whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcdsaSignature {
    /// `r` and `s`, big-endian.
    pub scalars: [u8; 64],
    /// Parity of the nonce's point: set if its `y` is odd.
    pub is_odd: bool,
}

/// Recovers who signed a digest: the key's coordinates, big-endian.
///
/// # Errors
/// [`SignatureError::Encoding`] for scalars out of range or an `s` in the upper half,
/// [`SignatureError::Mismatch`] when no key makes such a signature.
pub fn recover(digest: &[u8; 32], signature: &EcdsaSignature) -> Result<[u8; 64], SignatureError> {
    counts::add(|count| count.secp256k1_recover += 1);
    let id = RecoveryId::from_u8_masked(u8::from(signature.is_odd));
    let parsed = RecoverableSignature::from_compact(&signature.scalars, id);
    let parsed = parsed.map_err(|_| SignatureError::Encoding)?;
    let plain = parsed.to_standard();
    let mut low = plain;
    low.normalize_s();
    if low != plain && !mutants::active(Mutant::EvmTwinSignature) {
        return Err(SignatureError::Encoding);
    }
    let key = SECP256K1.recover_ecdsa(Message::from_digest(*digest), &parsed);
    Ok(coordinates(&key.map_err(|_| SignatureError::Mismatch)?))
}

/// A key that signs. It is wiped from memory when it is dropped.
#[derive(zeroize::ZeroizeOnDrop)]
pub struct EcdsaSecret([u8; 32]);

impl std::fmt::Debug for EcdsaSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EcdsaSecret")
    }
}

impl EcdsaSecret {
    /// The key with these bytes, unless they are zero or beyond the order.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        SecretKey::from_byte_array(bytes).is_ok().then_some(Self(bytes))
    }

    /// The public key's coordinates, big-endian.
    #[must_use]
    pub fn public(&self) -> [u8; 64] {
        coordinates(&PublicKey::from_secret_key(SECP256K1, &self.key()))
    }

    /// Signs a digest (RFC 6979: the same signature every time).
    #[must_use]
    pub fn sign(&self, digest: &[u8; 32]) -> EcdsaSignature {
        let message = Message::from_digest(*digest);
        let signature = SECP256K1.sign_ecdsa_recoverable(message, &self.key());
        let (id, scalars) = signature.serialize_compact();
        EcdsaSignature { scalars, is_odd: id == RecoveryId::One }
    }

    fn key(&self) -> SecretKey {
        SecretKey::from_byte_array(self.0).expect("checked when it was made")
    }
}

fn coordinates(key: &PublicKey) -> [u8; 64] {
    let bytes = key.serialize_uncompressed();
    bytes[1..].try_into().expect("65 bytes, the first of them the form")
}

#[cfg(test)]
mod tests;
