//! Open loops: operations leave at their times.

use super::{Payload, Plan, Shape, TICK, Target};
use crate::load::measure::{OperationResult, Recorder, Schedule};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Random moments are drawn from another stream than the operations' bytes.
const MOMENTS: u64 = 1;

/// The marks of a load, one after the other.
#[derive(Debug)]
pub(super) enum Arrivals {
    /// The `next`-th of so many a second.
    Even { rate: u64, next: u64 },
    /// The next one's mark, and what draws the gaps.
    Poisson { mean_us: f64, next_us: f64, random: Box<ChaCha8Rng> },
}

impl Arrivals {
    pub(super) fn new(plan: &Plan) -> Self {
        let rate = plan.rate.max(1);
        if plan.shape != Shape::Poisson {
            return Self::Even { rate, next: 0 };
        }
        let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
        random.set_stream(MOMENTS);
        let mean_us = 1_000_000.0 / rate as f64;
        let next_us = gap(mean_us, &mut random);
        Self::Poisson { mean_us, next_us, random: Box::new(random) }
    }

    /// The next mark, if it is below `end`.
    pub(super) fn next_before(&mut self, end: u64) -> Option<u64> {
        match self {
            Self::Even { rate, next } => {
                let mark = u128::from(*next) * 1_000_000 / u128::from(*rate);
                let mark = u64::try_from(mark).unwrap_or(u64::MAX);
                (mark < end).then(|| {
                    *next += 1;
                    mark
                })
            }
            Self::Poisson { mean_us, next_us, random } => {
                let mark = *next_us as u64;
                (mark < end).then(|| {
                    *next_us += gap(*mean_us, random);
                    mark
                })
            }
        }
    }
}

/// An exponentially distributed gap.
fn gap(mean_us: f64, random: &mut ChaCha8Rng) -> f64 {
    // 53 random bits as a number above 0 and at most 1.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -mean_us * uniform.ln()
}

/// Submits whatever is due, tick by tick. What is due in one tick goes to one session, so that it
/// can share a request; the next tick's goes to the next session.
pub(super) struct Pacer<T> {
    pub(super) schedule: Schedule,
    pub(super) arrivals: Arrivals,
    pub(super) payload: Payload,
    pub(super) target: T,
    pub(super) recorder: Arc<Mutex<Recorder>>,
}

impl<T: Target> Pacer<T> {
    pub(super) fn run(mut self, stop: &AtomicBool) {
        let (mut session, mut ended) = (0, false);
        let mut marks = Vec::new();
        while !ended && !stop.load(Ordering::Relaxed) {
            let now = self.schedule.mark(Instant::now());
            let end = self.recorder.lock().end();
            ended = now >= end;
            let until = now.min(end);
            marks.extend(std::iter::from_fn(|| self.arrivals.next_before(until)));
            if !marks.is_empty() {
                self.submit(session, &marks);
                session = (session + 1) % self.target.sessions();
                marks.clear();
            }
            thread::sleep(TICK);
        }
        self.recorder.lock().offer_no_more();
        // The sessions live in the target: hold it until nobody waits for their answers any more.
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(10 * TICK);
        }
    }

    fn submit(&mut self, session: usize, marks: &[u64]) {
        // Offered before anybody can answer.
        self.recorder.lock().offer(marks.iter().copied());
        let payload = self.payload.take(marks.len());
        let operations = marks.iter().copied().zip(payload).collect();
        if !self.target.submit(session, operations) {
            let mut recorder = self.recorder.lock();
            marks.iter().for_each(|mark| recorder.record(*mark, OperationResult::NotTaken));
        }
    }
}

#[cfg(test)]
mod tests;
