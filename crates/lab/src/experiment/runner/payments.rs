//! Payment authorities as processes under load ([`crate::pay`]).

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::Setup;
use crate::pay::{PayBenchConfig, measure};
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
        // Two loads, and the payments for them to prepare.
        4.0 * setup.duration_s as f64 + 4.0
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
        let report = measure(&config, setup.pay_scheme, &|_| {});
        let report = report.map_err(|error| RunError::Failed(error.to_string()))?;
        let numbers = [
            ("authority_tps", report.one_authority_tx_s),
            ("per_core_tps", report.per_core_tx_s()),
            ("bound_tps", report.bound.tx_s()),
            ("bound_share", 100.0 * report.share_of_bound()),
            ("paid_tps", report.all_tx_s),
            ("paid_p50_ms", report.latency_ms.p50),
            ("paid_p99_ms", report.latency_ms.p99),
        ];
        Ok(Measured {
            numbers: numbers.map(|(name, number)| (name.to_owned(), number)).into(),
            signatures: Signatures::Real,
            details: serde_json::to_value(&report).expect("plain data"),
        })
    }
}
