//! A committee with its keys, to forge any message, and real machines on a network driven by hand.

use crate::block_tree::TreeBlock;
use crate::chained::statements::{proposal_message, timeout_message, vote_message};
use crate::chained::{
    Block, Chained, Message, Phase, Proposal, Qc, SafetyRecord, Tc, Timeout, Vote, verify_run,
};
use crate::leader::{LeaderElection, LeaderReputation, RoundRobin};
use crate::{
    Decided, Input, Liveness, Output, ProposalKey, ProposeRequest, ProtocolConfig, ProtocolKind,
    ProtocolView, Rule, VerifiedRun, Verifier,
};
use bytes::Bytes;
use quorate_crypto::mutants;
use quorate_crypto::{
    Bitmap, Certificate, Digest, IdentitySecret, KeyCache, KeyFile, Policy, SchemeKind, Share,
    VotingSecret, hash,
};
use quorate_types::machine::Halt;
use quorate_types::{
    AgreedSettings, Anchor, BlockId, BodyRef, Committee, CommitteeFile, Epoch, HandOver, Height,
    Machine, Member, Payload, Peer, Purpose, Recipients, Rejected, ReplicaId, Time, Verified, View,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What a rule's check comes to; the mutants must turn it into an `Err`.
pub(crate) type Check = Result<(), String>;

pub(crate) fn ensure(holds: bool, what: impl Into<String>) -> Check {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// A rule to leave out, and the check that is to miss it.
pub(crate) type Row = (mutants::Mutant, fn() -> Check);

/// Those of the rules whose checks find nothing wrong when they are left out.
pub(crate) fn unnoticed(table: &[Row]) -> Vec<String> {
    let passes = |(mutant, check): &Row| {
        mutants::set(Some(*mutant));
        let found = check();
        mutants::set(None);
        found.is_ok().then(|| format!("{mutant:?}"))
    };
    table.iter().filter_map(passes).collect()
}

/// How long a view may take in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(1_000);

fn load(file: &CommitteeFile) -> Committee {
    Committee::load_simulated(file, KeyCache::Off).expect("a good file")
}

/// Everybody's secrets.
pub(crate) struct Keys {
    pub(crate) committee: Arc<Committee>,
    pub(crate) protocol: ProtocolKind,
    identities: Vec<Arc<IdentitySecret>>,
    voting: Vec<Arc<VotingSecret>>,
    /// Height that the epoch begins after.
    pub(crate) anchor: Anchor,
    /// The parents of the blocks that were voted for or certified: what a base is found by.
    parents: RefCell<BTreeMap<BlockId, (View, BlockId)>>,
}

impl Keys {
    pub(crate) fn new(members: u8) -> Self {
        Self::of_network(members, "test", 1)
    }

    pub(crate) fn weighted(weights: &[u64]) -> Self {
        Self::build(SchemeKind::Stub, weights, load)
    }

    /// With Ed25519 instead of stand-ins for votes: their operations are counted.
    pub(crate) fn of_ed25519(members: u8) -> Self {
        Self::build(SchemeKind::Ed25519, &vec![1; usize::from(members)], load)
    }

    pub(crate) fn of_network(members: u8, name: &str, epoch: u64) -> Self {
        Self::build(SchemeKind::Stub, &vec![1; usize::from(members)], |file| {
            load(&CommitteeFile { name: name.into(), epoch: Epoch(epoch), ..file.clone() })
        })
    }

    /// Four members in the second epoch, which a hand-over of this root began.
    pub(crate) fn begun_with(root: Digest) -> Self {
        Self::build(SchemeKind::Ed25519, &[1; 4], |file| {
            let network = Some(file.network_id());
            let file = CommitteeFile { network, epoch: Epoch(2), ..file.clone() };
            let hand_over = HandOver { root, file: file.digest(), ..HandOver::default() };
            Committee::load_simulated_after(&file, &hand_over, KeyCache::Off).expect("a good file")
        })
    }

    fn build(
        scheme: SchemeKind,
        weights: &[u64],
        load: impl FnOnce(&CommitteeFile) -> Committee,
    ) -> Self {
        let members = u8::try_from(weights.len()).expect("few");
        let identities: Vec<_> =
            (0..members).map(|i| Arc::new(IdentitySecret::from_seed([i + 1; 32]))).collect();
        let voting: Vec<_> = (0..members)
            .map(|i| Arc::new(VotingSecret::from_seed(scheme, &[i + 101; 32])))
            .collect();
        let member = |i: usize| {
            let (identity, voting) = ((*identities[i]).clone(), (*voting[i]).clone());
            let keys = KeyFile { identity, voting };
            Member { weight: weights[i], ..Member::new(&keys.public(), format!("member{i}:1")) }
        };
        let file = CommitteeFile {
            name: "test".into(),
            network: None,
            epoch: Epoch(1),
            scheme: scheme.to_string(),
            redundancy: 0,
            settings: AgreedSettings::default(),
            groups: None,
            from_state: None,
            members: (0..usize::from(members)).map(member).collect(),
        };
        let (protocol, parents) = (ProtocolKind::Jolteon, RefCell::default());
        let (committee, anchor) = (Arc::new(load(&file)), Anchor::default());
        Self { committee, protocol, identities, voting, anchor, parents }
    }

    /// The same keys in an epoch that begins after this height.
    pub(crate) fn starting_after(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// The same keys in a committee that runs this protocol.
    pub(crate) fn running(self, protocol: ProtocolKind) -> Self {
        Self { protocol, ..self }
    }

    pub(crate) fn verifier(&self) -> Arc<Verifier> {
        let committee = Arc::clone(&self.committee);
        let verifier = Verifier::new(committee, self.protocol, ProposalKey::Identity);
        Arc::new(verifier.starting_after(self.anchor))
    }

    pub(crate) fn genesis(&self) -> Qc {
        Qc::genesis(self.verifier().genesis(), self.committee.size())
    }

    pub(crate) fn leader(&self, view: u64) -> u16 {
        RoundRobin::new(self.committee.weights()).leader(View(view)).0
    }

    /// The leader's block of `view` on the block that `justify` certifies.
    pub(crate) fn block(&self, view: u64, justify: &Qc, height: u64, bodies: &[u64]) -> Block {
        Block {
            epoch: self.committee.epoch_id(),
            view: View(view),
            author: ReplicaId(self.leader(view)),
            justify: justify.clone(),
            tc: None,
            reputation: LeaderReputation::new(),
            payload: Payload::new(Height(height), 0, bodies.iter().map(|k| body(*k)).collect()),
        }
    }

    pub(crate) fn propose(&self, block: &Block) -> Message {
        let message = proposal_message(&self.verifier(), block.view, block.id());
        let signature = self.identities[block.author.index()].sign(&message).0.to_vec();
        Message::Proposal(Proposal { block: block.clone(), signature })
    }

    pub(crate) fn vote(&self, signer: u16, block: &Block) -> Vote {
        self.vote_in(Phase::Prepare, signer, block)
    }

    /// The vote for a block in a phase of its view.
    pub(crate) fn vote_in(&self, phase: Phase, signer: u16, block: &Block) -> Vote {
        let (view, id) = (block.view, block.id());
        let (base_view, base_id) = self.base(phase, block);
        let message = vote_message(&self.verifier(), phase, (view, id), (base_view, base_id));
        let share = self.voting[usize::from(signer)].sign(&message);
        Vote { view, id, base_view, base_id, signer: ReplicaId(signer), share }
    }

    /// What a vote for the block names beside it.
    fn base(&self, phase: Phase, block: &Block) -> (View, BlockId) {
        let parent = (block.justify.view, block.justify.id);
        self.parents.borrow_mut().insert(block.id(), parent);
        if phase == Phase::Commit {
            return (block.view, block.id());
        }
        let parents = self.parents.borrow();
        let below = |(_, id): (View, BlockId)| {
            parents.get(&id).copied().unwrap_or((View(0), self.verifier().genesis()))
        };
        (1..self.protocol.chained_rules().expect("a chained one").links())
            .fold(parent, |at, _| below(at))
    }

    pub(crate) fn certify(&self, block: &Block) -> Qc {
        self.certify_by(block, &[0, 1, 2])
    }

    pub(crate) fn certify_by(&self, block: &Block, signers: &[u16]) -> Qc {
        self.certify_in(Phase::Prepare, block, signers)
    }

    /// The certificate of a block in a phase of its view.
    pub(crate) fn certify_in(&self, phase: Phase, block: &Block, signers: &[u16]) -> Qc {
        let (view, id) = (block.view, block.id());
        let (base_view, base_id) = self.base(phase, block);
        let message = vote_message(&self.verifier(), phase, (view, id), (base_view, base_id));
        let certificate = self.sign_together(&message, signers);
        Qc { view, id, base_view, base_id, certificate }
    }

    fn sign_together(&self, message: &[u8], signers: &[u16]) -> Certificate {
        let shares: Vec<(usize, Share)> = signers
            .iter()
            .map(|i| (usize::from(*i), self.voting[usize::from(*i)].sign(message)))
            .collect();
        let (scheme, _) = self.committee.scheme(Purpose::Vote);
        let nobody = Bitmap::new(self.committee.size());
        let combined = scheme.combine(message, &shares, &nobody, Policy::Each);
        combined.certificate.expect("good shares")
    }

    pub(crate) fn timeout(
        &self,
        signer: u16,
        view: u64,
        high_qc: &Qc,
        high_tc: Option<&Tc>,
    ) -> Timeout {
        let message = timeout_message(&self.verifier(), View(view), high_qc.view);
        Timeout {
            view: View(view),
            high_qc: high_qc.clone(),
            high_tc: high_tc.cloned(),
            last_vote: None,
            signer: ReplicaId(signer),
            share: self.voting[usize::from(signer)].sign(&message),
        }
    }

    /// The timeout certificate of `view` in which each signer reports a certificate of that view;
    /// it shows `high_qc` whatever they report.
    pub(crate) fn tc(&self, view: u64, high_qc: &Qc, reports: &[(u64, &[u16])]) -> Tc {
        let groups = reports
            .iter()
            .map(|(reported, signers)| {
                let message = timeout_message(&self.verifier(), View(view), View(*reported));
                (View(*reported), self.sign_together(&message, signers))
            })
            .collect();
        Tc { view: View(view), high_qc: high_qc.clone(), groups }
    }

    pub(crate) fn config(&self, id: u16, verifier: &Arc<Verifier>) -> ProtocolConfig {
        ProtocolConfig {
            id: ReplicaId(id),
            identity: Arc::clone(&self.identities[usize::from(id)]),
            voting: Arc::clone(&self.voting[usize::from(id)]),
            verifier: Arc::clone(verifier),
            timeout: TIMEOUT,
            vote_wait: Duration::ZERO,
            policy: Policy::Aggregate,
            clock_drift_max_ms: 5_000,
            wall_origin_ms: 0,
            signs: true,
            liveness: Liveness::default(),
        }
    }
}

pub(crate) fn body(k: u64) -> BodyRef {
    BodyRef { author: ReplicaId(0), sequence: k, digest: hash(&k.to_le_bytes()) }
}

pub(crate) fn certificates(high_qc: &Qc, high_tc: Option<&Tc>) -> Message {
    Message::Certificates { high_qc: high_qc.clone(), high_tc: high_tc.cloned() }
}

/// What a machine said that must come in order.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    Persist(Bytes),
    Send(Recipients, Box<Message>),
}

pub(crate) struct Node {
    pub(crate) machine: Chained,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) up: bool,
    pub(crate) safety: Option<Bytes>,
    pub(crate) records: Vec<Bytes>,
    pub(crate) said: Vec<Recorded>,
    pub(crate) decided: Vec<Decided>,
    pub(crate) request: Option<ProposeRequest>,
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) misbehaviour: Vec<(ReplicaId, Rule)>,
    pub(crate) halted: Option<Halt>,
    pub(crate) behind: Option<BlockId>,
    /// Whether the bodies that proposals name are at hand.
    pub(crate) has_bodies: bool,
    working: bool,
}

