//! Agreeing on an order: the protocols, and what they share.
//!
//! A protocol is a [`Machine`] fed [`Input`]s and drained of [`Output`]s by the engine; it knows
//! nothing of bodies, clients or disks. To add one: a folder with its machine and messages, a variant
//! of [`ProtocolKind`] and one of [`Message`]; of [`Protocol`] too, unless it is one of the [`chained`]
//! or the [`windowed`] family, which needs its [rules](Family) alone.
//!
//! Shared: [`tally`] collects shares into certificates, [`pacemaker`] times views, [`leader`] names
//! leaders, [`block_tree`] holds the undecided blocks, [`verify`] checks messages before they arrive.
//! Thresholds come from the committee; no protocol computes one.

pub mod block_tree;
pub mod chained;
pub mod hotstuff;
pub mod jolteon;
mod kind;
pub mod leader;
pub mod pacemaker;
pub mod pbft;
pub mod sbft;
pub mod stagger;
pub mod tally;
pub mod verify;
pub mod windowed;

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, Policy, VotingSecret};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::{CombineJob, CombineOutcome, Halt, Record};
use quorate_types::{
    BlockId, BodyRef, Height, Lane, Machine, Payload, Recipients, ReplicaId, Time, Verified, View,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use kind::{Family, ProtocolKind, UnfitProtocol};
pub use verify::{ProposalKey, VerifiedRun, Verifier, check_anchor, check_certified};

/// What travels between protocol machines.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// Jolteon's.
    Jolteon(chained::Message),
    /// Chained HotStuff's.
    HotStuff(chained::Message),
    /// Basic HotStuff's.
    HotStuffBasic(chained::Message),
    /// PBFT's.
    Pbft(windowed::Message),
    /// Linear PBFT's.
    LinearPbft(windowed::Message),
    /// Linear PBFT's with the fast path.
    LinearPbftFast(windowed::Message),
    /// SBFT's.
    Sbft(windowed::Message),
}

impl Message {
    /// The lane that it travels in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self.said() {
            Said::Chained(message) => message.lane(),
            Said::Windowed(message) => message.lane(),
        }
    }

    /// The protocol whose message it is.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        match self {
            Self::Jolteon(_) => ProtocolKind::Jolteon,
            Self::HotStuff(_) => ProtocolKind::HotStuff,
            Self::HotStuffBasic(_) => ProtocolKind::HotStuffBasic,
            Self::Pbft(_) => ProtocolKind::Pbft,
            Self::LinearPbft(_) => ProtocolKind::LinearPbft,
            Self::LinearPbftFast(_) => ProtocolKind::LinearPbftFast,
            Self::Sbft(_) => ProtocolKind::Sbft,
        }
    }

    /// What it says, in the words that its family shares.
    #[must_use]
    pub fn said(&self) -> Said<'_> {
        match self {
            Self::Jolteon(message) | Self::HotStuff(message) | Self::HotStuffBasic(message) => {
                Said::Chained(message)
            }
            Self::Pbft(message)
            | Self::LinearPbft(message)
            | Self::LinearPbftFast(message)
            | Self::Sbft(message) => Said::Windowed(message),
        }
    }

    /// What it says, if it is a chained protocol's.
    #[must_use]
    pub fn chained(&self) -> Option<&chained::Message> {
        match self.said() {
            Said::Chained(message) => Some(message),
            Said::Windowed(_) => None,
        }
    }

    /// What it says, if it is a windowed protocol's.
    #[must_use]
    pub fn windowed(&self) -> Option<&windowed::Message> {
        match self.said() {
            Said::Windowed(message) => Some(message),
            Said::Chained(_) => None,
        }
    }

    fn into_windowed(self) -> Option<windowed::Message> {
        match self {
            Self::Pbft(message)
            | Self::LinearPbft(message)
            | Self::LinearPbftFast(message)
            | Self::Sbft(message) => Some(message),
            Self::Jolteon(_) | Self::HotStuff(_) | Self::HotStuffBasic(_) => None,
        }
    }

    fn into_chained(self) -> Option<chained::Message> {
        match self {
            Self::Jolteon(message) | Self::HotStuff(message) | Self::HotStuffBasic(message) => {
                Some(message)
            }
            Self::Pbft(_) | Self::LinearPbft(_) | Self::LinearPbftFast(_) | Self::Sbft(_) => None,
        }
    }

    /// The view that it is about: a proposal's, a vote's or a timeout's own, otherwise that of the
    /// highest certificate in it.
    #[must_use]
    pub fn view(&self) -> View {
        match self.said() {
            Said::Chained(message) => message.view(),
            Said::Windowed(message) => message.view(),
        }
    }

    /// The bodies that a proposal orders; `None` for any other message.
    #[must_use]
    pub fn proposed_bodies(&self) -> Option<&[BodyRef]> {
        match self.said() {
            Said::Chained(chained::Message::Proposal(p)) => Some(&p.block.payload.bodies),
            Said::Windowed(windowed::Message::PrePrepare(p)) => Some(&p.payload.bodies),
            _ => None,
        }
    }
}

