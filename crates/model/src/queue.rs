//! Queues of stations with their servers.

use crate::station::Station;
use crate::time::Nanos;
use std::collections::VecDeque;

/// Order of service within a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Answers that the machine itself asked for; shares to combine.
    Answer = 0,
    /// Votes, proposals, certificates and what clients send.
    Urgent = 1,
    /// Bodies and other long frames.
    Bulk = 2,
}

/// After so many jobs in a row that are not bulk, a bulk job gets its turn (`node::machine`).
const URGENT_RUN_MAX: u32 = 64;

/// A queue of jobs `J` with its servers.
#[derive(Debug)]
pub(crate) struct StationQueue<J> {
    servers: usize,
    serving: usize,
    /// Servers that have just ended a job and look for the next: awake.
    awake: usize,
    queues: [VecDeque<J>; 3],
    /// Jobs in a row that were not bulk.
    run: u32,
    /// Core time asked for.
    pub(crate) used: Nanos,
    /// Times that a server was woken.
    pub(crate) wakes: u64,
}

impl<J> StationQueue<J> {
    pub(crate) fn new(station: Station) -> Self {
        Self {
            servers: station.servers(),
            serving: 0,
            awake: 0,
            queues: std::array::from_fn(|_| VecDeque::new()),
            run: 0,
            used: 0,
            wakes: 0,
        }
    }

    pub(crate) fn push(&mut self, priority: Priority, job: J) {
        self.queues[priority as usize].push_back(job);
    }

    /// Takes the next job for a free server, and says whether that server had to be woken; `bulk`:
    /// whether a bulk job may be taken.
    pub(crate) fn begin(&mut self, bulk: bool) -> Option<(J, bool)> {
        if self.serving == self.servers {
            return None;
        }
        let job = self.next(bulk)?;
        self.serving += 1;
        let woken = self.awake == 0;
        self.awake = self.awake.saturating_sub(1);
        self.wakes += u64::from(woken);
        Some((job, woken))
    }

    /// Ends a server's job; the server stays awake until [`StationQueue::rest`].
    pub(crate) fn end(&mut self) {
        self.serving -= 1;
        self.awake += 1;
    }

    /// Puts servers to sleep that found nothing to do.
    pub(crate) fn rest(&mut self) {
        self.awake = 0;
    }

    pub(crate) fn waiting(&self, priority: Priority) -> usize {
        self.queues[priority as usize].len()
    }

    /// Drops all jobs: the thread is gone.
    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
    }

    fn next(&mut self, bulk: bool) -> Option<J> {
        let [answers, urgent, others] = &mut self.queues;
        if self.run < URGENT_RUN_MAX
            && let Some(job) = answers.pop_front().or_else(|| urgent.pop_front())
        {
            self.run += 1;
            return Some(job);
        }
        self.run = 0;
        let turn = if bulk { others.pop_front() } else { None };
        turn.or_else(|| answers.pop_front()).or_else(|| urgent.pop_front())
    }
}
