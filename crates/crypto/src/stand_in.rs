//! Signatures that look like Ed25519 and BLS, cost next to nothing and can be forged by anyone: for
//! simulations that *price* cryptography instead of computing it.
//!
//! While a thread holds [`StandIns`], everything signed or checked on it is a stand-in: as many
//! bytes on the wire, the same operations in [`counts`](crate::counts) under each policy and key
//! cache, and a keyed hash under the signer's public key instead of arithmetic. Shares of a
//! stand-in BLS certificate are added by exclusive or; a stand-in threshold certificate is a hash
//! under the group's key. As an oracle they are sound like the stub scheme: a signature is bound to
//! signer and message, and every mistake is refused.
//!
//! Keys, committees and signatures made under it are good under it alone. What the simulator drives
//! is one thread for one scene, so that a thread-local switch reaches every signature of a scene
//! and nothing else; no validator can be configured to have it.

#[cfg(not(feature = "stub"))]
pub(crate) use disabled::{active, check, count_batch, signature};
#[cfg(feature = "stub")]
pub use enabled::StandIns;
#[cfg(feature = "stub")]
pub(crate) use enabled::{
    StandInScheme, active, bls_key, bls_share, check, count_batch, count_bls_sign, signature,
};
#[cfg(feature = "stub")]
pub(crate) use threshold::{Shares, StandInThreshold};

#[cfg(feature = "stub")]
mod enabled;
#[cfg(feature = "stub")]
mod threshold;

#[cfg(not(feature = "stub"))]
mod disabled {
    use crate::SignatureError;

    /// Returns `false`: without the feature `stub` there are none.
    #[inline(always)]
    pub(crate) const fn active() -> bool {
        false
    }

    pub(crate) fn signature(_: &[u8; 32], _: &[u8]) -> [u8; 64] {
        unreachable!("stand-ins are never active")
    }

    pub(crate) fn check(_: &[u8; 32], _: &[u8], _: &[u8; 64]) -> Result<(), SignatureError> {
        unreachable!("stand-ins are never active")
    }

    pub(crate) fn count_batch(_: usize, _: bool) {}
}
