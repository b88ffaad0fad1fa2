//! One machine under test, and messages forged with everybody's keys.

use super::*;
use quorate_crypto::Certificate;
use quorate_types::executed::{CheckpointCertificate, checkpoint_statement};
use quorate_types::machine::{Halt, RecordKind};
use quorate_types::{BlockId, BodyRef, Recipients};

/// Stamp of a value that tests call A.
pub(super) const A: u64 = 7;
/// Stamp of another value.
pub(super) const B: u64 = 8;

/// A machine, the verifier that its host would use, and the time.
pub(super) struct Bench {
    pub(super) verifier: Arc<Verifier>,
    pub(super) machine: Windowed,
    pub(super) now: Time,
}

/// Outputs of one input and of the combining jobs that followed from it, in order.
#[derive(Debug)]
pub(super) struct Outputs(pub(super) Vec<Output>);

impl Bench {
    /// One of four members that starts for the first time.
    pub(super) fn new(protocol: ProtocolKind, id: u8) -> Self {
        Self::started(&verifier(protocol), id).0
    }

    /// The same of this committee, with the outputs of its start.
    pub(super) fn started(verifier: &Arc<Verifier>, id: u8) -> (Self, Outputs) {
        Self::of(config(verifier, id))
    }

    pub(super) fn of(config: ProtocolConfig) -> (Self, Outputs) {
        let verifier = Arc::clone(&config.verifier);
        let mut bench = Self { verifier, machine: machine(config), now: Time(0) };
        let outputs = bench.recover(None, Vec::new(), None, Vec::new());
        (bench, outputs)
    }

    /// One of four members that comes back with these records.
    pub(super) fn restarted(
        protocol: ProtocolKind,
        id: u8,
        safety: Option<&ViewRecord>,
        slots: &[SlotRecord],
    ) -> (Self, Outputs) {
        let verifier = verifier(protocol);
        let machine = replica(&verifier, id);
        let mut bench = Self { verifier, machine, now: Time(0) };
        let safety = safety.map(|record| record.encode().bytes);
        let slots = slots.iter().map(|record| record.encode().bytes).collect();
        let outputs = bench.recover(safety, slots, None, Vec::new());
        (bench, outputs)
    }

    pub(super) fn recover(
        &mut self,
        safety: Option<Bytes>,
        slots: Vec<Bytes>,
        executed: Option<Bytes>,
        decided: Vec<Bytes>,
    ) -> Outputs {
        let stored = BTreeSet::new();
        self.feed(Input::Recovered { safety, slots, executed, decided, stored })
    }

    pub(super) fn feed(&mut self, input: Input) -> Outputs {
        self.machine.handle(self.now, input);
        self.outputs()
    }

    /// Hands over a message that must pass its check.
    #[track_caller]
    pub(super) fn tell(&mut self, from: u8, message: Message) -> Outputs {
        let from = ReplicaId(u16::from(from));
        let message = self.verifier.protocol().windowed(message);
        let message = Verified::check(message, Peer::Replica(from), self.verifier.as_ref());
        let message = Box::new(message.expect("a sound message"));
        self.feed(Input::Message { from, message })
    }

    /// Reason for which a message does not pass its check.
    #[track_caller]
    pub(super) fn refusal(&self, message: Message) -> Rejected {
        receive(&self.verifier, message).expect_err("a message that breaks a rule")
    }

    /// Hands over the primary's pre-prepare of a value without bodies.
    #[track_caller]
    pub(super) fn propose(&mut self, view: u64, slot: u64, stamp: u64) -> Outputs {
        let message = pre_prepare(&self.verifier, view, value(slot, stamp));
        self.tell(u8::try_from(view % self.members()).expect("few"), message)
    }

    /// The same, and its bodies are stored.
    #[track_caller]
    pub(super) fn accept(&mut self, view: u64, slot: u64, stamp: u64) -> Outputs {
        self.propose(view, slot, stamp);
        self.store(slot, stamp)
    }

