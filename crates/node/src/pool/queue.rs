//! The queue of one thread of the pool: jobs first, then frames, fairly by the peers that sent
//! them.

use crate::clock::Clock;
use parking_lot::{Condvar, Mutex};
use quorate_engine::{Budget, FairQueue, Verdict};
use quorate_types::Peer;
use quorate_types::machine::CombineJob;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::time::Duration;

/// What a thread of the pool takes next.
pub(super) enum Work<T> {
    /// Shares to be combined.
    Combine(CombineJob),
    /// A frame to be checked; to be followed by [`CheckQueue::charge`].
    Check(T),
}

/// What became of a frame that was pushed.
pub(super) enum Pushed<'a, T> {
    /// Nothing is taken from its sender now.
    Refused,
    /// The queue's thread will check it.
    Queued,
    /// It is the pusher's to check, who lets go of the turn afterwards.
    Taken(T, Turn<'a, T>),
}

/// Turn of whoever checks a frame in the place of the queue's thread: over when it is dropped.
pub(super) struct Turn<'a, T>(&'a CheckQueue<T>);

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.waiting.lock().is_taken = false;
    }
}

/// Queue of one thread, which others fill.
#[derive(Debug)]
pub(super) struct CheckQueue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct Waiting<T> {
    jobs: VecDeque<CombineJob>,
    frames: FairQueue<T>,
    /// The thread is at work.
    is_busy: bool,
    /// A pusher checks a frame itself.
    is_taken: bool,
    is_closed: bool,
}

impl<T> Waiting<T> {
    /// Nothing waits and nothing is under way.
    fn is_idle(&self) -> bool {
        !self.is_busy && !self.is_taken && self.jobs.is_empty() && self.frames.is_empty()
    }
}

impl<T> CheckQueue<T> {
    pub(super) fn new(clock: Clock, budget: Option<Budget>) -> Self {
        let frames = FairQueue::new(budget);
        let jobs = VecDeque::new();
        let waiting = Waiting { jobs, frames, is_busy: false, is_taken: false, is_closed: false };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new(), clock }
    }

    /// Queues a frame; `false` when nothing is taken from its sender now.
    pub(super) fn push(&self, from: Peer, frame: T) -> bool {
        let pushed = self.waiting.lock().frames.push(self.clock.now(), from, frame);
        self.changed.notify_one();
        pushed.is_ok()
    }

    /// As [`CheckQueue::push`], but while nothing is under way the frame is the caller's to check:
    /// there is nobody whom it could overtake, and no thread to be woken.
    pub(super) fn push_or_take(&self, from: Peer, frame: T) -> Pushed<'_, T> {
        let now = self.clock.now();
        let mut waiting = self.waiting.lock();
        let was_idle = waiting.is_idle();
        if waiting.frames.push(now, from, frame).is_err() {
            return Pushed::Refused;
        }
        // Through the queue, which holds it back where its sender has used up its time.
        if let Some((_, frame)) = was_idle.then(|| waiting.frames.pop(now)).flatten() {
            waiting.is_taken = true;
            return Pushed::Taken(frame, Turn(self));
        }
        drop(waiting);
        self.changed.notify_one();
        Pushed::Queued
    }

    /// Queues shares to be combined ahead of all frames.
    pub(super) fn combine(&self, job: CombineJob) {
        self.waiting.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Takes what is next, waiting for it. `None`: the pool is gone.
    pub(super) fn next(&self) -> Option<Work<T>> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.is_closed {
                return None;
            }
            let now = self.clock.now();
            // A job completes a quorum: it goes before votes that are not needed any more.
            let job = waiting.jobs.pop_front().map(Work::Combine);
            let work = job.or_else(|| Some(Work::Check(waiting.frames.pop(now)?.1)));
            waiting.is_busy = work.is_some();
            if work.is_some() {
                return work;
            }
            match waiting.frames.next_ready() {
                Some(at) => drop(self.changed.wait_for(&mut waiting, at.since(now))),
                None => self.changed.wait(&mut waiting),
            }
        }
    }

    /// Charges a check to its sender; returns for how long nothing more is taken from it, if it was
    /// at fault.
    pub(super) fn charge(&self, from: Peer, cost: Duration, verdict: Verdict) -> Option<Duration> {
        let now = self.clock.now();
        let barred = self.waiting.lock().frames.charge(now, from, cost, verdict);
        barred.map(|until| until.since(now))
    }

    /// Returns `true` if nothing is taken from this peer now.
    pub(super) fn is_barred(&self, peer: Peer) -> bool {
        self.waiting.lock().frames.is_barred(self.clock.now(), peer)
    }

    /// Number of frames that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().frames.len()
    }

    /// Ends the thread once it is through with what it does.
    pub(super) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Processor time of the calling thread, lap by lap: what others take on a full machine is nobody's
/// cost.
#[derive(Default)]
pub(super) struct Stopwatch(Duration);

impl Stopwatch {
    /// Time since the last lap; the first is as long as the thread.
    pub(super) fn lap(&mut self) -> Duration {
        let now = processor_time();
        now.saturating_sub(std::mem::replace(&mut self.0, now))
    }
}

fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}
