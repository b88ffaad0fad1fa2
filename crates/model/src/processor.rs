//! The cores of a host, shared equally by the jobs in service.
//!
//! Processor sharing, as a fair scheduler of threads comes to: with more jobs than cores, each
//! advances at `cores / jobs` of its speed. The alternative, a queue of jobs for whole cores, would
//! make a vote wait behind a body that a bulk thread checks for milliseconds, which no system with
//! time slices does. What is not modelled: slices, migrations, interrupts; caches only by what
//! prices say of them.

use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts of a nanosecond of service.
const PARTS: u64 = 1_024;

/// Cores, and the jobs in service on them.
#[derive(Debug)]
pub(crate) struct Processor {
    cores: u64,
    /// Service that each job in service has had since the beginning, in parts.
    service: u64,
    since: Nanos,
    /// By the service at which they are done, then in the order of their arrival.
    jobs: BinaryHeap<Reverse<(u64, u64, usize)>>,
    arrivals: u64,
    /// Core nanoseconds used.
    used: u64,
}

impl Processor {
    pub(crate) fn new(cores: u32) -> Self {
        Self {
            cores: u64::from(cores.max(1)),
            service: 0,
            since: 0,
            jobs: BinaryHeap::new(),
            arrivals: 0,
            used: 0,
        }
    }

    /// Begins the service of a job that takes so long alone.
    pub(crate) fn start(&mut self, now: Nanos, cost: Nanos, job: usize) {
        self.advance(now);
        self.jobs.push(Reverse((self.service + cost * PARTS, self.arrivals, job)));
        self.arrivals += 1;
    }

    /// Time at which the next job is done, if no other comes before.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let Reverse((target, ..)) = self.jobs.peek()?;
        let left = u128::from(target.saturating_sub(self.service));
        let jobs = self.jobs.len() as u128;
        let rate = u128::from(PARTS) * u128::from(self.cores);
        let span = if jobs <= u128::from(self.cores) {
            left.div_ceil(u128::from(PARTS))
        } else {
            (left * jobs).div_ceil(rate)
        };
        Some(self.since + u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// Takes out a job that is done by now.
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<usize> {
        self.advance(now);
        let Reverse((target, _, job)) = self.jobs.peek().copied()?;
        (target <= self.service).then(|| {
            self.jobs.pop();
            job
        })
    }

    /// Number of jobs in service.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn cores(&self) -> u32 {
        u32::try_from(self.cores).expect("given as one")
    }

    /// Core nanoseconds used until now.
    pub(crate) fn used(&self, now: Nanos) -> u64 {
        self.used + (now - self.since) * self.at_work()
    }

    /// Number of cores at work.
    fn at_work(&self) -> u64 {
        (self.jobs.len() as u64).min(self.cores)
    }

    fn advance(&mut self, now: Nanos) {
        let span = now - self.since;
        self.since = now;
        let jobs = self.jobs.len() as u64;
        if jobs == 0 || span == 0 {
            return;
        }
        self.used += span * self.at_work();
        self.service += if jobs <= self.cores {
            span * PARTS
        } else {
            let shared = u128::from(span) * u128::from(PARTS * self.cores) / u128::from(jobs);
            u64::try_from(shared).expect("less than the span")
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs all jobs; returns the time at which each was done.
    fn ends(processor: &mut Processor, jobs: &[(Nanos, Nanos)]) -> Vec<Nanos> {
        let mut ends = vec![0; jobs.len()];
        let mut waiting: Vec<usize> = (0..jobs.len()).rev().collect();
        let mut done = 0;
        while done < jobs.len() {
            let arrival = waiting.last().map(|job| jobs[*job].0);
            let finish = processor.next();
            match (arrival, finish) {
                (Some(at), finish) if finish.is_none_or(|finish| at <= finish) => {
                    let job = waiting.pop().unwrap();
                    processor.start(at, jobs[job].1, job);
                }
                (_, Some(at)) => {
                    while let Some(job) = processor.finish(at) {
                        ends[job] = at;
                        done += 1;
                    }
                }
                _ => unreachable!("something is waiting or served"),
            }
        }
        ends
    }

    #[test]
    fn jobs_share_what_cores_there_are() {
        assert_eq!(ends(&mut Processor::new(2), &[(0, 100), (0, 100)]), [100, 100]);
        assert_eq!(ends(&mut Processor::new(1), &[(0, 100), (0, 100)]), [200, 200]);
        // The short one takes twice its time, the long one the sum.
        assert_eq!(ends(&mut Processor::new(1), &[(0, 1_000), (0, 10)]), [1_010, 20]);
        assert_eq!(ends(&mut Processor::new(1), &[(0, 100), (50, 100)]), [150, 200]);
        // Three on two cores: two thirds of the speed each.
        assert_eq!(ends(&mut Processor::new(2), &[(0, 100), (0, 100), (0, 100)]), [150; 3]);
    }

    #[test]
    fn what_is_used_is_what_was_asked_for() {
        let mut processor = Processor::new(2);
        ends(&mut processor, &[(0, 100), (0, 50), (10, 7), (400, 3)]);
        let used = processor.used(1_000);
        assert!((160..=164).contains(&used), "{used}");
    }
}
