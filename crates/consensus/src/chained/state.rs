//! The machine: its state, its inputs, and the normal case from proposal to decision.

use super::collecting::{Phases, Timeouts, Votes};
use super::messages::{Block, Message, PhaseVote, Proposal, Qc, Tc};
use super::records::Lock;
use super::rules::Phase;
use crate::block_tree::{BlockTree, Root};
use crate::epoch_end::EpochEnd;
use crate::leader::{LeaderElection, RoundRobin};
use crate::pacemaker::{LeaderFailures, Pacemaker};
use crate::tally::Collector;
use crate::verifier::Verifier;
use crate::{
    Evidence, IgnoredCounts, Input, Misbehaviour, Output, ProtocolConfig, Rule, VerifiedRun,
};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Machine, Purpose, Recipients, ReplicaId, Time, View};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One replica of a chained protocol.
#[derive(Debug)]
pub struct Chained {
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
    /// A vote for this block was promised, and its bodies were lost since: nobody hears of it until
    /// they were fetched.
    pub(super) withheld: Option<BlockId>,
    /// Block on which votes are locked, in protocols that lock.
    pub(super) lock: Lock,
    /// Later phases of the view, in protocols that have them.
    pub(super) phases: Phases,
    pub(super) timeout_view: View,
    /// The last timeout of this run, to send it again byte for byte.
    pub(super) last_timeout: Option<super::Timeout>,
    pub(super) last_proposal: Option<Proposal>,

    pub(super) tree: BlockTree<Block>,
    pub(super) parked: BTreeMap<(View, BlockId), Arc<Block>>,
    pub(super) proposals_seen: BTreeMap<View, BTreeMap<BlockId, ReplicaId>>,
    pub(super) stored: BTreeSet<BlockId>,
    pub(super) decided: BTreeMap<View, BlockId>,
    pub(super) pending_commit: Option<Qc>,
    /// Certificate that decided the last decided block.
    pub(super) last_commit: Option<Qc>,

    pub(super) votes: Votes,
    pub(super) timeouts: Timeouts,
    pub(super) collector: Collector,
    pub(super) pacemaker: Pacemaker,
    pub(super) leader_failures: LeaderFailures,
    pub(super) engine_has_work: bool,
    pub(super) view_changes: u64,
    pub(super) ignored: IgnoredCounts,
    /// Set once the stop block is decided.
    pub(super) ended: Option<EpochEnd>,
    pub(super) halted: bool,
}

impl Chained {
    /// A replica that waits for [`Input::Recovered`].
    #[must_use]
    pub fn new(config: ProtocolConfig) -> Self {
        let verifier = Arc::clone(&config.verifier);
        let committee = verifier.committee();
        let genesis = verifier.genesis();
        let root = Root::genesis(genesis, verifier.anchor());
        let turns = RoundRobin::new(committee.weights());
        Self {
            leaders: Box::new(turns.with_tenure(config.liveness.leader_tenure)),
            outputs: VecDeque::new(),
            view: View(1),
            high_qc: Qc::genesis(genesis, committee.size()),
            high_tc: None,
            voted_view: View(0),
            last_vote: None,
            voted: BTreeMap::new(),
            withheld: None,
            lock: Lock { view: View(0), id: genesis },
            phases: Phases::default(),
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
            pacemaker: Pacemaker::new(config.timeout, config.liveness.timeout_growth),
            leader_failures: LeaderFailures::default(),
            engine_has_work: false,
            view_changes: 0,
            ignored: IgnoredCounts::default(),
            ended: None,
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

    /// The highest certificate that it knows.
    #[must_use]
    pub fn high_qc(&self) -> &Qc {
        &self.high_qc
    }

    pub(super) fn send(&mut self, to: Recipients, message: Message) {
        let message = self.verifier.protocol().message(message);
        self.outputs.push_back(Output::Send { to, message });
    }

    pub(super) fn show_qc(&mut self, to: Recipients, high_qc: Qc) {
        self.send(to, Message::Certificates { high_qc, high_tc: None });
    }

    pub(super) fn report(&mut self, member: ReplicaId, rule: Rule, evidence: Evidence) {
        self.outputs.push_back(Output::Misbehaviour(Misbehaviour { member, rule, evidence }));
    }

    pub(super) fn update_work(&mut self, now: Time) {
        let working = self.engine_has_work || self.tree.has_payload();
        self.pacemaker.set_working(now, working && self.config.signs);
    }

    /// ★ Nothing but answers follows the end of the epoch.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() && !mutants::active(Mutant::SignAfterStop)
    }

    fn handle_after_the_end(&mut self, now: Time, input: Input) {
        match input {
            Input::Message { from, message } => {
                if let Some(message) = message.into_inner().into_chained() {
                    self.answer_after_the_end(now, from, &message);
                }
            }
            Input::ShowDecision { to } => self.show_last_decision(to),
            _ => {}
        }
        self.drop_what_follows_a_halt();
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
            Message::Vote(vote) => {
                self.on_vote(now, from, PhaseVote { phase: Phase::Prepare, vote });
            }
            Message::Timeout(timeout) => self.on_timeout(now, from, timeout),
            // Never ignored: one that is known may be what a fetch that failed is tried again for.
            Message::Certificates { high_qc, high_tc } => {
                self.on_qc(now, &high_qc);
                if let Some(tc) = high_tc {
                    self.on_tc(now, tc);
                }
            }
            Message::PhaseVote(vote) => self.on_vote(now, from, vote),
            Message::PreCommitted(qc) => self.on_pre_committed(now, qc),
            Message::NewView(qc) => self.on_new_view(now, from, &qc),
        }
    }
}

impl Machine for Chained {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        if self.halted {
            return;
        }
        if self.has_ended() {
            self.handle_after_the_end(now, input);
            return;
        }
        match input {
            Input::Recovered { safety, executed, decided, stored, .. } => {
                self.recover(now, safety.as_ref(), executed.as_ref(), &decided, &stored);
            }
            Input::Installed(record) => self.on_installed(now, &record),
            Input::WallClock(origin_ms) => self.config.wall_origin_ms = origin_ms,
            Input::Message { from, message } => {
                if let Some(message) = message.into_inner().into_chained() {
                    self.on_message(now, from, message);
                }
            }
            Input::Payload { view, parent, payload } => {
                self.on_payload(now, view, parent, payload);
            }
            Input::Stored(id) => self.on_stored(now, id),
            Input::Combined(outcome) => self.on_combined(now, &outcome),
            Input::Run(run) => {
                if let VerifiedRun::Chained(run) = *run {
                    self.on_run(now, run);
                }
            }
            // Its certificates keep nothing open that a state could close, and the next leader
            // orders what this one passed over.
            Input::StopSigning => {
                self.config.signs = false;
                self.update_work(now);
            }
            Input::Stable(_) | Input::PrimarySuspected => {}
            Input::ShowDecision { to } => self.show_last_decision(to),
            Input::Work(working) => {
                self.engine_has_work = working;
                self.update_work(now);
            }
        }
        self.drop_what_follows_a_halt();
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.halted || self.has_ended() {
            return;
        }
        self.combine_ripe_votes(now);
        if self.pacemaker.is_due(now) {
            self.time_out(now);
        }
    }

    fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        if self.halted || self.has_ended() {
            return None;
        }
        [self.pacemaker.deadline(), self.votes.deadline()].into_iter().flatten().min()
    }
}