impl Node {
    fn start(config: ProtocolConfig, verifier: Arc<Verifier>) -> Self {
        Self {
            machine: Chained::new(config),
            verifier,
            up: true,
            safety: None,
            records: Vec::new(),
            said: Vec::new(),
            decided: Vec::new(),
            request: None,
            rejected: Vec::new(),
            misbehaviour: Vec::new(),
            halted: None,
            behind: None,
            has_bodies: true,
            working: false,
        }
    }

    pub(crate) fn view(&self) -> u64 {
        self.machine.view().0
    }

    pub(crate) fn machine_timeout(&self) -> Option<Time> {
        self.machine.next_timeout()
    }

    pub(crate) fn votes(&self) -> Vec<Vote> {
        self.sent()
            .filter_map(|m| if let Message::Vote(v) = m { Some(v.clone()) } else { None })
            .collect()
    }

    pub(crate) fn timeouts(&self) -> Vec<Timeout> {
        self.sent()
            .filter_map(|m| if let Message::Timeout(t) = m { Some(t.clone()) } else { None })
            .collect()
    }

    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        self.sent()
            .filter_map(|m| if let Message::Proposal(p) = m { Some(p.clone()) } else { None })
            .collect()
    }

    pub(crate) fn sent(&self) -> impl Iterator<Item = &Message> {
        self.said.iter().filter_map(|said| match said {
            Recorded::Send(_, message) => Some(message.as_ref()),
            Recorded::Persist(_) => None,
        })
    }

    pub(crate) fn bodies(&self) -> Vec<BodyRef> {
        self.decided.iter().flat_map(|d| d.payload.bodies.iter().copied()).collect()
    }

    /// Returns `true` if the last decided block is the epoch's last.
    pub(crate) fn has_ended(&self) -> bool {
        self.decided.last().is_some_and(|last| last.payload.ends_epoch())
    }

    pub(crate) fn promises(&self) -> Option<SafetyRecord> {
        borsh::from_slice(self.safety.as_ref()?).ok()
    }
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) message: Message,
}

