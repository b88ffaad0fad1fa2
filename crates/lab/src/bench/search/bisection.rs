//! Order of a search's runs: the next rate, given how the runs before it ended.

use super::belief::Belief;
use super::{CONFIRMATIONS_MAX, PROBES_MAX, RATE_MAX, RATE_MIN};

/// Probes end when the highest rate is known to be within this ratio, with a probability of four
/// fifths.
const WIDTH: f64 = 1.05;

/// Confirmations are run at the rate below which the highest lies with this probability.
const CAUTION: f64 = 0.25;

/// One that held is the result unless the next would be higher by this ratio.
const CLOSE: f64 = 1.02;

/// Shares by which a confirmation's rate is lower than the lowest one's that failed, by the number
/// of those. The first to fail has a second try, at nearly its rate.
const STEPS_DOWN: [f64; 5] = [0.0, 0.05, 0.1, 0.2, 0.4];
/// The share of all further ones.
const STEP_DOWN_MAX: f64 = 0.8;

/// Share by which the rate that a committee keeps up with differs from one probe to the next, and
/// from one run of the whole length to the next.
const SPREAD_PROBE: f64 = 0.015;
const SPREAD_WHOLE: f64 = 0.01;

/// A run to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Operations to offer per second.
    pub(super) rate: u64,
    /// `true` for one of the whole length, which confirms.
    pub(super) whole: bool,
}

/// A search under way, which is told how each run ended and then gives the next.
#[derive(Clone, Debug)]
pub(super) struct Bisection {
    first: u64,
    belief: Belief,
    probes: u32,
    confirmations: u32,
    /// The highest rate that held for the whole length.
    held: Option<u64>,
    /// The lowest that did not.
    failed: Option<u64>,
}

impl Bisection {
    /// A search that begins at a guess.
    pub(super) fn from(guess: u64) -> Self {
        let first = guess.clamp(RATE_MIN, RATE_MAX);
        let belief = Belief::around(first as f64);
        Self { first, belief, probes: 0, confirmations: 0, held: None, failed: None }
    }

    /// The next run; `None` when the search is over.
    pub(super) fn next(&self) -> Option<Attempt> {
        let probe = |rate| Some(Attempt { rate, whole: false });
        let [low, high] = self.belief.likely();
        match self.probes {
            0 => probe(self.first),
            ..PROBES_MAX if self.confirmations == 0 && high > WIDTH * low => {
                probe(readable(self.belief.quantile(0.5)))
            }
            _ => self.confirmation().map(|rate| Attempt { rate, whole: true }),
        }
    }

    /// Rate of the next run of the whole length, if there is to be one.
    fn confirmation(&self) -> Option<u64> {
        let likely = readable(self.belief.quantile(CAUTION));
        match (self.held, self.failed) {
            (None, None) => Some(likely),
            (None, Some(RATE_MIN)) => None,
            (None, Some(failed)) => {
                let tried = (self.confirmations as usize).saturating_sub(1);
                let step = STEPS_DOWN.get(tried).copied().unwrap_or(STEP_DOWN_MAX);
                Some(likely.min(readable(failed as f64 * (1.0 - step))))
            }
            (Some(held), _) => {
                let higher = likely as f64 > CLOSE * held as f64;
                (higher && self.confirmations < CONFIRMATIONS_MAX).then_some(likely)
            }
        }
    }

    /// Takes in whether a run held.
    pub(super) fn learn(&mut self, Attempt { rate, whole }: Attempt, held: bool) {
        let spread = if whole { SPREAD_WHOLE } else { SPREAD_PROBE };
        self.belief.learn(rate as f64, held, spread);
        if !whole {
            self.probes += 1;
            return;
        }
        self.confirmations += 1;
        if held {
            self.held = self.held.max(Some(rate));
        } else {
            self.failed = Some(self.failed.map_or(rate, |failed| failed.min(rate)));
        }
    }

    /// The highest rate that held for the whole length.
    pub(super) fn held(&self) -> Option<u64> {
        self.held
    }

    /// The rates between which the highest one lies with a probability of four fifths.
    pub(super) fn likely(&self) -> [u64; 2] {
        self.belief.likely().map(readable)
    }
}

/// The nearest rate of three digits: more of them are not known.
fn readable(rate: f64) -> u64 {
    let unit = 10_f64.powf((rate.log10().floor() - 2.0).max(0.0));
    (((rate / unit).round() * unit) as u64).clamp(RATE_MIN, RATE_MAX)
}

#[cfg(test)]
mod tests;
