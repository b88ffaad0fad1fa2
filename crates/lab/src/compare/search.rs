//! The highest rate that a committee keeps up with.

use crate::experiment::{Measured, RunError, metrics};

/// A knee is known to within this share of itself.
pub const PRECISION: f64 = 0.08;
/// Keeping up is committing this share of what is offered: commits come in blocks, of which a short
/// window may hold one or two fewer. Lasting overload shows in the latency too.
pub const KEPT_UP: f64 = 0.92;
/// Keeping up is having at most so many times the median latency that there is under little load.
pub const LATENCY_FACTOR: f64 = 2.0;

/// Little load, and the lowest rate of a knee.
pub(super) const RATE_MIN: u64 = 500;
/// First rate of the search, in operations per second.
const RATE_FIRST: u64 = 20_000;
/// Factor to the next rate while nothing is too much, and down at most while nothing is kept up
/// with.
const STEP: f64 = 3.0;
/// The same at first when it begins near a rate that is known to be a good guess; squared each
/// time.
const STEP_NEAR: f64 = 1.16;
/// Nothing beyond is tried.
const RATE_MAX: u64 = 400_000;
/// Nor is more than so many times a rate that was asked for: what there is to spare beyond decides
/// nothing.
const ASKED_MAX: u64 = 4;
/// Most points of a search.
const PROBES_MAX: usize = 12;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// The highest rate that was kept up with; 0 for none.
    pub(super) rate: u64,
    /// Operations committed per second under it.
    pub(super) committed_tps: f64,
    /// `true` if nothing beyond was tried.
    pub(super) is_capped: bool,
    /// The median latency under little load, in milliseconds.
    pub(super) idle_ms: f64,
    /// Bytes of a certificate.
    pub(super) certificate_bytes: f64,
}

/// Searches one candidate's knee by what it measures at each rate, beginning near one where there
/// is a guess, and not far beyond one that was asked for.
pub(super) fn knee(
    asked: Option<u64>,
    near: Option<u64>,
    measure: impl Fn(u64) -> Result<Option<Measured>, RunError>,
) -> Result<Knee, RunError> {
    let Some(idle) = measure(RATE_MIN)? else {
        return Ok(Knee::none(f64::INFINITY, 0.0));
    };
    let idle_ms = latency(&idle, "p50").unwrap_or(f64::INFINITY);
    let certificate_bytes = idle.numbers.get("certificate_bytes").copied().unwrap_or(0.0);
    let mut search = Search::up_to(asked).near(near);
    // Little load makes few samples.
    if committed(&idle) < KEPT_UP * RATE_MIN as f64 {
        return Ok(Knee::none(idle_ms, certificate_bytes));
    }
    search.good = RATE_MIN;
    let mut committed_tps = committed(&idle);
    for _ in 0..PROBES_MAX {
        let Some(rate) = search.next() else { break };
        let measured = measure(rate)?;
        let tps = measured.as_ref().map_or(0.0, committed);
        let kept = measured.as_ref().is_some_and(|one| kept_up(one, rate, idle_ms));
        if kept {
            committed_tps = tps.min(rate as f64);
        }
        search.learn(rate, kept, tps);
    }
    let is_capped = search.good >= search.most;
    Ok(Knee { rate: search.good, committed_tps, is_capped, idle_ms, certificate_bytes })
}

impl Knee {
    /// Not even little load is kept up with.
    fn none(idle_ms: f64, certificate_bytes: f64) -> Self {
        Self { rate: 0, committed_tps: 0.0, is_capped: false, idle_ms, certificate_bytes }
    }
}

fn committed(measured: &Measured) -> f64 {
    measured.numbers.get("committed_tps").copied().unwrap_or(0.0)
}

/// Tells whether a committee kept up with a rate, without doubt.
pub(super) fn kept_up(measured: &Measured, rate: u64, idle_ms: f64) -> bool {
    let quick = latency(measured, "p50").is_some_and(|ms| ms <= LATENCY_FACTOR * idle_ms);
    let stands = measured.details[metrics::DOUBTS].as_array().is_none_or(Vec::is_empty);
    committed(measured) >= KEPT_UP * rate as f64 && quick && stands
}

/// A latency: until one validator committed, or where that is not known, until the client was
/// answered.
pub(super) fn latency(measured: &Measured, which: &str) -> Option<f64> {
    let of = |whose: &str| measured.numbers.get(&format!("latency_{whose}_{which}_ms")).copied();
    of("one").or_else(|| of("client"))
}

