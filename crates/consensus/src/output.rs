//! Outputs of a protocol machine.

use crate::{Message, Misbehaviour};
use bytes::Bytes;
use quorate_crypto::{Bitmap, Digest};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::{CombineJob, Halt, Record};
use quorate_types::{BlockId, BodyRef, Height, Payload, Recipients, ReplicaId, View};

/// Effect that a protocol machine asks of the engine; effects are done in order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made, moved once and consumed: a box costs more")]
pub enum Output {
    /// Send a message in its lane.
    Send {
        /// Receivers; never the sender itself.
        to: Recipients,
        /// Message of this machine's protocol, not yet framed.
        message: Message,
    },
    /// Make the safety record durable before anything that follows leaves (★).
    Persist(Record),
    /// Combine shares off the machine.
    Combine(CombineJob),
    /// This replica leads `view` and may propose: hand it a payload, at once when `at_once`,
    /// otherwise as soon as there is something to order. Replaces any earlier request.
    RequestPayload(ProposeRequest),
    /// A proposal waits for these bodies before it gets a vote.
    RequestBodies {
        /// The block that waits.
        block: BlockId,
        /// Height that the block takes.
        height: Height,
        /// Bodies that the block orders, by name.
        bodies: Vec<BodyRef>,
        /// Digest of the change of epoch that it orders. ★ The block gets its vote once the change
        /// is here, was checked, and may be ordered at that height.
        change: Option<Digest>,
        /// Author of the proposal, who certainly has them.
        source: ReplicaId,
    },
    /// A height is decided. Heights come in order, each once.
    Decided(Decided),
    /// A certified block is missing: fetch the chain up to it.
    Behind {
        /// Block that the chain has to reach.
        target: BlockId,
        /// A member that should have it.
        source: Option<ReplicaId>,
    },
    /// A quorum keeps the state of a height that is decided here.
    Stable(CheckpointCertificate),
    /// A member broke a rule in a way that only state could show.
    Misbehaviour(Misbehaviour),
    /// Going on would be unsafe.
    Halt(Halt),
}

/// Request of a leader for a payload, with the bounds that the payload must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposeRequest {
    /// The view that it leads.
    pub view: View,
    /// The block that it extends.
    pub parent: BlockId,
    /// The height that the payload takes.
    pub height: Height,
    /// The payload's stamp must not be before this.
    pub stamp_floor_ms: u64,
    /// Bodies that undecided ancestors carry already.
    pub carried: Vec<BodyRef>,
    /// `true` if an empty payload is worth proposing, because ancestors wait to be decided.
    pub at_once: bool,
    /// `true` if only an empty payload will do, because too many ancestors wait.
    pub nothing: bool,
    /// Number of payloads that the protocol has under way at once; 1 where it waits for one before
    /// it proposes the next.
    pub concurrent: u64,
}

/// Decision of one height, final at every honest member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Id of the decided block, or digest of the slot's value.
    pub block: BlockId,
    /// Payload that the block orders; its header holds the height.
    pub payload: Payload,
    /// Payload and proof as kept and served; read back by
    /// [`Input::Recovered`](crate::Input::Recovered) and `verify_run`.
    pub record: Bytes,
    /// Signers of the certificate that decided it; `None` where that is a later height's, or an
    /// earlier run decided it.
    pub signers: Option<Bitmap>,
}
