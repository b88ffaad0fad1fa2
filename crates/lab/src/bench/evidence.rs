//! From what was seen every second to figures.

use super::watch::Tracks;
use crate::load::LoadConfig;
use crate::load::measure::OverTime;
use crate::machine::MachineInfo;
use crate::status::ValidatorStatus;
use quorate_model::Station;
use quorate_report::Report;
use quorate_report::results::{
    Beside, Committed, CommittedBy, Counts, FORMAT, FaultEvent, LatencyMs, Measurement, Second,
    Traces, ValidatorReport,
};
use quorate_report::text::utc;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// One look at the whole committee.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds since the load began.
    pub second: u64,
    /// Status of each validator, `None` for silence.
    pub looks: Vec<Option<ValidatorStatus>>,
    /// Operations answered since the load began, the warm-up included.
    pub answered: u64,
    /// Latency since the sample before.
    pub lately: LatencyMs,
    /// CPU seconds that this process, the load generator, has used.
    pub client_cpu_seconds: f64,
}

/// State of a validator at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValidatorState {
    /// It ran all along.
    Healthy,
    /// It never ran: its keys are not at hand.
    Absent,
    /// It was killed so many seconds into the window.
    Killed(f64),
    /// It was killed, and started again so many seconds into the window.
    Restarted(f64),
    /// It was stopped so many seconds into the window, for good or for a while.
    Paused(f64),
    /// It lies since so many seconds into the window.
    Lying(f64),
    /// Strangers fill its doors since so many seconds into the window.
    Crowded(f64),
    /// It did not answer, or began again, so many seconds into the window; nobody says why.
    Silent(f64),
}

impl ValidatorState {
    /// Its name, and since when in seconds into the window.
    #[must_use]
    pub fn describe(&self) -> (&'static str, Option<f64>) {
        match *self {
            Self::Healthy => ("healthy", None),
            Self::Absent => ("absent", None),
            Self::Killed(second) => ("killed", Some(second)),
            Self::Restarted(second) => ("restarted", Some(second)),
            Self::Paused(second) => ("paused", Some(second)),
            Self::Lying(second) => ("lying", Some(second)),
            Self::Crowded(second) => ("crowded", Some(second)),
            Self::Silent(second) => ("silent", Some(second)),
        }
    }

    /// Returns `true` if it is to have executed what the others have by the end.
    pub(in crate::bench) fn must_catch_up(&self) -> bool {
        !matches!(self, Self::Killed(_) | Self::Absent | Self::Lying(_))
    }
}

/// Everything seen, from which the report follows.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// Load that was offered.
    pub load: &'a LoadConfig,
    /// Bench or load, for the result.
    pub measurement: Measurement,
    /// The full configuration, and the machine.
    pub config: Value,
    /// One a second, the first when the load began.
    pub samples: &'a [Sample],
    /// The last look, once everything was answered.
    pub last: &'a [Option<ValidatorStatus>],
    /// States of all validators, in member order.
    pub states: &'a [ValidatorState],
    /// The fates of all operations that count.
    pub counted: Counts,
    /// Those of the warm-up.
    pub warmup: Counts,
    /// Latency of those that count.
    pub latency: LatencyMs,
    /// Answers a second in the time that counts.
    pub goodput_tps: f64,
    /// Processor time of the threads of all validators that ran all along, over the window, in µs
    /// by station.
    pub stations_us: BTreeMap<Station, f64>,
    /// Bytes on disk of all validators at the end, where they are on this machine.
    pub disk_bytes: Option<u64>,
    /// Load and latency over time.
    pub over_time: &'a OverTime,
    /// Progress of each validator at any time.
    pub tracks: &'a Tracks,
    /// Beginning of the load.
    pub started: SystemTime,
    /// Operations that count and were offered.
    pub offered: u64,
    /// Fault events in their order.
    pub events: &'a [FaultEvent],
    /// Figures that the result is judged by.
    pub beside: Beside,
}

