//! Experiments as files: a matrix of points, measured in random order, and figures drawn from them.
//!
//! * [`Experiment`]: one TOML file, one experiment. Fields that nobody knows are refused.
//! * [`Setup`]: everything that decides one point; the matrix varies it.
//! * [`runner`]: what measures a point: committees in virtual time or of real processes, this
//!   crate's own signature code, the transport alone. All of them return [`Measured`], numbers by
//!   name ([`metrics`]).
//! * [`drive()`]: the points in random order, in parallel where they do not disturb one another;
//!   every finished one is a line of the results file ([`results`]), so that a stopped run can go
//!   on.
//! * [`Shard`]: a part of the points, for one of several machines; [`join()`] puts the results of
//!   all parts together ([`Parts`]), as one machine would have them.
//! * [`figure`] and [`page`]: what is drawn from nothing but those lines.
//!
//! `docs/laboratory.md` says how to write one, `quorate reproduce` runs them.

pub mod built_in;
mod drive;
mod fields;
pub mod figure;
mod file;
mod join;
pub mod kept;
mod matrix;
pub mod metrics;
pub mod page;
mod parts;
mod point;
pub mod results;
pub mod runner;
mod setup;
mod shard;
pub mod statistics;
mod tabulate;

pub(crate) use fields::{refuse_unknown, suggestion, take_table, take_text};
pub(crate) use file::{parse_as, read_text};
pub(crate) use matrix::{setup_of, shuffle};

pub use drive::{DriveError, Event, Plan, drive, estimate_s, sort};
pub use file::{Experiment, ExperimentError, Preset};
pub use join::join;
pub use kept::Kept;
pub use matrix::Job;
pub use parts::{Found, JoinError, Parts};
pub use point::Point;
pub use results::{Record, ResultsError};
pub use runner::{Measured, RunError, Runner, Runners, Signatures};
pub use setup::{Absent, RunnerKind, Setup};
pub use shard::{Shard, owners};
pub use tabulate::{TableSpec, tabulate};

#[cfg(test)]
mod tests;
