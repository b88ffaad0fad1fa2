//! Weights for random-linear-combination checks, without ambient randomness.

/// A stream of 128-bit weights determined by everything that is being weighed (Fiat–Shamir).
///
/// A forger who wants chosen errors to cancel must fix the batch before learning its weights.
/// Hashing the whole batch (keys, messages and signatures) gives exactly that: changing anything
/// changes every weight, so a batch with a bad member passes with probability about 2⁻¹²⁸ per
/// attempt.
pub(crate) struct BatchWeights(blake3::OutputReader);

impl BatchWeights {
    /// Weights from a hasher that has absorbed the whole batch, unambiguously.
    pub(crate) fn new(batch: &blake3::Hasher) -> Self {
        Self(batch.finalize_xof())
    }

    /// The next weight, never zero: a zero weight would leave its item unchecked.
    pub(crate) fn next(&mut self) -> u128 {
        loop {
            let mut bytes = [0; 16];
            self.0.fill(&mut bytes);
            match u128::from_le_bytes(bytes) {
                0 => continue,
                weight => return weight,
            }
        }
    }
}