/// A message in the words of its family.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// A chained protocol's.
    Chained(&'a chained::Message),
    /// A windowed protocol's.
    Windowed(&'a windowed::Message),
}

/// What the engine feeds a protocol.
#[derive(Debug)]
pub enum Input {
    /// First of all: what survived the last run.
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
    /// The state of a decided height came from other members: its record, as [`check_anchor`] made it.
    /// Whatever is decided up to there is not decided again.
    Installed(Bytes),
    /// A checked message.
    Message {
        /// Its authenticated sender.
        from: ReplicaId,
        /// What.
        message: Box<Verified<Message>>,
    },
    /// The answer to [`Output::WantPayload`].
    Payload {
        /// The view that asked.
        view: View,
        /// The parent that it asked for.
        parent: BlockId,
        /// What to propose.
        payload: Payload,
    },
    /// The answer to [`Output::WantBodies`]: every body of that block is stored here, or certified
    /// to be stored, where the engine makes such certificates.
    Stored(BlockId),
    /// The answer to [`Output::Combine`].
    Combined(CombineOutcome),
    /// Blocks that this replica missed, linked to a certified one.
    Run(Box<VerifiedRun>),
    /// A quorum keeps the state of a height.
    Stable(Box<CheckpointCertificate>),
    /// The leader passes bodies over that have been pending here for long: it orders younger ones, or
    /// none. What rotates its leaders need not mind.
    Overtaken,
    /// Whether the engine holds bodies that are not decided. The view timer runs only while there is
    /// such work, here or in an undecided block.
    Work(bool),
}

/// What a protocol asks of the engine, in order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made, moved once and consumed: a box costs more")]
pub enum Output {
    /// Send a message in its lane.
    Send {
        /// To whom; never to itself.
        to: Recipients,
        /// What.
        message: Message,
    },
    /// Make the safety record durable before anything that follows leaves (★).
    Persist(Record),
    /// Combine shares off the machine.
    Combine(CombineJob),
    /// This replica leads `view` and may propose: hand it a payload, at once when `at_once`,
    /// otherwise as soon as there is something to order. Replaces any earlier wish.
    WantPayload(PayloadWish),
    /// A proposal waits for these bodies before it gets a vote.
    WantBodies {
        /// The block that waits.
        block: BlockId,
        /// What it orders.
        bodies: Vec<BodyRef>,
        /// Who certainly has them: the proposal's author.
        source: ReplicaId,
    },
    /// A height is decided. Heights come in order, each once.
    Decided(Decided),
    /// A certified block is missing: fetch the chain up to it.
    Behind {
        /// The block.
        target: BlockId,
        /// A member that should have it.
        source: Option<ReplicaId>,
    },
    /// A quorum keeps the state of a height that is decided here.
    Stable(CheckpointCertificate),
    /// A member broke a rule in a way that only state could show.
    Blame(ReplicaId, Fault),
    /// Going on would be unsafe.
    Halt(Halt),
}

/// What a leader needs to propose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadWish {
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
    /// Whether an empty payload is worth proposing, because ancestors wait to be decided.
    pub at_once: bool,
    /// Whether only an empty payload will do, because too many ancestors wait.
    pub nothing: bool,
    /// How many payloads the protocol has under way at once, where it need not wait for one to
    /// propose the next; 1 where it does.
    pub concurrent: u64,
}

/// A decided height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The block.
    pub block: BlockId,
    /// What it orders; its header holds the height.
    pub payload: Payload,
    /// Payload and proof as kept and served; read back by [`Input::Recovered`] and `verify_run`.
    pub record: Bytes,
}

/// What a member did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Two proposals for one view.
    Equivocation,
    /// Two votes in one view.
    DoubleVote,
    /// A share that does not verify.
    BadShare,
    /// A proposal that breaks a rule only its ancestors show: height or stamp.
    InvalidProposal,
}

