//! Real validators and authorities of payments in this process, over real sockets and disks.
//!
//! One program for all, since each would be linked with everything that a validator needs.

mod cluster;
mod common;
mod dashboard;
mod epochs;
mod hostile;
mod payments;
mod payments_change;
mod payments_epochs;
mod relays;
mod releases;
mod retention;
