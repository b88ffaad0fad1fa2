//! Runs over many seeds, on several threads.

use crate::run::{Report, run};
use crate::scenario::Scenario;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Runs the scenarios that `draw` makes of `seeds` on `threads` threads. Each report is shown to
/// `progress` as it comes; all of them are returned in the order of their seeds. What is in a
/// report does not depend on the number of threads.
///
/// # Panics
/// When a scenario cannot be set up.
pub fn run_many(
    seeds: Range<u64>,
    threads: usize,
    draw: impl Fn(u64) -> Scenario + Sync,
    progress: impl FnMut(&Report),
) -> Vec<Report> {
    each_seed(seeds, threads, |seed| run(&draw(seed)), progress)
}

/// Does `work` for each seed; what came of them, in their order.
pub(crate) fn each_seed<R: Send>(
    seeds: Range<u64>,
    threads: usize,
    work: impl Fn(u64) -> R + Sync,
    mut progress: impl FnMut(&R),
) -> Vec<R> {
    let next = AtomicU64::new(seeds.start);
    let (sender, reports) = mpsc::channel();
    let work = |sender: mpsc::Sender<(u64, R)>| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || sender.send((seed, work(seed))).is_err() {
                return;
            }
        }
    };
    let mut all: Vec<(u64, R)> = thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        reports.iter().inspect(|(_, report)| progress(report)).collect()
    });
    all.sort_by_key(|(seed, _)| *seed);
    all.into_iter().map(|(_, report)| report).collect()
}
