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

/// Share of a resource, in per cent, from which on it is what a rate was too much for; and up to
/// which a load is taken to grow evenly with the rate.
const FULL: f64 = 92.0;
/// Per cent that a resource may lack to be full.
const NEARLY: f64 = 2.0;

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Knee {
    /// The highest rate that was kept up with; 0 for none.
    pub(super) rate: u64,
    /// Operations committed per second under it.
    pub(super) committed_tps: f64,
    /// The lowest rate that was not kept up with, and what it was too much for; `None` where
    /// nothing beyond was tried.
    pub(super) limit: Option<(u64, String)>,
    /// The median latency under little load, in milliseconds.
    pub(super) idle_ms: f64,
    /// Bytes of a certificate.
    pub(super) certificate_bytes: f64,
}

/// Searches one candidate's knee by what it measures at each rate, beginning near one where there
/// is a guess, and not far beyond one that was asked for. `measure` takes the rate, and the
/// milliseconds of it that may be under way before a run is given up; 0 for any number.
pub(super) fn knee(
    asked: Option<u64>,
    near: Option<u64>,
    measure: impl Fn(u64, u64) -> Result<Option<Measured>, RunError>,
) -> Result<Knee, RunError> {
    let Some(idle) = measure(RATE_MIN, 0)? else {
        return Ok(Knee::none(f64::INFINITY, 0.0, "nothing came of it".into()));
    };
    let idle_ms = latency(&idle, "p50").unwrap_or(f64::INFINITY);
    let mean_ms = latency(&idle, "mean").map_or(idle_ms, |mean| mean.max(idle_ms));
    let certificate_bytes = idle.numbers.get("certificate_bytes").copied().unwrap_or(0.0);
    // Little load makes few samples.
    if committed(&idle) < KEPT_UP * RATE_MIN as f64 {
        return Ok(Knee::none(idle_ms, certificate_bytes, bound(&idle, idle_ms)));
    }
    let mut search = Search::up_to(asked).near(near);
    search.good = RATE_MIN;
    search.loads = [share(&idle).map(|share| (RATE_MIN as f64, share)), None];
    let (mut committed_tps, mut limit) = (committed(&idle), None);
    for _ in 0..PROBES_MAX {
        let Some(rate) = search.next() else { break };
        let measured = measure(rate, patience_ms(mean_ms))?;
        let tps = measured.as_ref().map_or(0.0, committed);
        if measured.as_ref().is_some_and(|one| kept_up(one, rate, idle_ms)) {
            committed_tps = tps.min(rate as f64);
            search.keep(rate, measured.as_ref().and_then(share));
        } else {
            let none = || "nothing came of it".to_owned();
            limit = Some((rate, measured.map_or_else(none, |one| bound(&one, idle_ms))));
            search.refuse(rate, tps);
        }
    }
    Ok(Knee { rate: search.good, committed_tps, limit, idle_ms, certificate_bytes })
}

/// Milliseconds of a rate that may be under way before a run is given up, where the mean latency
/// under little load is this. By Little's law what is under way is the mean latency; a third more
/// than is allowed, and a little for the start.
fn patience_ms(mean_ms: f64) -> u64 {
    if mean_ms.is_finite() { (1.3 * LATENCY_FACTOR * mean_ms) as u64 + 200 } else { 0 }
}

impl Knee {
    /// Not even little load is kept up with.
    fn none(idle_ms: f64, certificate_bytes: f64, why: String) -> Self {
        let limit = Some((RATE_MIN, why));
        Self { rate: 0, committed_tps: 0.0, limit, idle_ms, certificate_bytes }
    }
}

fn committed(measured: &Measured) -> f64 {
    measured.numbers.get("committed_tps").copied().unwrap_or(0.0)
}

/// Load of the resource that is nearest to its limit, in per cent.
fn share(measured: &Measured) -> Option<f64> {
    measured.numbers.get("bottleneck_share").copied()
}

