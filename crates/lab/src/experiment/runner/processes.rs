//! Committees of real processes on this machine: [`crate::bench`], one run a point.

use super::{Measured, RunError, Runner, Signatures};
use crate::bench::{self, At, BenchConfig, BenchError, Progress, Target, search};
use crate::experiment::{Kept, Setup, metrics};
use crate::load::{LoadConfig, MixPlan};
use quorate_node::Archive;
use quorate_report::Report;
use quorate_report::results::{LatencyMs, ValidatorReport};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Log kept for members that fell behind, as `bench` has it by default.
const RETENTION_BYTES: u64 = 64 << 20;
/// Seconds to start and to stop a committee, and for each validator.
const OVERHEAD_S: (f64, f64) = (3.0, 0.3);
/// Seconds to measure what the machine could do.
const BOUNDS_S: f64 = 3.0;
/// Probes of a search that begins near what it finds, and the seconds of load of one.
const PROBES: (f64, f64) = (12.0, 10.0);
/// Keys a second that are put before a load.
const FILL_TPS: f64 = 40_000.0;
/// Its runs of the whole length.
const CONFIRMATIONS: f64 = 2.0;

/// Runs committees of processes.
#[derive(Clone, Debug)]
pub struct Processes {
    executable: PathBuf,
}

impl Processes {
    /// Committees of this `quorate` binary.
    #[must_use]
    pub fn new(executable: PathBuf) -> Self {
        Self { executable }
    }

    fn config(&self, setup: &Setup) -> BenchConfig {
        let emulation = setup.emulation();
        let emulated = emulation != quorate_wan::Emulation::default();
        let last = setup.validators - setup.crashed..setup.validators;
        let kill = |id| At { who: Target::Member(id), second: setup.crash_at_s };
        BenchConfig {
            validators: setup.validators,
            redundancy: u64::from(setup.redundancy),
            weights: None,
            scheme: setup.scheme,
            members: None,
            load: load(setup),
            settle_s: 0,
            mix: MixPlan { shape: setup.mix, ..MixPlan::default() },
            reads: 0,
            trace: None,
            kills: last.map(kill).collect(),
            restarts: Vec::new(),
            pauses: Vec::new(),
            lies: Vec::new(),
            crowds: Vec::new(),
            descriptors: None,
            cuts: Vec::new(),
            changes: Vec::new(),
            durability: setup.durability,
            retention_bytes: RETENTION_BYTES,
            archive: Archive::default(),
            service: setup.service,
            fill: setup.fill,
            time_restart: setup.time_restart,
            settings: setup.settings.clone(),
            emulation: emulated.then_some(emulation),
            bounds: setup.bounds,
            directory: None,
            executable: self.executable.clone(),
        }
    }
}

fn load(setup: &Setup) -> LoadConfig {
    LoadConfig {
        shape: setup.load,
        rate: setup.rate,
        outstanding: 256,
        send_to: setup.send_to,
        tx_bytes: setup.tx_bytes,
        keys: setup.keys,
        duration_s: setup.duration_s,
        warmup_s: setup.warmup_s,
        drain_s: setup.drain_s,
        sessions: (setup.sessions > 0).then_some(setup.sessions as usize),
        bundle_delay_ms: setup.bundle_delay_ms,
        retry_after_ms: 2 * setup.settings.timeout_ms,
        seed: setup.seed,
    }
}

impl Runner for Processes {
    /// One committee at a time: each wants the whole machine.
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        let (once, each) = OVERHEAD_S;
        let around_s = once + each * f64::from(setup.validators);
        let (probes, probe_s) = if setup.find_max { PROBES } else { (0.0, 0.0) };
        let runs = if setup.find_max { CONFIRMATIONS } else { 1.0 };
        let bounds_s = if setup.bounds { BOUNDS_S } else { 0.0 };
        let fill_s = if setup.fill { setup.keys as f64 / FILL_TPS } else { 0.0 };
        let run_s = setup.load_span().as_secs_f64() + around_s;
        bounds_s + fill_s + probes * (probe_s + around_s) + runs * run_s
    }

    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        let (config, progress) = (self.config(setup), Progress::new(true));
        let report = if setup.find_max {
            let limit_ms = search::fitting_p99_limit_ms(&config);
            bench::find_max(&config, limit_ms, &progress, interrupted)
        } else {
            bench::run_for_experiment(&config, &progress, interrupted)
        };
        match report {
            Ok(report) => Ok(measured(&report, setup)),
            Err(BenchError::Interrupted) => Err(RunError::Interrupted),
            Err(BenchError::NoRate(reason)) => Err(RunError::Failed(reason)),
            Err(error) if error.is_overload() => Err(RunError::Failed(error.in_short())),
            Err(error) => Err(RunError::Refused(error.to_string())),
        }
    }
}

