//! A whole replica as one machine.
//!
//! ```text
//!  client ─Request─▶ Mempool ─seal─▶ Bodies ─Store, Send─▶ disk, peers
//!                                      │ pending
//!  Protocol ◀─Payload─ propose ◀───────┘
//!     │ Decided                                  Executed
//!     └──▶ Schedule ─(bodies here)─▶ Execute ───────────▶ Reply ─▶ client
//! ```

mod catch_up;
mod chain;
mod changing;
mod dissemination;
mod executing;
mod handing_over;
mod occupancy;
mod proposing;
mod starting;
mod status;
mod timers;
mod witnesses;

pub use status::{Status, SyncStatus};
pub use timers::Timer;
use witnesses::ProtocolRecords;

use crate::availability::Certifier;
use crate::batching::Batching;
use crate::bodies::Bodies;
use crate::chain_piggyback::ChainPiggyback;
use crate::changes::Changes;
use crate::checkpoints::Checkpoints;
use crate::contributions::Contributions;
use crate::execution::Execution;
use crate::hand_overs::HandOvers;
use crate::heartbeat::Heartbeat;
use crate::latency::Latencies;
use crate::mempool::{Capacity, Limits, Mempool};
use crate::message::{Busy, FetchBlocks, NotAdmitted};
use crate::own_signatures::OwnSignatures;
use crate::pacing::Pacing;
use crate::primary_delay::PrimaryDelay;
use crate::queries::PendingQueries;
use crate::refusals::{Refusal, RefusalCounts};
use crate::replies::Replies;
use crate::schedule::Schedule;
use crate::snapshots::SnapshotSync;
use crate::sync::BlockSync;
use crate::{EvidenceLog, Incoming, Message, ReplicaConfig};
use bytes::Bytes;
use quorate_consensus::{
    self as consensus, Input, Misbehaviour, MisbehaviourLog, Output, ProposeRequest, Protocol,
    ProtocolConfig,
};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{
    CombineOutcome, DecidedRecord, ReadAnswer, ReadItem, ReadRequest, SnapshotsOnDisk,
};
use quorate_types::{
    Body, BodyRef, ClientId, Effect, Event, Header, Height, Machine, Peer, Purpose, Recipients,
    ReplicaId, Request, Time, Verified, View,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The bodies' book is tidied with each view, and where views stay, every so many heights.
const TIDY_EVERY: u64 = 64;
/// Bytes of bodies served for one request: any one body is among them.
const SERVED_BYTES_MAX: usize = Body::BYTES_MAX;
/// Reads of one kind under way on behalf of one peer.
const READS_PER_PEER_MAX: usize = 2;

/// Replica of a committee's service: the machine that a validator's host drives.
#[derive(Debug)]
pub struct Replica {
    config: ReplicaConfig,
    protocol: Protocol,
    effects: VecDeque<Effect<Message>>,
    mempool: Mempool,
    bodies: Bodies,
    changes: Changes,
    chain_piggyback: ChainPiggyback,
    certifier: Certifier,
    own_signatures: OwnSignatures,
    /// Records that the protocol must not act on before the others' word is in (★).
    unacted: Option<ProtocolRecords>,
    /// Last decision that each member showed meanwhile.
    shown_meanwhile: BTreeMap<ReplicaId, Box<Verified<consensus::Message>>>,
    schedule: Schedule,
    /// The record of this start, once what is of an epoch before is off the disk for certain.
    start_in_epoch: Option<Bytes>,
    /// Something was stored since the start, and so the incarnation before it. Until then own
    /// bodies stay here: their numbers must not be given out again after a crash.
    started: bool,
    unsent: Vec<Arc<Body>>,
    /// Heights up to this one were appended in an earlier run.
    on_disk: Height,
    sync: BlockSync,
    snapshots: SnapshotSync,
    /// Complete snapshots that the host keeps.
    snapshots_on_disk: SnapshotsOnDisk,
    /// Everything executed up to this height is durable.
    durable: Height,
    /// Height below which the host was last told to release records.
    released_below: Height,
    snapshots_installed: u64,
    replies: Replies,
    execution: Execution,
    checkpoints: Checkpoints,
    hand_overs: HandOvers,
    /// View in which a change waits that the next height may order, and since when it does in it.
    change_due_since: Option<(View, Time)>,
    /// Header of the epoch's last height with its root, once it is executed.
    last: Option<(Header, Digest)>,
    queries: PendingQueries,
    propose_request: Option<ProposeRequest>,
    /// Time at which what may not be proposed yet may be.
    propose_at: Option<Time>,
    batching: Batching,
    /// Body that was sealed on demand, for a proposal, and is not stored yet.
    sealed_on_demand: Option<BodyRef>,
    pacing: Pacing,
    heartbeat: Heartbeat,
    /// Time at which the protocol last asked for a payload.
    requested_at: Time,
    primary_delay: PrimaryDelay,
    /// The time of the last input.
    now: Time,
    /// View at the last input.
    view: View,
    /// The decided height at which the bodies' book was last tidied.
    tidied: Height,
    working: bool,
    announce_at: Option<Time>,
    /// Time at which each member was last shown the decision of bodies that it announced.
    shown_at: BTreeMap<ReplicaId, Time>,
    /// Height up to which each learner was shown certificates of the state.
    proven: BTreeMap<ClientId, Height>,
    reads: BTreeMap<u64, Reading>,
    next_ticket: u64,
    root: Digest,
    operations: u64,
    faults: u64,
    misbehaviour: MisbehaviourLog,
    evidence: EvidenceLog,
    contributions: Contributions,
    latencies: Latencies,
    /// Views left by a timeout when the view was last looked at.
    view_changes: u64,
    /// Time at which the view was entered.
    view_since: Time,
    refusals: RefusalCounts,
}

/// Why something is being read back.
#[derive(Debug)]
enum Reading {
    Bodies(Peer),
    Blocks(Peer, FetchBlocks, u64),
    /// Manifests, for snapshots beyond a height.
    Snapshots(Peer, Height),
    /// The decided records that prove a snapshot's height.
    Proof(Peer, Bytes),
    Chunk(Peer, Digest, u32),
    Own,
}

impl Reading {
    fn peer(&self) -> Option<Peer> {
        match self {
            Self::Bodies(peer)
            | Self::Blocks(peer, ..)
            | Self::Snapshots(peer, _)
            | Self::Proof(peer, _)
            | Self::Chunk(peer, ..) => Some(*peer),
            Self::Own => None,
        }
    }

    /// Bytes after which no more is read: of bodies, for which any peer may ask, what is sent.
    fn bytes_max(&self) -> usize {
        if matches!(self, Self::Bodies(_)) { SERVED_BYTES_MAX } else { usize::MAX }
    }

    fn is_of_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Replica {
    /// A replica that waits for [`Event::Recovered`].
    #[must_use]
    pub fn new(config: ReplicaConfig) -> Self {
        let members = config.verifier.committee().size();
        let settings = &config.settings;
        let protocol = protocol(&config);
        Self {
            hand_overs: HandOvers::new(&config),
            change_due_since: None,
            last: None,
            checkpoints: Checkpoints::new(&config, protocol.state().checkpoint_every()),
            protocol,
            effects: VecDeque::new(),
            mempool: mempool(&config, 0),
            bodies: bodies(&config),
            chain_piggyback: ChainPiggyback::new(settings.comparison.truncation, members),
            certifier: Certifier::new(&config),
            changes: Changes::default(),
            own_signatures: OwnSignatures::new(&config),
            unacted: None,
            shown_meanwhile: BTreeMap::new(),
            schedule: Schedule::default(),
            start_in_epoch: None,
            started: false,
            unsent: Vec::new(),
            on_disk: Height(0),
            sync: if config.is_learner() {
                BlockSync::following(config.id, members)
            } else {
                BlockSync::new(config.id, members)
            },
            snapshots: SnapshotSync::new(
                Arc::clone(config.verifier.committee()),
                config.verifier.start().clone(),
            ),
            snapshots_on_disk: SnapshotsOnDisk::default(),
            durable: Height(0),
            released_below: Height(0),
            snapshots_installed: 0,
            replies: Replies::default(),
            execution: Execution::new(&config),
            queries: PendingQueries::default(),
            propose_request: None,
            propose_at: None,
            sealed_on_demand: None,
            batching: Batching::new(Duration::from_millis(settings.batch_delay_ms)),
            pacing: Pacing::new(settings.timeout()),
            heartbeat: Heartbeat::new(settings.heartbeat_ms),
            requested_at: Time(0),
            primary_delay: dissemination::primary_delay(&config),
            now: Time(0),
            view: View(0),
            tidied: Height(0),
            working: false,
            announce_at: None,
            shown_at: BTreeMap::new(),
            proven: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_ticket: 0,
            root: Digest::ZERO,
            operations: 0,
            faults: 0,
            misbehaviour: MisbehaviourLog::default(),
            evidence: EvidenceLog::default(),
            contributions: Contributions::new(members),
            latencies: Latencies::default(),
            view_changes: 0,
            view_since: Time(0),
            refusals: RefusalCounts::default(),
            config,
        }
    }

    #[cfg(test)]
    pub(crate) fn config(&self) -> &ReplicaConfig {
        &self.config
    }

    /// The protocol's current view.
    #[must_use]
    pub fn view(&self) -> View {
        self.protocol.state().view()
    }

    /// The last decided height.
    #[must_use]
    pub fn decided(&self) -> Height {
        self.schedule.decided()
    }

    /// Names the leader of the view that was just entered. A leader that stays until it fails has
    /// failed when there is another view.
    fn note_view(&mut self, now: Time) {
        let state = self.protocol.state();
        let status = state.status();
        let timed_out = status.view_changes > self.view_changes;
        if timed_out {
            self.mempool.view_timed_out(self.view_since, now);
        }
        let failed = state.has_stable_leader() || timed_out;
        (self.view_changes, self.view_since) = (status.view_changes, now);
        self.contributions.entered(status.view, status.leader, failed);
        self.primary_delay.entered();
    }

    /// What two signatures of a member prove against it, since the start.
    #[must_use]
    pub const fn evidence(&self) -> &EvidenceLog {
        &self.evidence
    }

    fn note_misbehaviour(&mut self, seen: &Misbehaviour) {
        self.faults += 1;
        self.misbehaviour.count(seen);
    }

    fn send(&mut self, to: Recipients, message: Message) {
        let (lane, waits) = (message.lane(), message.waits());
        self.effects.push_back(Effect::Send { to, lane, waits, message });
    }

    // ---- messages -------------------------------------------------------------------------------

    fn on_message(&mut self, now: Time, from: Peer, message: Incoming) {
        match (from, message) {
            (Peer::Client(client), Incoming::Request(request)) => {
                self.on_request(now, client, request);
            }
            (Peer::Client(client), Incoming::Query(query)) => {
                self.on_query(client, query);
            }
            (Peer::Client(client), Incoming::NotAdmitted(refusal)) => {
                self.on_not_admitted(client, refusal);
            }
            (Peer::Client(client), Incoming::Change(checked)) => {
                self.on_change_brought(now, client, *checked);
            }
            (Peer::Client(client), Incoming::BadChange(broken)) => {
                self.send(Recipients::Client(client), Message::ChangeAnswer(Err(broken)));
            }
            (Peer::Client(client), Incoming::QueryResponse(refusal)) => {
                self.refusals.count(Refusal::NotAdmitted);
                self.send(Recipients::Client(client), Message::QueryResponse(refusal));
            }
            (Peer::Replica(from), message) => self.on_peer_message(now, from, message),
            (Peer::Learner(_), message) => self.serve(from, message),
            (Peer::Client(_), _) => self.faults += 1,
        }
    }

    fn on_peer_message(&mut self, now: Time, from: ReplicaId, message: Incoming) {
        match message {
            // Answered by what leaves when it acts again; members send them again.
            Incoming::ExecutionShare(..)
            | Incoming::CheckpointShare(..)
            | Incoming::HandOverShare(..)
            | Incoming::FetchAvailable(_)
                if self.unacted.is_some() => {}
            Incoming::Consensus(message) => {
                self.witness(now, from, &message);
                if self.unacted.is_some() {
                    self.keep_shown(from, message);
                } else {
                    self.feed(now, Input::Message { from, message });
                }
            }
            Incoming::Inline(message, bodies) => {
                self.witness(now, from, &message);
                // The proposal first: if it is taken, it makes its bodies wanted.
                self.feed(now, Input::Message { from, message });
                for body in bodies {
                    self.take_body(now, from, &body);
                }
            }
            Incoming::Body(body) => self.take_body(now, from, &body),
            // One too many or too late; whoever brought it was told.
            Incoming::Change(checked) => drop(self.take_change(now, *checked)),
            Incoming::Chain(heights, runs, bodies) => {
                self.on_chain(now, from, &heights, runs, &bodies);
            }
            Incoming::Announce(names) => self.on_announce(now, from, &names),
            Incoming::Blocks(request, kept, run) => self.on_blocks(now, from, request, kept, run),
            Incoming::Offer(offered) => self.on_offer(from, *offered),
            Incoming::Chunk(which, content) => self.on_chunk(from, which, content),
            Incoming::Acknowledgement(given) => self.certifier.on_acknowledgement(from, &given),
            Incoming::Available(covered) => {
                self.faults += u64::from(!self.certifier.on_certificate(now, &covered));
            }
            Incoming::FetchAvailable(next) => self.certifier.on_fetch(from, next),
            Incoming::ExecutionShare(height, root, share) => {
                self.execution.on_share(now, from, (height, root), share);
            }
            Incoming::CheckpointShare(height, root, share) => {
                self.checkpoints.on_share(now, from, (height, root), share);
            }
            Incoming::HandOverShare(content, share) => {
                self.hand_overs.on_share(now, from, content, share);
            }
            Incoming::HandOver(signed) => self.hand_overs.learn(now, *signed),
            Incoming::ExecutionProof(certificate) => {
                self.execution.on_proof(now, from, *certificate);
            }
            Incoming::OwnQuestion(question) => self.on_own_question(now, from, question),
            Incoming::OwnSignatures(answer) => self.on_own_signatures(now, from, &answer),
            request => self.serve(Peer::Replica(from), request),
        }
    }

    /// Answers a peer that fell behind.
    fn serve(&mut self, to: Peer, request: Incoming) {
        match request {
            Incoming::FetchBodies(names) => self.serve_bodies(to, names),
            Incoming::FetchBlocks(request) => self.serve_blocks(to, request),
            Incoming::FetchSnapshots(above) => self.serve_snapshots(to, above),
            Incoming::FetchChunk(snapshot, index) => self.serve_chunk(to, snapshot, index),
            _ => self.faults += 1,
        }
    }

    /// ★ A member that lost its promises takes no request: it would number bodies anew that it
    /// numbered before. Nor does it sign a reply: it counts as faulty until it has a key again that
    /// promised nothing. Nor does one whose state is not the committee's, nor one that has yet to
    /// hear what the others hold of its signatures.
    fn serves_clients(&self) -> bool {
        let signs = self.config.signs || mutants::active(Mutant::AnswerUnsigned);
        signs && self.unacted.is_none() && self.execution.diverged().is_none()
    }

    fn on_request(&mut self, now: Time, client: ClientId, request: Request) {
        if !self.serves_clients() {
            let reason = if self.config.is_learner() {
                "a learner takes no requests: send them to a member"
            } else if self.unacted.is_some() {
                "this member waits for others to show it what it signed: ask another"
            } else if self.config.signs {
                "this member's state is not the committee's: ask another"
            } else {
                "this member lost its log and serves no clients: ask another"
            };
            let reason = reason.to_owned();
            let busy = Busy { sequence: request.sequence, reason };
            self.send(Recipients::Client(client), Message::Busy(busy));
            return;
        }
        if let Some(answer) = self.replies.get(client, request.sequence).cloned() {
            self.reply(vec![answer]);
            return;
        }
        if self.changes.stop().is_some() {
            let reason =
                "the epoch has ended: send it again once the next one has begun".to_owned();
            let busy = Busy { sequence: request.sequence, reason };
            self.send(Recipients::Client(client), Message::Busy(busy));
            return;
        }
        if mutants::active(Mutant::HotStuffDropUnlessLeading)
            && self.protocol.state().upcoming_leaders(1) != [self.config.id]
        {
            return;
        }
        let sequence = request.sequence;
        if let Err(refusal) = self.mempool.admit(now, request) {
            self.refusals.count(refusal);
            let busy = Busy { sequence, reason: refusal.to_string() };
            self.send(Recipients::Client(client), Message::Busy(busy));
        }
    }

    /// The service admits a client's request no more. ★ Clients take this for a promise that the
    /// request has no effect, so nothing is refused that took effect or may: whoever asks again is
    /// judged by a state in which it is done already.
    fn on_not_admitted(&mut self, client: ClientId, refusal: NotAdmitted) {
        let sequence = refusal.sequence;
        let forgets = mutants::active(Mutant::RefuseWhatTookEffect);
        let answer = self.replies.get(client, sequence).filter(|_| !forgets).cloned();
        if let Some(answer) = answer {
            self.reply(vec![answer]);
        } else if !self.mempool.is_pending(client, sequence) {
            self.refusals.count(Refusal::NotAdmitted);
            self.send(Recipients::Client(client), Message::NotAdmitted(refusal));
        }
    }

    // ---- reading back ---------------------------------------------------------------------------

    fn read_for(&mut self, reading: Reading, items: Vec<ReadItem>) {
        let peer = reading.peer();
        let is_like = |other: &&Reading| other.peer() == peer && other.is_of_kind(&reading);
        let under_way = self.reads.values().filter(is_like).count();
        if peer.is_some() && under_way >= READS_PER_PEER_MAX {
            return;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let bytes_max = reading.bytes_max();
        self.reads.insert(ticket, reading);
        self.effects.push_back(Effect::Read(ReadRequest { ticket, items, bytes_max }));
    }

    fn on_read(&mut self, now: Time, answer: ReadAnswer) {
        match self.reads.remove(&answer.ticket) {
            Some(Reading::Bodies(to)) => {
                let mut bytes = 0;
                for body in answer.items.into_iter().filter_map(parse_stored) {
                    bytes += body.raw.len();
                    if bytes > SERVED_BYTES_MAX {
                        break;
                    }
                    self.send(to.into(), Message::Body(body));
                }
            }
            Some(Reading::Blocks(to, request, count)) => {
                self.send_blocks(to, request, count, answer);
            }
            Some(Reading::Snapshots(to, above)) => self.prove_snapshots(to, above, answer),
            Some(Reading::Proof(to, manifest)) => self.send_offer(to, manifest, answer),
            Some(Reading::Chunk(to, snapshot, index)) => {
                self.send_chunk(to, snapshot, index, answer);
            }
            Some(Reading::Own) => {
                for body in answer.items.into_iter().filter_map(parse_stored) {
                    if body.reference.is_change() {
                        self.reload_change(now, &body);
                        continue;
                    }
                    // Stored again: if it was released before, it is needed again now.
                    self.bodies.hold(now, Arc::clone(&body));
                    self.effects.push_back(Effect::Store(body));
                }
            }
            None => {}
        }
    }

    /// Each purpose has one collector: the protocol's, or one beside it.
    fn on_combined(&mut self, now: Time, outcome: CombineOutcome) {
        match outcome.id.purpose {
            Purpose::Vote | Purpose::Fast => self.feed(now, Input::Combined(outcome)),
            Purpose::Execute => self.execution.on_combined(now, &outcome),
            Purpose::Checkpoint => self.checkpoints.on_combined(now, &outcome),
            Purpose::HandOver => self.hand_overs.on_combined(now, &outcome),
        }
    }

    // ---- the protocol ---------------------------------------------------------------------------

    /// What a member missed while it was away, an idle committee tells it no more.
    fn on_connected(&mut self, now: Time, member: ReplicaId) {
        self.bodies.connected(member);
        self.sync.connected(member);
        if !self.config.is_learner() {
            self.show_hand_over(Peer::Replica(member));
            self.feed(now, Input::ShowDecision { to: member });
        }
    }

    /// ★ Nothing moves the protocol while it must not act: what it misses is said again.
    fn feed(&mut self, now: Time, input: Input) {
        if self.unacted.is_some() {
            return;
        }
        self.protocol.handle(now, input);
        self.drain(now);
    }

    fn drain(&mut self, now: Time) {
        while let Some(output) = self.protocol.poll() {
            self.on_output(now, output);
        }
    }

    fn on_output(&mut self, now: Time, output: Output) {
        match output {
            Output::Send { to, message } => self.send_protocol(to, message),
            Output::Persist(record) => self.effects.push_back(Effect::Persist(record)),
            Output::Combine(job) => self.effects.push_back(Effect::Combine(job)),
            Output::RequestPayload(request) => {
                (self.propose_request, self.requested_at) = (Some(request), now);
            }
            Output::RequestBodies { block, height, bodies, change, source } => {
                let mut needed: Vec<BodyRef> =
                    bodies.into_iter().filter(|name| !self.certifier.covers(name)).collect();
                if let Some(change) = change.filter(|_| !mutants::active(Mutant::StopUnchecked)) {
                    self.changes.asked(block, change, height);
                    needed.push(BodyRef::of_change(change));
                }
                if self.bodies.require(now, block, &needed, source) && self.changes.allow(&block) {
                    self.protocol.handle(now, Input::Stored(block));
                }
            }
            Output::Decided(decided) => {
                let height = decided.payload.header.height;
                if height > self.on_disk {
                    let bytes = decided.record.clone();
                    self.effects.push_back(Effect::Append(DecidedRecord { height, bytes }));
                }
                self.judge_primary(now, &decided.payload);
                self.judge_by_change(now, &decided.payload);
                self.schedule_decided(now, decided);
            }
            Output::Behind { target, source } => self.sync.behind(now, target, source),
            Output::Stable(checkpoint) => self.checkpoints.stable(&checkpoint),
            Output::Misbehaviour(seen) => self.note_misbehaviour(&seen),
            Output::Halt(halt) => self.effects.push_back(Effect::Halt(halt)),
        }
    }

    /// A learner's machine has nothing to say to members, who would hold it against the learner.
    fn send_protocol(&mut self, to: Recipients, message: quorate_consensus::Message) {
        if self.config.is_learner() {
            return;
        }
        if self.chain_piggyback.precedes(message.reports())
            && let Some((target, certificate)) = self.protocol.state().rests_on(&message)
        {
            let chain = self.chain_for(target, certificate);
            self.send(to, Message::Chain(chain));
        }
        let carried = message.proposed_bodies().filter(|_| self.config.settings.inline_bodies);
        let message = match carried.and_then(|names| self.bodies.collect(names)) {
            Some(bodies) if !bodies.is_empty() => Message::Inline(message, bodies),
            _ => Message::Consensus(message),
        };
        self.send(to, message);
    }

    /// Does the steps that follow any input: seal, propose, execute, ask.
    fn settle(&mut self, now: Time) {
        self.now = now;
        self.seal(now);
        // ★ Shares and acknowledgements are signed too.
        let acts = self.unacted.is_none();
        if acts {
            self.certify(now);
        }
        // A learner's are decided, as far as it knows: it is nobody's place to press for them.
        // Nor is there any once the epoch has ended.
        self.note_due_change(now);
        let is_work =
            self.bodies.has_pending() || self.change_due_since.is_some() || self.owes_height(now);
        let goes_on = self.changes.ordered().is_none() && !self.config.is_learner();
        let working = is_work && goes_on;
        if working != self.working {
            self.working = working;
            self.announce_at = working.then(|| now + self.announce_every());
            self.feed(now, Input::Work(working));
        }
        let is_new_view = self.view != self.protocol.state().view();
        if is_new_view {
            self.view = self.protocol.state().view();
            self.note_view(now);
        }
        let untidied = self.schedule.decided().0 - self.tidied.0;
        if is_new_view || untidied >= TIDY_EVERY {
            self.tidied = self.schedule.decided();
            let (protocol, schedule) = (self.protocol.state(), &self.schedule);
            self.bodies.tidy(|block| protocol.may_vote(block), |name| schedule.needs(name));
            self.changes.tidy(|block| protocol.may_vote(block));
        }
        self.propose(now);
        self.execute(now);
        if acts {
            self.certify_executed(now);
            self.certify_checkpoints(now);
            self.certify_hand_over(now);
        }
        self.fetch_due(now);
        self.announce_due(now);
        self.sync_due(now);
        // A state that is replaced under records that wait would be ahead of them.
        if acts {
            self.snapshots_due(now);
        }
        self.ask_witnesses(now);
    }
}

fn protocol(config: &ReplicaConfig) -> Protocol {
    let settings = &config.settings;
    let protocol_config = ProtocolConfig {
        id: config.id,
        identity: Arc::clone(&config.identity),
        voting: Arc::clone(&config.voting),
        verifier: Arc::clone(config.verifier.consensus()),
        timeout: settings.timeout(),
        vote_wait: Duration::from_millis(settings.vote_wait_ms),
        policy: settings.verify,
        clock_drift_max_ms: settings.clock_drift_max_ms,
        wall_origin_ms: config.wall_origin_ms,
        signs: config.signs,
        liveness: settings.liveness(),
    };
    Protocol::new(protocol_config)
}

fn bodies(config: &ReplicaConfig) -> Bodies {
    let settings = &config.settings;
    let members = config.verifier.committee().size();
    Bodies::new(config.id, members, settings.author_bytes_max)
        .in_views_of(settings.timeout())
        .with_grace(settings.comparison.fetch_grace)
}

fn mempool(config: &ReplicaConfig, incarnation: u64) -> Mempool {
    let settings = &config.settings;
    let limits = Limits {
        capacity: Capacity {
            bytes: settings.batch_bytes,
            operations: settings.block_operations_max(),
        },
        batch_delay: Duration::from_millis(settings.batch_delay_ms),
        sealing: settings.comparison.sealing,
        bytes_max: settings.mempool_bytes_max,
        window_max: settings.author_bytes_max / 2,
        filters: settings.comparison.filter_requests,
        flow_control: settings.comparison.flow_control,
        slack: settings.timeout() / 4,
    };
    Mempool::new(config.id, incarnation, limits)
}

/// A body read back from the own disk. Its requests were checked before it was stored; that it has
/// its name is checked again, since the disk's checksum finds accidents, and whoever makes
/// requests chooses what they contain (ADR 46).
fn parse_stored((item, bytes): (ReadItem, Option<Bytes>)) -> Option<Arc<Body>> {
    let ReadItem::Body(name) = item else {
        return None;
    };
    let body = Body::parse_named(name, bytes?).ok()?;
    let is_named = name.is_change() || Body::digest_of(&body.requests) == name.digest;
    is_named.then(|| Arc::new(body))
}

impl Machine for Replica {
    type Input = Event<Incoming>;
    type Effect = Effect<Message>;

    fn handle(&mut self, now: Time, input: Event<Incoming>) {
        match input {
            Event::Recovered(recovery) => self.on_recovered(now, *recovery),
            Event::Message { from, message } => self.on_message(now, from, message.into_inner()),
            // What it missed while it was away, an idle committee tells it no more.
            Event::Connected(member) => self.on_connected(now, member),
            Event::WallClock(origin_ms) => {
                self.config.wall_origin_ms = origin_ms;
                self.feed(now, Input::WallClock(origin_ms));
                self.own_signatures.ask_again(now);
            }
            Event::Stored(name) => {
                self.start();
                self.on_stored(now, name);
            }
            Event::Read(answer) => self.on_read(now, answer),
            Event::Combined(outcome) => self.on_combined(now, outcome),
            Event::Executed(executed) => self.on_executed(now, executed),
            Event::Queried(ticket, asked) => self.queries.on_result(ticket, asked, &self.execution),
            Event::Durable(height) => {
                self.durable = self.durable.max(height);
                self.release();
            }
            Event::Snapshotted(on_disk) => {
                self.snapshots_on_disk = on_disk;
                self.release();
            }
            Event::Installed(executed) => self.on_installed(now, &executed),
            Event::DiskNearlyFull(is_full) => {
                self.mempool.close(is_full);
                if !is_full {
                    self.own_signatures.ask_again(now);
                }
            }
            Event::Pace(pace) => self.pacing.set(pace),
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.unacted.is_none() {
            self.protocol.handle_timeout(now);
            self.drain(now);
        }
        self.settle(now);
    }

    fn poll(&mut self) -> Option<Effect<Message>> {
        self.effects.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        self.first_timer()
    }
}

#[cfg(test)]
mod tests;
