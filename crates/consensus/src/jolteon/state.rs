//! The machine: its state, its inputs, and the normal case from proposal to decision.

use super::messages::{Block, DecidedBlock, Message, Proposal, Qc, Tc, encode, proposal_message};
use super::timeouts::Timeouts;
use super::votes::Votes;
use crate::block_tree::{BlockTree, Root, TreeBlock};
use crate::leader::{LeaderElection, RoundRobin};
use crate::pacemaker::{Pacemaker, Patience};
use crate::tally::Collector;
use crate::verify::{ProposalKey, Verifier, WINDOW};
use crate::{
    Decided, Fault, Input, Output, PayloadWish, ProtocolConfig, ProtocolStatus, VerifiedRun,
};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Halt;
use quorate_types::{
    BlockId, BodyRef, Height, Machine, Payload, Purpose, Recipients, ReplicaId, Time, View,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Decided blocks remembered by view, to recognise a certificate that contradicts them.
const DECIDED_KEPT: usize = 256;

/// With so many blocks undecided before it, a block orders nothing: every promise is written with the
/// whole chain, and a chain that only grows must at least not grow by megabytes. It cannot be bounded
/// in length, since whatever ends it is two blocks more.
pub(super) const LADEN_MAX: usize = 32;

/// Proposals without a parent that wait for it.
const PARKED_MAX: usize = 2 * WINDOW as usize;

/// One Jolteon replica.
#[derive(Debug)]
pub struct Jolteon {
    pub(super) config: ProtocolConfig,
    pub(super) verifier: Arc<Verifier>,
    pub(super) leaders: Box<dyn LeaderElection>,
    pub(super) outputs: VecDeque<Output>,

    pub(super) view: View,
    pub(super) high_qc: Qc,
    pub(super) high_tc: Option<Tc>,
    pub(super) voted_view: View,
    pub(super) last_vote: Option<super::Vote>,
    /// The blocks voted for in views after the highest certificate's.
    pub(super) voted: BTreeMap<View, BlockId>,
    /// A vote for this block was promised, and its bodies were lost since: nobody hears of it until they
    /// were fetched.
    pub(super) withheld: Option<BlockId>,
    pub(super) timeout_view: View,
    /// The last timeout of this run, to send it again byte for byte.
    pub(super) last_timeout: Option<super::Timeout>,
    pub(super) last_proposal: Option<Proposal>,

    pub(super) tree: BlockTree<Block>,
    pub(super) parked: BTreeMap<(View, BlockId), Arc<Block>>,
    pub(super) proposals_seen: BTreeMap<View, BTreeSet<BlockId>>,
    pub(super) stored: BTreeSet<BlockId>,
    pub(super) decided: BTreeMap<View, BlockId>,
    pub(super) pending_commit: Option<Qc>,
    /// What decided the last decided block.
    pub(super) last_commit: Option<Qc>,

    pub(super) votes: Votes,
    pub(super) timeouts: Timeouts,
    pub(super) collector: Collector,
    pub(super) pacemaker: Pacemaker,
    pub(super) patience: Patience,
    pub(super) engine_has_work: bool,
    pub(super) view_changes: u64,
    pub(super) halted: bool,
}

impl Jolteon {
    /// A replica that waits for [`Input::Recovered`].
    #[must_use]
    pub fn new(config: ProtocolConfig) -> Self {
        let verifier = Arc::clone(&config.verifier);
        let committee = verifier.committee();
        let genesis = verifier.genesis();
        let root = Root { id: genesis, view: View(0), height: Height(0), proposed_at_ms: 0 };
        Self {
            leaders: Box::new(RoundRobin::new(committee.weights())),
            outputs: VecDeque::new(),
            view: View(1),
            high_qc: Qc::genesis(genesis, committee.size()),
            high_tc: None,
            voted_view: View(0),
            last_vote: None,
            voted: BTreeMap::new(),
            withheld: None,
            timeout_view: View(0),
            last_timeout: None,
            last_proposal: None,
            tree: BlockTree::new(root),
            parked: BTreeMap::new(),
            proposals_seen: BTreeMap::new(),
            stored: BTreeSet::new(),
            decided: BTreeMap::from([(View(0), genesis)]),
            pending_commit: None,
            last_commit: None,
            votes: Votes::default(),
            timeouts: Timeouts::default(),
            collector: Collector::new(Arc::clone(committee), Purpose::Vote, config.policy),
            pacemaker: Pacemaker::new(config.timeout),
            patience: Patience::default(),
            engine_has_work: false,
            view_changes: 0,
            halted: false,
            verifier,
            config,
        }
    }

    /// With other leaders than in turn; before the first input, and the same for all members.
    #[must_use]
    pub fn with_leaders(mut self, leaders: Box<dyn LeaderElection>) -> Self {
        self.leaders = leaders;
        self
    }

    /// What it shows of itself.
    #[must_use]
    pub fn status(&self) -> ProtocolStatus {
        ProtocolStatus {
            view: self.view,
            leader: self.leaders.leader(self.view),
            view_changes: self.view_changes,
            certificate_bytes: encode(&self.high_qc.certificate).len() as u64,
        }
    }

    /// The current view.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// The last decided block.
    #[must_use]
    pub fn tip(&self) -> BlockId {
        self.tree.root().id
    }

    /// Whether it has this block undecided, or decided it not long ago.
    #[must_use]
    pub fn has_block(&self, id: BlockId) -> bool {
        self.tree.contains(id) || self.decided.values().any(|decided| *decided == id)
    }

    /// Whether a vote for this block could still be cast.
    #[must_use]
    pub fn may_vote(&self, id: BlockId) -> bool {
        self.tree.get(id).is_some_and(|block| block.view >= self.view)
    }

    /// The bodies that undecided blocks order.
    pub fn undecided_bodies(&self) -> impl Iterator<Item = &BodyRef> {
        self.tree.bodies()
    }

    /// The leaders of the current view and of those after it.
    #[must_use]
    pub fn coming_leaders(&self, views: u64) -> Vec<ReplicaId> {
        (0..views).map(|ahead| self.leaders.leader(View(self.view.0 + ahead))).collect()
    }

    pub(super) fn send(&mut self, to: Recipients, message: Message) {
        self.outputs.push_back(Output::Send { to, message: crate::Message::Jolteon(message) });
    }

    fn is_leader(&self, view: View) -> bool {
        self.leaders.leader(view) == self.config.id
    }

    // ---- proposals ------------------------------------------------------------------------------

    fn on_proposal(&mut self, now: Time, from: ReplicaId, proposal: Proposal) {
        let block = Arc::new(proposal.block);
        // The certificates first: they move us whatever becomes of the block.
        self.on_qc(now, &block.justify);
        if let Some(tc) = block.tc.clone() {
            self.on_tc(now, tc);
        }
        let id = block.id();
        if self.ignore_proposal(from, id, &block) {
            return;
        }
        self.accept(now, id, block);
    }

    /// Whether the block is not worth keeping: too late, the wrong leader's, a second or third of one
    /// view, or at odds with its parent.
    fn ignore_proposal(&mut self, from: ReplicaId, id: BlockId, block: &Block) -> bool {
        let wanted = block.view >= self.view || id == self.high_qc.id;
        if !wanted || block.author != self.leaders.leader(block.view) {
            return true;
        }
        let seen = self.proposals_seen.entry(block.view).or_default();
        if !seen.contains(&id) && !seen.is_empty() {
            self.outputs.push_back(Output::Blame(from, Fault::Equivocation));
        }
        // Two are the evidence; more would only be memory.
        if !seen.contains(&id) && seen.len() >= 2 {
            return true;
        }
        seen.insert(id);
        false
    }

    /// Puts a block whose certificates are good into the tree, or aside until its parent is here.
    fn accept(&mut self, now: Time, id: BlockId, block: Arc<Block>) {
        if self.tree.contains(id) {
            // Said again by its leader: our vote may have been lost.
            self.resend_vote(id);
            self.try_vote(now, id);
            return;
        }
        let Some((height, stamp)) = self.tree.position(block.parent()) else {
            self.park(id, block);
            return;
        };
        if !self.fits(now, &block, height, stamp) {
            self.outputs.push_back(Output::Blame(block.author, Fault::InvalidProposal));
            return;
        }
        self.tree.insert(Arc::clone(&block));
        self.update_work(now);
        self.outputs.push_back(Output::WantBodies {
            block: id,
            bodies: block.payload.bodies.clone(),
            source: block.author,
        });
        self.retry_pending_commit(now);
        if id == self.high_qc.id {
            // Its certificate came first: what waited for it can go on.
            self.wish_to_propose();
            self.unpark(now);
        }
    }

    /// The height follows the parent's; the stamp is not before the parent's nor far ahead of our
    /// clock.
    fn fits(&self, now: Time, block: &Block, parent: Height, parent_stamp: u64) -> bool {
        let header = block.payload.header;
        let newest = self.config.wall_origin_ms + now.as_millis() + self.config.clock_drift_max_ms;
        header.height == parent.next()
            && header.proposed_at_ms >= parent_stamp
            && header.proposed_at_ms <= newest
    }

    fn park(&mut self, id: BlockId, block: Arc<Block>) {
        let (target, source) = (block.parent(), block.author);
        self.parked.insert((block.view, id), block);
        while self.parked.len() > PARKED_MAX {
            self.parked.pop_first();
        }
        self.outputs.push_back(Output::Behind { target, source: Some(source) });
    }

    /// Tries parked blocks again, lowest view first, after the tree has grown.
    pub(super) fn unpark(&mut self, now: Time) {
        for (key, block) in std::mem::take(&mut self.parked) {
            if self.tree.contains(block.parent()) {
                self.accept(now, key.1, block);
            } else {
                self.parked.insert(key, block);
            }
        }
    }

    fn on_stored(&mut self, now: Time, id: BlockId) {
        if self.tree.contains(id) {
            self.stored.insert(id);
            self.release_withheld_vote(now, id);
            self.try_vote(now, id);
        }
    }

    // ---- certificates ---------------------------------------------------------------------------

    /// Takes a checked certificate in, wherever it came from: it may decide, and it may end the view.
    pub(super) fn on_qc(&mut self, now: Time, qc: &Qc) {
        if qc.view > self.high_qc.view {
            self.high_qc = qc.clone();
        }
        if qc.is_commit() || mutants::active(Mutant::JolteonCommitGap) {
            self.commit(now, qc);
        }
        if qc.view >= self.high_qc.view && !self.tree.contains(qc.id) && !self.halted {
            let source = qc.certificate.signers.iter().next();
            let source = source.and_then(|i| u16::try_from(i).ok()).map(ReplicaId);
            self.outputs.push_back(Output::Behind { target: qc.id, source });
        }
        self.advance(now);
    }

    pub(super) fn on_tc(&mut self, now: Time, tc: Tc) {
        self.on_qc(now, &tc.high_qc);
        if self.high_tc.as_ref().is_none_or(|high| tc.view > high.view) {
            self.high_tc = Some(tc);
        }
        self.advance(now);
    }

    /// Enters the view that the highest certificates lead to (★: no view without a certificate).
    fn advance(&mut self, now: Time) {
        let by_tc = self.high_tc.as_ref().map_or(View(0), |tc| tc.view);
        let target = self.high_qc.view.max(by_tc).next();
        if target <= self.view {
            return;
        }
        let given_up = by_tc > self.high_qc.view;
        if given_up {
            self.patience.failed(self.leaders.leader(by_tc));
        } else {
            self.patience.succeeded(self.leaders.leader(self.high_qc.view));
        }
        self.view_changes += u64::from(given_up);
        self.enter(now, target, given_up);
    }

    pub(super) fn enter(&mut self, now: Time, view: View, given_up: bool) {
        self.view = view;
        self.verifier.publish(view);
        self.prune();
        // The view depends on its leader to propose and on the next one to collect.
        let depends_on = [self.leaders.leader(view), self.leaders.leader(view.next())];
        self.pacemaker.set_patient(depends_on.iter().all(|member| self.patience.trusts(*member)));
        self.update_work(now);
        self.pacemaker.enter(now, given_up);
        self.wish_to_propose();
        let waiting: Vec<BlockId> =
            self.proposals_seen.get(&view).into_iter().flatten().copied().collect();
        for id in waiting {
            self.try_vote(now, id);
        }
    }

    fn prune(&mut self) {
        let view = self.view;
        self.proposals_seen.retain(|v, _| *v >= view);
        self.parked.retain(|(v, _), _| *v >= view);
        self.votes.prune(view);
        self.timeouts.prune(view);
        self.voted = self.voted.split_off(&self.high_qc.view.next());
        self.tree.prune(View(view.0.saturating_sub(WINDOW)), &self.indispensable());
        let tree = &self.tree;
        self.stored.retain(|id| tree.get(*id).is_some());
    }

    // ---- proposing ------------------------------------------------------------------------------

    /// As the leader of the current view: sends again what it proposed, or asks for a payload.
    pub(super) fn wish_to_propose(&mut self) {
        if !self.is_leader(self.view) || !self.config.signs {
            return;
        }
        if let Some(proposal) = self.last_proposal.clone()
            && proposal.block.view >= self.view
        {
            self.send(Recipients::All, Message::Proposal(proposal));
            return;
        }
        let Some(path) = self.tree.path(self.high_qc.id) else {
            return;
        };
        let (height, stamp) = self.tree.position(self.high_qc.id).expect("its path is known");
        self.outputs.push_back(Output::WantPayload(PayloadWish {
            view: self.view,
            parent: self.high_qc.id,
            height: height.next(),
            stamp_floor_ms: stamp,
            carried: path.iter().flat_map(|block| block.payload.bodies.iter().copied()).collect(),
            at_once: path.len() >= LADEN_MAX || path.iter().any(|block| !block.payload.is_empty()),
            nothing: path.len() >= LADEN_MAX,
        }));
    }

    fn on_payload(&mut self, now: Time, view: View, parent: BlockId, payload: Payload) {
        let is_new = self.last_proposal.as_ref().is_none_or(|last| last.block.view < view);
        if view != self.view || !is_new || !self.config.signs {
            return;
        }
        if parent != self.high_qc.id || !self.tree.contains(parent) {
            // A higher certificate came while the payload was made.
            self.wish_to_propose();
            return;
        }
        let entered_by_qc = self.high_qc.view.next() == view;
        let block = Arc::new(Block {
            epoch: self.verifier.committee().epoch(),
            view,
            author: self.config.id,
            justify: self.high_qc.clone(),
            tc: if entered_by_qc { None } else { self.high_tc.clone() },
            payload,
        });
        let id = block.id();
        let signature = self.sign_proposal(view, id);
        let proposal = Proposal { block: block.as_ref().clone(), signature };
        self.last_proposal = Some(proposal.clone());
        self.proposals_seen.entry(view).or_default().insert(id);
        self.tree.insert(block);
        self.stored.insert(id);
        self.update_work(now);
        // One record holds the proposal and the own vote: one sync, then both leave.
        let vote = self.decide_vote(now, id);
        if !mutants::active(Mutant::JolteonProposeBeforePersist) {
            self.persist();
        }
        self.send(Recipients::All, Message::Proposal(proposal));
        if let Some(vote) = vote {
            self.deliver_vote(now, vote);
        }
    }

    fn sign_proposal(&self, view: View, id: BlockId) -> Vec<u8> {
        let message = proposal_message(&self.verifier, view, id);
        match self.verifier.proposal_key() {
            ProposalKey::Identity => self.config.identity.sign(&message).0.to_vec(),
            ProposalKey::Voting => self.config.voting.sign(&message).0,
        }
    }

    // ---- deciding -------------------------------------------------------------------------------

    /// A certificate over two consecutive views decides its block's parent and its ancestors, oldest
    /// first, once each.
    fn commit(&mut self, now: Time, qc: &Qc) {
        let root = self.tree.root();
        if qc.parent_view <= root.view {
            self.check_against_decided(qc);
            return;
        }
        let Some(path) = self.tree.path(qc.parent_id) else {
            if self.pending_commit.as_ref().is_none_or(|pending| pending.view < qc.view) {
                self.pending_commit = Some(qc.clone());
            }
            return;
        };
        let mut path = path;
        if mutants::active(Mutant::JolteonNewestFirst) {
            path.reverse();
        }
        for block in path {
            self.decided.insert(block.view, block.id());
            let record = DecidedBlock { block: block.as_ref().clone(), commit: qc.clone() };
            self.outputs.push_back(Output::Decided(Decided {
                block: block.id(),
                payload: block.payload.clone(),
                record: Bytes::from(encode(&record)),
            }));
        }
        while self.decided.len() > DECIDED_KEPT {
            self.decided.pop_first();
        }
        self.tree.decide(qc.parent_id);
        self.last_commit = Some(qc.clone());
        self.pacemaker.decided();
        self.update_work(now);
        self.announce_when_idle(qc);
    }

    pub(super) fn retry_pending_commit(&mut self, now: Time) {
        if let Some(qc) = self.pending_commit.take() {
            self.commit(now, &qc);
        }
    }

    /// A commit certificate for something older than the last decided block must name a decided block.
    fn check_against_decided(&mut self, qc: &Qc) {
        let Some((oldest, _)) = self.decided.first_key_value() else {
            return;
        };
        if qc.parent_view < *oldest || self.decided.get(&qc.parent_view) == Some(&qc.parent_id) {
            return;
        }
        self.halt_on_conflict(qc);
    }

    /// Two conflicting decisions: the evidence, and nothing more.
    pub(super) fn halt_on_conflict(&mut self, qc: &Qc) {
        self.halted = true;
        self.outputs.push_back(Output::Halt(Halt::ConflictingDecisions {
            height: self.tree.root().height,
            evidence: format!("{qc:?} signed by {:?}", qc.certificate.signers),
        }));
    }

    /// The collector of a deciding certificate is the only one that knows it. With work left, its
    /// proposal carries it; with none, it is broadcast, or everybody else would wait and time out.
    fn announce_when_idle(&mut self, qc: &Qc) {
        let collected_it = self.is_leader(qc.view.next());
        if collected_it && !self.tree.has_payload() && self.config.signs {
            let high_qc = self.high_qc.clone();
            self.send(Recipients::All, Message::Certificates { high_qc, high_tc: None });
        }
    }

    // ---- work and time --------------------------------------------------------------------------

    pub(super) fn update_work(&mut self, now: Time) {
        let working = self.engine_has_work || self.tree.has_payload();
        self.pacemaker.set_working(now, working && self.config.signs);
    }

    /// Nothing follows a halt.
    fn drop_what_follows_a_halt(&mut self) {
        if let Some(at) = self.outputs.iter().position(|output| matches!(output, Output::Halt(_))) {
            self.outputs.truncate(at + 1);
        }
    }

    pub(super) fn on_message(&mut self, now: Time, from: ReplicaId, message: Message) {
        match message {
            Message::Proposal(proposal) => self.on_proposal(now, from, proposal),
            Message::Vote(vote) => self.on_vote(now, vote),
            Message::Timeout(timeout) => self.on_timeout(now, timeout),
            Message::Certificates { high_qc, high_tc } => {
                self.on_qc(now, &high_qc);
                if let Some(tc) = high_tc {
                    self.on_tc(now, tc);
                }
            }
        }
    }
}

impl Machine for Jolteon {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        if self.halted {
            return;
        }
        match input {
            Input::Recovered { safety, executed, decided, stored } => {
                self.recover(now, safety.as_ref(), executed.as_ref(), &decided, &stored);
            }
            Input::Installed(record) => self.on_installed(now, &record),
            Input::Message { from, message } => match message.into_inner() {
                crate::Message::Jolteon(message) => self.on_message(now, from, message),
            },
            Input::Payload { view, parent, payload } => {
                self.on_payload(now, view, parent, payload);
            }
            Input::Stored(id) => self.on_stored(now, id),
            Input::Combined(outcome) => self.on_combined(now, &outcome),
            Input::Run(run) => match *run {
                VerifiedRun::Jolteon(run) => self.on_run(now, run),
            },
            Input::Work(working) => {
                self.engine_has_work = working;
                self.update_work(now);
            }
        }
        self.drop_what_follows_a_halt();
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.halted {
            return;
        }
        self.combine_ripe_votes(now);
        if self.pacemaker.is_due(now) {
            self.give_up(now);
        }
    }

    fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        if self.halted {
            return None;
        }
        [self.pacemaker.deadline(), self.votes.deadline()].into_iter().flatten().min()
    }
}
