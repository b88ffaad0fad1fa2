//! Experiments on real committees: load generators, local runs, measurements.
//!
//! Start with [`mod@bench`]: it makes a local committee of processes, puts it under open-loop load,
//! watches every member, and fills in a [`quorate_report::Report`], from which that crate draws
//! pages and charts. The rest is what that needs: [`processes`] that never outlive us, the
//! [`status`] of validators over HTTP, the [`machine`] that the figures belong to.

pub mod bench;
pub mod bounds;
pub mod calibrate;
pub mod compare;
pub mod crowd;
pub mod experiment;
pub mod http;
pub mod load;
pub mod machine;
pub mod minimum;
pub mod net_load;
pub mod pay;
pub mod pay_load;
pub mod processes;
pub mod quiet;
pub mod service;
mod side_by_side;
mod stations;
pub mod status;
mod stopwatch;
pub mod suite;
pub mod validate;
mod written;

pub use service::{Genesis, GenesisError, ServiceKind, UnknownService};
