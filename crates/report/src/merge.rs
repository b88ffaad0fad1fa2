//! Several loads on one network as one result.
//!
//! Each load was measured by its own host, with that host's clock. Joined are counts and
//! histograms, exactly: a percentile of the sum is that of all operations together, and never made
//! from percentiles. Rates are added over the time that all windows have in common, interval by
//! interval; a load that began between two intervals is moved by half of one at most. What one
//! load's host cannot know of the others' (figures of validators, goodput) is left out.

mod error;

pub use error::MergeError;

use crate::Report;
use crate::results::latency_grid::INTERVAL_MS;
use crate::results::{
    Beside, Committed, CommittedBy, Counts, FORMAT, Histogram, LatencyGrid, LoadOrigin,
    Measurement, MergedLoad, MergedLoads, Rates, Share,
};
use crate::text::utc;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// A load's result with what is needed of it.
struct Load<'a> {
    report: &'a Report,
    origin: &'a LoadOrigin,
    histogram: &'a Histogram,
}

/// Part of the time of all loads that they have in common, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Common {
    /// Beginning of the last load.
    axis: u64,
    /// Beginning of the last window.
    from: u64,
    /// End of the first window.
    until: u64,
}

/// Joins results of `quorate load`, in any order. One alone is itself.
///
/// # Errors
/// [`MergeError`].
pub fn merge(reports: &[Report]) -> Result<Report, MergeError> {
    let mut loads = reports.iter().map(Load::of).collect::<Result<Vec<_>, _>>()?;
    loads.sort_by(|a, b| order(a.origin).cmp(&order(b.origin)));
    for pair in loads.windows(2) {
        same(pair[0].origin, pair[1].origin)?;
    }
    let mut by_seed: Vec<&LoadOrigin> = loads.iter().map(|load| load.origin).collect();
    by_seed.sort_by_key(|origin| origin.seed);
    if let Some(pair) = by_seed.windows(2).find(|pair| pair[0].seed == pair[1].seed) {
        let (one, other) = (pair[0].name(), pair[1].name());
        return Err(MergeError::SameSeed { one, other, seed: pair[0].seed });
    }
    if let Some(pair) = loads.windows(2).find(|pair| is_one_share(pair)) {
        let (one, other) = (pair[0].origin.name(), pair[1].origin.name());
        return Err(MergeError::SameShare { one, other });
    }
    match &loads[..] {
        [] => Err(MergeError::Nothing),
        [one] => Ok(one.report.clone()),
        several => join(several),
    }
}

fn order(origin: &LoadOrigin) -> (Option<Share>, &str, u64) {
    (origin.share, &origin.host, origin.seed)
}

