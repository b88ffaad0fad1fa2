//! Open-loop load: operations leave at fixed times, whether or not earlier ones were answered.

use super::measure::{Fate, Recorder, Schedule};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where load goes.
pub trait Target: Send {
    /// How many sessions there are.
    fn sessions(&self) -> usize;

    /// Hands operations to a session, without waiting for anything; `false` when it took none.
    fn submit(&mut self, session: usize, operations: Operations) -> bool;
}

/// Operations with their marks.
pub type Operations = Vec<(u64, Bytes)>;

/// Where what became of the operations is heard.
pub trait Answers: Send {
    /// The next fate, or `None` when there was none within `patience`.
    fn next(&mut self, patience: Duration) -> Option<(u64, Fate)>;
}

/// How often the clock is looked at: operations due in between leave together.
const TICK: Duration = Duration::from_millis(1);

/// A running load. Dropping it stops it.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts to offer `schedule` to `target`, counting the fates from `answers`.
    pub fn start(
        schedule: Schedule,
        operation_bytes: usize,
        seed: u64,
        target: impl Target + 'static,
        answers: impl Answers + 'static,
        recorder: Arc<Mutex<Recorder>>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stop_pacing, stop_counting) = (Arc::clone(&stop), Arc::clone(&stop));
        let pacer = Pacer {
            schedule,
            payload: Payload::new(operation_bytes, seed),
            target,
            recorder: Arc::clone(&recorder),
        };
        let pacing = thread::spawn(move || pacer.run(&stop_pacing));
        let counting = thread::spawn(move || count(answers, &recorder, &stop_counting));
        Self { stop, threads: vec![pacing, counting] }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Submits whatever is due, tick by tick. What is due in one tick goes to one session, so that it
/// can share a request; the next tick's goes to the next session.
struct Pacer<T> {
    schedule: Schedule,
    payload: Payload,
    target: T,
    recorder: Arc<Mutex<Recorder>>,
}

impl<T: Target> Pacer<T> {
    fn run(mut self, stop: &AtomicBool) {
        let (mut next, mut session) = (0, 0);
        while next < self.schedule.end() && !stop.load(Ordering::Relaxed) {
            let due = self.schedule.due_by(Instant::now());
            if due > next {
                self.submit(session, next..due);
                next = due;
                session = (session + 1) % self.target.sessions();
            }
            thread::sleep(TICK);
        }
        // The sessions live in the target: hold it until nobody waits for their answers any more.
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(10 * TICK);
        }
    }

    fn submit(&mut self, session: usize, marks: Range<u64>) {
        let payload = self.payload.take(marks.end - marks.start);
        let operations = marks.clone().zip(payload).collect();
        if !self.target.submit(session, operations) {
            let mut recorder = self.recorder.lock();
            marks.for_each(|mark| recorder.record(mark, Fate::NotTaken));
        }
    }
}

fn count(mut answers: impl Answers, recorder: &Mutex<Recorder>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Some((mark, fate)) = answers.next(10 * TICK) else { continue };
        let mut recorder = recorder.lock();
        recorder.record(mark, fate);
        while let Some((mark, fate)) = answers.next(Duration::ZERO) {
            recorder.record(mark, fate);
        }
    }
}

/// Random operations, cheap: one fill for all that leave together.
#[derive(Debug)]
struct Payload {
    random: ChaCha8Rng,
    operation_bytes: usize,
}

impl Payload {
    fn new(operation_bytes: usize, seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), operation_bytes }
    }

    fn take(&mut self, count: u64) -> impl Iterator<Item = Bytes> + use<> {
        let size = self.operation_bytes;
        let mut buffer = BytesMut::zeroed(size * count as usize);
        self.random.fill_bytes(&mut buffer);
        let mut rest = buffer.freeze();
        (0..count).map(move |_| rest.split_to(size))
    }
}

#[cfg(test)]
mod tests;
