//! Number of bodies that a primary waits for before it fills a slot.
//!
//! A protocol that keeps several payloads under way at once could propose each body alone, as it
//! comes. Paper 002 (§VIII) spreads what is pending over half of the slots that may be under way:
//! `⌈mean pending ÷ (concurrent ÷ 2)⌉` a payload, at least one; or, once the first of them has
//! waited for as long as a batch may, what there is.

use std::time::Duration;

/// The mean is kept in so many parts of a body.
const PARTS: u64 = 1_024;
/// Number of payloads that make up most of the mean.
const MEMORY: u64 = 8;

/// Mean number of bodies that one primary has seen pending.
#[derive(Debug)]
pub(crate) struct Batching {
    delay: Duration,
    mean: u64,
}

impl Batching {
    /// With no experience yet; nothing waits for longer than `delay`.
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, mean: 0 }
    }

    /// Time that the first of these bodies may wait for more, where so many payloads may be under
    /// way; `None` if they are enough.
    pub(crate) fn waits(&self, bodies: usize, concurrent: u64) -> Option<Duration> {
        (concurrent > 1 && (bodies as u64) < self.least(concurrent)).then_some(self.delay)
    }

    fn least(&self, concurrent: u64) -> u64 {
        (2 * self.mean).div_ceil(concurrent * PARTS).max(1)
    }

    /// Takes in the number of bodies that were pending as a payload was made.
    pub(crate) fn saw(&mut self, pending: usize) {
        let pending = (pending as u64).min(u64::from(u32::MAX)) * PARTS;
        self.mean = ((MEMORY - 1) * self.mean + pending) / MEMORY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(5);

    #[test]
    fn a_payload_takes_its_part_of_what_is_usually_pending() {
        let mut batching = Batching::new(DELAY);
        assert_eq!(batching.waits(1, 4), None, "nothing is known yet");
        (0..200).for_each(|_| batching.saw(8));
        assert_eq!(batching.least(4), 4);
        assert_eq!((batching.waits(3, 4), batching.waits(4, 4)), (Some(DELAY), None));
        assert_eq!(batching.least(16), 1, "the more may be under way, the smaller they are");
        (0..200).for_each(|_| batching.saw(1));
        assert_eq!(batching.waits(1, 4), None);
    }

    #[test]
    fn one_payload_at_a_time_waits_for_nobody() {
        let mut batching = Batching::new(DELAY);
        (0..200).for_each(|_| batching.saw(100));
        assert_eq!((batching.waits(1, 0), batching.waits(1, 1)), (None, None));
    }
}