    pub(super) fn store(&mut self, slot: u64, stamp: u64) -> Outputs {
        self.feed(Input::Stored(BlockId(digest_of(&value(slot, stamp)))))
    }

    /// A member's vote for a value comes.
    #[track_caller]
    pub(super) fn vote(&mut self, from: u8, at: Proposal) -> Outputs {
        let message = sign_share(&self.verifier, from, at);
        self.tell(from, message)
    }

    /// A member's vote to commit a value comes.
    #[track_caller]
    pub(super) fn commit(&mut self, from: u8, at: Proposal) -> Outputs {
        let message = commit_share(&self.verifier, from, at);
        self.tell(from, message)
    }

    /// A decided slot comes as a whole.
    #[track_caller]
    pub(super) fn decide(&mut self, slot: u64, stamp: u64) -> Outputs {
        let decided = decided(&self.verifier, 1, value(slot, stamp));
        self.tell(2, Message::Decided(Box::new(decided)))
    }

    /// The next timer rings.
    pub(super) fn ring(&mut self) -> Outputs {
        self.now = self.machine.next_timeout().expect("a timer runs").max(self.now);
        self.machine.handle_timeout(self.now);
        self.outputs()
    }

    /// Timers ring until a message like this is sent.
    #[track_caller]
    pub(super) fn ring_until(&mut self, wanted: fn(&Message) -> bool) -> Outputs {
        let mut all = (0..100).map(|_| self.ring());
        all.find(|outputs| outputs.says(wanted)).expect("it is sent sooner or later")
    }

    /// Leaves its view, as if the primary passed bodies over for long.
    pub(super) fn leave_view(&mut self) -> Outputs {
        self.now = self.now + Duration::from_secs(10);
        let mut said = self.feed(Input::PrimarySuspected);
        let left = self.machine.view;
        for member in 0..self.members() {
            if self.machine.view == left && member != u64::from(self.machine.id().0) {
                let member = u8::try_from(member).expect("few");
                said.0.extend(self.tell(member, Message::Suspicion(left)).0);
            }
        }
        said
    }

    /// Enters a view with these view changes of members 1, 2 and 3 or others.
    #[track_caller]
    pub(super) fn enter(&mut self, view: u64, changes: &[ViewChange]) -> Outputs {
        let mut all = Vec::new();
        for change in changes {
            let signer = u8::try_from(change.signer.0).expect("few");
            all.extend(self.tell(signer, Message::ViewChange(Box::new(change.clone()))).0);
        }
        let primary = u8::try_from(view % self.members()).expect("few");
        all.extend(self.tell(primary, new_view(&self.verifier, view, changes)).0);
        Outputs(all)
    }

    fn members(&self) -> u64 {
        self.verifier.committee().size() as u64
    }

    fn outputs(&mut self) -> Outputs {
        let mut outputs = Vec::new();
        while let Some(output) = self.machine.poll() {
            if let Output::Combine(job) = &output {
                self.machine.handle(self.now, Input::Combined(job.run()));
            }
            outputs.push(output);
        }
        Outputs(outputs)
    }
}

impl Outputs {
    pub(super) fn messages(&self) -> impl Iterator<Item = (Recipients, &Message)> {
        self.0.iter().filter_map(|output| match output {
            Output::Send { to, message } => Some((*to, message.windowed().expect("ours"))),
            _ => None,
        })
    }

    pub(super) fn says(&self, wanted: fn(&Message) -> bool) -> bool {
        self.messages().any(|(_, message)| wanted(message))
    }

    /// Receivers of messages like this.
    pub(super) fn receivers(&self, wanted: fn(&Message) -> bool) -> Vec<Recipients> {
        self.messages().filter(|(_, message)| wanted(message)).map(|(to, _)| to).collect()
    }

    pub(super) fn wants_bodies(&self) -> bool {
        self.0.iter().any(|output| matches!(output, Output::RequestBodies { .. }))
    }

