//! Wide-area networks by measurement: what lies between the members of a committee that is spread
//! over regions.
//!
//! Pure: no socket, no clock, no randomness of its own. A validator's transport holds its frames
//! back by it, and a simulator can schedule deliveries by it, so that both speak of the same
//! network.
//!
//! * [`Matrix`]: measured round trips between regions, median and 90th percentile.
//! * [`Latency`]: a one-way delay as a distribution through both.
//! * [`Emulation`]: what a configuration says; [`Topology`]: what it means for a committee.
//! * [`Route`]: from one member to another; [`Line`]: what is under way on it, in order, bounded.
//!
//! # What is not modelled
//!
//! No loss, no congestion, no slow start, no handshake: a connection is up at once and delivers
//! everything, late. Each lane has the link's bandwidth to itself.

mod emulation;
mod latency;
mod line;
mod matrix;
mod topology;

pub use emulation::{Emulation, EmulationError};
pub use latency::Latency;
pub use line::Line;
pub use matrix::{Matrix, Region, RoundTrip, UnknownRegion};
pub use topology::{Route, Topology};
