//! The machine contract: what every protocol, replica, client and payer is, and what its host owes
//! it.
//!
//! A [`Machine`] is a value. It is fed an input and the time, and then drained of effects. It owns
//! no clock, socket, thread or disk, and draws no randomness of its own: the same inputs at the
//! same times give the same effects, in a validator over TLS and in the simulator.
//!
//! The order that a host owes, and its barrier, are code in the engine's `host`, which every host
//! here stands on.
//!
//! # What the host owes a replica
//!
//! 1. **Order.** Effects are carried out in the order in which they were polled, as seen from each
//!    lane: two sends to one peer in one [`Lane`] arrive in order or not at all, but that those
//!    which wait for the barrier may be overtaken by those which do not.
//! 2. ★ **[`Effect::Persist`] is a barrier.** No send polled after it that `waits` leaves before
//!    the record is durable (its file *and*, for a new file, its directory): whatever shows what
//!    this replica signed, a certificate with its share too. Bodies need not wait.
//!    The host may put many records into one sync. A record is one unit: torn, it is absent. Nor
//!    does what an [`Effect::Task`] asks for begin before: a replica's own vote may be the last
//!    that a decision needs, and a state that knows a height of which the log forgot the votes
//!    would stay apart from all others.
//! 3. ★ **[`Effect::Store`] is answered** by [`Event::Stored`] once the body is as durable as a
//!    record. [`Effect::Append`] is neither barrier nor answered, but it keeps its place among the
//!    records: one that is durable has every append before it durable too.
//! 4. **Computation is an effect with an answer**: [`Effect::Combine`], [`Task::Execute`],
//!    [`Task::Query`] and [`Effect::Read`] run elsewhere and come back as events. They never delay
//!    a vote.
//! 5. **A failed write or sync stops the replica.** Never retry a sync, never go on.
//! 6. **[`Event::Recovered`] comes first**, once, with what survived; also on the very first start.
//! 7. **Time is monotonic** and never read by the machine itself. When [`Machine::next_timeout`]
//!    has come, the host calls [`Machine::handle_timeout`].
//! 8. **Messages were checked**: they arrive as [`Verified`], made by the pure `verify` functions
//!    that both hosts run on their pools.
//!
//! 9. ★ **What is stored stays** until the machine releases it with [`Effect::Release`]: a body
//!    from its last [`Effect::Store`] on, a decided height from its [`Effect::Append`] on, the
//!    latest record of each kind for ever. What was released is kept as long as the host's
//!    retention allows, for members that fell behind; the host deletes the oldest first.
//! 10. **[`Task::Snapshot`]** sees the state exactly as the [`Task::Execute`] polled before it left
//!     it, and is written on the side: execution goes on. The last two complete ones are kept and
//!     read back; [`Event::Snapshotted`] says which. The same heights give the same bytes at every
//!     replica.
//! 11. ★ **[`Task::Install`] is atomic and durable** before [`Event::Installed`]: after a crash the
//!     state is the old one or the new one. It takes its place among the executions.
//! 12. **A disk that fills is told of** ([`Event::DiskNearlyFull`]) while there is room for what
//!     was promised. A write that finds no room has not failed for good: the host waits, feeds
//!     nothing meanwhile but answers, and then goes on.
//!
//! Lanes may drop a message when they are full or a peer is gone: every protocol here recovers from
//! loss, of the last message before all fall silent too, if [`Event::Connected`] tells of each
//! connection to a member that comes up. They never corrupt, and never deliver under another peer's
//! name.

use crate::executed::ExecutionCertificate;
pub use crate::halt::Halt;
use crate::{
    Body, BodyRef, ClientId, HandedOver, Header, Height, Manifest, Payload, Peer, Purpose,
    ReplicaId, Time, Verified, request::Answer, service::Proven,
};
use bytes::Bytes;
use quorate_crypto::{Bitmap, Combined, Digest, Policy, Scheme, Share};
use std::sync::Arc;
use std::time::Duration;

/// A deterministic machine: `handle` an input, then `poll` until it has nothing more to say.
pub trait Machine {
    /// Events and messages that it is fed.
    type Input;
    /// Requests that it makes of its host.
    type Effect;

    /// Takes one input in.
    fn handle(&mut self, now: Time, input: Self::Input);

    /// Takes in that time has passed. Harmless when nothing is due.
    fn handle_timeout(&mut self, now: Time);

    /// The next effect, in the order in which the host must carry them out.
    fn poll(&mut self) -> Option<Self::Effect>;

    /// Time at which [`Machine::handle_timeout`] is due next; `None` when nothing is.
    fn next_timeout(&self) -> Option<Time>;
}

