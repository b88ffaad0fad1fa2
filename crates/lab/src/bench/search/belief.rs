//! Probability of each rate to be the highest that is kept up with, after some runs.
//!
//! Probabilistic bisection (Horstein 1963; Waeber, Frazier and Henderson 2013): a run at the median
//! tells most, and by Bayes' rule its outcome moves probability to one side without emptying the
//! other, for a run may err. An outcome that does not fit is asked for again by itself, since the
//! median comes back to where it was in doubt.

use super::{RATE_MAX, RATE_MIN};

/// Ratio between neighbouring rates.
const STEP: f64 = 1.01;

/// Probability of a run to fail though its rate is kept up with: by what else the machine did, or
/// the first seconds of a committee.
const UNLUCKY: f64 = 0.2;

/// Probability of a run to hold though its rate is too high.
const LUCKY: f64 = 0.02;

/// Belief in each rate of a grid.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    /// Probabilities of [`rate`] 0, 1, 2 and so on, which sum up to 1.
    probabilities: Vec<f64>,
}

/// The rate of a cell, in operations per second.
fn rate(index: usize) -> f64 {
    RATE_MIN as f64 * STEP.powi(i32::try_from(index).unwrap_or(i32::MAX))
}

impl Belief {
    /// Before the first run: the rate lies within a factor of two of this one with a probability
    /// of one half, and of another factor of two with half of what is left. So while all runs hold,
    /// or all fail, the next rate is twice or half the last one.
    pub(super) fn around(guess: f64) -> Self {
        let cells = ((RATE_MAX as f64 / RATE_MIN as f64).ln() / STEP.ln()).ceil() as usize + 1;
        let weight = |index| (-(rate(index) / guess).ln().abs()).exp();
        let mut belief = Self { probabilities: (0..cells).map(weight).collect() };
        belief.normalise();
        belief
    }

    /// Takes in whether a run at this rate held; `spread` is the share by which the rate that a
    /// committee keeps up with differs from run to run.
    pub(super) fn learn(&mut self, tried: f64, held: bool, spread: f64) {
        let lowest = (RATE_MIN as f64 / tried).ln();
        for (index, probability) in self.probabilities.iter_mut().enumerate() {
            let distance = lowest + index as f64 * STEP.ln();
            let above = 1.0 / (1.0 + (-distance / spread).exp());
            let holds = LUCKY + (1.0 - LUCKY - UNLUCKY) * above;
            *probability *= if held { holds } else { 1.0 - holds };
        }
        self.normalise();
    }

    /// The rate below which the highest one lies with this probability.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        let reached = |probability: &f64| {
            sum += probability;
            sum >= share
        };
        let index = self.probabilities.iter().position(reached);
        rate(index.unwrap_or(self.probabilities.len() - 1))
    }

    /// The rates between which the highest one lies with a probability of four fifths.
    pub(super) fn likely(&self) -> [f64; 2] {
        [0.1, 0.9].map(|share| self.quantile(share))
    }

    fn normalise(&mut self) {
        let sum: f64 = self.probabilities.iter().sum();
        self.probabilities.iter_mut().for_each(|probability| *probability /= sum);
    }
}
