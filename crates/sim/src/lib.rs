//! Whole committees in virtual time: the machines of a real validator, hosted by a deterministic
//! world that loses, delays, duplicates, partitions, crashes and lies, under the eyes of oracles.
//!
//! Start with [`scenario`]: a [`Scenario`] is everything that a run depends on, drawn from one
//! seed, and [`run()`] gives its [`Report`]. [`world`] is the host: it keeps the contract of
//! [`quorate_types::machine`] over virtual disks and links. [`oracles`] judge what they are shown
//! and share no code with the protocols.
//!
//! The same scenario gives the same run, event for event: [`trace`] hashes all of them. Nothing
//! here reads a clock, and every random draw comes from the seed ([`quorate_deterministic::Rng`]).

pub mod byzantine;
pub mod campaign;
pub mod crash_points;
mod epoch;
pub mod faults;
mod forms;
pub mod mutants;
pub mod network;
pub mod oracles;
pub mod payments;
pub mod recording;
pub mod replay;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod trace;
pub mod twins;
pub mod world;

pub use campaign::run_many;
pub use run::{Failure, Report, run};
pub use scenario::Scenario;
