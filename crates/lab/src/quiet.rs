//! Quietness of a machine: what else it had to do while something was measured on it.
//!
//! A [`Look`] lasts as long as what it is about. Processor time is counted for the whole machine,
//! and what this process and its children used is taken away. Children count once they have ended
//! and were waited for, so a look begins and ends while there are none. A write of 4 KiB is synced
//! now and then meanwhile.

use crate::bounds::disk::SyncProbe;
use crate::machine::{TICKS_PER_SECOND, own_cpu_ticks};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Share of the processors that others may use on a quiet machine before something is measured, and
/// meanwhile: then the kernel's own threads, which write back what was measured, are among them.
const OTHERS_MAX: [f64; 2] = [0.05, 0.1];
/// Share of its time that the host may keep from a quiet virtual machine.
const STEAL_MAX: f64 = 0.02;
/// A synced write on a quiet disk takes at most so many times as long as the quickest of the
/// sitting, or a millisecond more.
const SYNC_FACTOR_MAX: f64 = 3.0;
const SYNC_MORE_MAX_MS: f64 = 1.0;

/// What was seen of the machine for a while. Absent is what it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Share of all processor time that neither this process nor its children used, 0 to 1.
    pub others_share: Option<f64>,
    /// Share of all processor time that the host of a virtual machine kept from it, 0 to 1.
    pub steal_share: Option<f64>,
    /// Median time of writing and syncing 4 KiB, in milliseconds.
    pub sync_p50_ms: Option<f64>,
    /// The longest of the same, in milliseconds.
    pub sync_max_ms: Option<f64>,
}

/// What was seen before something was measured, and meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quietness {
    /// For a moment before, when nothing of ours ran.
    pub before: Seen,
    /// Meanwhile. Synced writes share the disk with what is measured.
    pub during: Seen,
}

impl Quietness {
    /// Respects in which the machine was not quiet, in words; none if it was. `sync_least_ms` is
    /// the quickest synced write that was seen before anything was measured, in milliseconds.
    #[must_use]
    pub fn disturbances(&self, sync_least_ms: Option<f64>) -> Vec<String> {
        let before = self.before.disturbances("before it", OTHERS_MAX[0]);
        let during = self.during.disturbances("during it", OTHERS_MAX[1]);
        before.into_iter().chain(during).chain(self.before.slow_sync(sync_least_ms)).collect()
    }
}

impl Seen {
    fn disturbances(&self, when: &str, others_max: f64) -> Vec<String> {
        let above = |share: Option<f64>, most: f64| share.filter(|share| *share > most);
        let others = above(self.others_share, others_max)
            .map(|share| format!("{when} others used {:.0} % of the processors", 100.0 * share));
        let steal = above(self.steal_share, STEAL_MAX)
            .map(|share| format!("{when} the host kept {:.0} % of the processors", 100.0 * share));
        others.into_iter().chain(steal).collect()
    }

    fn slow_sync(&self, least_ms: Option<f64>) -> Option<String> {
        let (ms, least_ms) = (self.sync_p50_ms?, least_ms?);
        let most_ms = (SYNC_FACTOR_MAX * least_ms).max(least_ms + SYNC_MORE_MAX_MS);
        (ms > most_ms).then(|| {
            format!("before it a synced write took {ms:.1} ms, and {least_ms:.1} at another time")
        })
    }
}

/// A look at the machine under way.
#[derive(Debug)]
pub struct Look {
    from: Option<Ticks>,
    end: Sender<()>,
    syncs: JoinHandle<Vec<Duration>>,
}

impl Look {
    /// Begins one, with a synced write in `folder` every so often.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn begin(folder: &Path, every: Duration) -> io::Result<Self> {
        let mut probe = SyncProbe::new(folder)?;
        let (end, ended) = bounded(0);
        let syncs = thread::spawn(move || {
            let mut times = Vec::new();
            loop {
                // A disk that fails meanwhile fails what is measured too, which says so.
                times.extend(probe.time());
                if ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return times;
                }
            }
        });
        Ok(Self { from: Ticks::now(), end, syncs })
    }

    /// Ends it, and says what was seen since it began.
    #[must_use]
    pub fn end(self) -> Seen {
        let to = Ticks::now();
        drop(self.end);
        let mut syncs = self.syncs.join().unwrap_or_default();
        syncs.sort_unstable();
        let ms = |time: &Duration| hundredths(time.as_secs_f64() * 1_000.0);
        let shares = self.from.zip(to).and_then(|(from, to)| Ticks::shares(from, to));
        Seen {
            others_share: shares.map(|(others, _)| others),
            steal_share: shares.map(|(_, steal)| steal),
            sync_p50_ms: syncs.get(syncs.len() / 2).map(ms),
            sync_max_ms: syncs.last().map(ms),
        }
    }
}

/// Processor time of the machine and of this process, in ticks since their beginnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    /// Everything, idle time included.
    all: u64,
    /// Programs and the kernel on their behalf. Not interrupts, which a system that counts them
    /// apart charges to nobody: under load they are those of our own packets.
    busy: u64,
    /// Kept by the host.
    steal: u64,
    /// Ours, and that of our children that ended.
    own: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        let own = own_cpu_ticks()?.iter().sum();
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, own)
    }

    /// From the text of proc(5) stat.
    fn parse(text: &str, own: u64) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // Guests, behind the eighth, are in the first two.
        let fields = line.split_whitespace().take(8).map(|field| field.parse().ok());
        let each: [u64; 8] = fields.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let [user, nice, system, _, _, _, _, steal] = each;
        Some(Self { all: each.iter().sum(), busy: user + nice + system, steal, own })
    }

    /// Shares of the time between: that of others, and that which the host kept. `None` if there
    /// was none.
    fn shares(from: Self, to: Self) -> Option<(f64, f64)> {
        let between = |of: fn(&Self) -> u64| of(&to).saturating_sub(of(&from)) as f64;
        let all = between(|ticks| ticks.all);
        let others = (between(|ticks| ticks.busy) - between(|ticks| ticks.own)).max(0.0);
        let steal = between(|ticks| ticks.steal);
        (all >= TICKS_PER_SECOND / 10.0)
            .then(|| (hundredths(others / all), hundredths(steal / all)))
    }
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
