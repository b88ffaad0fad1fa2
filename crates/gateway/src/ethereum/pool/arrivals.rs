//! When the last transactions came, executed or not.

use alloy_primitives::B256;
use alloy_primitives::map::B256HashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Transactions that came within a time, in their order.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    by_hash: B256HashMap<Instant>,
    order: VecDeque<(Instant, B256)>,
}

impl Arrivals {
    /// A transaction came; those that are `kept_for` older are forgotten.
    pub(super) fn note(&mut self, hash: B256, at: Instant, kept_for: Duration) {
        while let Some((then, old)) = self.order.front().copied()
            && at.saturating_duration_since(then) >= kept_for
        {
            self.order.pop_front();
            // It may have come again.
            if self.by_hash.get(&old) == Some(&then) {
                self.by_hash.remove(&old);
            }
        }
        self.by_hash.insert(hash, at);
        self.order.push_back((at, hash));
    }

    /// When it came, if it is one of them.
    pub(super) fn of(&self, hash: &B256) -> Option<Instant> {
        self.by_hash.get(hash).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_long_ago_is_forgotten() {
        const KEPT: Duration = Duration::from_millis(300);
        let (mut arrivals, start) = (Arrivals::default(), Instant::now());
        let hash = |number: u64| B256::left_padding_from(&number.to_be_bytes());
        for number in 0..100 {
            arrivals.note(hash(number), start + Duration::from_millis(100) * number as u32, KEPT);
        }
        assert_eq!((arrivals.order.len(), arrivals.by_hash.len()), (3, 3));
        assert_eq!(arrivals.of(&hash(96)), None);
        assert_eq!(arrivals.of(&hash(97)), Some(start + Duration::from_millis(9_700)));
        // One that comes again is as young as its last coming.
        arrivals.note(hash(98), start + Duration::from_millis(10_000), KEPT);
        arrivals.note(hash(200), start + Duration::from_millis(10_150), KEPT);
        assert_eq!(arrivals.of(&hash(98)), Some(start + Duration::from_millis(10_000)));
    }
}
