//! Ledger of latencies: the moments at which operations were offered, committed and answered.

use crate::outcome::{LatencySample, PerSecond, Percentiles};
use crate::time::Nanos;
use quorate_types::machine::Block;
use quorate_types::{ClientId, Height};
use std::collections::BTreeMap;
use std::ops::Range;

/// Operations of one client offered at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    /// Validator beside the client.
    pub(crate) origin: usize,
    pub(crate) at: Nanos,
    pub(crate) count: u32,
}

/// Latencies with the number of operations that had them, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<(Nanos, u32)>);

impl Samples {
    pub(crate) fn add(&mut self, latency: Nanos, count: u32) {
        self.0.push((latency, count));
    }

    pub(crate) fn percentiles(&mut self) -> Percentiles {
        self.0.sort_unstable();
        let total: u64 = self.0.iter().map(|(_, count)| u64::from(*count)).sum();
        let ms = |nanos: Nanos| nanos as f64 / 1e6;
        let at = |share: f64| {
            let rank = (total as f64 * share).ceil().max(1.0) as u64;
            let mut seen = 0;
            let found = self.0.iter().find(|(_, count)| {
                seen += u64::from(*count);
                seen >= rank
            });
            found.map_or(0.0, |(latency, _)| ms(*latency))
        };
        let sum: f64 = self.0.iter().map(|(latency, count)| ms(*latency) * f64::from(*count)).sum();
        Percentiles {
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            mean_ms: if total == 0 { 0.0 } else { sum / total as f64 },
            operations: total,
        }
    }
}

/// A height that some validators have not committed yet.
#[derive(Debug)]
struct Pending {
    offered: Vec<Offered>,
    left: usize,
}

/// Latencies of all operations, from the moment at which their client was given them.
#[derive(Debug)]
pub(crate) struct LatencyLedger {
    /// Measurement window.
    window: Range<Nanos>,
    /// Number of members that do not crash.
    live: usize,
    requests: BTreeMap<(ClientId, u64), Vec<Offered>>,
    heights: BTreeMap<Height, Pending>,
    highest: Height,
    seconds: Vec<PerSecond>,
    /// Time until which what was under way is added up.
    since: Nanos,
    pub(crate) first: Samples,
    pub(crate) own: Samples,
    pub(crate) slowest: Samples,
    pub(crate) acknowledged: Samples,
    /// Answered since the beginning, in the order of the answers.
    pub(crate) answered: Vec<LatencySample>,
    pub(crate) offered: u64,
    pub(crate) refused: u64,
    /// Committed since the beginning.
    pub(crate) committed: u64,
    /// Committed in the measurement window.
    pub(crate) counted: u64,
}

impl LatencyLedger {
    pub(crate) fn new(window: Range<Nanos>, live: usize) -> Self {
        let seconds = seconds_of(&window);
        Self {
            window,
            live,
            requests: BTreeMap::new(),
            heights: BTreeMap::new(),
            highest: Height(0),
            seconds,
            since: 0,
            first: Samples::default(),
            own: Samples::default(),
            slowest: Samples::default(),
            acknowledged: Samples::default(),
            answered: Vec::new(),
            offered: 0,
            refused: 0,
            committed: 0,
            counted: 0,
        }
    }

    /// Notes that clients were given operations.
    pub(crate) fn offer(&mut self, now: Nanos, count: usize) {
        self.enter(now, i64::try_from(count).expect("a moment's operations"));
        self.offered += count as u64;
    }

    /// Notes that an operation was refused.
    pub(crate) fn refuse(&mut self, now: Nanos) {
        self.enter(now, -1);
        self.refused += 1;
    }

    fn enter(&mut self, now: Nanos, count: i64) {
        self.pass(now);
        if self.window.contains(&now) {
            self.seconds[second(&self.window, now)].offered += count;
        }
    }

    /// Operations offered, not refused and committed nowhere.
    pub(crate) fn under_way(&self) -> u64 {
        self.offered.saturating_sub(self.refused + self.committed)
    }

    /// Adds up what was under way until now, before it changes.
    fn pass(&mut self, now: Nanos) {
        let under_way = self.under_way() as f64;
        let mut since = std::mem::replace(&mut self.since, now).max(self.window.start);
        while since < now.min(self.window.end) {
            let index = second(&self.window, since);
            let ends = self.window.start + (index as u64 + 1) * SECOND;
            let until = ends.min(now).min(self.window.end);
            self.seconds[index].under_way += under_way * (until - since) as f64 / SECOND as f64;
            since = until;
        }
    }

