//! From what was seen every second to figures.

use super::config::BenchConfig;
use super::measure::{Counts, LatencyMs};
use crate::machine::MachineInfo;
use crate::status::ValidatorStatus;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// One look at the whole committee.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds since the load began.
    pub second: u64,
    /// What each validator said, `None` for silence.
    pub looks: Vec<Option<ValidatorStatus>>,
    /// Everything that counts so far.
    pub counted: Counts,
    /// Latency since the sample before.
    pub lately: LatencyMs,
    /// CPU seconds that this process, the load generator, has used.
    pub client_cpu_seconds: f64,
}

/// What became of a validator during the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fortune {
    /// It ran all along.
    Healthy,
    /// It was killed so many seconds into the window.
    Killed(f64),
    /// It was killed, and started again so many seconds into the window.
    Restarted(f64),
}

/// Everything seen, from which the report follows.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// What was asked.
    pub config: &'a BenchConfig,
    /// One a second, the first when the load began.
    pub samples: &'a [Sample],
    /// The last look, once everything was answered.
    pub last: &'a [Option<ValidatorStatus>],
    /// In member order.
    pub fortunes: &'a [Fortune],
    /// The fates of all operations that count.
    pub counted: Counts,
    /// Those of the warm-up.
    pub warmup: Counts,
    /// Latency of those that count.
    pub latency: LatencyMs,
    /// Bytes on disk of all validators at the end.
    pub disk_bytes: u64,
}

/// The result of a bench: `--json` prints it as it is.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Operations scheduled per second, taken or not.
    pub offered_tps: f64,
    /// Operations per second that the slowest healthy validator executed.
    pub committed_tps: f64,
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
    /// One entry a second, the warm-up included with negative seconds.
    pub timeline: Vec<Second>,
    /// The full effective configuration, and the machine.
    pub config: Value,
}

/// One validator's part.
#[derive(Clone, Debug, Serialize)]
pub struct ValidatorReport {
    /// Its index.
    pub id: u16,
    /// `healthy`, `killed` or `restarted`.
    pub state: &'static str,
    /// When it was killed or started again, in seconds into the window.
    pub since_s: Option<f64>,
    /// Operations per second that it executed; absent unless it ran all along.
    pub committed_tps: Option<f64>,
    /// The last height that it executed.
    pub height: u64,
    /// Its last view.
    pub view: u64,
}

/// One second of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Second {
    /// The second's end, counted from when the measured window opened.
    pub second: i64,
    /// Operations that the slowest healthy validator executed in it.
    pub committed: u64,
    /// Median latency of what was answered in it.
    pub p50_ms: f64,
    /// The highest view at its end.
    pub view: u64,
}

impl Report {
    /// Draws the conclusions.
    ///
    /// # Panics
    /// When there are fewer samples than the window has edges.
    #[must_use]
    pub fn new(evidence: &Evidence<'_>) -> Self {
        let Evidence { config, counted, .. } = *evidence;
        let window = evidence.window();
        let ids = 0..config.validators;
        let grown = |value: fn(&ValidatorStatus) -> f64| -> Vec<f64> {
            ids.clone().map(|id| growth(window, id, value)).collect()
        };
        let validators: Vec<_> = ids.clone().map(|id| evidence.validator(id)).collect();
        let rates = validators.iter().filter_map(|validator| validator.committed_tps);
        let committed_tps = rates.reduce(f64::min).unwrap_or(0.0);
        let committed = committed_tps * config.duration_s as f64;
        let sent: f64 = grown(|status| status.bytes_sent as f64).iter().sum();
        let looks =
            || evidence.samples.iter().flat_map(|s| &s.looks).chain(evidence.last).flatten();
        let offered = config.rate * config.duration_s;
        Self {
            offered_tps: config.rate as f64,
            committed_tps: tenths(committed_tps),
            latency_ms: evidence.latency,
            bytes_per_tx: (sent > 0.0 && committed > 0.0).then(|| tenths(sent / committed)),
            cpu_seconds: tenths(grown(|status| status.cpu_seconds.unwrap_or(0.0)).iter().sum()),
            client_cpu_seconds: tenths(client_cpu_seconds(window)),
            rss_mb_max: tenths(looks().filter_map(|status| status.rss_mb).fold(0.0, f64::max)),
            disk_mb: tenths(evidence.disk_bytes as f64 / 1_048_576.0),
            view_changes: largest(&grown(|status| status.view_changes as f64)) as u64,
            certificate_bytes: looks().map(|s| s.certificate_bytes).max().unwrap_or(0),
            answered: counted.done,
            refused: counted.refused,
            dropped: counted.dropped,
            unanswered: offered.saturating_sub(counted.settled()),
            warmup: evidence.warmup,
            validators,
            timeline: evidence.timeline(),
            config: describe(config),
        }
    }
}

