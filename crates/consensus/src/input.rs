//! Inputs of a protocol machine.

use crate::{Message, VerifiedRun};
use bytes::Bytes;
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::CombineOutcome;
use quorate_types::{BlockId, BodyRef, Payload, ReplicaId, Verified, View};
use std::collections::BTreeSet;

/// Event that the engine feeds a protocol machine.
#[derive(Debug)]
pub enum Input {
    /// Records and bodies that survived the last run: the first input of all.
    Recovered {
        /// The latest safety record.
        safety: Option<Bytes>,
        /// The latest record of each slot.
        slots: Vec<Bytes>,
        /// The decided record of the last executed height.
        executed: Option<Bytes>,
        /// The decided records after it, oldest first.
        decided: Vec<Bytes>,
        /// The stored bodies. A vote of the last run is said again only when those of its block are
        /// among them (★): their files may have been lost apart from the promises.
        stored: BTreeSet<BodyRef>,
    },
    /// The state of a decided height came from other members: its record, as
    /// [`check_anchor`](crate::check_anchor) made it. Whatever is decided up to there is not
    /// decided again.
    Installed(Bytes),
    /// Message of another member that passed every check that needs no state.
    Message {
        /// Sender, as the channel authenticated it.
        from: ReplicaId,
        /// Message of this machine's protocol; others are dropped.
        message: Box<Verified<Message>>,
    },
    /// Wall clock at time zero from now on, in milliseconds since the Unix epoch.
    WallClock(u64),
    /// The answer to [`Output::RequestPayload`](crate::Output::RequestPayload).
    Payload {
        /// The view that asked.
        view: View,
        /// The parent that it asked for.
        parent: BlockId,
        /// Bodies, height and stamp that it proposes.
        payload: Payload,
    },
    /// The answer to [`Output::RequestBodies`](crate::Output::RequestBodies): every body of that
    /// block is stored here, or certified to be stored, where the engine makes such certificates.
    Stored(BlockId),
    /// The answer to [`Output::Combine`](crate::Output::Combine).
    Combined(CombineOutcome),
    /// Blocks that this replica missed, linked to a certified one.
    Run(Box<VerifiedRun>),
    /// A quorum keeps the state of a height.
    Stable(Box<CheckpointCertificate>),
    /// The primary is slow, or passes over bodies that have been pending here for long. It may be
    /// said again as long as it is so. Protocols that rotate leaders ignore it.
    PrimarySuspected,
    /// Send a member the proof of the last decision, which it may have missed.
    ShowDecision {
        /// Member that announces decided bodies as pending, or that is reached again.
        to: ReplicaId,
    },
    /// ★ Sign nothing from now on: another holder of the key signed what this one does not know.
    StopSigning,
    /// `true` while the engine holds bodies that are not decided. The view timer runs only while
    /// there is such work, here or in an undecided block.
    Work(bool),
}