/// What a rate that was not kept up with was too much for, in words.
fn bound(measured: &Measured, idle_ms: f64) -> String {
    let resource = measured.details[metrics::BOTTLENECK].as_str();
    if let (Some(resource), Some(share)) = (resource, share(measured).filter(|one| *one >= FULL)) {
        return format!("{resource} {share:.0} %");
    }
    let busiest = match (resource, share(measured)) {
        (Some(resource), Some(share)) => format!(" ({resource} {share:.0} %)"),
        _ => String::new(),
    };
    let is_slow = latency(measured, "p50").is_some_and(|ms| ms > LATENCY_FACTOR * idle_ms);
    let what = if is_slow { "latency" } else { "throughput" };
    format!("{what}{busiest}")
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
    /// Rates that were kept up with and the loads of the bottleneck there, in per cent: under
    /// little load, and the highest.
    loads: [Option<(f64, f64)>; 2],
    /// Least factor to the next rate where a line leads there: the precision at first and beyond
    /// the first rate that fills the bottleneck, squared after each other that it led to.
    beyond: f64,
    /// A rate that was kept up with filled the bottleneck.
    was_full: bool,
    /// A line may lead between what was kept up with and what was not: once after each that was
    /// not, for a load may well level off.
    is_led: bool,
}

impl Search {
    /// A search for the highest rate, or for whether one that was asked for is taken.
    fn up_to(asked: Option<u64>) -> Self {
        let most = asked.map_or(RATE_MAX, |rate| (ASKED_MAX * rate).clamp(RATE_MIN, RATE_MAX));
        let first = asked.unwrap_or(RATE_FIRST).clamp(RATE_MIN, RATE_MAX);
        Self {
            most,
            first,
            step: STEP,
            good: 0,
            bad: None,
            guess: None,
            loads: [None; 2],
            beyond: 1.0 + PRECISION,
            was_full: false,
            is_led: true,
        }
    }

    /// The same, beginning with small steps from where another committee's knee was.
    fn near(self, knee: Option<u64>) -> Self {
        let Some(knee) = knee.filter(|rate| *rate > RATE_MIN) else { return self };
        Self { first: knee.min(self.most), step: STEP_NEAR, ..self }
    }

    fn next(self) -> Option<u64> {
        let Some(bad) = self.bad else {
            let next = if self.good < self.first { self.first } else { self.higher() };
            return (self.good < self.most).then_some(next.min(self.most));
        };
        if bad as f64 <= self.good as f64 * (1.0 + PRECISION) {
            return None;
        }
        let middle = (self.good as f64 * bad as f64).sqrt().max(bad as f64 / self.step);
        let least = self.good as f64 * (1.0 + PRECISION / 2.0);
        let most = bad as f64 / (1.0 + PRECISION / 2.0);
        let between = |rate: &f64| (least..=most).contains(rate);
        let guess = self.guess.map(|rate| rate as f64);
        let full = self.full_at().filter(|_| self.is_led).filter(between);
        let wanted = full.or(guess).unwrap_or(middle);
        Some(wanted.max(least).min(most) as u64)
    }

    /// The next rate while nothing was too much: where the bottleneck would be full, and each time
    /// further than the last, but for the one after the first that fills it.
    fn higher(self) -> u64 {
        let good = self.good as f64;
        let next = match self.full_at() {
            Some(full) => full.clamp(good * self.beyond, good * STEP),
            None => good * self.step,
        };
        next as u64
    }

    /// Rate at which the bottleneck would be full, by a line through the loads that are known.
    fn full_at(self) -> Option<f64> {
        let [Some((little, idle)), Some((rate, share))] = self.loads else { return None };
        let each = (share - idle) / (rate - little);
        (each > 0.0).then(|| rate + (FULL - share) / each)
    }

    /// A rate was kept up with, under this load of the bottleneck.
    fn keep(&mut self, rate: u64, share: Option<f64>) {
        self.step = (self.step * self.step).min(STEP);
        let becomes_full = !self.was_full && share.is_some_and(|share| share >= FULL - NEARLY);
        self.was_full |= becomes_full;
        let was_led = self.loads[1].is_some();
        if becomes_full {
            self.beyond = 1.0 + PRECISION;
        } else if was_led {
            self.beyond = self.beyond.powi(2).min(STEP);
        }
        self.is_led = self.bad.is_none();
        self.good = rate;
        self.guess = None;
        self.loads[1] = share.map(|share| (rate as f64, share));
    }

