//! Configuration of a network that is not there.

use crate::{Matrix, Region, Topology, UnknownRegion};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest uniform delay, in milliseconds.
const DELAY_MS_MAX: u64 = 10_000;

/// The highest bandwidth that is emulated, in megabits a second.
const BANDWIDTH_MBIT_MAX: u64 = 100_000;

/// A network to be emulated, for laboratories only: the same on every host of a committee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Emulation {
    /// AWS regions: member 0 is in the first, member 1 in the next, and round again.
    pub regions: Vec<String>,
    /// One-way delay between any two members, in milliseconds, without regions.
    pub delay_ms: u64,
    /// Megabits a second on each link; 0: as many as the host gives.
    pub bandwidth_mbit: u64,
    /// Set for delays that vary as they were measured to; unset, they are always at their median.
    pub jitter: bool,
}

/// Reason for which an emulation is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulationError {
    /// A region that nobody measured.
    #[error(transparent)]
    Region(#[from] UnknownRegion),
    /// Regions have delays of their own.
    #[error("give regions or a uniform delay, not both")]
    Both,
    /// A value out of its range.
    #[error("{what} is {value}; it must be at most {max}")]
    Range {
        /// Name of the value in the configuration.
        what: &'static str,
        /// Value that was given.
        value: u64,
        /// The most that it may be.
        max: u64,
    },
}

impl Default for Emulation {
    fn default() -> Self {
        Self { regions: Vec::new(), delay_ms: 0, bandwidth_mbit: 0, jitter: true }
    }
}

impl Emulation {
    /// Topology of this network for a committee of so many.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn topology(&self, members: usize) -> Result<Topology, EmulationError> {
        let regions = self.check()?;
        let topology = if regions.is_empty() {
            Topology::uniform(members, Duration::from_millis(self.delay_ms))
        } else {
            Topology::in_regions(Matrix::aws(), &regions, members)
        };
        let limited = self.bandwidth_mbit > 0;
        let topology = topology.with_bandwidth(limited.then_some(self.bandwidth_mbit));
        Ok(if self.jitter { topology } else { topology.without_jitter() })
    }

    fn check(&self) -> Result<Vec<Region>, EmulationError> {
        let range = |what, value, max| {
            if value <= max { Ok(()) } else { Err(EmulationError::Range { what, value, max }) }
        };
        range("delay_ms", self.delay_ms, DELAY_MS_MAX)?;
        range("bandwidth_mbit", self.bandwidth_mbit, BANDWIDTH_MBIT_MAX)?;
        if !self.regions.is_empty() && self.delay_ms > 0 {
            return Err(EmulationError::Both);
        }
        let regions = self.regions.iter().map(|name| Matrix::aws().region(name));
        Ok(regions.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests;
