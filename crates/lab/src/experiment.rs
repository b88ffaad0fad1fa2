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
//! * [`figure`] and [`page`]: what is drawn from nothing but those lines.
//!
//! `docs/laboratory.md` says how to write one, `quorate reproduce` runs them.

pub mod built_in;
mod drive;
pub mod figure;
mod file;
pub mod kept;
mod matrix;
pub mod metrics;
pub mod page;
pub mod results;
pub mod runner;
mod setup;
pub mod statistics;

pub use drive::{DriveError, Event, Plan, drive, estimate_s};
pub use file::{Experiment, ExperimentError, Preset};
pub use kept::Kept;
pub use matrix::Job;
pub use results::{Record, ResultsError};
pub use runner::{Measured, RunError, Runner, Runners, Signatures};
pub use setup::{Absent, RunnerKind, Setup};

#[cfg(test)]
mod tests;
