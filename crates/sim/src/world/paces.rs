//! Paces that a host sets, as if its threads waited for processors more or less.

use quorate_deterministic::Rng;
use std::time::Duration;

/// After one of so many syncs the pace is another one.
const SYNCS: u64 = 8;

/// Source of a host's paces.
#[derive(Debug)]
pub(crate) struct Paces {
    most_us: u64,
    rng: Rng,
}

impl Paces {
    /// Paces of this host of a seed's, up to so many microseconds; none where that is 0.
    pub(crate) fn new(seed: u64, host: usize, most_us: u64) -> Self {
        Self { most_us, rng: Rng::new(seed, "paces of a host", host as u64) }
    }

    /// A sync is complete: the pace from now on, if it is another one; none at all in half of the
    /// cases.
    pub(crate) fn synced(&mut self) -> Option<Duration> {
        if self.most_us == 0 || !self.rng.one_in(SYNCS) {
            return None;
        }
        let is_paced = self.rng.coin();
        Some(if is_paced { self.rng.span(&(0..=self.most_us)) } else { Duration::ZERO })
    }
}
