//! Random draws of the tests: a seed names a run for ever.

/// A small linear congruential generator.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// Draws a number below the limit; 0 when there is none.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit.max(1) as u64).expect("below a usize")
    }
}