    /// A rate was not kept up with; so much was committed.
    fn refuse(&mut self, rate: u64, committed: f64) {
        self.step = (self.step * self.step).min(STEP);
        // The same guess twice would creep: from then on the gap is halved.
        let first = self.guess.is_none();
        self.is_led = true;
        self.bad = Some(rate);
        self.guess = Some(committed as u64).filter(|tps| first && *tps > self.good);
    }
}

#[cfg(test)]
mod tests {
    use super::{PRECISION, PROBES_MAX, RATE_MAX, RATE_MIN, Search};

    /// Runs a search for a committee that takes exactly so much.
    fn found(knee: u64, asked: Option<u64>) -> (u64, usize) {
        run(Search::up_to(asked), knee)
    }

    fn run(search: Search, knee: u64) -> (u64, usize) {
        let mut search = Search { good: RATE_MIN, ..search };
        let mut probes = 0;
        while let Some(rate) = search.next() {
            if rate <= knee {
                search.keep(rate, None);
            } else {
                search.refuse(rate, knee as f64);
            }
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

    /// A load that is no proportion of the rate, of a resource that is full a little before or
    /// after the knee.
    #[test]
    fn loads_lead_to_the_knee() {
        for (knee, full) in [(48_000, 48_000), (48_000, 44_000), (48_000, 70_000)] {
            let share = |rate: u64| 5.0 + 87.0 * rate as f64 / f64::from(full);
            let mut search = Search { good: RATE_MIN, ..Search::up_to(None) };
            search.loads[0] = Some((RATE_MIN as f64, share(RATE_MIN)));
            let mut probes = 0;
            while let Some(rate) = search.next() {
                if rate <= knee {
                    search.keep(rate, Some(share(rate)));
                } else {
                    search.refuse(rate, knee as f64);
                }
                probes += 1;
            }
            let good = search.good as f64;
            assert!(good <= 48_000.0 && good * (1.0 + PRECISION) >= 47_990.0, "{full}: {good}");
            assert!(probes <= 6, "{full}: {probes} points");
        }
    }

    #[test]
    fn beyond_the_first_rate_that_fills_the_bottleneck_is_a_step_of_the_precision() {
        let mut search = Search { good: RATE_MIN, ..Search::up_to(None) };
        search.loads[0] = Some((RATE_MIN as f64, 5.0));
        search.keep(100_000, Some(45.0));
        assert_eq!(search.next(), Some(216_912), "by the line");
        search.keep(200_000, Some(88.0));
        assert_eq!(search.next(), Some(233_280), "further than the line, which was wrong once");
        search.keep(200_000, Some(91.0));
        assert_eq!(search.next(), Some(216_000));
        search.keep(216_000, Some(91.5));
        assert_eq!(search.next(), Some(251_942), "and its square next: a load may level off");
    }

    /// Loads of threads that are always at work level off long before the knee.
    #[test]
    fn a_load_that_levels_off_leads_nowhere_and_the_knee_is_found() {
        for knee in [40_000_u32, 90_000, 150_000] {
            // About the load that counts as full, once above and once below.
            for level in [50.0, 85.0, 88.5, 90.0, 95.0] {
                let about = |rate: u64| if rate.is_multiple_of(2) { level } else { level + 1.5 };
                let share = |rate: u64| (5.0 + 80.0 * rate as f64 / 30_000.0).min(about(rate));
                let mut search = Search { good: RATE_MIN, ..Search::up_to(None) };
                search.loads[0] = Some((RATE_MIN as f64, share(RATE_MIN)));
                let mut probes = 0;
                while let Some(rate) = search.next() {
                    if rate <= u64::from(knee) {
                        search.keep(rate, Some(share(rate)));
                    } else {
                        search.refuse(rate, f64::from(knee));
                    }
                    probes += 1;
                }
                let (good, knee) = (search.good as f64, f64::from(knee));
                let found = good <= knee && good * (1.0 + PRECISION) >= 0.999 * knee;
                assert!(found && probes <= PROBES_MAX, "{knee} {level}: {good}, {probes} points");
            }
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
