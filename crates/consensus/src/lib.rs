//! Agreeing on an order: the protocols, and what they share.
//!
//! A [`Protocol`] is a [`Machine`](quorate_types::Machine) fed [`Input`]s and drained of
//! [`Output`]s by the engine, which may read the rest of its state through [`ProtocolView`] alone;
//! it knows bodies by name alone, and nothing of clients or disks. To add one: a folder with its
//! machine and messages, a variant of [`ProtocolKind`] and one of [`Message`]; of [`Protocol`] and
//! an implementation of [`ProtocolView`] too, unless it is one of the [`chained`] or the
//! [`windowed`] family, which needs its [rules](Family) alone.
//!
//! Shared: [`tally`] collects shares into certificates, [`pacemaker`] times views, [`leader`] names
//! leaders, [`block_tree`] holds the undecided blocks, [`verify`] checks messages before they
//! arrive. Thresholds come from the committee; no protocol computes one.

pub mod block_tree;
pub mod chained;
mod checked_changes;
mod class;
pub mod collector_backoff;
mod config;
mod epoch_end;
pub mod hotstuff;
mod ignored;
mod input;
pub mod jolteon;
mod kind;
mod last_times;
pub mod leader;
mod message;
mod message_kind;
mod misbehaviour;
mod occupancy;
mod output;
pub mod pacemaker;
pub mod pbft;
mod protocol;
mod protocol_view;
#[cfg(test)]
mod random_draws;
mod read_back;
pub mod sbft;
mod signed_statement;
pub mod tally;
mod verifier;
pub mod verify;
pub mod windowed;

pub use class::MessageClass;
pub use config::{Liveness, ProtocolConfig};
pub use ignored::{Ignored, IgnoredCounts};
pub use input::Input;
pub use kind::{Family, ProtocolKind, UnfitProtocol};
pub use message::{FamilyMessage, Message};
pub use message_kind::MessageKind;
pub use misbehaviour::{Evidence, Misbehaviour, MisbehaviourLog, Rule};
pub use occupancy::Occupancy;
pub use output::{Decided, Output, ProposeRequest};
pub use protocol::Protocol;
pub use protocol_view::{ProtocolStatus, ProtocolView};
pub use signed_statement::{SignedStatement, Statement, StatementProof};
pub use verifier::{ProposalKey, Verifier};
pub use verify::{VerifiedRun, check_anchor, check_certified};
