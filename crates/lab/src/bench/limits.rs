//! What this machine could do at most with a run's load, measured before it.

use super::config::BenchConfig;
use super::{BenchError, Progress, beside, evm};
use crate::{ServiceKind, bounds};
use quorate_report::Report;
use quorate_report::results::Beside;
use quorate_report::results::bounds::{Parts, Unreplicated};
use std::path::Path;

/// Speeds of the machine; nothing unless bounds were asked for.
pub(super) struct Limits {
    parts: Option<Parts>,
    alone: Option<Unreplicated>,
}

impl Limits {
    /// Measures what a run's bounds follow from.
    pub(super) fn measure(config: &BenchConfig, progress: &Progress) -> Result<Self, BenchError> {
        let parts = measure_parts(config, progress)?;
        let alone = if config.bounds { unreplicated(config)? } else { None };
        Ok(Self { parts, alone })
    }

    /// The report of a run with its bounds.
    pub(super) fn beside(self, config: &BenchConfig, report: Report) -> Report {
        let evm = self.alone.map(|alone| beside::evm_bound(alone, config, &report));
        let bounds = self.parts.map(|parts| beside::bounds(parts, config, &report));
        Report { beside: Beside { evm, bounds, ..report.beside }, ..report }
    }
}

/// Measures this machine's parts, on the disk that the committee will use.
fn measure_parts(config: &BenchConfig, progress: &Progress) -> Result<Option<Parts>, BenchError> {
    if !config.bounds {
        return Ok(None);
    }
    progress.say("measuring this machine's disk and processor");
    let temporary = std::env::temp_dir();
    // The folder itself is not there yet: the nearest one above it is.
    let wanted = config.directory.as_deref().unwrap_or(&temporary);
    let folder = wanted.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let failed = |source| BenchError::System { what: "measure the disk", source };
    bounds::measure(folder).map(Some).map_err(failed)
}

/// Measures one core with the load alone, where that means something: with the EVM ledger.
///
/// # Errors
/// When the state cannot be kept.
pub fn unreplicated(config: &BenchConfig) -> Result<Option<Unreplicated>, BenchError> {
    if config.service != ServiceKind::Evm {
        return Ok(None);
    }
    let folder = std::env::temp_dir();
    match &config.trace {
        Some(trace) => {
            let transactions = trace.transactions.iter().cloned();
            evm::unreplicated(&trace.genesis, transactions, &folder).map(Some)
        }
        None => evm::unreplicated_mix(config.mix, config.load.seed, &folder).map(Some),
    }
}