impl Evidence<'_> {
    /// The report that follows from it.
    ///
    /// # Panics
    /// When there are fewer samples than the window has edges.
    #[must_use]
    pub(crate) fn report(&self) -> Report {
        let Evidence { load, counted, .. } = *self;
        let window = self.window();
        let grown = |value: fn(&ValidatorStatus) -> f64| -> Vec<f64> {
            self.truthful().map(|id| growth(window, id, value)).collect()
        };
        let validators: Vec<_> = self.ids().map(|id| self.validator(id)).collect();
        let rates = validators.iter().filter_map(|validator| validator.committed_tps);
        let slowest_tps = rates.reduce(f64::min);
        let rates = self.over_time.rates();
        let (committed_by, committed_tps) = match (slowest_tps, &self.measurement) {
            (None, Measurement::Load(_)) => (
                CommittedBy::Answers,
                rates.answered_over(load.warmup_s as f64, load.duration_s as f64),
            ),
            (slowest_tps, _) => (CommittedBy::Validators, slowest_tps.unwrap_or(0.0)),
        };
        let committed = slowest_tps.unwrap_or(0.0) * load.duration_s as f64;
        let sent: f64 = grown(|status| status.bytes_sent as f64).iter().sum();
        let looks = || self.truthful().flat_map(|id| self.seen(id));
        let offered = self.offered;
        // Of no validator, no figure of validators.
        let seen = looks().next().map(|_| ());
        Report {
            format: FORMAT,
            started: utc(self.started),
            command: String::new(),
            measurement: self.measurement.clone(),
            committed_by,
            offered_tps: tenths(offered as f64 / load.duration_s as f64),
            committed_tps: tenths(committed_tps),
            goodput_tps: Some(tenths(self.goodput_tps)),
            stations_us: self.stations_us(),
            latency_ms: self.latency,
            bytes_per_tx: (sent > 0.0 && committed > 0.0).then(|| tenths(sent / committed)),
            cpu_seconds: seen
                .map(|()| tenths(grown(|status| status.cpu_seconds.unwrap_or(0.0)).iter().sum())),
            client_cpu_seconds: tenths(client_cpu_seconds(window)),
            rss_mb_max: seen
                .map(|()| tenths(looks().filter_map(|status| status.rss_mb).fold(0.0, f64::max))),
            disk_mb: self.disk_bytes.map(|bytes| tenths(bytes as f64 / 1_048_576.0)),
            view_changes: seen
                .map(|()| largest(&grown(|status| status.view_changes as f64)) as u64),
            fast_decisions: seen
                .map(|()| largest(&grown(|status| status.fast_decisions as f64)) as u64),
            slow_decisions: seen
                .map(|()| largest(&grown(|status| status.slow_decisions as f64)) as u64),
            certificate_bytes: looks().map(|s| s.certificate_bytes).max(),
            answered: counted.done,
            refused: counted.refused,
            dropped: counted.dropped,
            unanswered: offered.saturating_sub(counted.settled()),
            warmup: self.warmup,
            validators,
            events: self.events.to_vec(),
            timeline: self.timeline(),
            load: rates,
            committed: self.committed(),
            latency_over_time: self.over_time.latency.clone(),
            latency_distribution_us: self.over_time.histogram.distribution_us(),
            latency_histogram: (self.measurement != Measurement::Bench)
                .then(|| self.over_time.histogram.clone()),
            beside: self.beside.clone(),
            config: self.config.clone(),
        }
    }

    /// Validators that were looked at, in order.
    fn ids(&self) -> std::ops::Range<u16> {
        0..u16::try_from(self.states.len()).expect("validators are counted in 16 bits")
    }

    /// Members whose figures say something of the committee: a liar's say what it does.
    fn truthful(&self) -> impl Iterator<Item = u16> {
        let lies = |id: &u16| matches!(self.states[usize::from(*id)], ValidatorState::Lying(_));
        self.ids().filter(move |id| !lies(id))
    }

    /// The samples from when the window opened to when it closed.
    fn window(&self) -> &[Sample] {
        let opened = self.samples.iter().position(|s| s.second >= self.load.warmup_s);
        &self.samples[opened.expect("the window opened")..]
    }

    /// Cost of an operation at each station of a validator, in µs, by the station's name.
    fn stations_us(&self) -> BTreeMap<String, f64> {
        let ids = self.ids().filter(|&id| self.states[usize::from(id)] == ValidatorState::Healthy);
        let executed: f64 =
            ids.map(|id| growth(self.window(), id, |status| status.operations as f64)).sum();
        if executed == 0.0 {
            return BTreeMap::new();
        }
        let each = |(station, us): (&Station, &f64)| {
            (station.name().to_owned(), hundredths(us / executed))
        };
        self.stations_us.iter().map(each).collect()
    }

    fn validator(&self, id: u16) -> ValidatorReport {
        let state = self.states[usize::from(id)];
        let (name, since_s) = state.describe();
        let look = |sample: &Sample| sample.looks[usize::from(id)].clone();
        let last = self.last[usize::from(id)].clone();
        let last = last.or_else(|| self.samples.iter().rev().find_map(look)).unwrap_or_default();
        let healthy = state == ValidatorState::Healthy;
        ValidatorReport {
            id,
            state: name.to_owned(),
            since_s,
            committed_tps: healthy.then(|| tenths(rate(self.window(), id))),
            height: last.executed,
            view: last.view,
            cpu_seconds: tenths(growth(self.window(), id, |s| s.cpu_seconds.unwrap_or(0.0))),
            rss_mb_max: tenths(self.seen(id).filter_map(|s| s.rss_mb).fold(0.0, f64::max)),
            bytes_sent: growth(self.window(), id, |s| s.bytes_sent as f64) as u64,
            each_second: self.traces(id),
        }
    }

    /// Everything that a validator said.
    fn seen(&self, id: u16) -> impl Iterator<Item = &ValidatorStatus> {
        let id = usize::from(id);
        self.samples.iter().filter_map(move |s| s.looks[id].as_ref()).chain(&self.last[id])
    }

    fn traces(&self, id: u16) -> Traces {
        let look = |sample: &'_ Sample| sample.looks[usize::from(id)].clone();
        let pairs = || self.samples.windows(2).map(|pair| (look(&pair[0]), look(&pair[1])));
        let rate = |value: fn(&ValidatorStatus) -> Option<f64>| {
            let between = |(before, now): (Option<ValidatorStatus>, Option<ValidatorStatus>)| {
                per_second(before.as_ref()?, now.as_ref()?, value)
            };
            pairs().map(between).collect()
        };
        Traces {
            committed_tps: rate(|status| Some(status.operations as f64)),
            height: pairs().map(|(_, now)| Some(now?.executed)).collect(),
            cpu_cores: rate(|status| status.cpu_seconds),
            rss_mb: pairs().map(|(_, now)| now?.rss_mb).collect(),
        }
    }

    /// The slowest and the fastest healthy validator in each interval.
    fn committed(&self) -> Committed {
        let ids = (0..self.states.len()).filter(|&id| self.states[id] == ValidatorState::Healthy);
        let count = (self.load.span().as_millis() as u64 / self.tracks.interval_ms.max(1)) as usize;
        // Nothing of nobody.
        let count = if self.tracks.seen.is_empty() { 0 } else { count };
        let rates: Vec<_> = ids.map(|id| self.tracks.rates(id, count)).collect();
        let each = |choose: fn(f64, f64) -> f64| {
            let one = |index: usize| rates.iter().filter_map(|rates| rates[index]).reduce(choose);
            (0..count).map(one).collect()
        };
        Committed {
            interval_ms: self.tracks.interval_ms,
            slowest_tps: each(f64::min),
            fastest_tps: each(f64::max),
        }
    }

    fn timeline(&self) -> Vec<Second> {
        let healthy = |id: u16| self.states[usize::from(id)] == ValidatorState::Healthy;
        let slowest = |pair: &[Sample]| {
            // A late answer is no second without operations.
            let said = |id: u16| pair.iter().all(|sample| sample.looks[usize::from(id)].is_some());
            let ids = self.ids().filter(|&id| healthy(id) && said(id));
            ids.map(|id| growth(pair, id, |status| status.operations as f64) as u64).min()
        };
        let most_view_changes = |pair: &[Sample]| {
            let each = self.truthful().map(|id| growth(pair, id, |s| s.view_changes as f64) as u64);
            each.max().unwrap_or(0)
        };
        let second = |pair: &[Sample]| Second {
            second: pair[1].second as i64 - self.load.warmup_s as i64,
            committed: slowest(pair).unwrap_or(pair[1].answered - pair[0].answered),
            p50_ms: pair[1].lately.p50,
            view: pair[1].looks.iter().flatten().map(|status| status.view).max().unwrap_or(0),
            view_changes: most_view_changes(pair),
            client_cpu_cores: tenths(pair[1].client_cpu_seconds - pair[0].client_cpu_seconds),
        };
        self.samples.windows(2).map(second).collect()
    }
}

/// Growth of a counter that starts from zero with its process: a smaller value means that the
/// process is a new one.
pub(in crate::bench) fn growth(
    samples: &[Sample],
    id: u16,
    value: fn(&ValidatorStatus) -> f64,
) -> f64 {
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
pub(in crate::bench) fn rate(window: &[Sample], id: u16) -> f64 {
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

/// Growth of a value between two samples, per second; `None` across a restart.
fn per_second(
    before: &ValidatorStatus,
    now: &ValidatorStatus,
    value: fn(&ValidatorStatus) -> Option<f64>,
) -> Option<f64> {
    let span = now.at?.saturating_duration_since(before.at?).as_secs_f64();
    let grown = value(now)? - value(before)?;
    (span > 0.0 && grown >= 0.0).then(|| hundredths(grown / span))
}

fn client_cpu_seconds(window: &[Sample]) -> f64 {
    match window {
        [first, .., last] => last.client_cpu_seconds - first.client_cpu_seconds,
        _ => 0.0,
    }
}

/// A configuration with the machine that it was measured on.
pub(crate) fn on_this_machine(mut config: Value) -> Value {
    config["machine"] = json!(MachineInfo::here());
    config
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
pub(crate) mod tests;