fn measured(report: &Report, setup: &Setup) -> Measured {
    let mut numbers = BTreeMap::new();
    let mut add = |name: &str, number: Option<f64>| {
        numbers.extend(number.map(|number| (name.to_owned(), number)));
    };
    let LatencyMs { mean, p50, p90, p99, .. } = report.latency_ms;
    let is_answered = report.answered > 0;
    for (name, number) in [("mean", mean), ("p50", p50), ("p90", p90), ("p99", p99)] {
        add(&format!("latency_client_{name}_ms"), is_answered.then_some(number));
    }
    let window_s = setup.duration_s as f64;
    let sent: u64 = report.validators.iter().map(|validator| validator.bytes_sent).sum();
    let per_validator = sent as f64 / report.validators.len().max(1) as f64;
    add("offered_tps", Some(report.offered_tps));
    add("committed_tps", Some(report.committed_tps));
    add("bytes_per_tx", report.bytes_per_tx);
    add("bytes_per_validator_s", Some(per_validator / window_s / 1e6));
    add("cpu_cores", report.cpu_seconds.map(|seconds| seconds / window_s));
    add("view_changes", report.view_changes.map(|changes| changes as f64));
    add("certificate_bytes", report.certificate_bytes.map(|bytes| bytes as f64));
    add("goodput_tps", report.goodput_tps);
    add("height_us", height_us(report));
    add("written_bytes_per_tx", report.beside.written_bytes_per_tx);
    add("rss_growth", rss_growth(report));
    add("filled_tps", report.beside.filled.map(|filled| filled.puts_tps));
    add("restart_s", report.beside.restarted.map(|restarted| restarted.seconds));
    add("machine_bound_tps", bound_tps(report));
    add("bound_share", bound_tps(report).map(|bound| 100.0 * report.committed_tps / bound));
    for (station, us) in &report.stations_us {
        add(&metrics::of_station(station), Some(*us));
    }
    let mut details = json!({
        "answered": report.answered,
        "dropped": report.dropped,
        "unanswered": report.unanswered,
        "client_cpu_seconds": report.client_cpu_seconds,
        "rss_mb_max": report.rss_mb_max,
    });
    if let Some(searched) = &report.beside.searched {
        details["searched"] = json!(searched);
    }
    if let Some(filled) = &report.beside.filled {
        details["filled"] = json!(filled);
    }
    if let Some(bounds) = &report.beside.bounds {
        details["bounds"] = json!(bounds);
    }
    if setup.keep_latencies {
        let kept = Kept::new(&report.latency_over_time, &report.latency_distribution_us);
        details[Kept::NAME] = json!(kept);
    }
    Measured { numbers, signatures: Signatures::Real, details }
}

/// The most memory in the last quarter of the window over the most in its first one, of the
/// validator that grew most.
fn rss_growth(report: &Report) -> Option<f64> {
    let opened = report.timeline.iter().position(|second| second.second == 0)?;
    let peak = |seconds: &[Option<f64>]| seconds.iter().flatten().copied().reduce(f64::max);
    let growth = |validator: &ValidatorReport| {
        let window = validator.each_second.rss_mb.get(opened + 1..)?;
        let quarter = window.len().div_ceil(4);
        Some(peak(&window[window.len() - quarter..])? / peak(window.get(..quarter)?)?)
    };
    report.validators.iter().filter_map(growth).reduce(f64::max)
}

/// Processor time of one validator for each height that it executed in the window, in
/// microseconds: all of them together, since their own times are known to tenths of a second.
fn height_us(report: &Report) -> Option<f64> {
    let opened = report.timeline.iter().position(|second| second.second == 0)?;
    let heights = |validator: &ValidatorReport| {
        let height = |index: usize| *validator.each_second.height.get(index)?;
        height(report.timeline.len() - 1)?.checked_sub(height(opened)?)
    };
    let all: u64 = report.validators.iter().map(heights).sum::<Option<u64>>()?;
    (all > 0).then(|| 1e6 * report.cpu_seconds.unwrap_or(0.0) / all as f64)
}

/// The lowest of the bounds that were measured beside a run, in operations per second.
fn bound_tps(report: &Report) -> Option<f64> {
    let bounds = report.beside.bounds.iter().flat_map(|bounds| [bounds.disk_tps, bounds.cpu_tps]);
    bounds.chain(report.beside.evm.iter().map(|evm| evm.bound_tps)).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample_report;

    #[test]
    fn memory_that_grows_is_that_of_the_validator_that_grew_most() {
        let mut report = sample_report();
        let growth = |report: &Report| rss_growth(report).unwrap();
        assert_eq!(growth(&report), 46.0 / 43.0);
        let opened = report.timeline.iter().position(|second| second.second == 0).unwrap();
        let seconds = &mut report.validators[1].each_second.rss_mb;
        let last = seconds.len() - 1;
        (seconds[0], seconds[opened]) = (Some(1.0), Some(2.0));
        (seconds[opened + 1], seconds[last]) = (Some(100.0), Some(130.0));
        assert_eq!(growth(&report), 1.3, "what was before the window does not count");
    }

    #[test]
    fn a_committee_that_answers_nothing_due_has_no_latency() {
        let setup = Setup::default();
        let answered = sample_report();
        let latencies = |report: &Report| {
            let numbers = measured(report, &setup).numbers;
            numbers.keys().filter(|name| name.starts_with("latency_")).count()
        };
        assert_eq!(latencies(&answered), 4);
        let silent = Report { answered: 0, ..answered };
        assert_eq!(latencies(&silent), 0);
        assert_eq!(measured(&silent, &setup).numbers["committed_tps"], silent.committed_tps);
        assert!(BenchError::NothingAnswered(Box::new(silent)).is_overload());
    }
}