impl Evidence<'_> {
    /// The samples from when the window opened to when it closed.
    fn window(&self) -> &[Sample] {
        let opened = self.samples.iter().position(|s| s.second >= self.config.warmup_s);
        &self.samples[opened.expect("the window opened")..]
    }

    fn validator(&self, id: u16) -> ValidatorReport {
        let fortune = self.fortunes[usize::from(id)];
        let (state, since_s) = match fortune {
            Fortune::Healthy => ("healthy", None),
            Fortune::Killed(second) => ("killed", Some(second)),
            Fortune::Restarted(second) => ("restarted", Some(second)),
        };
        let look = |sample: &Sample| sample.looks[usize::from(id)].clone();
        let last = self.last[usize::from(id)].clone();
        let last = last.or_else(|| self.samples.iter().rev().find_map(look)).unwrap_or_default();
        let healthy = fortune == Fortune::Healthy;
        ValidatorReport {
            id,
            state,
            since_s,
            committed_tps: healthy.then(|| tenths(rate(self.window(), id))),
            height: last.executed,
            view: last.view,
        }
    }

    fn timeline(&self) -> Vec<Second> {
        let healthy = |id: u16| self.fortunes[usize::from(id)] == Fortune::Healthy;
        let slowest = |pair: &[Sample]| {
            let ids = (0..self.config.validators).filter(|&id| healthy(id));
            ids.map(|id| growth(pair, id, |status| status.operations as f64) as u64).min()
        };
        let second = |pair: &[Sample]| Second {
            second: pair[1].second as i64 - self.config.warmup_s as i64,
            committed: slowest(pair).unwrap_or(0),
            p50_ms: pair[1].lately.p50,
            view: pair[1].looks.iter().flatten().map(|status| status.view).max().unwrap_or(0),
        };
        self.samples.windows(2).map(second).collect()
    }
}

/// How much a counter that starts from zero with its process grew: a smaller value means that the
/// process is a new one.
fn growth(samples: &[Sample], id: u16, value: fn(&ValidatorStatus) -> f64) -> f64 {
    let mut seen = samples.iter().filter_map(|s| s.looks[usize::from(id)].as_ref()).map(value);
    let Some(mut before) = seen.next() else { return 0.0 };
    let mut total = 0.0;
    for now in seen {
        total += if now >= before { now - before } else { now };
        before = now;
    }
    total
}

/// Operations per second between the first and the last thing that a validator said.
fn rate(window: &[Sample], id: u16) -> f64 {
    let said = || window.iter().filter_map(|sample| sample.looks[usize::from(id)].as_ref());
    let (Some(first), Some(last)) = (said().next(), said().next_back()) else { return 0.0 };
    let span = match (first.at, last.at) {
        (Some(first), Some(last)) => last.saturating_duration_since(first),
        _ => Duration::ZERO,
    };
    if span.is_zero() {
        return 0.0;
    }
    last.operations.saturating_sub(first.operations) as f64 / span.as_secs_f64()
}

fn client_cpu_seconds(window: &[Sample]) -> f64 {
    match window {
        [first, .., last] => last.client_cpu_seconds - first.client_cpu_seconds,
        _ => 0.0,
    }
}

fn describe(config: &BenchConfig) -> Value {
    let mut described = config.to_json();
    described["machine"] = json!(MachineInfo::here());
    described["shared_machine"] = json!("validators and clients share this machine's cores");
    described
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