    /// Notes that a request left with these operations.
    pub(crate) fn sent(&mut self, client: ClientId, sequence: u64, offered: Vec<Offered>) {
        self.requests.insert((client, sequence), offered);
    }

    /// Notes that a validator knows a height to be decided and has its bodies; `true` for the first
    /// to do so. `lives`: it does not crash before the end.
    pub(crate) fn committed(
        &mut self,
        now: Nanos,
        member: usize,
        lives: bool,
        block: &Block,
    ) -> bool {
        let height = block.height();
        let is_first = height > self.highest;
        if is_first {
            self.highest = height;
            self.commit_first(now, block);
        }
        let Some(pending) = self.heights.get_mut(&height) else { return is_first };
        let counts = self.window.contains(&now);
        let mut sum = (0.0, 0_u64);
        for offered in pending.offered.iter().filter(|offered| offered.origin == member) {
            if counts {
                self.own.add(now - offered.at, offered.count);
                sum.0 += (now - offered.at) as f64 / 1e6 * f64::from(offered.count);
                sum.1 += u64::from(offered.count);
            }
        }
        if sum.1 > 0 {
            let second = &mut self.seconds[second(&self.window, now)];
            second.own_ms_sum += sum.0;
            second.own += sum.1;
        }
        if lives {
            pending.left -= 1;
        }
        if pending.left == 0 {
            let pending = self.heights.remove(&height).expect("found above");
            for offered in pending.offered.iter().filter(|_| counts) {
                self.slowest.add(now - offered.at, offered.count);
            }
        }
        is_first
    }

    fn commit_first(&mut self, now: Nanos, block: &Block) {
        let requests = block.bodies.iter().flat_map(|body| &body.requests);
        let known = requests.filter_map(|r| self.requests.remove(&(r.client, r.sequence)));
        let offered: Vec<Offered> = known.flatten().collect();
        let operations: u64 = offered.iter().map(|offered| u64::from(offered.count)).sum();
        self.pass(now);
        self.committed += operations;
        if self.window.contains(&now) {
            self.counted += operations;
            let second = &mut self.seconds[second(&self.window, now)];
            second.committed += operations;
            for one in &offered {
                self.first.add(now - one.at, one.count);
                second.first_ms_sum += (now - one.at) as f64 / 1e6 * f64::from(one.count);
            }
        }
        self.heights.insert(block.height(), Pending { offered, left: self.live });
    }

    /// Notes that a client has enough equal replies.
    pub(crate) fn acknowledged(&mut self, now: Nanos, at: Nanos, count: u32) {
        if self.window.contains(&now) {
            self.acknowledged.add(now - at, count);
        }
        let answered = LatencySample { due_us: at / 1_000, latency_us: (now - at) / 1_000, count };
        match self.answered.last_mut() {
            Some(last) if last.is_like(&answered) => last.count += count,
            _ => self.answered.push(answered),
        }
    }

    /// Seconds of the window, which ends now.
    pub(crate) fn seconds(&mut self) -> Vec<PerSecond> {
        self.pass(self.window.end);
        std::mem::take(&mut self.seconds)
    }

    /// Forgets what was counted, and counts in another window from now on.
    pub(crate) fn move_window(&mut self, window: Range<Nanos>) {
        self.seconds = seconds_of(&window);
        self.window = window;
        self.counted = 0;
        for samples in [&mut self.first, &mut self.own, &mut self.slowest, &mut self.acknowledged] {
            samples.0.clear();
        }
    }
}

const SECOND: Nanos = 1_000_000_000;

/// The seconds of a window, with nothing in them.
fn seconds_of(window: &Range<Nanos>) -> Vec<PerSecond> {
    let seconds = (window.end - window.start).div_ceil(SECOND);
    (0..seconds).map(|_| PerSecond::default()).collect()
}

/// Index of the second of a window in which `now` is.
fn second(window: &Range<Nanos>, now: Nanos) -> usize {
    ((now - window.start) / SECOND) as usize
}

#[cfg(test)]
mod tests;
