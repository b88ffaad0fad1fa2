//! The sharings that one member takes part in, and what is kept for each.

use crate::bls::points;
use crate::bls::{self, SecretKey};
use crate::error::KeyError;
use crate::scheme::SchemeKind;
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a member's public shares: one a sharing, in the order of [`Sharing::ALL`].
pub(crate) const KEY_BYTES: usize = Sharing::ALL.len() * points::KEY_BYTES;
/// Bytes of a member's secret shares, likewise.
pub(crate) const SECRET_BYTES: usize = Sharing::ALL.len() * 32;

/// Which of a committee's independent secrets a share is of: SBFT's σ, τ and π.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sharing {
    /// σ: all but a few, who decide at once.
    Fast,
    /// τ: a quorum.
    Slow,
    /// π: enough to include an honest member, who vouch for what executing a block came to.
    Execution,
}

impl Sharing {
    /// All of them, in the order in which a member's keys are written.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Execution];
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Execution => "execution",
        })
    }
}

/// One thing for each sharing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BySharing<T> {
    /// For [`Sharing::Fast`].
    pub fast: T,
    /// For [`Sharing::Slow`].
    pub slow: T,
    /// For [`Sharing::Execution`].
    pub execution: T,
}

impl<T> BySharing<T> {
    /// What `make` gives for each.
    pub fn from_fn(mut make: impl FnMut(Sharing) -> T) -> Self {
        Self {
            fast: make(Sharing::Fast),
            slow: make(Sharing::Slow),
            execution: make(Sharing::Execution),
        }
    }

    /// As [`BySharing::from_fn`], up to the first error.
    pub fn try_from_fn<E>(mut make: impl FnMut(Sharing) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            fast: make(Sharing::Fast)?,
            slow: make(Sharing::Slow)?,
            execution: make(Sharing::Execution)?,
        })
    }

    /// One of them.
    pub fn get(&self, sharing: Sharing) -> &T {
        match sharing {
            Sharing::Fast => &self.fast,
            Sharing::Slow => &self.slow,
            Sharing::Execution => &self.execution,
        }
    }
}

/// Reads a member's secret shares, one after the other.
pub(crate) fn read_secrets(bytes: &[u8]) -> Result<BySharing<SecretKey>, KeyError> {
    let kind = SchemeKind::BlsThreshold;
    points::check_length(kind, "secret key", SECRET_BYTES, bytes)?;
    let (parts, _) = bytes.as_chunks::<32>();
    BySharing::try_from_fn(|sharing| bls::read_secret(&parts[sharing as usize]))
}

/// What [`read_secrets`] reads. Room for all at once: growing would leave copies behind.
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