/// Whether neighbours in the order of shares have the same one.
fn is_one_share(pair: &[Load<'_>]) -> bool {
    pair[0].origin.share.is_some() && pair[0].origin.share == pair[1].origin.share
}

/// Checks that two loads had the same in front of them, and are shares of one whole if they are
/// any.
fn same(one: &LoadOrigin, other: &LoadOrigin) -> Result<(), MergeError> {
    let shares = |a: Option<Share>, b: Option<Share>| match (a, b) {
        (Some(a), Some(_)) => format!("shares of {}", a.of),
        _ => String::new(),
    };
    let epochs = |origin: &LoadOrigin| format!("{} to {}", origin.epochs.0, origin.epochs.1);
    let parts = [
        ("networks", one.network.clone(), other.network.clone()),
        ("services", one.service.clone(), other.service.clone()),
        ("epochs", epochs(one), epochs(other)),
        ("divisions", shares(one.share, other.share), shares(other.share, one.share)),
    ];
    let differing = parts.into_iter().find(|(_, here, there)| here != there);
    differing.map_or(Ok(()), |(what, here, there)| {
        let (one, other) = (one.name(), other.name());
        Err(MergeError::Different { what, one, other, here, there })
    })
}

impl<'a> Load<'a> {
    fn of(report: &'a Report) -> Result<Self, MergeError> {
        let started = || report.started.clone();
        let what = match &report.measurement {
            Measurement::Load(origin) => {
                let histogram = report.latency_histogram.as_ref();
                let histogram = histogram.ok_or_else(|| MergeError::NoHistogram(started()))?;
                return Ok(Self { report, origin, histogram });
            }
            Measurement::Bench => "a bench's, whose committee is its own",
            Measurement::Merged(_) => "of several loads that were joined",
        };
        Err(MergeError::NotALoad { started: started(), what })
    }

    /// The measured window, in milliseconds since 1970.
    fn window_ms(&self) -> (u64, u64) {
        let ms = |seconds: f64| (1_000.0 * seconds).round() as u64;
        let from = self.origin.started_ms + ms(self.report.warmup_s());
        (from, from + ms(self.report.duration_s()))
    }

    /// CPU seconds of its generator over so much of its window, as if evenly used.
    fn cpu_seconds_of(&self, part_s: f64) -> f64 {
        self.report.client_cpu_seconds * part_s / self.report.duration_s()
    }

    /// Number of its intervals before `axis`.
    fn before(&self, axis: u64) -> usize {
        let before_ms = axis.saturating_sub(self.origin.started_ms);
        ((before_ms + INTERVAL_MS / 2) / INTERVAL_MS) as usize
    }

    fn row(&self) -> MergedLoad {
        let report = self.report;
        MergedLoad {
            origin: self.origin.clone(),
            warmup_s: report.warmup_s(),
            duration_s: report.duration_s(),
            offered_tps: report.offered_tps,
            answered_tps: report.load.answered_over(report.warmup_s(), report.duration_s()),
            answered: report.answered,
            lost: report.dropped + report.unanswered,
            latency_ms: report.latency_ms,
        }
    }
}

/// The time that all windows have in common.
fn common(loads: &[Load<'_>]) -> Result<Common, MergeError> {
    let late = loads.iter().max_by_key(|load| load.window_ms().0).ok_or(MergeError::Nothing)?;
    let early = loads.iter().min_by_key(|load| load.window_ms().1).ok_or(MergeError::Nothing)?;
    let (from, until) = (late.window_ms().0, early.window_ms().1);
    if until < from + INTERVAL_MS {
        let apart_s = from.saturating_sub(until).div_ceil(1_000);
        let (early, late) = (early.origin.name(), late.origin.name());
        return Err(MergeError::Apart { early, late, apart_s });
    }
    let axis = loads.iter().map(|load| load.origin.started_ms).max().unwrap_or(from);
    Ok(Common { axis, from, until })
}

fn join(loads: &[Load<'_>]) -> Result<Report, MergeError> {
    let common = common(loads)?;
    let (warmup_ms, window_ms) = (common.from - common.axis, common.until - common.from);
    let (warmup_s, duration_s) = (warmup_ms as f64 / 1_000.0, window_ms as f64 / 1_000.0);
    let sum = |value: fn(&Report) -> u64| loads.iter().map(|load| value(load.report)).sum();
    let rates = rates(loads, common);
    let mut histogram = Histogram::default();
    loads.iter().for_each(|load| histogram.add(load.histogram));
    Ok(Report {
        format: FORMAT,
        started: utc(SystemTime::UNIX_EPOCH + Duration::from_millis(common.axis)),
        command: String::new(),
        measurement: Measurement::Merged(merged(loads, common)),
        committed_by: CommittedBy::Answers,
        offered_tps: rates.offered_over(warmup_s, duration_s),
        committed_tps: rates.answered_over(warmup_s, duration_s),
        goodput_tps: None,
        stations_us: std::collections::BTreeMap::new(),
        latency_ms: histogram.summary(),
        bytes_per_tx: None,
        cpu_seconds: None,
        client_cpu_seconds: tenths(loads.iter().map(|load| load.cpu_seconds_of(duration_s)).sum()),
        rss_mb_max: None,
        disk_mb: None,
        view_changes: None,
        fast_decisions: None,
        slow_decisions: None,
        certificate_bytes: None,
        answered: sum(|report| report.answered),
        refused: sum(|report| report.refused),
        dropped: sum(|report| report.dropped),
        unanswered: sum(|report| report.unanswered),
        warmup: Counts {
            done: sum(|report| report.warmup.done),
            refused: sum(|report| report.warmup.refused),
            dropped: sum(|report| report.warmup.dropped),
            unanswered: sum(|report| report.warmup.unanswered),
        },
        validators: Vec::new(),
        events: Vec::new(),
        timeline: Vec::new(),
        load: rates,
        committed: Committed::default(),
        latency_over_time: grid(loads, common),
        latency_distribution_us: histogram.distribution_us(),
        latency_histogram: Some(histogram),
        beside: Beside::default(),
        config: config(loads, warmup_s, duration_s),
    })
}

fn merged(loads: &[Load<'_>], common: Common) -> MergedLoads {
    let first = loads.iter().map(|load| load.window_ms().0).min().unwrap_or(common.from);
    let last = loads.iter().map(|load| load.window_ms().1).max().unwrap_or(common.until);
    MergedLoads {
        loads: loads.iter().map(Load::row).collect(),
        window_from_ms: common.from,
        window_ms: common.until - common.from,
        windows_ms: last - first,
    }
}

/// Number of intervals from the beginning of the last load to the end of the common window.
fn intervals(common: Common) -> usize {
    (common.until - common.axis).div_ceil(INTERVAL_MS) as usize
}

fn rates(loads: &[Load<'_>], common: Common) -> Rates {
    let sum = |series: fn(&Rates) -> &[f64]| {
        let at = |index: usize| {
            let one = |load: &Load<'_>| {
                series(&load.report.load).get(load.before(common.axis) + index).copied()
            };
            loads.iter().filter_map(one).sum()
        };
        (0..intervals(common)).map(at).collect()
    };
    Rates {
        interval_ms: INTERVAL_MS,
        offered_tps: sum(|rates| &rates.offered_tps),
        answered_tps: sum(|rates| &rates.answered_tps),
    }
}

fn grid(loads: &[Load<'_>], common: Common) -> LatencyGrid {
    let mut sum = LatencyGrid::default();
    for load in loads {
        sum.add(&load.report.latency_over_time, load.before(common.axis), intervals(common));
    }
    sum
}

/// Settings that all loads have alike; of a rate the sum, where all have one.
fn config(loads: &[Load<'_>], warmup_s: f64, duration_s: f64) -> Value {
    let configs: Vec<_> = loads.iter().filter_map(|load| load.report.config.as_object()).collect();
    let everywhere =
        |name: &String, value: &Value| configs.iter().all(|config| config.get(name) == Some(value));
    let mut common = serde_json::Map::new();
    for (name, value) in configs.first().into_iter().flat_map(|config| config.iter()) {
        if everywhere(name, value) {
            common.insert(name.clone(), value.clone());
        }
    }
    let each: Option<Vec<u64>> =
        configs.iter().map(|config| config.get("rate")?.as_u64()).collect();
    if let Some(rates) = each {
        common.insert("rate".to_owned(), json!(rates.iter().sum::<u64>()));
    }
    common.insert("loads".to_owned(), json!(loads.len()));
    common.insert("warmup_s".to_owned(), json!(warmup_s));
    common.insert("duration_s".to_owned(), json!(duration_s));
    Value::Object(common)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
