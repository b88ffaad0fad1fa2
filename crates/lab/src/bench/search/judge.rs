//! Judgement of one run: did the committee keep up?

use quorate_report::Report;
use quorate_report::results::Rates;

/// Keeping up is committing this share of what is offered.
const KEPT_UP: f64 = 0.98;

/// Backlogs differ by what comes in so many seconds from one moment to another: operations are
/// committed a height at a time, and answered in bursts.
const BACKLOG_S: f64 = 0.1;

/// Largest share of the operations that may be without an answer when the run has waited for the
/// last ones: they are not in its latencies.
const UNANSWERED: f64 = 0.01;

/// Performance of a committee under an offered load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Performance {
    pub(super) offered_tps: f64,
    /// Operations per second that the slowest healthy validator committed.
    pub(super) committed_tps: f64,
    pub(super) dropped: u64,
    pub(super) unanswered: u64,
    pub(super) p99_ms: f64,
    /// By how many the operations under way grew over the second half of the window.
    pub(super) backlog_grown: f64,
    pub(super) window_s: f64,
}

impl Performance {
    pub(super) fn of(report: &Report) -> Self {
        Self {
            offered_tps: report.offered_tps,
            committed_tps: report.committed_tps,
            dropped: report.dropped,
            unanswered: report.unanswered,
            p99_ms: report.latency_ms.p99,
            backlog_grown: backlog_growth(&report.load, report.warmup_s(), report.duration_s()),
            window_s: report.duration_s(),
        }
    }
}

/// Checks that a committee kept up.
///
/// # Errors
/// Why not.
pub(super) fn judge(run: &Performance, p99_limit_ms: f64) -> Result<(), String> {
    let Performance { offered_tps, committed_tps, window_s, p99_ms, .. } = *run;
    let tolerated = BACKLOG_S * offered_tps;
    if committed_tps * window_s + tolerated < KEPT_UP * offered_tps * window_s {
        let share = 100.0 * committed_tps / offered_tps.max(1.0);
        return Err(format!("the slowest committed {share:.0} % of what was offered"));
    }
    if run.dropped > 0 {
        return Err("sessions were full".to_owned());
    }
    if run.unanswered as f64 > UNANSWERED * offered_tps * window_s {
        let share = 100.0 * run.unanswered as f64 / (offered_tps * window_s);
        return Err(format!("{share:.0} % was not answered in time"));
    }
    if run.backlog_grown > tolerated + (1.0 - KEPT_UP) * offered_tps * window_s / 2.0 {
        return Err("the backlog grew".to_owned());
    }
    if p99_ms > p99_limit_ms {
        return Err(format!("p99 was {p99_ms:.0} ms, above {p99_limit_ms:.0}"));
    }
    Ok(())
}

/// By how much the operations under way grew from the middle of the window to its end.
fn backlog_growth(load: &Rates, warmup_s: f64, window_s: f64) -> f64 {
    let interval_s = load.interval_ms.max(1) as f64 / 1_000.0;
    let under_way_at = |second: f64| -> f64 {
        let count = (second / interval_s).round() as usize;
        let sum = |rates: &[f64]| rates.iter().take(count).sum::<f64>() * interval_s;
        sum(&load.offered_tps) - sum(&load.answered_tps)
    };
    under_way_at(warmup_s + window_s) - under_way_at(warmup_s + window_s / 2.0)
}

#[cfg(test)]
mod tests;