    pub(super) fn combines(&self) -> bool {
        self.0.iter().any(|output| matches!(output, Output::Combine(_)))
    }

    /// Heights that are decided.
    pub(super) fn decided(&self) -> Vec<u64> {
        let heights = self.0.iter().filter_map(|output| match output {
            Output::Decided(decided) => Some(decided.payload.header.height.0),
            _ => None,
        });
        heights.collect()
    }

    /// The slot for which a payload is asked.
    pub(super) fn payload_slot(&self) -> Option<u64> {
        self.0.iter().find_map(|output| match output {
            Output::RequestPayload(request) => Some(request.height.0),
            _ => None,
        })
    }

    pub(super) fn halt(&self) -> Option<&Halt> {
        self.0.iter().find_map(|output| match output {
            Output::Halt(halt) => Some(halt),
            _ => None,
        })
    }

    /// Block that is to be fetched as history.
    pub(super) fn behind(&self) -> Option<BlockId> {
        self.0.iter().find_map(|output| match output {
            Output::Behind { target, .. } => Some(*target),
            _ => None,
        })
    }

    /// Height that became stable.
    pub(super) fn stable(&self) -> Option<u64> {
        self.0.iter().find_map(|output| match output {
            Output::Stable(checkpoint) => Some(checkpoint.height.0),
            _ => None,
        })
    }

    pub(super) fn slot_records(&self) -> Vec<SlotRecord> {
        let records = self.records(|kind| kind != RecordKind::Safety);
        records.map(|bytes| borsh::from_slice(bytes).expect("a slot's record")).collect()
    }

    pub(super) fn view_records(&self) -> Vec<ViewRecord> {
        let records = self.records(|kind| kind == RecordKind::Safety);
        records.map(|bytes| borsh::from_slice(bytes).expect("a view's record")).collect()
    }

    fn records(&self, wanted: fn(RecordKind) -> bool) -> impl Iterator<Item = &Bytes> {
        self.0.iter().filter_map(move |output| match output {
            Output::Persist(record) if wanted(record.kind) => Some(&record.bytes),
            _ => None,
        })
    }

    /// Outputs before the first message like this.
    #[track_caller]
    pub(super) fn before(self, wanted: fn(&Message) -> bool) -> Self {
        let is_it = |output: &Output| match output {
            Output::Send { message, .. } => message.windowed().is_some_and(wanted),
            _ => false,
        };
        let Self(mut outputs) = self;
        let first = outputs.iter().position(is_it).expect("such a message is sent");
        outputs.truncate(first);
        Self(outputs)
    }

    /// The view change that is broadcast.
    #[track_caller]
    pub(super) fn view_change(&self) -> &ViewChange {
        let found = self.messages().find_map(|(_, message)| match message {
            Message::ViewChange(change) => Some(change.as_ref()),
            _ => None,
        });
        found.expect("a view change is sent")
    }
}

pub(super) fn is_pre_prepare(message: &Message) -> bool {
    matches!(message, Message::PrePrepare(_))
}

pub(super) fn is_vote(message: &Message) -> bool {
    matches!(message, Message::SignShare(_))
}

pub(super) fn is_prepare(message: &Message) -> bool {
    matches!(message, Message::Prepare(_))
}

pub(super) fn is_commit(message: &Message) -> bool {
    matches!(message, Message::CommitShare(_))
}

pub(super) fn is_proof(message: &Message) -> bool {
    matches!(message, Message::Proof(_))
}

pub(super) fn is_fast_proof(message: &Message) -> bool {
    matches!(message, Message::Proof(proof) if proof.path == Path::Fast)
}

pub(super) fn is_decided(message: &Message) -> bool {
    matches!(message, Message::Decided(_))
}

pub(super) fn is_view_change(message: &Message) -> bool {
    matches!(message, Message::ViewChange(_))
}

pub(super) fn is_new_view(message: &Message) -> bool {
    matches!(message, Message::NewView(_))
}