/// Real machines; each message passes the real check; a test decides what arrives.
pub(crate) struct Cluster {
    pub(crate) keys: Keys,
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Node>,
    pub(crate) wire: VecDeque<Envelope>,
    /// Drops an envelope when it says so.
    pub(crate) cut: Box<dyn FnMut(&Envelope) -> bool>,
    /// Bodies that clients want ordered; every replica holds them.
    pub(crate) pending: Vec<BodyRef>,
    /// Change of epoch that the next leader orders.
    pub(crate) change: Option<Digest>,
    /// Combining jobs that a test holds back, with who asked.
    pub(crate) jobs: Option<Vec<(u16, quorate_types::machine::CombineJob)>>,
    tune: fn(&mut ProtocolConfig),
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::tuned(|_| {})
    }

    pub(crate) fn tuned(tune: fn(&mut ProtocolConfig)) -> Self {
        Self::of(4, tune)
    }

    pub(crate) fn of(members: u8, tune: fn(&mut ProtocolConfig)) -> Self {
        Self::with(Keys::new(members), tune)
    }

    pub(crate) fn weighted(weights: &[u64]) -> Self {
        Self::with(Keys::weighted(weights), |_| {})
    }

    /// Four members that run this protocol.
    pub(crate) fn running(protocol: ProtocolKind) -> Self {
        Self::with(Keys::new(4).running(protocol), |_| {})
    }

    pub(crate) fn with(keys: Keys, tune: fn(&mut ProtocolConfig)) -> Self {
        let members = u16::try_from(keys.committee.size()).expect("few");
        let mut cluster = Self {
            now: Time(1_000),
            nodes: Vec::new(),
            wire: VecDeque::new(),
            cut: Box::new(|_| false),
            pending: Vec::new(),
            change: None,
            jobs: None,
            keys,
            tune,
        };
        for id in 0..members {
            let node = cluster.fresh(id);
            cluster.nodes.push(node);
            cluster.recover(id, None, Vec::new());
        }
        cluster
    }

    fn fresh(&self, id: u16) -> Node {
        let verifier = self.keys.verifier();
        let mut config = self.keys.config(id, &verifier);
        (self.tune)(&mut config);
        Node::start(config, verifier)
    }

    pub(crate) fn node(&self, id: u16) -> &Node {
        &self.nodes[usize::from(id)]
    }

    pub(crate) fn node_mut(&mut self, id: u16) -> &mut Node {
        &mut self.nodes[usize::from(id)]
    }

    fn recover(&mut self, id: u16, executed: Option<Bytes>, decided: Vec<Bytes>) {
        let safety = self.node(id).safety.clone();
        let promises = self.node(id).promises();
        let blocks = promises.iter().flat_map(|promises| &promises.blocks);
        let stored = blocks.flat_map(|block| block.payload.bodies.iter().copied()).collect();
        self.feed(id, Input::Recovered { slots: Vec::new(), safety, executed, decided, stored });
    }

    /// Loses everything but the disk.
    pub(crate) fn restart(&mut self, id: u16) {
        self.reopen(id);
        let records = self.node(id).records.clone();
        self.recover(id, None, records);
    }

    /// As [`Cluster::restart`], with everything that was decided executed too.
    pub(crate) fn restart_executed(&mut self, id: u16) {
        self.reopen(id);
        let last = self.node(id).records.last().cloned();
        self.recover(id, last, Vec::new());
    }

    fn reopen(&mut self, id: u16) {
        let mut fresh = self.fresh(id);
        let old = self.node_mut(id);
        fresh.safety = old.safety.take();
        fresh.records = std::mem::take(&mut old.records);
        fresh.has_bodies = old.has_bodies;
        *self.node_mut(id) = fresh;
    }

    /// Feeds one input and does what the machine asks for.
    pub(crate) fn feed(&mut self, id: u16, input: Input) {
        let now = self.now;
        self.node_mut(id).machine.handle(now, input);
        self.drain(id);
    }

    /// Hands a message over as if its channel had proven `from`, through the real check.
    pub(crate) fn give(&mut self, to: u16, from: u16, message: Message) -> Result<(), Rejected> {
        let raw = self.keys.protocol.message(message);
        let peer = Peer::Replica(ReplicaId(from));
        match Verified::check(raw, peer, self.node(to).verifier.as_ref()) {
            Ok(message) => {
                let message = Box::new(message);
                self.feed(to, Input::Message { from: ReplicaId(from), message });
                Ok(())
            }
            Err(reason) => {
                self.node_mut(to).rejected.push(reason.clone());
                Err(reason)
            }
        }
    }

    /// As [`Cluster::give`] for a message that must be let in.
    pub(crate) fn tell(&mut self, to: u16, from: u16, message: Message) -> Check {
        self.give(to, from, message).map_err(|reason| format!("refused: {reason}"))
    }

    pub(crate) fn drain(&mut self, id: u16) {
        let now = self.now;
        loop {
            while let Some(output) = self.node_mut(id).machine.poll() {
                self.apply(id, output);
            }
            let working = self.has_work(id);
            if working != self.node(id).working {
                self.node_mut(id).working = working;
                self.node_mut(id).machine.handle(now, Input::Work(working));
                continue;
            }
            if !self.answer_wish(id) {
                return;
            }
        }
    }

    fn has_work(&self, id: u16) -> bool {
        let node = self.node(id);
        let lacks = self.pending.iter().any(|body| !node.bodies().contains(body));
        !node.has_ended() && (lacks || self.change.is_some())
    }

    fn apply(&mut self, id: u16, output: Output) {
        let now = self.now;
        match output {
            Output::Send { to, message } => {
                let message = message.chained().expect("a chained protocol's").clone();
                let members: Vec<u16> = match to {
                    Recipients::All => {
                        (0..self.nodes.len()).map(|i| u16::try_from(i).expect("few")).collect()
                    }
                    Recipients::One(one) => vec![one.0],
                    Recipients::Client(_) => Vec::new(),
                };
                for to in members.into_iter().filter(|to| *to != id) {
                    self.wire.push_back(Envelope { from: id, to, message: message.clone() });
                }
                self.node_mut(id).said.push(Recorded::Send(to, Box::new(message)));
            }
            Output::Persist(record) => {
                self.node_mut(id).safety = Some(record.bytes.clone());
                self.node_mut(id).said.push(Recorded::Persist(record.bytes));
            }
            Output::Combine(job) => match &mut self.jobs {
                Some(jobs) => jobs.push((id, job)),
                None => self.node_mut(id).machine.handle(now, Input::Combined(job.run())),
            },
            Output::RequestPayload(request) => self.node_mut(id).request = Some(request),
            Output::RequestBodies { block, bodies, .. } => {
                if self.node(id).has_bodies || bodies.is_empty() {
                    self.node_mut(id).machine.handle(now, Input::Stored(block));
                }
            }
            Output::Decided(decided) => {
                let before = self.keys.anchor.height.0;
                let node = self.node_mut(id);
                if decided.payload.header.height.0 > before + node.records.len() as u64 {
                    node.records.push(decided.record.clone());
                }
                node.decided.push(decided);
            }
            Output::Behind { target, .. } => self.node_mut(id).behind = Some(target),
            Output::Stable(_) => unreachable!("no chained protocol keeps a window"),
            Output::Misbehaviour(seen) => {
                self.node_mut(id).misbehaviour.push((seen.member, seen.rule));
            }
            Output::Halt(halt) => self.node_mut(id).halted = Some(halt),
        }
    }

    /// Answers a leader's request when there is something to order.
    fn answer_wish(&mut self, id: u16) -> bool {
        let Some(request) = self.node(id).request.clone() else { return false };
        let done: BTreeSet<BodyRef> =
            self.node(id).bodies().into_iter().chain(request.carried.iter().copied()).collect();
        let bodies = self.pending.iter().filter(|b| !request.nothing && !done.contains(b));
        let bodies: Vec<BodyRef> = bodies.copied().take(1).collect();
        let change = self.change.filter(|_| !request.nothing);
        if bodies.is_empty() && change.is_none() && !request.at_once {
            return false;
        }
        let stamp = request.stamp_floor_ms.max(self.now.as_millis());
        let mut payload = Payload::new(request.height, stamp, bodies);
        payload.header.change = change;
        let now = self.now;
        let node = self.node_mut(id);
        node.request = None;
        node.machine
            .handle(now, Input::Payload { view: request.view, parent: request.parent, payload });
        true
    }

    /// Everybody receives a body and wants it ordered.
    pub(crate) fn submit(&mut self, k: u64) {
        self.pending.push(body(k));
        for id in self.up() {
            self.drain(id);
        }
    }

    pub(crate) fn up(&self) -> Vec<u16> {
        (0..self.nodes.len())
            .filter(|i| self.nodes[*i].up)
            .map(|i| u16::try_from(i).expect("few"))
            .collect()
    }

    /// Delivers what is on the wire, and what follows from it, until all is quiet.
    pub(crate) fn deliver(&mut self) {
        for _ in 0..100_000 {
            let Some(envelope) = self.wire.pop_front() else {
                if !self.fetch() {
                    return;
                }
                continue;
            };
            let lost = !self.node(envelope.from).up || !self.node(envelope.to).up;
            if lost || (self.cut)(&envelope) {
                continue;
            }
            // What is refused is recorded in the node.
            let _ = self.give(envelope.to, envelope.from, envelope.message);
        }
        panic!("messages never end");
    }

    /// Answers one question for missing blocks, as the engine of another replica would.
    fn fetch(&mut self) -> bool {
        for id in self.up() {
            let Some(target) = self.node(id).behind else { continue };
            self.node_mut(id).behind = None;
            if self.node(id).machine.has_block(target) {
                continue;
            }
            let after = self.node(id).machine.tip();
            let (before, height) = (self.keys.anchor.height.0, self.node(id).records.len());
            for other in self.up().into_iter().filter(|other| *other != id) {
                let server = self.node(other);
                let (decided, tail) = if server.records.len() > height {
                    let records = &server.records[height..];
                    (records[..server.machine.servable(records)].to_vec(), Vec::new())
                } else {
                    (Vec::new(), server.machine.tail(after, target).unwrap_or_default())
                };
                let run = verify_run(
                    Height(before + height as u64),
                    Some(after),
                    target,
                    &decided,
                    &tail,
                    &self.node(id).verifier,
                );
                if let Ok(run) = run
                    && !(run.decided.is_empty() && run.tail.is_empty())
                {
                    self.feed(id, Input::Run(Box::new(VerifiedRun::Chained(run))));
                    return true;
                }
            }
        }
        false
    }

    /// The next time at which somebody's timer is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.up().into_iter().filter_map(|id| self.node(id).machine.next_timeout()).min()
    }

    /// Lets time pass to the next timer and fires what is due. `false` when nobody waits.
    pub(crate) fn pass(&mut self) -> bool {
        let Some(at) = self.next_timeout() else { return false };
        self.now = self.now.max(at);
        let now = self.now;
        for id in self.up() {
            if self.node(id).machine.next_timeout().is_some_and(|at| at <= now) {
                self.node_mut(id).machine.handle_timeout(now);
                self.drain(id);
            }
        }
        true
    }

    /// Fires one replica's timer.
    pub(crate) fn fire(&mut self, id: u16) -> Check {
        let at = self.node(id).machine.next_timeout().ok_or("no timer is armed")?;
        self.now = self.now.max(at);
        let now = self.now;
        self.node_mut(id).machine.handle_timeout(now);
        self.drain(id);
        Ok(())
    }

    /// Messages and timers, until the condition holds.
    pub(crate) fn run(&mut self, what: &str, until: impl Fn(&Self) -> bool) -> Check {
        for _ in 0..60 {
            self.deliver();
            if until(self) {
                return Ok(());
            }
            if !self.pass() {
                break;
            }
        }
        ensure(until(self), format!("never came: {what}"))
    }

    /// Whether every replica that is up has decided these bodies.
    pub(crate) fn all_decided(&self, bodies: &[u64]) -> bool {
        self.up().iter().all(|id| {
            let done = self.node(*id).bodies();
            bodies.iter().all(|k| done.contains(&body(*k)))
        })
    }

    /// Heights in order, each once, the same blocks everywhere.
    pub(crate) fn ensure_agreement(&self) -> Check {
        let longest = self.nodes.iter().map(|n| &n.decided).max_by_key(|d| d.len());
        let longest = longest.ok_or("a cluster has nodes")?;
        for node in &self.nodes {
            for (index, decided) in node.decided.iter().enumerate() {
                let first = node.decided[0].payload.header.height.0;
                let height = decided.payload.header.height;
                ensure(height.0 == first + index as u64, format!("{height} out of order"))?;
                let other = longest.iter().find(|d| d.payload.header.height == height);
                ensure(
                    other.is_none_or(|o| o.block == decided.block),
                    format!("two blocks at {height}"),
                )?;
            }
            ensure(node.halted.is_none(), format!("{:?}", node.halted))?;
        }
        Ok(())
    }
}
