//! Data that its owner alone reads again: sealed under a key that follows from a secret, with
//! XChaCha20-Poly1305, by the crate `chacha20poly1305`.
//!
//! Sealing takes no randomness from the system: the nonce is a hash of the key, the context and the
//! data, so that the same again gives the same bytes and anything else has another nonce. Whoever
//! sees two sealed things can tell that they are equal, and nothing else.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;

/// Secret key that seals and opens. Wiped when dropped; never printed.
pub struct SealingKey(Zeroizing<[u8; 32]>);

impl SealingKey {
    /// Bytes that sealing adds: a nonce and a tag.
    pub const OVERHEAD_BYTES: usize = NONCE_BYTES + 16;

    /// The key that a secret seed determines for one purpose, a constant of the program.
    #[must_use]
    pub fn derive(seed: &[u8; 32], purpose: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 sealing key");
        hasher.update(seed);
        hasher.update(purpose);
        Self(Zeroizing::new(*hasher.finalize().as_bytes()))
    }

    /// Seals `plain` for this key in this context, without which it does not open.
    #[must_use]
    pub fn seal(&self, context: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce = self.nonce(context, plain);
        let mut sealed = plain.to_vec();
        let cipher = XChaCha20Poly1305::new((&*self.0).into());
        cipher
            .encrypt_in_place(&XNonce::from(nonce), context, &mut sealed)
            .expect("what fits into memory is short enough to seal");
        [&nonce[..], &sealed].concat()
    }

    /// Opens what [`SealingKey::seal`] made in this context; `None` if it did not.
    #[must_use]
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let mut plain = ciphertext.to_vec();
        let cipher = XChaCha20Poly1305::new((&*self.0).into());
        cipher.decrypt_in_place(&XNonce::from(*nonce), context, &mut plain).ok()?;
        Some(plain)
    }

    fn nonce(&self, context: &[u8], plain: &[u8]) -> [u8; NONCE_BYTES] {
        let mut hasher = blake3::Hasher::new_derive_key("quorate 2026-11 sealing nonce");
        hasher.update(&self.0[..]);
        hasher.update(&(context.len() as u64).to_le_bytes());
        hasher.update(context);
        hasher.update(plain);
        let mut nonce = [0; NONCE_BYTES];
        hasher.finalize_xof().fill(&mut nonce);
        nonce
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

#[cfg(test)]
mod tests {
    use super::SealingKey;

    fn key(seed: u8, purpose: &[u8]) -> SealingKey {
        SealingKey::derive(&[seed; 32], purpose)
    }

    #[test]
    fn what_was_sealed_opens_with_its_key_and_context_alone() {
        let sealed = key(1, b"a").seal(b"here", b"invoice 7");
        assert_eq!(key(1, b"a").open(b"here", &sealed).as_deref(), Some(&b"invoice 7"[..]));
        assert_eq!(sealed.len(), 9 + SealingKey::OVERHEAD_BYTES);
        assert_eq!(sealed, key(1, b"a").seal(b"here", b"invoice 7"), "no randomness");
        assert_eq!(key(2, b"a").open(b"here", &sealed), None);
        assert_eq!(key(1, b"b").open(b"here", &sealed), None);
        assert_eq!(key(1, b"a").open(b"there", &sealed), None);
        assert_eq!(key(1, b"a").open(b"here", b"short"), None);
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert_eq!(key(1, b"a").open(b"here", &altered), None, "byte {at}");
        }
    }

    #[test]
    fn other_contents_have_other_nonces() {
        let [one, other] = [b"one", b"two"].map(|text| key(1, b"a").seal(b"", text));
        assert_ne!(one[..24], other[..24]);
        assert_ne!(one[..24], key(1, b"a").seal(b"x", b"one")[..24]);
    }
}