pub(super) fn is_status(message: &Message) -> bool {
    matches!(message, Message::Status(_))
}

/// A value of a slot, told from others by its stamp.
pub(super) fn value(slot: u64, stamp: u64) -> Payload {
    Payload::new(Height(slot), stamp, Vec::<BodyRef>::new())
}

/// That value in a view.
pub(super) fn at(view: u64, slot: u64, stamp: u64) -> Proposal {
    let digest = digest_of(&value(slot, stamp));
    Proposal { view: View(view), slot: Height(slot), digest }
}

/// Share of a member over a statement.
fn share(verifier: &Verifier, member: u8, kind: Kind, at: &Proposal) -> quorate_crypto::Share {
    let committee = verifier.committee();
    let statement = verifier.statement(kind, at);
    committee.sign(Purpose::Vote, &voting(committee, member), &statement)
}

pub(super) fn signed_pre_prepare(
    verifier: &Verifier,
    signer: u8,
    view: u64,
    payload: Payload,
) -> PrePrepare {
    let (slot, digest) = (payload.header.height, digest_of(&payload));
    let proposal = Proposal { view: View(view), slot, digest };
    let slow = share(verifier, signer, Kind::Prepare, &proposal);
    let statement = verifier.statement(Kind::PrePrepare, &proposal);
    let signature = keys(signer).identity.sign(&statement).0.to_vec();
    PrePrepare { view: View(view), payload, shares: Shares { slow, fast: None }, signature }
}

pub(super) fn pre_prepare(verifier: &Verifier, view: u64, payload: Payload) -> Message {
    let primary = u8::try_from(view % verifier.committee().size() as u64).expect("few");
    Message::PrePrepare(signed_pre_prepare(verifier, primary, view, payload))
}

pub(super) fn sign_share(verifier: &Verifier, member: u8, proposal: Proposal) -> Message {
    let slow = share(verifier, member, Kind::Prepare, &proposal);
    Message::SignShare(SignShare { proposal, shares: Shares { slow, fast: None } })
}

pub(super) fn commit_share(verifier: &Verifier, member: u8, proposal: Proposal) -> Message {
    let share = share(verifier, member, Kind::Commit, &proposal);
    Message::CommitShare(CommitShare { proposal, share })
}

fn combine(verifier: &Verifier, statement: &[u8], signers: &[u8]) -> Certificate {
    let sign = |signer: &u8| (usize::from(*signer), keys(*signer).voting.sign(statement));
    let shares: Vec<_> = signers.iter().map(sign).collect();
    let nobody = Bitmap::new(verifier.committee().size());
    let combined = verifier.voting().combine(statement, &shares, &nobody, Policy::Each);
    combined.certificate.expect("good shares")
}

pub(super) fn certificate(
    verifier: &Verifier,
    kind: Kind,
    proposal: Proposal,
    signers: &[u8],
) -> SlotCertificate {
    let statement = verifier.statement(kind, &proposal);
    SlotCertificate { proposal, certificate: combine(verifier, &statement, signers) }
}

/// Certificate of three members' votes to prepare.
pub(super) fn prepared(verifier: &Verifier, at: Proposal) -> SlotCertificate {
    certificate(verifier, Kind::Prepare, at, &[0, 1, 2])
}

/// Slow proof by three members.
pub(super) fn proof(verifier: &Verifier, at: Proposal) -> Proof {
    let certificate = certificate(verifier, Kind::Commit, at, &[0, 1, 2]);
    Proof { path: Path::Slow, certificate }
}

pub(super) fn decided(verifier: &Verifier, view: u64, payload: Payload) -> DecidedSlot {
    let (slot, digest) = (payload.header.height, digest_of(&payload));
    let proof = proof(verifier, Proposal { view: View(view), slot, digest });
    DecidedSlot { payload, proof }
}

