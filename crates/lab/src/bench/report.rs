//! The result of a bench: one plain structure, from which every table and page is drawn.

use super::beside::Beside;
use super::latencies::LatencyMs;
use super::latency_grid::LatencyGrid;
use super::measure::Counts;
use quorate_types::Weights;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The number of the format described here. Results of another format are not read.
pub const FORMAT: u32 = 2;

/// The result of a bench: `--json` prints it as it is, a report page carries it inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// When the load began, in universal time: `2026-01-31 12:00:00 UTC`.
    pub started: String,
    /// The command that asked for it; empty where there was none.
    pub command: String,
    /// Operations scheduled per second, taken or not.
    pub offered_tps: f64,
    /// Operations per second that the slowest healthy validator executed.
    pub committed_tps: f64,
    /// Answers per second in the time that counts
    /// ([`super::latencies::Latencies::goodput_tps`]); absent in results from before it was counted.
    #[serde(default)]
    pub goodput_tps: Option<f64>,
    /// Processor time that a validator's threads use for an operation that it executes, in µs, by
    /// station of the simulator ([`quorate_sim::priced::Station::name`]): the mean of the validators
    /// that ran all along. Nothing where the system does not tell.
    #[serde(default)]
    pub stations_us: BTreeMap<String, f64>,
    /// From an operation's scheduled time to its (f+1)-th equal signed reply.
    pub latency_ms: LatencyMs,
    /// Network bytes that all validators sent, to each other and to clients, per committed operation.
    pub bytes_per_tx: Option<f64>,
    /// CPU seconds of all validators over the window.
    pub cpu_seconds: f64,
    /// CPU seconds of the load generator, which shares the machine with them.
    pub client_cpu_seconds: f64,
    /// The most memory that one validator used, in MiB.
    pub rss_mb_max: f64,
    /// What all validators together hold on disk at the end, in MiB.
    pub disk_mb: f64,
    /// Views given up over the window, at the validator that saw most.
    pub view_changes: u64,
    /// Heights decided fast over the window, at the validator that saw most; where the protocol has a
    /// fast path.
    #[serde(default)]
    pub fast_decisions: u64,
    /// And by its slow one.
    #[serde(default)]
    pub slow_decisions: u64,
    /// Bytes of the last quorum certificate.
    pub certificate_bytes: u64,
    /// Counted operations answered in time.
    pub answered: u64,
    /// Counted operations that the service refused.
    pub refused: u64,
    /// Counted operations that a full session did not take.
    pub dropped: u64,
    /// Counted operations taken and never answered.
    pub unanswered: u64,
    /// Operations of the warm-up, left out of everything above.
    pub warmup: Counts,
    /// One entry a validator.
    pub validators: Vec<ValidatorReport>,
    /// What was done to validators on purpose, in order.
    pub events: Vec<Happening>,
    /// One entry a second, the warm-up included with negative seconds.
    pub timeline: Vec<Second>,
    /// Operations offered and answered over time, the warm-up included.
    pub load: Rates,
    /// Operations executed over time, the warm-up included.
    pub committed: Committed,
    /// Latency over time, the warm-up included.
    pub latency_over_time: LatencyGrid,
    /// Latency of the operations that count: values in µs, ascending, each with how many had it.
    /// Values within one per cent of each other are counted as the largest of them.
    pub latency_distribution_us: Vec<(u64, u64)>,
    /// What the result is judged by.
    #[serde(default)]
    pub beside: Beside,
    /// The full effective configuration, and the machine.
    pub config: Value,
}

/// One validator's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidatorReport {
    /// Its index.
    pub id: u16,
    /// `healthy`, `killed`, `restarted` or `paused`.
    pub state: String,
    /// When it was killed or started again, in seconds into the window.
    pub since_s: Option<f64>,
    /// Operations per second that it executed; absent unless it ran all along.
    pub committed_tps: Option<f64>,
    /// The last height that it executed.
    pub height: u64,
    /// Its last view.
    pub view: u64,
    /// CPU seconds that it used over the window.
    pub cpu_seconds: f64,
    /// The most memory that it used, in MiB.
    pub rss_mb_max: f64,
    /// Bytes that it sent over the window.
    pub bytes_sent: u64,
    /// What it said each second.
    pub each_second: Traces,
}

/// What a validator said, one entry for each of [`Report::timeline`]; nothing where it was silent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traces {
    /// Operations per second executed since the second before.
    pub committed_tps: Vec<Option<f64>>,
    /// The last executed height.
    pub height: Vec<Option<u64>>,
    /// Cores kept busy since the second before.
    pub cpu_cores: Vec<Option<f64>>,
    /// Memory in MiB.
    pub rss_mb: Vec<Option<f64>>,
}

/// Something done to a validator on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// When, in seconds into the window.
    pub at_s: f64,
    /// What: `kill`, `restart`, `pause` or `resume`.
    pub kind: String,
    /// To whom.
    pub validator: u16,
}

/// One second of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The second's end, counted from when the measured window opened.
    pub second: i64,
    /// Operations that the slowest healthy validator executed in it.
    pub committed: u64,
    /// Median latency of what was answered in it.
    pub p50_ms: f64,
    /// The highest view at its end.
    pub view: u64,
    /// Views given up in it, at the validator that saw most.
    pub view_changes: u64,
    /// Cores that the load generator kept busy in it.
    pub client_cpu_cores: f64,
}

/// Offered and answered operations, in intervals from the beginning of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// Operations per second that were due in each interval.
    pub offered_tps: Vec<f64>,
    /// Operations per second whose last needed reply came in each interval. It may be longer: some
    /// answers come after the load.
    pub answered_tps: Vec<f64>,
}

/// Executed operations, in intervals from the beginning of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    /// Length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// Operations per second of the healthy validator that executed least in each interval.
    pub slowest_tps: Vec<Option<f64>>,
    /// Operations per second of the healthy validator that executed most in each interval.
    pub fastest_tps: Vec<Option<f64>>,
}

impl Happening {
    /// What was done to whom, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let done = match self.kind.as_str() {
            "kill" => "killed",
            "restart" => "started again",
            "pause" => "paused",
            "resume" => "resumed",
            other => other,
        };
        format!("validator {} {done}", self.validator)
    }
}

impl Report {
    /// Seconds of warm-up before the window.
    #[must_use]
    pub fn warmup_s(&self) -> f64 {
        self.config["warmup_s"].as_f64().unwrap_or(0.0)
    }

    /// Seconds that count.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.config["duration_s"].as_f64().unwrap_or(0.0)
    }

    /// What the members' votes weigh; nothing where the result does not say.
    #[must_use]
    pub fn weights(&self) -> Option<Weights> {
        let each: Option<Vec<u64>> =
            self.config["weights"].as_array()?.iter().map(Value::as_u64).collect();
        Weights::new(each?).ok()
    }

    /// A setting as text, without quotes; `-` where there is none. Dots lead into parts.
    #[must_use]
    pub fn setting(&self, path: &str) -> String {
        let found = path.split('.').try_fold(&self.config, |value, name| value.get(name));
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "-".to_owned(),
            Some(other) => other.to_string(),
        }
    }
}
