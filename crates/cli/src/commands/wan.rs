//! Options for a network that is not there.

use clap::Args;
use quorate_wan::Emulation;

/// A wide-area network to emulate.
#[derive(Clone, Debug, Args)]
pub(crate) struct Wan {
    /// Emulate a wide-area network: AWS regions, given to the validators in turn; clients sit
    /// beside their validators
    #[arg(long, value_name = "REGION,...", value_delimiter = ',', conflicts_with = "delay")]
    wan: Vec<String>,
    /// Emulate a network with this one-way delay between any two validators, in milliseconds
    #[arg(long, value_name = "MS")]
    delay: Option<u64>,
    /// Emulate this bandwidth on each link between two validators or to a client, in megabits a
    /// second
    #[arg(long, value_name = "MBIT")]
    bandwidth: Option<u64>,
}

impl Wan {
    /// Network to emulate, if any.
    pub(crate) fn emulation(&self) -> Option<Emulation> {
        let wanted = !self.wan.is_empty() || self.delay.is_some() || self.bandwidth.is_some();
        wanted.then(|| Emulation {
            regions: self.wan.clone(),
            delay_ms: self.delay.unwrap_or(0),
            bandwidth_mbit: self.bandwidth.unwrap_or(0),
            jitter: true,
        })
    }
}
