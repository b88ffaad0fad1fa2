//! The result of a bench or a load: one plain structure, from which every table and page is drawn.

pub mod beside;
pub mod bounds;
mod histogram;
mod latency;
pub mod latency_grid;
mod measurement;

pub use beside::Beside;
pub use histogram::Histogram;
pub use latency::LatencyMs;
pub use latency_grid::LatencyGrid;
pub use measurement::{
    CommittedBy, LoadOrigin, Measurement, MergedLoad, MergedLoads, NotAShare, Share,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The number of the format described here. Results of another format are not read.
pub const FORMAT: u32 = 2;

/// The result of a bench, a load or several: `--json` prints it as it is, a report page carries it
/// inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Number of the format: [`FORMAT`].
    pub format: u32,
    /// Beginning of the load, in universal time: `2026-01-31 12:00:00 UTC`.
    pub started: String,
    /// The command that asked for it; empty where there was none.
    pub command: String,
    /// Kind of measurement; that of a bench where it does not say.
    #[serde(default)]
    pub measurement: Measurement,
    /// Counting that gives `committed_tps`.
    #[serde(default)]
    pub committed_by: CommittedBy,
    /// Operations scheduled per second, taken or not.
    pub offered_tps: f64,
    /// Operations per second that the slowest healthy validator executed; without a look at
    /// validators those that were answered to this load ([`Report::committed_by`]).
    pub committed_tps: f64,
    /// Answers per second in the time that counts ;
    /// absent in results from before it was counted.
    #[serde(default)]
    pub goodput_tps: Option<f64>,
    /// Processor time that a validator's threads use for an operation that it executes, in µs, by
    /// station of the performance model: the mean of the
    /// validators that ran all along. Nothing where the system does not tell.
    #[serde(default)]
    pub stations_us: BTreeMap<String, f64>,
    /// From an operation's scheduled time to its (f+1)-th equal signed reply.
    pub latency_ms: LatencyMs,
    /// Network bytes that all validators sent, to each other and to clients, per committed
    /// operation.
    pub bytes_per_tx: Option<f64>,
    /// CPU seconds of all validators over the window; absent where none was looked at, as the
    /// other figures of validators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// CPU seconds of the load generator; a bench's shares the machine with them.
    pub client_cpu_seconds: f64,
    /// The most memory that one validator used, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_mb_max: Option<f64>,
    /// Disk space of all validators together at the end, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<f64>,
    /// Views that timed out over the window, at the validator that saw most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_changes: Option<u64>,
    /// Heights decided fast over the window, at the validator that saw most; where the protocol has
    /// a fast path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_decisions: Option<u64>,
    /// And by its slow one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_decisions: Option<u64>,
    /// Bytes of the last quorum certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_bytes: Option<u64>,
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
    /// Fault events in their order.
    pub events: Vec<FaultEvent>,
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
    /// The same in full, of a load that may be joined with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_histogram: Option<Histogram>,
    /// Figures that the result is judged by.
    #[serde(default)]
    pub beside: Beside,
    /// The full effective configuration, and the machine.
    pub config: Value,
}

/// Results of one validator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidatorReport {
    /// Index in the committee.
    pub id: u16,
    /// `healthy`, `killed`, `restarted`, `paused` or `lying`.
    pub state: String,
    /// Moment of its last fault event, in seconds into the window.
    pub since_s: Option<f64>,
    /// Operations per second that it executed; absent unless it ran all along.
    pub committed_tps: Option<f64>,
    /// The last height that it executed.
    pub height: u64,
    /// View at the end of the run.
    pub view: u64,
    /// CPU seconds that it used over the window.
    pub cpu_seconds: f64,
    /// The most memory that it used, in MiB.
    pub rss_mb_max: f64,
    /// Bytes that it sent over the window.
    pub bytes_sent: u64,
    /// Samples of every second.
    pub each_second: Traces,
}

/// Samples of a validator, one entry for each of [`Report::timeline`]; nothing where it was silent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traces {
    /// Operations per second executed since the second before.
    pub committed_tps: Vec<Option<f64>>,
    /// The last executed height.
    pub height: Vec<Option<u64>>,
    /// Cores kept busy since the second before.
    pub cpu_cores: Vec<Option<f64>>,
    /// Memory in use, in MiB.
    pub rss_mb: Vec<Option<f64>>,
}

/// Something done to a validator, or to the committee, on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// Moment, in seconds into the window.
    pub at_s: f64,
    /// Kind of event: `kill`, `restart`, `pause`, `resume`, `lie`, `cut` or `change`.
    pub kind: String,
    /// Index of the validator; `None` where it is done to the committee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<u16>,
    /// The other end of a link that is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_to: Option<u16>,
    /// Change of the committee that is brought, as in `replace 2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// Operations by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Operations executed, refused by the service or not.
    pub done: u64,
    /// Operations executed and refused by the service.
    pub refused: u64,
    /// Operations that a full session did not take.
    pub dropped: u64,
    /// Operations of the warm-up taken and never answered; those that count are in
    /// [`Report::unanswered`]. Zero in results from before it was counted.
    #[serde(default)]
    pub unanswered: u64,
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
    /// Views that timed out in it, at the validator that saw most.
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

impl Rates {
    /// Operations per second that were due in a window, to a tenth.
    #[must_use]
    pub fn offered_over(&self, warmup_s: f64, duration_s: f64) -> f64 {
        self.over(&self.offered_tps, warmup_s, duration_s)
    }

    /// Operations per second that were answered in a window, whenever they were due, to a tenth.
    #[must_use]
    pub fn answered_over(&self, warmup_s: f64, duration_s: f64) -> f64 {
        self.over(&self.answered_tps, warmup_s, duration_s)
    }

    fn over(&self, series: &[f64], warmup_s: f64, duration_s: f64) -> f64 {
        let interval =
            |seconds: f64| (1_000.0 * seconds / self.interval_ms.max(1) as f64).round() as usize;
        let (from, to) = (interval(warmup_s), interval(warmup_s + duration_s));
        let inside = series.iter().take(to).skip(from);
        let mean = inside.sum::<f64>() / to.saturating_sub(from).max(1) as f64;
        (mean * 10.0).round() / 10.0
    }
}

impl Counts {
    /// Number of operations that wait for nothing any more.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.done + self.dropped
    }
}

impl FaultEvent {
    /// Validator and kind of event, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let validator = self.validator.unwrap_or_default();
        if let Some(other) = self.link_to {
            return format!("link {validator}-{other} is cut");
        }
        if let Some(change) = &self.change {
            return format!("the committee changes: {change}");
        }
        let done = match self.kind.as_str() {
            "kill" => "killed",
            "restart" => "started again",
            "pause" => "paused",
            "resume" => "resumed",
            "lie" => "begins to lie",
            other => other,
        };
        format!("validator {validator} {done}")
    }
}

impl Report {
    /// Seconds of warm-up before the window.
    #[must_use]
    pub fn warmup_s(&self) -> f64 {
        self.config["warmup_s"].as_f64().unwrap_or(0.0)
    }

    /// Length of the measured window, in seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.config["duration_s"].as_f64().unwrap_or(0.0)
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
