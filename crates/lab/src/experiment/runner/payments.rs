//! Payment authorities as processes under load ([`crate::pay`]).

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::Setup;
use crate::pay::{
    PayBenchConfig, PayBenchError, PayOverload, PayReport, measure, measure_overload,
};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Measures payment authorities as processes.
#[derive(Clone, Debug)]
pub struct Payments {
    executable: PathBuf,
}

impl Payments {
    /// Authorities of this `quorate` binary.
    #[must_use]
    pub fn new(executable: PathBuf) -> Self {
        Self { executable }
    }
}

impl Runner for Payments {
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        // Two loads, and the payments for them to prepare: twice as many of the second where it is
        // one of twice the rate.
        let each = if setup.overload { 6.0 } else { 4.0 };
        each * setup.duration_s as f64 + 4.0
    }

    fn run(&self, setup: &Setup, _interrupted: &AtomicBool) -> Result<Measured, RunError> {
        let config = PayBenchConfig {
            executable: self.executable.clone(),
            schemes: vec![setup.pay_scheme],
            authorities: setup.validators,
            shards: setup.shards,
            cores: None,
            duration: Duration::from_secs(setup.duration_s),
            durability: setup.durability,
            spent: 0,
        };
        let failed = |error: PayBenchError| RunError::Failed(error.to_string());
        if setup.overload {
            let overload = measure_overload(&config, setup.pay_scheme, &|_| {}).map_err(failed)?;
            return Ok(under_overload(&overload));
        }
        let report = measure(&config, setup.pay_scheme, &|_| {}).map_err(failed)?;
        Ok(measured(&report))
    }
}

fn measured(report: &PayReport) -> Measured {
    let numbers = [
        ("authority_tps", report.one_authority_tx_s),
        ("per_core_tps", report.per_core_tx_s()),
        ("bound_tps", report.bound.tx_s()),
        ("bound_share", 100.0 * report.share_of_bound()),
        ("paid_tps", report.all_tx_s),
        ("paid_p50_ms", report.latency_ms.p50),
        ("paid_p99_ms", report.latency_ms.p99),
    ];
    of(&numbers, report)
}

fn under_overload(overload: &PayOverload) -> Measured {
    let numbers = [
        ("paid_tps", overload.highest_tx_s),
        ("offered_tps", overload.offered_tx_s),
        ("goodput_tps", overload.goodput_tx_s),
        ("goodput_ratio", overload.goodput_ratio()),
        ("paid_p50_ms", overload.latency_ms.p50),
        ("paid_p99_ms", overload.latency_ms.p99),
    ];
    let growth = overload.rss_growth().map(|growth| ("rss_growth", growth));
    let numbers: Vec<_> = numbers.into_iter().chain(growth).collect();
    of(&numbers, overload)
}

fn of(numbers: &[(&str, f64)], details: &impl Serialize) -> Measured {
    Measured {
        numbers: numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
        signatures: Signatures::Real,
        details: serde_json::to_value(details).expect("plain data"),
    }
}