pub(super) fn checkpoint(
    verifier: &Verifier,
    height: u64,
    signers: &[u8],
) -> CheckpointCertificate {
    let (height, root) = (Height(height), hash(b"state"));
    let committee = verifier.committee();
    let statement = checkpoint_statement(committee.scope(), height, root);
    CheckpointCertificate { height, root, certificate: combine(verifier, &statement, signers) }
}

/// View change with these reports.
pub(super) fn change(
    verifier: &Verifier,
    view: u64,
    signer: u8,
    slots: Vec<SlotReport>,
) -> ViewChange {
    signed_change(verifier, view, signer, None, slots)
}

pub(super) fn signed_change(
    verifier: &Verifier,
    view: u64,
    signer: u8,
    stable: Option<CheckpointCertificate>,
    slots: Vec<SlotReport>,
) -> ViewChange {
    let identity = keys(signer).identity;
    let (view, signer) = (View(view), ReplicaId(u16::from(signer)));
    let mut change = ViewChange { view, signer, stable, slots, signature: Vec::new() };
    let statement = verifier.statement(Kind::ViewChange, &change.signed_content());
    change.signature = identity.sign(&statement).0.to_vec();
    change
}

/// View changes of three members without evidence.
pub(super) fn empty_changes(verifier: &Verifier, view: u64) -> Vec<ViewChange> {
    (1..4).map(|member| change(verifier, view, member, Vec::new())).collect()
}

pub(super) fn prepared_report(certificate: SlotCertificate, stamp: u64) -> SlotReport {
    let slot = certificate.proposal.slot;
    let slow = SlowReport::Prepared(certificate, value(slot.0, stamp));
    SlotReport { slot, slow, fast: FastReport::Nothing }
}

pub(super) fn new_view(verifier: &Verifier, view: u64, changes: &[ViewChange]) -> Message {
    let names = changes.iter().map(|change| (change.signer, change.digest())).collect();
    let primary = u8::try_from(view % verifier.committee().size() as u64).expect("few");
    signed_new_view(verifier, primary, view, names)
}

pub(super) fn signed_new_view(
    verifier: &Verifier,
    signer: u8,
    view: u64,
    changes: Vec<(ReplicaId, quorate_crypto::Digest)>,
) -> Message {
    let mut new_view = NewView { view: View(view), changes, signature: Vec::new() };
    let statement = verifier.statement(Kind::NewView, &new_view.signed_content());
    new_view.signature = keys(signer).identity.sign(&statement).0.to_vec();
    Message::NewView(new_view)
}

pub(super) fn receive(verifier: &Verifier, message: Message) -> Result<Message, Rejected> {
    let from = Peer::Replica(sender(&message));
    let message = verifier.protocol().windowed(message);
    crate::Message::verify(message, from, verifier).map(|it| it.windowed().cloned().expect("ours"))
}

/// Member that may send a message, of those that are not the one under test.
pub(super) fn sender(message: &Message) -> ReplicaId {
    match message {
        Message::PrePrepare(proposed) => super::collectors::primary(proposed.view, 4),
        _ => ReplicaId(2),
    }
}

/// Status of a member in view 1 that has decided up to this height.
pub(super) fn status(decided: u64) -> Status {
    Status {
        view: View(1),
        in_view_change: false,
        stable: Height(0),
        decided: Height(decided),
        has: Vec::new(),
        lacks: Vec::new(),
        turn: 0,
    }
}

/// Collectors of a slot in view 1 of four members, by index.
pub(super) fn collectors_of(slot: u64) -> Vec<u8> {
    let drawn = collectors::collectors(Epoch(1), View(1), Height(slot), 4, 0);
    drawn.into_iter().map(|member| u8::try_from(member.0).expect("few")).collect()
}

/// Slots that this member collects first in view 1, ascending.
pub(super) fn slots_of_collector(member: u8) -> impl Iterator<Item = u64> {
    (1..=WINDOW).filter(move |slot| collectors_of(*slot)[0] == member)
}
