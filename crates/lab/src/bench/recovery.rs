//! Time that throughput took to recover from what was done to a validator.

use quorate_report::results::FaultEvent;
use quorate_report::results::beside::Recovery;

/// Recovered is what reaches this share of the rate before.
const RECOVERED: f64 = 0.8;

/// The rate before is the mean over so long, in milliseconds.
const BEFORE_MS: u64 = 2_000;

/// Operations answered over time.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// Operations answered in each interval from the beginning of the load.
    pub answered: &'a [u64],
    /// Length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// The load's warm-up and its whole length, in milliseconds.
    pub warmup_ms: u64,
    /// Length of the whole load, in milliseconds.
    pub load_ms: u64,
    /// Rates are means over so many intervals: one, or as many as two views take.
    pub smooth: usize,
}

impl Series<'_> {
    /// Recovery from each event, in their order.
    #[must_use]
    pub fn recoveries(&self, events: &[FaultEvent], timeout_ms: u64) -> Vec<Recovery> {
        let moment = |event: &FaultEvent| event.at_s * 1_000.0 + self.warmup_ms as f64;
        // What happens at one moment ends together.
        let end = |event: &FaultEvent| {
            let later = |next: &f64| *next >= moment(event) + self.interval_ms as f64;
            events.iter().map(moment).find(later).unwrap_or(self.load_ms as f64)
        };
        let ends = events.iter().map(end);
        let each = events.iter().zip(ends).filter_map(|(event, end)| {
            let recovery = self.recovery(event.clone(), moment(event), end)?;
            let view_timeouts = recovery.seconds.map(|s| tenths(s * 1_000.0 / timeout_ms as f64));
            Some(Recovery { view_timeouts, ..recovery })
        });
        each.collect()
    }

    /// `None` when there is nothing before the event to compare with, or no load after it.
    fn recovery(&self, event: FaultEvent, at_ms: f64, end_ms: f64) -> Option<Recovery> {
        let index = |ms: f64| (ms / self.interval_ms as f64) as usize;
        let (at, end) = (index(at_ms), index(end_ms.min(self.load_ms as f64)));
        let before = at.saturating_sub((BEFORE_MS / self.interval_ms) as usize)..at;
        let before_tps = self.mean(before);
        if before_tps <= 0.0 || at >= end {
            return None;
        }
        let rates: Vec<f64> = (at..end).map(|i| self.mean(i..i + self.smooth.max(1))).collect();
        let good = |rate: &f64| *rate >= RECOVERED * before_tps;
        let dip = rates.iter().position(|rate| !good(rate));
        let back = dip.and_then(|dip| Some(dip + rates[dip..].iter().position(good)?));
        let until = if dip.is_some() { back.unwrap_or(rates.len()) } else { 0 };
        let lowest_tps = rates[..until].iter().copied().fold(before_tps, f64::min);
        let elapsed = |back: usize| {
            (((at + back) as u64 * self.interval_ms) as f64 - at_ms).max(0.0) / 1_000.0
        };
        let seconds = if dip.is_some() { back.map(elapsed) } else { Some(0.0) };
        let (before_tps, lowest_tps) = (tenths(before_tps), tenths(lowest_tps));
        let seconds = seconds.map(|s| (s * 1_000.0).round() / 1_000.0);
        let after_tps = tenths(self.mean(usize::midpoint(at, end)..end));
        Some(Recovery { event, before_tps, lowest_tps, after_tps, seconds, view_timeouts: None })
    }

    /// Operations per second over these intervals; those that nobody recorded were empty.
    fn mean(&self, range: std::ops::Range<usize>) -> f64 {
        if range.is_empty() {
            return 0.0;
        }
        let count = range.len();
        let sum: u64 = range.map(|i| self.answered.get(i).copied().unwrap_or(0)).sum();
        sum as f64 * 1_000.0 / (count as f64 * self.interval_ms as f64)
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
