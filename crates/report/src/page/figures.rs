//! The figures of a run, each with its unit and which way is better.

use crate::Report;
use crate::results::{CommittedBy, Measurement};
use crate::text::{milliseconds, thousands};

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The more, the better.
    Higher,
    /// The less, the better.
    Lower,
    /// Neither: it was asked for, or it depends.
    Neither,
}

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name, for tables and pages.
    pub name: &'static str,
    /// Unit, empty for a count.
    pub unit: &'static str,
    /// Direction in which it is better.
    pub better: Better,
    /// Its value in a result, as far as there is one.
    pub value: fn(&Report) -> Option<f64>,
}

const fn figure(
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&Report) -> Option<f64>,
) -> Figure {
    Figure { name, unit, better, value }
}

/// All of them, in the order in which they are shown.
#[must_use]
pub fn all() -> Vec<Figure> {
    use Better::{Higher, Lower, Neither};
    vec![
        figure("offered", "tx/s", Neither, |r| Some(r.offered_tps)),
        figure("committed by every healthy validator", "tx/s", Higher, committed_tps),
        figure("answered to this load", "tx/s", Higher, answered_tps),
        figure("latency, median", "ms", Lower, |r| measured(r, r.latency_ms.p50)),
        figure("latency, 90 %", "ms", Lower, |r| measured(r, r.latency_ms.p90)),
        figure("latency, 99 %", "ms", Lower, |r| measured(r, r.latency_ms.p99)),
        figure("latency, longest", "ms", Lower, |r| measured(r, r.latency_ms.max)),
        figure("latency, mean", "ms", Lower, |r| measured(r, r.latency_ms.mean)),
        figure("longest time without an answer", "ms", Lower, longest_silence_ms),
        figure("bytes sent by all validators", "B/tx", Lower, |r| r.bytes_per_tx),
        figure("CPU of all validators", "µs/tx", Lower, cpu_us_per_tx),
        figure("cores kept busy by validators", "cores", Lower, |r| per_window(r, r.cpu_seconds?)),
        figure("cores kept busy by the load", "cores", Lower, |r| {
            per_window(r, r.client_cpu_seconds)
        }),
        figure("memory of one validator, at most", "MiB", Lower, |r| r.rss_mb_max),
        figure("disk of all validators", "MiB", Lower, |r| r.disk_mb),
        figure("view changes", "", Lower, |r| r.view_changes.map(|n| n as f64)),
        figure("certificate", "B", Lower, |r| r.certificate_bytes.map(|n| n as f64)),
        figure("operations answered", "", Higher, |r| Some(r.answered as f64)),
        figure("operations not taken by a full client", "", Lower, |r| Some(r.dropped as f64)),
        figure("operations never answered", "", Lower, |r| Some(r.unanswered as f64)),
        figure("operations refused by the service", "", Lower, |r| Some(r.refused as f64)),
    ]
}

/// Those that any of these results has.
pub(super) fn of<'a>(reports: &(impl Iterator<Item = &'a Report> + Clone)) -> Vec<Figure> {
    let mut figures = all();
    figures.retain(|figure| reports.clone().any(|report| (figure.value)(report).is_some()));
    figures
}

impl Figure {
    /// The value in a result for people, without the unit; `-` where there is none.
    #[must_use]
    pub fn text(&self, report: &Report) -> String {
        let value = (self.value)(report).filter(|value| value.is_finite());
        value.map_or("-".to_owned(), |value| number(value, self.unit))
    }

    /// Ratio of `of` to `base`; `None` where that means nothing.
    #[must_use]
    pub fn ratio(&self, base: &Report, of: &Report) -> Option<f64> {
        let (base, of) = ((self.value)(base)?, (self.value)(of)?);
        let ratio = of / base;
        (base > 0.0 && ratio.is_finite()).then_some(ratio)
    }

    /// By how much `of` is more than `base`, for people.
    #[must_use]
    pub fn difference(&self, base: &Report, of: &Report) -> String {
        let (Some(base), Some(of)) = ((self.value)(base), (self.value)(of)) else {
            return "-".to_owned();
        };
        let difference = of - base;
        let size = number(difference.abs(), self.unit);
        match difference {
            d if !d.is_finite() => "-".to_owned(),
            _ if size == number(0.0, self.unit) => "0".to_owned(),
            d if d < 0.0 => format!("−{size}"),
            _ => format!("+{size}"),
        }
    }

    /// Tells an improvement from a loss: `None` within five per cent, or where neither is better.
    #[must_use]
    pub fn improved(&self, ratio: f64) -> Option<bool> {
        let changed = !(0.95..=1.05).contains(&ratio);
        match self.better {
            Better::Higher if changed => Some(ratio > 1.0),
            Better::Lower if changed => Some(ratio < 1.0),
            _ => None,
        }
    }
}

/// A number in its unit's usual precision.
fn number(value: f64, unit: &str) -> String {
    match unit {
        "ms" => milliseconds(value),
        "cores" => format!("{value:.2}"),
        "MiB" | "µs/tx" if value < 100.0 => format!("{value:.1}"),
        _ => thousands(value.round() as u64),
    }
}

fn committed_tps(report: &Report) -> Option<f64> {
    (report.committed_by == CommittedBy::Validators).then_some(report.committed_tps)
}

/// Of a load on a running committee. A bench shows what its validators executed.
fn answered_tps(report: &Report) -> Option<f64> {
    let is_load = report.measurement != Measurement::Bench;
    is_load.then(|| report.load.answered_over(report.warmup_s(), report.duration_s()))
}

/// A latency, unless nothing was answered.
fn measured(report: &Report, ms: f64) -> Option<f64> {
    (report.answered > 0).then_some(ms)
}

fn per_window(report: &Report, seconds: f64) -> Option<f64> {
    let window = report.duration_s();
    (window > 0.0).then(|| seconds / window)
}

fn cpu_us_per_tx(report: &Report) -> Option<f64> {
    let committed = report.committed_tps * report.duration_s();
    let cpu_seconds = report.cpu_seconds?;
    (committed > 0.0).then(|| cpu_seconds * 1e6 / committed)
}

/// The longest stretch of the window in which no answer came, to within an interval.
fn longest_silence_ms(report: &Report) -> Option<f64> {
    let interval_ms = report.load.interval_ms as f64;
    let position = |seconds: f64| (seconds * 1_000.0 / interval_ms.max(1.0)) as usize;
    let from = position(report.warmup_s());
    let to = position(report.warmup_s() + report.duration_s());
    let window = report.load.answered_tps.get(from..to.min(report.load.answered_tps.len()))?;
    let silences = window.split(|&tps| tps > 0.0).map(<[f64]>::len);
    // Answers that stopped for good leave a window that ends early.
    let missing = to.saturating_sub(from + window.len());
    let at_the_end = missing + window.iter().rev().take_while(|&&tps| tps <= 0.0).count();
    silences.chain([at_the_end]).max().map(|intervals| intervals as f64 * interval_ms)
}
