//! Every random draw of a run, from its seed.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A stream of random draws. Each purpose has its own, so that one more draw for the network does
/// not change what the disks do.
#[derive(Debug)]
pub struct Rng {
    stream: ChaCha8Rng,
}

impl Rng {
    /// Stream that `seed` determines for `purpose`; `index` tells hosts apart.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("quorate sim dice");
        hasher.update(&seed.to_le_bytes()).update(&index.to_le_bytes()).update(purpose.as_bytes());
        Self { stream: ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()) }
    }

    /// Draws 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// Draws a number below `bound`, each as likely.
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).expect("less than the bound")
    }

    /// Draws an index below `count`.
    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).expect("less than a usize")
    }

    /// Draws a number from a range, both ends included.
    pub fn between(&mut self, range: &RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// Draws a span from a range of microseconds.
    pub fn span(&mut self, range: &RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.between(range))
    }

    /// `true` in one of two draws.
    pub fn coin(&mut self) -> bool {
        self.one_in(2)
    }

    /// `true` in one of `count` draws.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// `true` in `percent` of a hundred draws.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Draws a number from the range with a chance of one half, otherwise 0: a fault that is on or
    /// off.
    pub fn perhaps(&mut self, range: &RangeInclusive<u64>) -> u64 {
        if self.coin() { self.between(range) } else { 0 }
    }

    /// Draws one of several items.
    ///
    /// # Panics
    /// When there is none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Draws 32 bytes, as seeds of keys are.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.stream.fill_bytes(&mut bytes);
        bytes
    }
}
