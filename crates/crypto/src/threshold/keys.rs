//! Encoding of a member's shares of each sharing, one after the other.

use super::sharing::{BySharing, Sharing};
use crate::bls::points;
use crate::bls::{self, SecretKey};
use crate::error::KeyError;
use crate::options::SchemeKind;
use zeroize::Zeroizing;

/// Bytes of a member's public shares: one a sharing, in the order of [`Sharing::ALL`].
pub(crate) const KEY_BYTES: usize = Sharing::ALL.len() * points::KEY_BYTES;
/// Bytes of a member's secret shares, likewise.
pub(crate) const SECRET_BYTES: usize = Sharing::ALL.len() * 32;

/// Reads a member's secret shares, one after the other.
pub(crate) fn read_secrets(bytes: &[u8]) -> Result<BySharing<SecretKey>, KeyError> {
    let kind = SchemeKind::BlsThreshold;
    points::check_length(kind, "secret key", SECRET_BYTES, bytes)?;
    let (parts, _) = bytes.as_chunks::<32>();
    BySharing::try_from_fn(|sharing| bls::read_secret(&parts[sharing as usize]))
}

/// Encodes shares for [`read_secrets`]. Room for all at once: growing would leave copies behind.
pub(crate) fn write_secrets(shares: &BySharing<SecretKey>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SECRET_BYTES);
    for sharing in Sharing::ALL {
        bytes.extend_from_slice(&Zeroizing::new(shares.get(sharing).to_bytes())[..]);
    }
    bytes
}

/// The public halves, one after the other.
pub(crate) fn public_shares(shares: &BySharing<SecretKey>) -> Vec<u8> {
    Sharing::ALL.iter().flat_map(|one| shares.get(*one).sk_to_pk().to_bytes()).collect()
}

/// Cuts a member's public shares apart; each is [`points::KEY_BYTES`] long and otherwise unchecked.
pub(super) fn split_key(bytes: &[u8]) -> Result<BySharing<&[u8]>, KeyError> {
    points::check_length(SchemeKind::BlsThreshold, "public key", KEY_BYTES, bytes)?;
    let part = |sharing| {
        let start = sharing as usize * points::KEY_BYTES;
        &bytes[start..start + points::KEY_BYTES]
    };
    Ok(BySharing::from_fn(part))
}
