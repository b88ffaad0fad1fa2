//! Payments by when they were certified: rates, latencies, pauses.

use crate::load::Latencies;
use quorate_report::results::LatencyMs;

/// Counts of a load, from its first payment on. Times are in microseconds since then.
pub(super) struct Tally {
    latencies: Latencies,
    certified_per_second: Vec<u64>,
    certified: u64,
    last_us: u64,
    longest_pause_us: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            latencies: Latencies::new(0..u64::MAX),
            certified_per_second: Vec::new(),
            certified: 0,
            last_us: 0,
            longest_pause_us: 0,
        }
    }

    /// Counts a payment that was due then and is certified now.
    pub(super) fn add(&mut self, due_us: u64, now_us: u64) {
        self.latencies.add(due_us, now_us.saturating_sub(due_us), 1);
        let second = usize::try_from(now_us / 1_000_000).expect("fewer seconds than that");
        if self.certified_per_second.len() <= second {
            self.certified_per_second.resize(second + 1, 0);
        }
        self.certified_per_second[second] += 1;
        self.certified += 1;
        self.longest_pause_us = self.longest_pause_us.max(now_us.saturating_sub(self.last_us));
        self.last_us = now_us;
    }

    pub(super) fn certified(&self) -> u64 {
        self.certified
    }

    pub(super) fn per_second(&self) -> &[u64] {
        &self.certified_per_second
    }

    pub(super) fn latency_ms(&self) -> LatencyMs {
        self.latencies.summary()
    }

    /// Longest time in which nothing was certified, up to `now_us` while payments are open.
    pub(super) fn longest_pause_ms(&self, now_us: u64, is_open: bool) -> u64 {
        let current = if is_open { now_us.saturating_sub(self.last_us) } else { 0 };
        self.longest_pause_us.max(current) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn pauses_last_from_one_certificate_to_the_next() {
        let mut tally = Tally::new();
        tally.add(0, 10_000);
        tally.add(10_000, 20_000);
        tally.add(20_000, 2_520_000);
        assert_eq!(tally.longest_pause_ms(9_000_000, false), 2_500);
        assert_eq!(tally.longest_pause_ms(9_000_000, true), 6_480);
        assert_eq!((tally.certified(), tally.per_second()), (3, &[2, 0, 1][..]));
        // From when it was due, not from when it could be sent.
        assert!(tally.latency_ms().max >= 2_500.0, "{:?}", tally.latency_ms());
    }
}
