//! The whole replica and the client session, as pure machines.
//!
//! [`Replica`] wraps a [`quorate_consensus::Protocol`] with everything that every protocol needs:
//! the mempool, the bodies and their dissemination, the schedule from decided heights to execution,
//! block synchronisation, and signed replies. [`Session`] is a client. Both are
//! [`quorate_types::Machine`]s: read that contract first.
//!
//! Hosts decode and check what arrives with [`Incoming`]'s `Verified::check`, on a pool.

mod ancestry;
mod availability;
mod batching;
mod bodies;
mod checkpoints;
mod execution;
mod flow;
mod mempool;
pub mod message;
mod questions;
mod replica;
mod replies;
mod reply_gate;
mod schedule;
mod session;
mod settings;
mod snapshots;
mod sync;
#[cfg(test)]
mod testing;
mod verify;

pub use ancestry::Truncation;
pub use availability::{Acknowledged, Acknowledgement, AvailabilityCertificate, Covered};
pub use message::{Answered, Frame, Message, Question, frame_bytes_max};
pub use quorate_consensus::{ProtocolKind, UnfitProtocol};
pub use replica::{Replica, ReplicaConfig, Status, SyncStatus};
pub use reply_gate::ReplyGate;
pub use session::{
    Bundling, CheckAnswer, Completed, Session, SessionConfig, SessionEffect, SessionEvent, Told,
    asks_nothing,
};
pub use settings::{Availability, FlowControl, Settings, SettingsError};
pub use snapshots::Offered;
pub use verify::{Incoming, Verifier};