/// What a protocol machine is made of.
#[derive(Clone, Debug)]
pub struct ProtocolConfig {
    /// Its index.
    pub id: ReplicaId,
    /// Its identity key.
    pub identity: Arc<IdentitySecret>,
    /// Its voting key.
    pub voting: Arc<VotingSecret>,
    /// Committee and caches, shared with whoever checks messages.
    pub verifier: Arc<Verifier>,
    /// How long a view may take.
    pub timeout: Duration,
    /// How long to wait for votes beyond the quorum.
    pub vote_wait: Duration,
    /// How collected shares are checked.
    pub policy: Policy,
    /// A proposal stamped further ahead of the own clock gets no vote.
    pub clock_drift_max_ms: u64,
    /// The wall clock at [`Time`] zero.
    pub wall_origin_ms: u64,
    /// Whether it may sign at all.
    pub signs: bool,
    /// How it keeps going.
    pub liveness: Liveness,
}

/// How a protocol keeps going when leaders fail. Nothing here decides what is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Views in a row that a member leads, at least 1; the same for all members.
    pub leader_tenure: u64,
    /// Whether leaders whose last turns came to nothing are passed over; the same for all members.
    pub leader_reputation: bool,
    /// Whether views that depend on a member whose last turn came to nothing get an eighth of their
    /// span.
    pub leader_patience: bool,
    /// By how much of itself a view's span grows for each view given up since the last decision, in
    /// per cent; but for the [first failures](crate::pacemaker::Pacemaker::failed) of the few that
    /// may be dead.
    pub timeout_growth: u32,
    /// Whether timeouts show their sender's last vote, so that a certificate that a collector took
    /// with it can be made again.
    pub vote_salvage: bool,
    /// Slots that a primary has under way at once, where it orders in slots.
    pub concurrent_slots: u64,
}

impl Default for Liveness {
    fn default() -> Self {
        Self {
            leader_tenure: 1,
            leader_reputation: false,
            leader_patience: true,
            timeout_growth: 50,
            vote_salvage: true,
            concurrent_slots: windowed::CONCURRENT,
        }
    }
}

/// The protocols, one line each.
#[derive(Debug)]
pub enum Protocol {
    /// Jolteon or HotStuff, chained or basic.
    Chained(Box<chained::Chained>),
    /// PBFT, linear PBFT or SBFT.
    Windowed(Box<windowed::Windowed>),
}

/// What a protocol shows of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolStatus {
    /// The current view.
    pub view: View,
    /// Its leader.
    pub leader: ReplicaId,
    /// Views entered by a timeout certificate since the start.
    pub view_changes: u64,
    /// The bytes of the highest certificate's signature and bitmap.
    pub certificate_bytes: u64,
    /// Heights that were decided fast since the start, where there is a fast path.
    pub fast_decisions: u64,
    /// Those that took the slow one.
    pub slow_decisions: u64,
}

impl Protocol {
    /// A replica of the protocol that the verifier's committee runs, before its first input.
    #[must_use]
    pub fn new(config: ProtocolConfig) -> Self {
        match config.verifier.protocol().family() {
            Family::Chained(_) => Self::Chained(Box::new(chained::Chained::new(config))),
            Family::Windowed(rules) => {
                Self::Windowed(Box::new(windowed::Windowed::new(config, rules)))
            }
        }
    }

    /// With leaders chosen by somebody else than the protocol's own election, before its first
    /// input: the same for all members.
    #[must_use]
    pub fn with_leaders(self, leaders: Box<dyn leader::LeaderElection>) -> Self {
        match self {
            Self::Chained(machine) => Self::Chained(Box::new(machine.with_leaders(leaders))),
            // Who leads a view is part of what its messages are checked for.
            Self::Windowed(_) => self,
        }
    }

    /// What it shows of itself.
    #[must_use]
    pub fn status(&self) -> ProtocolStatus {
        match self {
            Self::Chained(machine) => machine.status(),
            Self::Windowed(machine) => machine.status(),
        }
    }

    /// The current view.
    #[must_use]
    pub fn view(&self) -> View {
        match self {
            Self::Chained(machine) => machine.view(),
            Self::Windowed(machine) => machine.view(),
        }
    }

    /// The id of the last decided block.
    #[must_use]
    pub fn tip(&self) -> BlockId {
        match self {
            Self::Chained(machine) => machine.tip(),
            Self::Windowed(machine) => machine.tip(),
        }
    }

