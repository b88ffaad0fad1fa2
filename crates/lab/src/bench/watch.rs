//! Progress of every validator, ten times a second.
//!
//! A look at the whole committee each second shows totals and health, but not what happens around a
//! failure: views change within tenths of a second. So each validator is asked for its executed
//! operations more often, over one connection that is kept, by a thread that does nothing else. The
//! asking is a few tenths of a per cent of a core for a committee of four; large committees are
//! asked less often, so that it stays small.

use crate::http::{Connection, Door};
use crate::status::ValidatorStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval at which the status of a small committee's members is read, in milliseconds.
const STATUS_INTERVAL_MS: u64 = 100;

/// Most members that are asked so often; those of larger committees proportionally less often.
const MEMBERS_OFTEN: u64 = 16;

/// Time for an answer. Nobody waits for it but its own thread.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Intervals between two answers beyond which it is unknown what happened between them.
const GAP_INTERVALS: f64 = 8.0;

/// Intervals from a look within which it still tells where a validator was.
const NEAR_INTERVALS: f64 = 0.6;

/// Watches a committee. Dropping it without [`Watch::finish`] leaves its threads to end by
/// themselves.
#[derive(Debug)]
pub(crate) struct Watch {
    interval_ms: u64,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<(f64, u64)>>>,
}

/// Progress of every validator over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tracks {
    /// Interval at which each validator was asked, in milliseconds.
    pub interval_ms: u64,
    /// For each validator, in order: seconds since the load began, and operations executed.
    pub seen: Vec<Vec<(f64, u64)>>,
}

impl Watch {
    /// Begins to ask the validators behind these doors, from `start` on.
    pub(crate) fn start<D: Clone + Into<Door>>(doors: &[D], start: Instant) -> Self {
        let interval_ms = STATUS_INTERVAL_MS * (doors.len() as u64).div_ceil(MEMBERS_OFTEN).max(1);
        let stop = Arc::new(AtomicBool::new(false));
        let watch_one = |door: &D| {
            let (door, stop) = (door.clone().into(), Arc::clone(&stop));
            thread::spawn(move || watch(&door, start, interval_ms, &stop))
        };
        let threads = doors.iter().map(watch_one).collect();
        Self { interval_ms, stop, threads }
    }

    /// Stops, and says what was seen.
    pub(crate) fn finish(mut self) -> Tracks {
        self.stop.store(true, Ordering::Relaxed);
        let threads = self.threads.drain(..);
        let seen = threads.map(|thread| thread.join().unwrap_or_default()).collect();
        Tracks { interval_ms: self.interval_ms, seen }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(door: &Door, start: Instant, interval_ms: u64, stop: &AtomicBool) -> Vec<(f64, u64)> {
    let interval = Duration::from_millis(interval_ms);
    let (mut seen, mut connection, mut next) = (Vec::new(), None, start);
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if let Some((at, operations)) = ask(&mut connection, door) {
            seen.push((at.saturating_duration_since(start).as_secs_f64(), operations));
        }
        // Those missed while an answer was waited for are not made up for.
        let now = Instant::now();
        while next <= now {
            next += interval;
        }
    }
    seen
}

/// Operations executed, and when it was so: half way between the question and the answer.
fn ask(connection: &mut Option<Connection>, door: &Door) -> Option<(Instant, u64)> {
    if connection.is_none() {
        *connection = Connection::to(door, TIMEOUT).ok();
    }
    let asked = Instant::now();
    let answer = connection.as_mut()?.get("/status").ok();
    let status = answer.and_then(|text| serde_json::from_str::<ValidatorStatus>(&text).ok());
    if status.is_none() {
        *connection = None;
    }
    let status = status.filter(ValidatorStatus::has_recovered)?;
    Some((asked + asked.elapsed() / 2, status.operations))
}

impl Tracks {
    /// Operations per second that a validator executed in each of the first `count` intervals;
    /// `None` where it is unknown how far it was.
    pub(crate) fn rates(&self, id: usize, count: usize) -> Vec<Option<f64>> {
        let step = self.interval_ms as f64 / 1_000.0;
        let edges: Vec<_> = (0..=count).map(|i| self.position(id, i as f64 * step)).collect();
        let rate = |pair: &[Option<f64>]| {
            let rate = (pair[1]? - pair[0]?) / step;
            // Less than before is a validator that began again from its disk.
            (rate >= 0.0).then(|| rate.round())
        };
        edges.windows(2).map(rate).collect()
    }

    /// Operations executed at a moment, between the looks before and after it.
    fn position(&self, id: usize, at_s: f64) -> Option<f64> {
        let seen = self.seen.get(id)?;
        let after = seen.partition_point(|look| look.0 < at_s);
        let (after, before) = match (seen.get(after), after.checked_sub(1)) {
            (Some(after), Some(before)) => (after, &seen[before]),
            // The first look comes a little after the beginning.
            (Some(first), None) => (first, first),
            // And the last a little before the end.
            (None, Some(last)) => (&seen[last], &seen[last]),
            (None, None) => return None,
        };
        let interval_s = self.interval_ms as f64 / 1_000.0;
        let nearest = if at_s - before.0 < after.0 - at_s { before } else { after };
        if after.0 - before.0 > GAP_INTERVALS * interval_s || before == after {
            let near = (at_s - nearest.0).abs() <= NEAR_INTERVALS * interval_s;
            return near.then_some(nearest.1 as f64);
        }
        let share = (at_s - before.0) / (after.0 - before.0);
        Some(before.1 as f64 + share * (after.1 as f64 - before.1 as f64))
    }
}

#[cfg(test)]
mod tests;
