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
mod bodies;
mod flow;
mod mempool;
pub mod message;
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
pub use message::{Frame, Message, frame_bytes_max};
pub use quorate_consensus::{ProtocolKind, UnweightedProtocol};
pub use replica::{Replica, ReplicaConfig, Status, SyncStatus};
pub use reply_gate::ReplyGate;
pub use session::{Bundling, Completed, Session, SessionConfig, SessionEffect, SessionEvent};
pub use settings::{Availability, FlowControl, Settings, SettingsError};
pub use snapshots::Offered;
pub use verify::{Incoming, Verifier};