    /// Whether it has this block undecided, or decided it not long ago.
    #[must_use]
    pub fn has_block(&self, id: BlockId) -> bool {
        match self {
            Self::Chained(machine) => machine.has_block(id),
            Self::Windowed(machine) => machine.has_block(id),
        }
    }

    /// Whether a vote for this block could still be cast.
    #[must_use]
    pub fn may_vote(&self, id: BlockId) -> bool {
        match self {
            Self::Chained(machine) => machine.may_vote(id),
            Self::Windowed(machine) => machine.may_vote(id),
        }
    }

    /// The bodies that undecided blocks order: a vote for such a block says that they stay.
    #[must_use]
    pub fn undecided_bodies(&self) -> BTreeSet<BodyRef> {
        match self {
            Self::Chained(machine) => machine.undecided_bodies().copied().collect(),
            Self::Windowed(machine) => machine.undecided_bodies().copied().collect(),
        }
    }

    /// Sends a member the certificate that decided last: what it takes for undecided is decided here.
    pub fn show_last_decision(&mut self, to: ReplicaId) {
        match self {
            Self::Chained(machine) => machine.show_last_decision(to),
            Self::Windowed(machine) => machine.show_last_decision(to),
        }
    }

    /// The leaders of the current view and of those after it.
    #[must_use]
    pub fn coming_leaders(&self, views: u64) -> Vec<ReplicaId> {
        match self {
            Self::Chained(machine) => machine.coming_leaders(views),
            Self::Windowed(machine) => machine.coming_leaders(views),
        }
    }

    /// The undecided blocks from the last decided one (which must be `after`) up to `target`.
    #[must_use]
    pub fn tail(&self, after: BlockId, target: BlockId) -> Option<Vec<Bytes>> {
        match self {
            Self::Chained(machine) => machine.tail(after, target),
            Self::Windowed(_) => None,
        }
    }

    /// The certified block that a message rests on, and its certificate, for
    /// [`check_certified`]; `None` where messages rest on no blocks.
    #[must_use]
    pub fn rests_on(&self, message: &Message) -> Option<(BlockId, Bytes)> {
        match self {
            Self::Chained(machine) => message.chained().map(|said| machine.rests_on(said)),
            Self::Windowed(_) => None,
        }
    }

    /// How often heights may be replaced by a certified state, for those whose windows wait for it.
    #[must_use]
    pub fn checkpoint_every(&self) -> Option<u64> {
        match self {
            Self::Chained(_) => None,
            Self::Windowed(_) => Some(windowed::CHECKPOINT_EVERY),
        }
    }

    /// Whether one leader stays until it fails: then it is to be minded whom it passes over.
    #[must_use]
    pub fn keeps_its_leader(&self) -> bool {
        matches!(self, Self::Windowed(_))
    }

    /// The id of the block in a decided record.
    #[must_use]
    pub fn record_id(&self, record: &Bytes) -> Option<BlockId> {
        match self {
            Self::Chained(_) => chained::record_id(record),
            Self::Windowed(_) => windowed::DecidedSlot::decode(record).map(|slot| slot.id()),
        }
    }

    /// What a decided record orders.
    #[must_use]
    pub fn record_payload(&self, record: &Bytes) -> Option<Payload> {
        match self {
            Self::Chained(_) => chained::record_payload(record),
            Self::Windowed(_) => windowed::DecidedSlot::decode(record).map(|slot| slot.payload),
        }
    }

    /// How many of these decided records, oldest first, can be served together: the last of them must
    /// carry a proof of its own.
    #[must_use]
    pub fn servable(&self, records: &[Bytes]) -> usize {
        match self {
            Self::Chained(machine) => machine.servable(records),
            Self::Windowed(_) => records.len(),
        }
    }
}

impl Machine for Protocol {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Chained(machine) => machine.handle(now, input),
            Self::Windowed(machine) => machine.handle(now, input),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Chained(machine) => machine.handle_timeout(now),
            Self::Windowed(machine) => machine.handle_timeout(now),
        }
    }

    fn poll(&mut self) -> Option<Output> {
        match self {
            Self::Chained(machine) => machine.poll(),
            Self::Windowed(machine) => machine.poll(),
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        match self {
            Self::Chained(machine) => machine.next_timeout(),
            Self::Windowed(machine) => machine.next_timeout(),
        }
    }
}
