//! Interfaces for applications: client, key-value store, JSON-RPC, wallet and REST.
//!
//! * [`Connection`] is the asynchronous client of any service: operations in, results out,
//!   with a receipt where the committee certifies what it executes.
//! * [`KvClient`] speaks to the [key-value store](quorate_ledger::kv): operations in order, and
//!   reads of a single member that prove themselves.
//! * `ethereum`, under the feature of that name, serves the EVM ledger to Ethereum's own tools, and
//!   its explorer.
//! * [`receipt`] is the file that shows others what a request came to.
//! * [`wallet`] keeps and pays the money of the payment network.
//! * [`rest`] serves the key-value store, receipts and a status over HTTP.
//!
//! A client trusts no member: it believes signatures of so many that one of them is honest.

mod connection;
#[cfg(feature = "ethereum")]
pub mod ethereum;
mod kv;
pub mod receipt;
pub mod rest;
pub mod wallet;

pub use connection::{CallError, Connection, PendingOperation};
pub use kv::{Certified, KvClient, KvError, check_answer};
pub use quorate_engine::{ClientConfig, Completed, LearnerAddress, SessionSpec};
