//! The whole replica and the client session, as pure machines.
//!
//! [`Replica`] wraps a [`quorate_consensus::Protocol`] with everything that every protocol needs:
//! the mempool, the bodies and their dissemination, the schedule from decided heights to execution,
//! block synchronisation, and signed replies. [`Session`] is a client. Both are
//! [`quorate_types::Machine`]s: read that contract first.
//!
//! Hosts decode and check what arrives with [`Incoming`]'s `Verified::check`, on a pool, and carry
//! out the effects with [`host`].

mod availability;
mod batching;
mod bodies;
mod certifier_output;
mod chain_piggyback;
mod changes;
mod checkpoints;
mod config;
mod contributions;
mod epoch_start;
mod execution;
mod fair_queue;
mod flow;
mod frames;
mod hand_overs;
mod heartbeat;
pub mod host;
mod latency;
mod mempool;
pub mod message;
mod own_signatures;
mod pacing;
mod primary_delay;
mod queries;
mod refusals;
mod replica;
mod replies;
mod reply_gate;
mod schedule;
mod session;
mod settings;
mod signed_evidence;
mod silence;
mod snapshots;
mod successors;
mod sync;
#[cfg(test)]
mod testing;
mod verify;

pub use availability::{Acknowledged, Acknowledgement, AvailabilityCertificate, Covered};
pub use chain_piggyback::Truncation;
pub use config::ReplicaConfig;
pub use contributions::{Contribution, Contributions, GivenUp, GivenUpFor};
pub use epoch_start::EpochStart;
pub use fair_queue::{Budget, FairQueue, Verdict};
pub use frames::{FrameRules, FrameSetting, FrameTag, is_urgent};
pub use latency::LatencyCounts;
pub use message::{Frame, Message, Query, QueryResponse, refuse_unchecked};
pub use own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
pub use own_signatures::{WitnessState, WitnessStatus};
pub use queries::NOTHING_EXECUTED;
pub use quorate_consensus::{
    IgnoredCounts, Misbehaviour, MisbehaviourLog, ProtocolKind, UnfitProtocol,
};
pub use refusals::{Refusal, RefusalCounts, is_beyond_share, must_leave_room};
pub use replica::{Replica, Status, SyncStatus, Timer};
pub use reply_gate::ReplyGate;
pub use session::{
    Bundling, CallResult, CheckAnswer, ClientConfig, Completed, LearnerAddress, NoLearnerAddress,
    Session, SessionEffect, SessionEvent, SessionSpec, reject_answers,
};
pub use settings::{
    Availability, Comparison, FlowControl, SNAPSHOT_INTERVALS_MAX, Sealing, Settings,
    SettingsError, UnknownSetting,
};
pub use signed_evidence::{EvidenceLog, SignedEvidence, SignedPair};
pub use snapshots::Offered;
pub use verify::{CheckedChange, Incoming, NextFileCheck, Verifier, check_next_settings};
