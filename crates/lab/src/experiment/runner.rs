//! What measures a point.

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

use super::{How, Setup};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What was measured at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Numbers by name: each is one of [`super::metrics::METRICS`].
    pub numbers: BTreeMap<String, f64>,
    /// Whether signatures were computed or charged at a price.
    pub signatures: Signatures,
    /// What else there is to say.
    pub details: Value,
}

/// Whether signatures were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signatures {
    /// They were.
    #[default]
    Real,
    /// Stand-ins of the same size were charged at a price.
    Priced,
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// This point is beyond what the committee or the machine can do: a result too, and the others go
    /// on.
    Failed(String),
    /// No point of this kind can be measured: the experiment ends.
    Refused(String),
}

/// Measures points.
pub trait Runner: Sync {
    /// Whether points can be measured side by side without disturbing one another.
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

    /// Who measures such points.
    #[must_use]
    pub fn of(&self, how: How) -> &dyn Runner {
        match how {
            How::Certificates => &self.certificates,
            How::Processes => &self.processes,
            How::Simulated => &self.simulated,
            How::Transport => &self.transport,
            How::Votes => &PayVotes,
            How::Payments => &self.payments,
            How::SpentSet => &Spent,
        }
    }
}
