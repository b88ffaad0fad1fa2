//! Figures that a run is judged by: computed or measured beside it.

use super::bounds::{Bounds, EvmBound};
use super::{FaultEvent, LatencyMs};
use crate::text::{milliseconds, thousands};
use serde::{Deserialize, Serialize};

/// Everything that stands beside the figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// The least latency on the emulated network, where there is one.
    pub minimum: Option<LeastLatency>,
    /// Bytes that one validator wrote to its log for each operation it executed; absent when none
    /// said.
    pub logged_bytes_per_tx: Option<f64>,
    /// Bytes that the disk was given for each validator and each operation that it executed in the
    /// window: log, state, snapshots and the file system's own; absent where the system does not
    /// tell.
    pub written_bytes_per_tx: Option<f64>,
    /// The state that was filled before the load, where that was asked for.
    pub filled: Option<Filled>,
    /// The start of a killed validator after the load, where that was asked for.
    pub restarted: Option<Restarted>,
    /// Highest rates of this machine, unless they were not to be measured.
    pub bounds: Option<Bounds>,
    /// Highest rate of the EVM ledger, unless it was not to be measured.
    pub evm: Option<EvmBound>,
    /// Latency of the EVM ledger's readers, where there were any.
    pub reads: Option<Reads>,
    /// The search for the highest rate, where it was asked for.
    pub searched: Option<Searched>,
    /// Recovery of throughput after each fault event.
    pub recoveries: Vec<Recovery>,
    /// Epochs that changes of the committee began, in their order.
    #[serde(default)]
    pub borders: Vec<BorderTimes>,
}

/// The least latency that the protocol needs on the emulated network, and how near the run came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeastLatency {
    /// The least latency, computed.
    #[serde(flatten)]
    pub least: Minimum,
    /// The measured median over the least median.
    pub p50_ratio: f64,
    /// The measured mean over the least mean.
    pub mean_ratio: f64,
}

/// The least latency of a protocol on a network, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Minimum {
    /// Median over clients beside every validator and operations at any moment.
    pub p50_ms: f64,
    /// Mean over the same.
    pub mean_ms: f64,
    /// The part of the mean that is not the wait for the next proposal.
    pub mean_without_wait_ms: f64,
    /// Mean length of a view; 0 where leaders do not rotate.
    pub view_ms: f64,
}

/// Latency that readers of the EVM ledger saw beside the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reads {
    /// Queries a second, all readers together.
    pub rate: u64,
    /// Queries due in the window that got no result.
    pub failed: u64,
    /// From the moment when a query was due to its answer.
    pub latency: LatencyMs,
}

/// The search for the highest rate that every healthy validator keeps up with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// Limit of the 99th percentile, in milliseconds: above it a run does not keep up.
    pub p99_limit_ms: f64,
    /// Runs in their order; the last ones are of the whole length.
    pub probes: Vec<Probe>,
    /// Rates in operations per second between which the highest one lies with a probability of four
    /// fifths, all runs considered; absent from older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely: Option<[u64; 2]>,
}

/// One run of a search, at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Operations offered per second.
    pub rate: u64,
    /// `true` for one of the whole length, which confirms.
    #[serde(default)]
    pub whole: bool,
    /// Seconds until the committee had settled; absent when the run failed, and from older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Operations per second that the slowest healthy validator committed; absent when the run
    /// failed.
    pub committed_tps: Option<f64>,
    /// 99th percentile of the latency, in milliseconds; absent when the run failed.
    pub p99_ms: Option<f64>,
    /// Reason for not keeping up; absent when it did.
    pub failed: Option<String>,
}