/// Streams between two peers that do not delay one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Votes and timeouts: small and urgent.
    Votes,
    /// Proposals and certificates of the protocols.
    Consensus,
    /// Bodies, and blocks for those who fell behind.
    Bulk,
    /// Requests and replies, between clients and replicas.
    Client,
}

/// Receivers of a message that a replica sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipients {
    /// Every member but the sender.
    All,
    /// One member, never the sender itself.
    One(ReplicaId),
    /// A client or a learner, if it is connected.
    Client(ClientId),
}

impl From<Peer> for Recipients {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Replica(member) => Self::One(member),
            Peer::Client(client) | Peer::Learner(client) => Self::Client(client),
        }
    }
}

/// Request of a replica to its host. `M` is its message type.
#[derive(Debug)]
pub enum Effect<M> {
    /// Send a message to peers, without an answer.
    Send {
        /// Receivers of the message.
        to: Recipients,
        /// Stream that the message keeps its order in.
        lane: Lane,
        /// It must not leave before the records that were persisted ahead of it are durable (★):
        /// all but what shows nothing that this replica signed.
        waits: bool,
        /// Message to send, not yet encoded.
        message: M,
    },
    /// Make a small record durable before anything that follows leaves (★). It replaces the earlier
    /// record of its kind.
    Persist(Record),
    /// Write a decided height, without a barrier.
    Append(DecidedRecord),
    /// Make a body durable, then answer [`Event::Stored`].
    Store(Arc<Body>),
    /// Read back what was stored, then answer [`Event::Read`].
    Read(ReadRequest),
    /// Combine shares on the pool, then answer [`Event::Combined`].
    Combine(CombineJob),
    /// Something for the execution.
    Task(Task),
    /// An execution certificate was formed, for those who wait for it at the host.
    Certified(Box<ExecutionCertificate>),
    /// Release what was executed durably: the host deletes what its retention does not cover.
    Release(Release),
    /// Note durably, for every later start, that the key must not sign in this network again, and
    /// why (★): the machine has stopped signing, and goes on without.
    StopSigning(String),
    /// Stop for good: going on would be unsafe.
    Halt(Halt),
}

impl<M> Effect<M> {
    /// The same effect with its message, if it sends one, turned into another form of it; `None`
    /// where `form` gives none.
    pub fn try_map_message<N>(
        self,
        form: impl FnOnce(Recipients, M) -> Option<N>,
    ) -> Option<Effect<N>> {
        Some(match self {
            Self::Send { to, lane, waits, message } => {
                Effect::Send { to, lane, waits, message: form(to, message)? }
            }
            Self::Persist(record) => Effect::Persist(record),
            Self::Append(record) => Effect::Append(record),
            Self::Store(body) => Effect::Store(body),
            Self::Read(request) => Effect::Read(request),
            Self::Combine(job) => Effect::Combine(job),
            Self::Task(task) => Effect::Task(task),
            Self::Certified(certificate) => Effect::Certified(certificate),
            Self::Release(release) => Effect::Release(release),
            Self::StopSigning(reason) => Effect::StopSigning(reason),
            Self::Halt(halt) => Effect::Halt(halt),
        })
    }
}

/// Work for the execution, in the order in which it was asked for. None begins before the records
/// that were asked for before it are durable (★).
#[derive(Debug)]
pub enum Task {
    /// Execute the next height, then answer [`Event::Executed`].
    Execute(Box<Block>),
    /// Put a query of the state to the service, as a task before or after this left it, then answer
    /// [`Event::Queried`]. Other tasks go first where both wait.
    Query(QueryJob),
    /// Take a snapshot of the state as the height executed last left it.
    Snapshot(Height),
    /// Keep a chunk of a snapshot until one is installed, also over a restart. Its hash was
    /// checked.
    Stage(StagedChunk),
    /// These chunks are not needed any more.
    Unstage(Vec<Digest>),
    /// Replace the state by a snapshot whose chunks are all staged, then answer
    /// [`Event::Installed`].
    Install(Box<Install>),
    /// The epoch has ended, and the state is what the next one begins with: the host may begin it.
    /// The hand-over is durable, and asked for again after each start.
    HandOver(Box<HandedOver>),
}

