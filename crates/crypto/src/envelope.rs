//! Messages sealed for one reader, in public: HPKE (RFC 9180) in base mode with X25519,
//! HKDF-SHA256 and ChaCha20-Poly1305, by the crate `hpke`.
//!
//! Who sealed an envelope it does not say: whoever publishes it signs it. What it is about goes
//! into its `context`, without which it does not open, so that no envelope is of use in another's
//! place.
//!
//! Sealing takes no randomness from the system. The sender's one-time key is derived from a secret
//! seed, the reader, the context and the message, so that sealing the same again gives the same
//! bytes, and sealing anything else takes another key.

use borsh::{BorshDeserialize, BorshSerialize};
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{
    Deserializable, Kem, OpModeR, OpModeS, Serializable, single_shot_open,
    single_shot_seal_with_rng,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::fmt;
use zeroize::Zeroizing;

const INFO: &[u8] = b"quorate v1 envelope";

/// Public key that envelopes are sealed to: 32 bytes. Any bytes can be put here; those that are no
/// key nobody can seal for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct EnvelopeKey(pub [u8; 32]);

/// Secret key that opens envelopes. Kept as the seed that it follows from, wiped when dropped;
/// never printed.
pub struct EnvelopeSecret(Zeroizing<[u8; 32]>);

/// Message sealed for one reader, with the one-time key that it was sealed under.
#[derive(Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Envelope {
    /// The sender's one-time key, encapsulated.
    pub encapsulated: [u8; 32],
    /// The ciphertext and its tag of 16 bytes.
    pub ciphertext: Vec<u8>,
}

impl EnvelopeSecret {
    /// The secret that a secret seed determines for one purpose.
    #[must_use]
    pub fn derive(seed: &[u8; 32], purpose: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 envelope secret");
        hasher.update(seed);
        hasher.update(purpose);
        Self(Zeroizing::new(*hasher.finalize().as_bytes()))
    }

    /// The key that others seal envelopes to.
    #[must_use]
    pub fn public(&self) -> EnvelopeKey {
        let (_, public) = X25519HkdfSha256::derive_keypair(&self.0[..]);
        EnvelopeKey(public.to_bytes().into())
    }

    /// Opens an envelope that was sealed for this reader in this context; `None` if it was not.
    #[must_use]
    pub fn open(&self, envelope: &Envelope, context: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (secret, _) = X25519HkdfSha256::derive_keypair(&self.0[..]);
        let encapsulated =
            <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&envelope.encapsulated).ok()?;
        single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &secret,
            &encapsulated,
            INFO,
            &envelope.ciphertext,
            context,
        )
        .ok()
        .map(Zeroizing::new)
    }
}

impl EnvelopeKey {
    /// Seals `message` for this reader; `None` if this is nobody's key. `seed` is the sender's
    /// secret.
    #[must_use]
    pub fn seal(&self, seed: &[u8; 32], context: &[u8], message: &[u8]) -> Option<Envelope> {
        let public = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(&self.0).ok()?;
        let (encapsulated, ciphertext) =
            single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Base,
                &public,
                INFO,
                message,
                context,
                &mut self.randomness(seed, context, message),
            )
            .ok()?;
        Some(Envelope { encapsulated: encapsulated.to_bytes().into(), ciphertext })
    }

    fn randomness(&self, seed: &[u8; 32], context: &[u8], message: &[u8]) -> ChaCha20Rng {
        let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 envelope randomness");
        hasher.update(seed);
        hasher.update(&self.0);
        hasher.update(&(context.len() as u64).to_le_bytes());
        hasher.update(context);
        hasher.update(message);
        ChaCha20Rng::from_seed(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for EnvelopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnvelopeKey({})", hex::encode(&self.0[..4]))
    }
}

impl fmt::Debug for EnvelopeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnvelopeSecret({:?})", self.public())
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Envelope({} bytes)", self.ciphertext.len())
    }
}

#[cfg(test)]
mod tests;