/// State of the search, which gives the next rate.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Nothing beyond is tried.
    most: u64,
    /// Rate that is tried first.
    first: u64,
    /// Factor to the next rate while the knee is on one side of everything that was tried.
    step: f64,
    /// The highest that was kept up with.
    good: u64,
    /// The lowest that was not, once there is one.
    bad: Option<u64>,
    /// Rate committed under the last load that was too much: a good guess, once.
    guess: Option<u64>,
}

impl Search {
    /// A search for the highest rate, or for whether one that was asked for is taken.
    fn up_to(asked: Option<u64>) -> Self {
        let most = asked.map_or(RATE_MAX, |rate| (ASKED_MAX * rate).clamp(RATE_MIN, RATE_MAX));
        let first = asked.unwrap_or(RATE_FIRST).clamp(RATE_MIN, RATE_MAX);
        Self { most, first, step: STEP, good: 0, bad: None, guess: None }
    }

    /// The same, beginning with small steps from where another committee's knee was.
    fn near(self, knee: Option<u64>) -> Self {
        let Some(knee) = knee.filter(|rate| *rate > RATE_MIN) else { return self };
        Self { first: knee.min(self.most), step: STEP_NEAR, ..self }
    }

    fn next(self) -> Option<u64> {
        let Some(bad) = self.bad else {
            let higher = (self.good as f64 * self.step) as u64;
            let next = if self.good < self.first { self.first } else { higher };
            return (self.good < self.most).then_some(next.min(self.most));
        };
        if bad as f64 <= self.good as f64 * (1.0 + PRECISION) {
            return None;
        }
        let middle = (self.good as f64 * bad as f64).sqrt().max(bad as f64 / self.step);
        let least = self.good as f64 * (1.0 + PRECISION / 2.0);
        let most = bad as f64 / (1.0 + PRECISION / 2.0);
        let wanted = self.guess.map_or(middle, |rate| rate as f64);
        Some(wanted.max(least).min(most) as u64)
    }

    fn learn(&mut self, rate: u64, kept: bool, committed: f64) {
        self.step = (self.step * self.step).min(STEP);
        if kept {
            self.good = rate;
            self.guess = None;
            return;
        }
        // The same guess twice would creep: from then on the gap is halved.
        let first = self.guess.is_none();
        self.bad = Some(rate);
        self.guess = Some(committed as u64).filter(|tps| first && *tps > self.good);
    }
}

#[cfg(test)]
mod tests {
    use super::{PRECISION, RATE_MAX, RATE_MIN, Search};

    /// Runs a search for a committee that takes exactly so much.
    fn found(knee: u64, asked: Option<u64>) -> (u64, usize) {
        run(Search::up_to(asked), knee)
    }

    fn run(search: Search, knee: u64) -> (u64, usize) {
        let mut search = Search { good: RATE_MIN, ..search };
        let mut probes = 0;
        while let Some(rate) = search.next() {
            let kept = rate <= knee;
            search.learn(rate, kept, rate.min(knee) as f64);
            probes += 1;
            assert!(probes < 30, "the search for {knee} ends");
        }
        (search.good, probes)
    }

    #[test]
    fn any_knee_is_found_to_the_promised_precision() {
        for knee in [600, 3_000, 19_999, 20_000, 48_321, 180_000, 399_999] {
            let (rate, probes) = found(knee, None);
            assert!(rate <= knee, "{knee}: {rate} is too much");
            assert!(rate as f64 * (1.0 + PRECISION) >= knee as f64 * 0.999, "{knee}: only {rate}");
            assert!(probes <= 10, "{knee}: {probes} points");
        }
        assert_eq!(found(RATE_MAX, None).0, RATE_MAX, "nothing beyond is tried");
    }

    #[test]
    fn a_good_guess_saves_points() {
        let points = |near| run(Search::up_to(None).near(Some(near)), 48_000);
        let good = [40_000, 46_000, 48_000, 50_000, 60_000].map(|near| (near, 5));
        let bad = [2_000, 300_000].map(|near| (near, 11));
        for (near, most) in good.into_iter().chain(bad) {
            let (rate, probes) = points(near);
            assert!(
                rate <= 48_000 && rate as f64 * (1.0 + PRECISION) >= 47_990.0,
                "{near}: {rate}"
            );
            assert!(probes <= most, "{near}: {probes} points");
        }
    }

    #[test]
    fn little_is_tried_beyond_a_rate_that_was_asked_for() {
        // What was asked for, then thrice that, then four times.
        assert_eq!(found(RATE_MAX, Some(1_000)), (4_000, 3));
        let (rate, _) = found(3_000, Some(1_000));
        assert!((2_700..=3_000).contains(&rate), "{rate}");
    }

    #[test]
    fn a_knee_below_the_first_rate_is_found() {
        assert!(found(RATE_MIN + 10, None).0 >= RATE_MIN);
    }
}