/// Input of a replica: messages, answers to its effects, and what survived.
#[derive(Debug)]
pub enum Event<M> {
    /// The first event: what survived.
    Recovered(Box<Recovery>),
    /// A checked message from an authenticated peer.
    Message {
        /// Identity of the sender, which its channel proved.
        from: Peer,
        /// Message, checked by its `verify`.
        message: Verified<M>,
    },
    /// The connection to a member is up, for the first time or again: what was sent to it before
    /// may be lost.
    Connected(ReplicaId),
    /// Wall clock at [`Time`] zero, in milliseconds since the Unix epoch, when it is no longer what
    /// it was: the host was suspended, so that its time stood still, or its clock was set.
    WallClock(u64),
    /// The body is durable.
    Stored(BodyRef),
    /// The answer to [`Effect::Read`].
    Read(ReadAnswer),
    /// The answer to [`Effect::Combine`].
    Combined(CombineOutcome),
    /// The answer to [`Task::Execute`].
    Executed(Executed),
    /// The answer to [`Task::Query`], with the job's number; nothing before anything was executed.
    Queried(u64, Option<QueryResult>),
    /// Everything executed up to this height is durable in the state store.
    Durable(Height),
    /// These snapshots are complete; earlier ones are gone.
    Snapshotted(SnapshotsOnDisk),
    /// The answer to [`Task::Install`].
    Installed(Box<ExecutedUpTo>),
    /// The host's disk is nearly full from now on, or is so no more: see duty 12.
    DiskNearlyFull(bool),
    /// How long a leader had better wait, from now on, before it proposes a height that follows
    /// others closely: a host says so whose threads wait for processors. Zero until it does; a
    /// replica waits for less where more would put its view at risk.
    Pace(Duration),
}

/// Kind of durable record; a new record replaces the last one of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// The protocol's promises: what it voted for, what it locked.
    Safety,
    /// The replica's own count of its starts.
    Incarnation,
    /// What the epoch ended with, as a quorum signed it.
    HandOver,
    /// The protocol's promises about one slot of a window of as many: a later slot takes an earlier
    /// one's place in it.
    Slot(u8),
}

/// A small record that replaces the last one of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kind of the record that it replaces.
    pub kind: RecordKind,
    /// Its bytes; opaque to the host. Kilobytes at most.
    pub bytes: Bytes,
}

/// Heights and bodies that may be deleted, as far as the machine is concerned. Each release
/// replaces the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Heights below this one are executed durably and covered by a snapshot. Their decided
    /// records, and the bodies that only they order, are kept for others alone.
    pub below: Height,
    /// The bodies of heights that became durable since the last release, each with its height. A
    /// body that is stored again later is live again.
    pub bodies: Vec<(Height, Vec<BodyRef>)>,
}

/// A piece of a snapshot, whichever snapshots have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedChunk {
    /// The hash that a manifest has for it.
    pub hash: Digest,
    /// Content of the chunk; it has this hash.
    pub bytes: Bytes,
}

/// A snapshot that members vouched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Manifest that the members vouched for.
    pub manifest: Manifest,
    /// The decided record of its height, as checked here.
    pub decided: Bytes,
}

/// A decided height with its proof, kept to serve those who fell behind and to recover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedRecord {
    /// The height that it decides.
    pub height: Height,
    /// Payload and proof; opaque to the host.
    pub bytes: Bytes,
}

/// An entry of a replica's log, as an effect asks for it.
#[derive(Clone, Debug)]
pub enum Entry {
    /// [`Effect::Persist`]: durable after the next commit.
    Record(Record),
    /// [`Effect::Append`]: written with the next commit, durable with some later one.
    Decided(DecidedRecord),
    /// [`Effect::Store`]: durable after the next commit.
    Body(Arc<Body>),
    /// [`Effect::Release`]: what it releases may be gone after the next commit.
    Release(Release),
}

/// Something to read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadItem {
    /// A stored body's raw bytes.
    Body(BodyRef),
    /// A decided record's bytes.
    Decided(Height),
    /// The manifest of a complete snapshot: 0 is the newest, 1 the one before.
    Manifest(u8),
    /// A chunk of the snapshot whose manifest has this digest.
    Chunk(Digest, u32),
}

/// Things to read back together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Comes back with the answer.
    pub ticket: u64,
    /// Items to read, a hundred or so at most.
    pub items: Vec<ReadItem>,
    /// Once so many bytes were read, what is left counts as not stored.
    pub bytes_max: usize,
}

/// Bytes that were read; `None` where nothing is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Ticket of the request that this answers.
    pub ticket: u64,
    /// The request's items in order, each with its bytes.
    pub items: Vec<(ReadItem, Option<Bytes>)>,
    /// The lowest height from which on decided records and bodies are kept without a gap.
    pub oldest: Height,
}

/// Identity of a combine job: the machine's collector that it belongs to, and its number among that
/// collector's. A machine has one collector for each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CombineId {
    /// Purpose of the shares, by which the outcome finds its way back.
    pub purpose: Purpose,
    /// Number of the job, counted from 0 since the start.
    pub number: u64,
}

