//! How long the real machines take on this machine, by what they were given: for price lists.

use super::{Scene, SceneError, stage};
use crate::class::Class;
use quorate_engine::Incoming;
use quorate_types::{Event, machine::Executed};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a replica's machine or a client's session was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Given {
    /// A client's request.
    Request,
    /// A body.
    Body,
    /// A body that became durable; by its requests.
    Stored,
    /// A proposal.
    Proposal,
    /// A vote.
    Vote,
    /// A timeout or certificates.
    Timeout,
    /// A combined certificate.
    Combined,
    /// An executed height; by its replies.
    Executed,
    /// Anything else, and timers.
    Other,
    /// A client's session: operations; by their number.
    Submitted,
    /// A client's session: a reply; by the operations that it completed.
    Replied,
}

impl Given {
    pub(crate) fn of(event: Option<&Event<Incoming>>) -> Self {
        let Some(event) = event else { return Self::Other };
        match event {
            Event::Message { message, .. } => match &**message {
                Incoming::Request(_) => Self::Request,
                Incoming::Body(_) => Self::Body,
                Incoming::Consensus(message) | Incoming::Inline(message, _) => {
                    match Class::of(message) {
                        Class::Proposal => Self::Proposal,
                        Class::Vote => Self::Vote,
                        Class::Change => Self::Timeout,
                    }
                }
                _ => Self::Other,
            },
            Event::Stored(_) => Self::Stored,
            Event::Combined(_) => Self::Combined,
            Event::Executed(Executed { .. }) => Self::Executed,
            _ => Self::Other,
        }
    }
}

/// Times by what was given, each with its size and with the bytes that were hashed meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    samples: BTreeMap<Given, Vec<Sample>>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    took_us: f64,
    size: f64,
    hashed_bytes: f64,
}

/// The slowest of all, which something else on the machine delayed, are left out.
const KEPT_SHARE: f64 = 0.95;

impl Observed {
    pub(crate) fn add(&mut self, given: Given, took: Duration, size: usize, hashed_bytes: u64) {
        let took_us = took.as_secs_f64() * 1e6;
        let sample = Sample { took_us, size: size as f64, hashed_bytes: hashed_bytes as f64 };
        self.samples.entry(given).or_default().push(sample);
    }

    /// Takes over what another run observed.
    pub fn join(&mut self, other: Self) {
        for (given, samples) in other.samples {
            self.samples.entry(given).or_default().extend(samples);
        }
    }

    /// Microseconds of one, hashing apart, and of each part of its size (0 where sizes did not
    /// vary): the straight line through all of them. `None` when there were none.
    #[must_use]
    pub fn price(&self, given: Given, hash_byte_ns: f64) -> Option<(f64, f64)> {
        let mut samples = self.samples.get(&given)?.clone();
        for sample in &mut samples {
            sample.took_us = (sample.took_us - sample.hashed_bytes * hash_byte_ns / 1e3).max(0.0);
        }
        samples.sort_by(|one, other| one.took_us.total_cmp(&other.took_us));
        samples.truncate(((samples.len() as f64 * KEPT_SHARE) as usize).max(1));
        let count = samples.len() as f64;
        let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
        let (size, took) = (mean(&|sample| sample.size), mean(&|sample| sample.took_us));
        let spread = mean(&|sample| (sample.size - size).powi(2));
        if spread < 1e-9 {
            return Some((took, 0.0));
        }
        let together = mean(&|sample| (sample.size - size) * (sample.took_us - took));
        let each = (together / spread).clamp(0.0, took / size.max(1e-9));
        Some(((took - each * size).max(0.0), each))
    }

    /// How many were observed.
    #[must_use]
    pub fn count(&self, given: Given) -> usize {
        self.samples.get(&given).map_or(0, Vec::len)
    }
}

/// Runs a scene and looks at how long its machines really take here.
///
/// # Errors
/// Why it cannot be run, or that it broke a property.
pub fn observe(scene: &Scene) -> Result<Observed, SceneError> {
    scene.check()?;
    let mut stage = stage::Stage::new(scene);
    stage.observed = Some(Observed::default());
    let (_, observed) = stage.run_observed(&mut |_| {})?;
    Ok(observed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_what_was_observed() {
        let mut observed = Observed::default();
        for size in [1, 2, 10, 20] {
            let took = Duration::from_nanos(3_000 + 500 * size + 100);
            observed.add(Given::Stored, took, size as usize, 200);
        }
        let (base, each) = observed.price(Given::Stored, 0.5).unwrap();
        assert!((base - 3.0).abs() < 1e-3 && (each - 0.5).abs() < 1e-3, "{base} {each}");
        assert_eq!(observed.price(Given::Vote, 0.5), None);
    }
}
