//! Runners, which measure a point.

mod certificates;
mod payments;
mod processes;
mod simulated;
mod spent;
mod transport;
mod votes;

pub use certificates::Certificates;
pub use payments::Payments;
pub use processes::Processes;
pub use simulated::{Simulated, scene};
pub use spent::Spent;
pub use transport::Transport;
pub use votes::PayVotes;

use super::{RunnerKind, Setup};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Measurements at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Numbers by name: each is one of [`super::metrics::METRICS`].
    pub numbers: BTreeMap<String, f64>,
    /// Kind of signatures: computed, or charged at a price.
    pub signatures: Signatures,
    /// Other findings, for the record.
    pub details: Value,
}

/// Kind of signatures in a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signatures {
    /// Computed and checked for real.
    #[default]
    Real,
    /// Stand-ins of the same size were charged at a price.
    Priced,
}

/// Reason for which nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// Somebody asked for an early end with Ctrl-C.
    Interrupted,
    /// This point is beyond what the committee or the machine can do: a result too, and the others
    /// go on.
    Failed(String),
    /// No point of this kind can be measured: the experiment ends.
    Refused(String),
}

/// Measures points of one kind.
pub trait Runner: Sync {
    /// Tells whether points can be measured side by side without disturbing one another.
    fn is_parallel(&self) -> bool;

    /// About how long a point takes here, in seconds.
    fn estimate_s(&self, setup: &Setup) -> f64;

    /// Measures one.
    ///
    /// # Errors
    /// When nothing could be measured.
    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError>;
}

/// A runner for every kind of point.
#[derive(Debug)]
pub struct Runners {
    certificates: Certificates,
    processes: Processes,
    simulated: Simulated,
    transport: Transport,
    payments: Payments,
}

impl Runners {
    /// Runners that start validators from this `quorate` binary.
    #[must_use]
    pub fn new(executable: PathBuf) -> Self {
        Self {
            certificates: Certificates,
            payments: Payments::new(executable.clone()),
            processes: Processes::new(executable),
            simulated: Simulated,
            transport: Transport,
        }
    }

    /// Runner of such points.
    #[must_use]
    pub fn of(&self, kind: RunnerKind) -> &dyn Runner {
        match kind {
            RunnerKind::Certificates => &self.certificates,
            RunnerKind::Processes => &self.processes,
            RunnerKind::Simulated => &self.simulated,
            RunnerKind::Transport => &self.transport,
            RunnerKind::Votes => &PayVotes,
            RunnerKind::Payments => &self.payments,
            RunnerKind::SpentSet => &Spent,
        }
    }
}