/// Shares to combine into a certificate, off the machine.
#[derive(Clone, Debug)]
pub struct CombineJob {
    /// Comes back with the outcome.
    pub id: CombineId,
    /// Scheme with the members' voting keys.
    pub scheme: Arc<dyn Scheme>,
    /// Statement that the shares sign.
    pub message: Vec<u8>,
    /// Distinct signers with their unchecked shares.
    pub shares: Vec<(usize, Share)>,
    /// Signers that sent bad shares before: checked singly.
    pub suspects: Bitmap,
    /// Way in which the other shares are checked.
    pub policy: Policy,
}

impl CombineJob {
    /// Does the work. Pure.
    #[must_use]
    pub fn run(&self) -> CombineOutcome {
        let combined =
            self.scheme.combine(&self.message, &self.shares, &self.suspects, self.policy);
        CombineOutcome { id: self.id, combined }
    }
}

/// Result of a [`CombineJob`].
#[derive(Clone, Debug)]
pub struct CombineOutcome {
    /// Identity of the job that this is the outcome of.
    pub id: CombineId,
    /// The certificate over the good shares, and who sent bad ones.
    pub combined: Combined,
}

/// A decided height with every body at hand, ready to execute.
#[derive(Clone, Debug)]
pub struct Block {
    /// Payload that was decided, in its order.
    pub payload: Payload,
    /// The payload's bodies in its order.
    pub bodies: Vec<Arc<Body>>,
    /// The decided record, kept with the executed height so that both survive together.
    pub decided: Bytes,
}

impl ExecutedUpTo {
    /// The last executed height.
    #[must_use]
    pub fn height(&self) -> Height {
        self.header.height
    }

    /// Root of the last executed height ([`Header::root`]).
    #[must_use]
    pub fn root(&self) -> Digest {
        self.header.root()
    }
}

impl Executed {
    /// The height that was executed.
    #[must_use]
    pub fn height(&self) -> Height {
        self.header.height
    }

    /// Root of the height that was executed ([`Header::root`]).
    #[must_use]
    pub fn root(&self) -> Digest {
        self.header.root()
    }
}

impl Block {
    /// The height it executes at.
    #[must_use]
    pub fn height(&self) -> Height {
        self.payload.header.height
    }
}

/// Result of executing a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Header of the height, whose hash stands for everything at it.
    pub header: Header,
    /// The leaves of the tree over the requests that took effect, in their order.
    pub leaves: Vec<Digest>,
    /// Answers for the clients, also for requests that had been executed before.
    pub answers: Vec<Answer>,
    /// Operations that took effect or were refused at this height; repeats do not count.
    pub operations: u64,
}

/// Query of the state, put to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryJob {
    /// Comes back with the answer.
    pub ticket: u64,
    /// Query in the service's own encoding.
    pub query: Bytes,
}

/// Result of a query, or the reason that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryResult {
    /// The height that it is true of, and what stands for everything at it.
    pub header: Header,
    /// The answer, or why there is none.
    pub answer: Result<Proven, String>,
}

/// State that survived the last run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The latest protocol record.
    pub safety: Option<Bytes>,
    /// The latest record of each slot.
    pub slots: Vec<Bytes>,
    /// The latest incarnation record.
    pub incarnation: Option<Bytes>,
    /// The latest record of a hand-over.
    pub hand_over: Option<Bytes>,
    /// The last executed height, if any.
    pub executed: Option<ExecutedUpTo>,
    /// Decided heights after the executed one, without a gap.
    pub decided: Vec<DecidedRecord>,
    /// Every stored body that was not released.
    pub bodies: Vec<BodyRef>,
    /// Snapshots that are whole on the disk when the host starts.
    pub snapshots: SnapshotsOnDisk,
    /// Chunks that were staged, are whole, and belong to nothing that was installed.
    pub staged: Vec<Digest>,
}

/// Complete snapshots that a host keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotsOnDisk {
    /// Heights that they are of, oldest first.
    pub heights: Vec<Height>,
    /// Bytes of the newest, alike at all members that have it; 0 before there is one.
    pub newest_bytes: u64,
}

/// Height up to which execution had come, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedUpTo {
    /// The last executed height, and what it came to.
    pub header: Header,
    /// Decided record of that height.
    pub decided: Bytes,
    /// Operations executed so far, over the whole history.
    pub operations: u64,
    /// The last decided records that the state store kept beside the state, oldest first: what the
    /// log lacks of them at its end it takes over when it is opened. The bodies that they order are
    /// executed durably.
    pub recent: Vec<DecidedRecord>,
}