/// Effect of one event on the rate at which operations were committed, as clients see it: at their
/// (f+1)-th equal reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// The event: its kind, moment and validator.
    #[serde(flatten)]
    pub event: FaultEvent,
    /// Operations per second over the two seconds before.
    pub before_tps: f64,
    /// The lowest rate until it recovered, in operations per second.
    pub lowest_tps: f64,
    /// Operations per second over the second half of the time until the next event or the end of
    /// the load: what it settled at.
    #[serde(default)]
    pub after_tps: f64,
    /// Seconds until the rate was back at four fifths of what it was before; 0 when it never fell
    /// below, absent when it did not come back before the next event or the end of the load.
    pub seconds: Option<f64>,
    /// The same in view timeouts.
    pub view_timeouts: Option<f64>,
}

/// Time from when a change of the committee is brought to its members until they are in the epoch
/// that it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BorderTimes {
    /// Number of the epoch.
    pub epoch: u64,
    /// Seconds until the first process is in it.
    pub first_s: Option<f64>,
    /// Seconds until all are, those that left the committee among them.
    pub all_s: Option<f64>,
}

/// A state in which every key has a value before the load begins: put in batches, in a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    /// Number of keys, each put once.
    pub keys: u64,
    /// Puts of a request, all or none of which take effect.
    pub batch: u64,
    /// Seconds from the first put until every validator had executed the last.
    pub seconds: f64,
    /// Puts over that time: a rate of the slowest validator.
    pub puts_tps: f64,
    /// Requests that were not taken at first, and brought again.
    pub retried: u64,
    /// Bytes that the disk was given for each validator and key; absent where the system does not
    /// tell.
    pub written_bytes_per_key: Option<f64>,
}

/// The start of a validator that was ended by SIGKILL, in a committee that has nothing to order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Restarted {
    /// Index of the validator.
    pub validator: u16,
    /// Operations in the state that it comes back to.
    pub operations: u64,
    /// Seconds from the start of its process until it has executed what it had before, and may
    /// sign.
    pub seconds: f64,
}

impl Beside {
    /// Rows for a table, name and text: one for each thing that is there.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let filled = self.filled.iter().map(|filled| ("filled", filled.describe()));
        let written = self.written_bytes_per_tx.iter().map(|bytes| ("written", written(*bytes)));
        let restarted = self.restarted.iter().map(|one| ("restart", one.describe()));
        let minimum = self.minimum.iter().map(|minimum| ("least latency", minimum.describe()));
        let searched = self.searched.iter().map(|searched| ("highest rate", searched.describe()));
        let recoveries = self.recoveries.iter().map(|recovery| ("recovery", recovery.describe()));
        let borders = self.borders.iter().map(|border| ("new epoch", border.describe()));
        let bounds = self.bounds.iter().flat_map(Bounds::figures);
        let evm = self.evm.iter().flat_map(EvmBound::figures);
        let reads = self.reads.iter().map(|reads| ("reads", reads.describe()));
        filled
            .chain(written)
            .chain(restarted)
            .chain(minimum)
            .chain(searched)
            .chain(recoveries)
            .chain(borders)
            .chain(reads)
            .chain(evm)
            .chain(bounds)
            .collect()
    }
}

fn written(bytes: f64) -> String {
    format!("{} bytes to disk by one validator for each tx", thousands(bytes.round() as u64))
}

impl Filled {
    fn describe(&self) -> String {
        let Self { keys, batch, seconds, puts_tps, retried, written_bytes_per_key } = *self;
        let whole = |number: f64| thousands(number.round() as u64);
        let again = match retried {
            0 => String::new(),
            retried => format!(" · {} brought again", thousands(retried)),
        };
        let written = written_bytes_per_key
            .map_or(String::new(), |bytes| format!(" · {} bytes to disk for each", whole(bytes)));
        format!(
            "{} keys in {seconds:.1} s, {} puts/s in batches of {batch}{again}{written}",
            thousands(keys),
            whole(puts_tps),
        )
    }
}

impl Restarted {
    fn describe(&self) -> String {
        let (validator, operations) = (self.validator, thousands(self.operations));
        format!(
            "validator {validator}, killed after {operations} operations, may sign again {:.2} s \
             after its start",
            self.seconds
        )
    }
}

