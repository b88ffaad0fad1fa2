//! Closed loops: the next operation leaves when one is answered.

use super::{Answer, Answers, Payload, TICK, Target};
use crate::load::measure::{OperationResult, Recorder, Schedule};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// So many operations under way in every session, until the schedule ends.
pub(super) struct ClosedLoop<T, A> {
    pub(super) schedule: Schedule,
    pub(super) payload: Payload,
    pub(super) target: T,
    pub(super) answers: A,
    pub(super) recorder: Arc<Mutex<Recorder>>,
    pub(super) outstanding: u64,
}

impl<T: Target, A: Answers> ClosedLoop<T, A> {
    pub(super) fn run(mut self, stop: &AtomicBool) {
        thread::sleep(self.schedule.start.saturating_duration_since(Instant::now()));
        // What each session may still offer.
        let mut owed = vec![self.outstanding; self.target.sessions()];
        let mut ended = false;
        while !stop.load(Ordering::Relaxed) {
            if !ended {
                let mut recorder = self.recorder.lock();
                ended = self.schedule.mark(Instant::now()) >= recorder.end();
                if ended {
                    recorder.offer_no_more();
                }
            }
            if !ended {
                self.offer(&mut owed);
            }
            self.hear(&mut owed);
        }
    }

    fn offer(&mut self, owed: &mut [u64]) {
        for (session, owed) in owed.iter_mut().enumerate().filter(|(_, owed)| **owed > 0) {
            let payload = self.payload.take(std::mem::take(owed) as usize);
            let count = payload.len();
            if count == 0 {
                continue;
            }
            let mark = self.schedule.mark(Instant::now());
            self.recorder.lock().offer(std::iter::repeat_n(mark, count));
            let operations = payload.into_iter().map(|bytes| (mark, bytes)).collect();
            if !self.target.submit(session, operations) {
                let mut recorder = self.recorder.lock();
                (0..count).for_each(|_| recorder.record(mark, OperationResult::NotTaken));
                *owed = count as u64;
            }
        }
    }

    /// Waits for an answer, and takes in those that came with it.
    fn hear(&mut self, owed: &mut [u64]) {
        let Some(first) = self.answers.next(10 * TICK) else { return };
        let mut refused = false;
        let mut recorder = self.recorder.lock();
        let more = std::iter::from_fn(|| self.answers.next(Duration::ZERO));
        for Answer { session, mark, result } in std::iter::once(first).chain(more) {
            recorder.record(mark, result);
            owed[session] += 1;
            refused |= result == OperationResult::NotTaken;
        }
        drop(recorder);
        if refused {
            // A session that is full is not asked again at once.
            thread::sleep(TICK);
        }
    }
}
