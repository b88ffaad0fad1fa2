//! Times at which payments are due: at a rate, whatever became of those before.

use std::time::Duration;

/// An open loop of payments.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    rate: f64,
    total: u64,
    begun: u64,
}

impl Schedule {
    /// So many payments a second, for so long.
    pub(super) fn new(rate: f64, duration: Duration) -> Self {
        Self { rate, total: (rate * duration.as_secs_f64()) as u64, begun: 0 }
    }

    /// Time in microseconds since the beginning at which the next payment is due, if that is
    /// `now_us` or before.
    pub(super) fn due(&self, now_us: u64) -> Option<u64> {
        let at = self.at(self.begun);
        (self.begun < self.total && at <= now_us).then_some(at)
    }

    /// Counts a payment as begun.
    pub(super) fn begin(&mut self) {
        self.begun += 1;
    }

    /// Number of payments that are due at `now_us` and were not begun.
    pub(super) fn late(&self, now_us: u64) -> u64 {
        let due = (now_us as f64 * self.rate / 1e6) as u64 + 1;
        due.min(self.total).saturating_sub(self.begun)
    }

    /// Number of payments begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns `true` when nothing is left to begin.
    pub(super) fn is_over(&self) -> bool {
        self.begun == self.total
    }

    /// Leaves out whatever was not begun.
    pub(super) fn end(&mut self) {
        self.total = self.begun;
    }

    fn at(&self, number: u64) -> u64 {
        (number as f64 * 1e6 / self.rate) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use std::time::Duration;

    #[test]
    fn payments_are_due_at_their_rate_and_for_no_longer() {
        let mut schedule = Schedule::new(100.0, Duration::from_millis(50));
        let mut due = Vec::new();
        while let Some(at) = schedule.due(u64::MAX) {
            schedule.begin();
            due.push(at);
        }
        assert_eq!(due, [0, 10_000, 20_000, 30_000, 40_000]);
        assert!(schedule.is_over());
        assert_eq!(schedule.late(60_000), 0);
    }

    /// What was not begun in time is due when it was due, however late it is.
    #[test]
    fn a_pause_leaves_no_payment_out() {
        let mut schedule = Schedule::new(100.0, Duration::from_secs(1));
        assert_eq!(schedule.due(0), Some(0));
        schedule.begin();
        assert_eq!(schedule.due(9_999), None);
        assert_eq!((schedule.late(9_999), schedule.late(500_000)), (0, 50));
        assert_eq!(schedule.due(500_000), Some(10_000));
        schedule.end();
        assert_eq!(schedule.due(500_000), None);
        assert!(schedule.is_over() && schedule.begun() == 1);
    }
}