impl BorderTimes {
    fn describe(&self) -> String {
        let after = |seconds: Option<f64>| seconds.map_or("never".into(), |s| format!("{s:.2} s"));
        let Self { epoch, first_s, all_s } = *self;
        format!(
            "epoch {epoch}: the first is in it after {}, all after {}",
            after(first_s),
            after(all_s)
        )
    }
}

impl LeastLatency {
    fn describe(&self) -> String {
        let least = &self.least;
        let wait = least.mean_ms - least.mean_without_wait_ms;
        let waiting = if least.view_ms > 0.0 {
            format!(" ({} waiting for a leader's turn)", milliseconds(wait))
        } else {
            String::new()
        };
        let (p50, ratio) = (milliseconds(least.p50_ms), self.p50_ratio);
        format!("p50 {p50} ms on this network{waiting}; measured {ratio:.2} ×")
    }
}

impl Reads {
    /// The readers' figures as a line of text.
    #[must_use]
    pub fn describe(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(" · {} failed", thousands(failed)),
        };
        let [p50, p99, max] =
            [self.latency.p50, self.latency.p99, self.latency.max].map(milliseconds);
        let rate = thousands(self.rate);
        format!("{rate}/s over JSON-RPC: p50 {p50} ms, p99 {p99}, longest {max}{failed}")
    }
}

impl Searched {
    /// The search as a line of text: how the rate was confirmed, how well it is known, and the last
    /// rate that was too high.
    #[must_use]
    pub fn describe(&self) -> String {
        let failed = self.probes.iter().rev().find(|probe| probe.failed.is_some());
        let too_high = match failed {
            Some(Probe { rate, failed: Some(why), .. }) => {
                format!("at {} tx/s {why}", thousands(*rate))
            }
            _ => "all kept up".to_owned(),
        };
        let parts = self.confirmed().into_iter().chain(self.spread()).chain([too_high]);
        format!("{} runs; {}", self.probes.len(), parts.collect::<Vec<_>>().join("; "))
    }

    /// The highest rate that held for the whole length, and how many runs of that length did.
    fn confirmed(&self) -> Option<String> {
        let whole = || self.probes.iter().filter(|probe| probe.whole);
        let held = || whole().filter(|probe| probe.failed.is_none());
        let rate = held().map(|probe| probe.rate).max()?;
        let (held, count) = (held().count(), whole().count());
        Some(format!("{} tx/s confirmed, {held} of {count} whole runs held", thousands(rate)))
    }

    fn spread(&self) -> Option<String> {
        let [low, high] = self.likely?.map(thousands);
        Some(format!("the highest is likely {low} to {high}"))
    }
}

impl Recovery {
    /// The event and its effect as a line of text.
    #[must_use]
    pub fn describe(&self) -> String {
        let FaultEvent { at_s, kind, validator, link_to, change } = &self.event;
        let text = |part: &Option<u16>, before| part.map(|id| format!("{before}{id}"));
        let validator = text(validator, "").or_else(|| change.clone()).unwrap_or_default();
        let other = text(link_to, "-").unwrap_or_default();
        let what = format!("{kind} {validator}{other} at {at_s} s:");
        let settled = format!("then {:.0} % of before", 100.0 * self.after_tps / self.before_tps);
        let lowest = thousands(self.lowest_tps.round() as u64);
        match (self.seconds, self.view_timeouts) {
            (Some(seconds), _) if seconds <= 0.0 => format!("{what} never below 80 %, {settled}"),
            (Some(seconds), Some(timeouts)) => format!(
                "{what} back at 80 % after {seconds:.1} s ({timeouts} view timeouts), {lowest} tx/s at \
                 the lowest, {settled}"
            ),
            _ => {
                format!("{what} not back at 80 % in time, {lowest} tx/s at the lowest, {settled}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
