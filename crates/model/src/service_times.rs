//! Service times of the real machines on this machine, by their input: for price lists.

use quorate_consensus::MessageClass;
use quorate_engine::Incoming;
use quorate_types::{Event, machine::Executed};
use std::collections::BTreeMap;
use std::time::Duration;

/// Input of a replica's machine or a client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineInput {
    /// A client's request, at a replica.
    Request,
    /// A body of another member.
    Body,
    /// A body that became durable; by its requests.
    Stored,
    /// A proposal of any protocol.
    Proposal,
    /// A vote of any protocol.
    Vote,
    /// A timeout or certificates.
    Timeout,
    /// A certificate that was combined.
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

impl MachineInput {
    pub(crate) fn of(event: Option<&Event<Incoming>>) -> Self {
        let Some(event) = event else { return Self::Other };
        match event {
            Event::Message { message, .. } => match &**message {
                Incoming::Request(_) => Self::Request,
                Incoming::Body(_) => Self::Body,
                Incoming::Consensus(message) | Incoming::Inline(message, _) => {
                    match MessageClass::of(message) {
                        MessageClass::Proposal => Self::Proposal,
                        MessageClass::Vote => Self::Vote,
                        MessageClass::Change => Self::Timeout,
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

/// Times by input, each with the input's size and with the bytes that were hashed meanwhile.
#[derive(Clone, Debug, Default)]
pub struct ServiceTimes {
    samples: BTreeMap<MachineInput, Vec<Sample>>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    took_us: f64,
    size: f64,
    hashed_bytes: f64,
}

/// Share that is kept: the slowest, which something else on the machine delayed, are left out.
const KEPT_SHARE: f64 = 0.95;

impl ServiceTimes {
    pub(crate) fn add(
        &mut self,
        input: MachineInput,
        took: Duration,
        size: usize,
        hashed_bytes: u64,
    ) {
        let took_us = took.as_secs_f64() * 1e6;
        let sample = Sample { took_us, size: size as f64, hashed_bytes: hashed_bytes as f64 };
        self.samples.entry(input).or_default().push(sample);
    }

    /// Takes over the times of another run.
    pub fn join(&mut self, other: Self) {
        for (input, samples) in other.samples {
            self.samples.entry(input).or_default().extend(samples);
        }
    }

    /// Microseconds of one input, hashing apart, and of each part of its size (0 where sizes did
    /// not vary): the straight line through all times. `None` when there are none.
    #[must_use]
    pub fn price(&self, input: MachineInput, hash_byte_ns: f64) -> Option<(f64, f64)> {
        let mut samples = self.samples.get(&input)?.clone();
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

    /// Number of times of an input.
    #[must_use]
    pub fn count(&self, input: MachineInput) -> usize {
        self.samples.get(&input).map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_all_times() {
        let mut times = ServiceTimes::default();
        for size in [1, 2, 10, 20] {
            let took = Duration::from_nanos(3_000 + 500 * size + 100);
            times.add(MachineInput::Stored, took, size as usize, 200);
        }
        let (base, each) = times.price(MachineInput::Stored, 0.5).unwrap();
        assert!((base - 3.0).abs() < 1e-3 && (each - 0.5).abs() < 1e-3, "{base} {each}");
        assert_eq!(times.price(MachineInput::Vote, 0.5), None);
    }
}
