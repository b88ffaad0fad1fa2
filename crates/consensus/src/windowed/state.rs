//! State of the machine, and the helpers that all handlers use.

use super::collectors;
use super::fast_timer::FastTimer;
use super::messages::Message;
use super::records::ViewRecord;
use super::reports::ViewChanges;
use super::retransmission::Retransmission;
use super::rules::Rules;
use super::slot_votes::INTERPOLATION_TIME;
use super::slots::{PathCounts, Window};
use super::suspicions::Suspicions;
use super::values::{DecidedSlot, Proposal};
use crate::collector_backoff::CollectorBackoff;
use crate::epoch_end::EpochEnd;
use crate::pacemaker::Pacemaker;
use crate::tally::Collector;
use crate::verifier::Verifier;
use crate::{Evidence, IgnoredCounts, Misbehaviour, Output, ProtocolConfig, Rule};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::{BlockId, Height, Kind, Purpose, Recipients, ReplicaId, Time, View};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Replica of a windowed protocol.
#[derive(Debug)]
pub struct Windowed {
    pub(super) config: ProtocolConfig,
    pub(super) verifier: Arc<Verifier>,
    pub(super) rules: &'static Rules,
    pub(super) outputs: VecDeque<Output>,

    pub(super) view: View,
    /// `true` until the view has begun: nothing but view changes is signed (★).
    pub(super) in_view_change: bool,
    /// Last slot that the view itself began with: no pre-prepare counts up to here (★).
    pub(super) base: Height,
    /// Next slot that this replica fills, while it is primary.
    pub(super) next: Height,
    /// `true` while the engine owes a payload for `next`.
    pub(super) payload_requested: bool,
    pub(super) window: Window,
    pub(super) checkpoint: Option<CheckpointCertificate>,
    /// Stable checkpoint of a height that is not decided here yet.
    pub(super) later_checkpoint: Option<CheckpointCertificate>,
    /// Height up to which everything is delivered.
    pub(super) decided: Height,
    pub(super) tip: BlockId,
    pub(super) last_record: Option<DecidedSlot>,
    /// Digests of the last delivered values.
    pub(super) recent: BTreeSet<Digest>,
    pub(super) recent_order: VecDeque<Digest>,
    pub(super) paths: PathCounts,

    pub(super) changes: ViewChanges,
    pub(super) suspicions: Suspicions,
    pub(super) collector: Collector,
    pub(super) fast_collector: Collector,
    pub(super) fast_timer: FastTimer,
    /// Wait for the votes of the redundant members: when all signed, nothing is interpolated.
    pub(super) whole_timer: FastTimer,
    pub(super) collector_backoff: CollectorBackoff,
    pub(super) retransmission: Retransmission,
    pub(super) pacemaker: Pacemaker,
    pub(super) engine_has_work: bool,
    pub(super) view_changes: u64,
    pub(super) ignored: IgnoredCounts,
    /// Time at which the current view began here.
    pub(super) view_began_at: Time,
    /// Set once the stop block is delivered.
    pub(super) ended: Option<EpochEnd>,
    pub(super) halted: bool,
}

impl Windowed {
    /// A replica that waits for [`Input::Recovered`](crate::Input::Recovered).
    #[must_use]
    pub fn new(config: ProtocolConfig, rules: &'static Rules) -> Self {
        let verifier = Arc::clone(&config.verifier);
        let committee = verifier.committee();
        let before = verifier.anchor().height;
        let of = |purpose| Collector::new(Arc::clone(committee), purpose, config.policy);
        let mut collector = of(Purpose::Vote);
        if rules.fast_path {
            collector = collector.with_plenty(committee.weights().fast());
        }
        Self {
            outputs: VecDeque::new(),
            view: View(1),
            in_view_change: false,
            base: before,
            next: before.next(),
            payload_requested: false,
            window: Window::after_stable(before),
            checkpoint: None,
            later_checkpoint: None,
            decided: before,
            tip: verifier.genesis(),
            last_record: None,
            recent: BTreeSet::new(),
            recent_order: VecDeque::new(),
            paths: PathCounts::default(),
            changes: ViewChanges::default(),
            suspicions: Suspicions::default(),
            collector,
            fast_collector: of(Purpose::Fast),
            fast_timer: FastTimer::new(config.timeout / 8),
            whole_timer: FastTimer::new(INTERPOLATION_TIME),
            collector_backoff: CollectorBackoff::new(config.timeout / 8),
            retransmission: Retransmission::new(config.timeout / 4),
            pacemaker: Pacemaker::new(config.timeout, 100),
            engine_has_work: false,
            view_changes: 0,
            ignored: IgnoredCounts::default(),
            view_began_at: Time(0),
            ended: None,
            halted: false,
            rules,
            verifier,
            config,
        }
    }

    pub(super) fn id(&self) -> ReplicaId {
        self.config.id
    }

    pub(super) fn members(&self) -> usize {
        self.verifier.committee().size()
    }

    pub(super) fn primary(&self) -> ReplicaId {
        collectors::primary(self.view, self.members())
    }

    pub(super) fn is_primary(&self) -> bool {
        self.primary() == self.id()
    }

    /// Returns `true` if it may sign for slots of its view.
    pub(super) fn takes_part(&self) -> bool {
        self.config.signs && self.has_begun()
    }

    /// ★ Values that a view begins with are not known before it has begun.
    pub(super) fn has_begun(&self) -> bool {
        !self.in_view_change || mutants::active(Mutant::WindowedActBeforeNewView)
    }

    /// ★ Nothing but answers follows the end of the epoch.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() && !mutants::active(Mutant::SignAfterStop)
    }

    /// Nobody hears a report again that it made, and it leaves no view for others any more.
    pub(super) fn stop_signing(&mut self) {
        self.config.signs = false;
        let own = self.id();
        self.changes.latest.remove(&own);
        self.pacemaker.rest();
    }

    pub(super) fn send(&mut self, to: Recipients, message: Message) {
        if to == Recipients::One(self.id()) {
            return;
        }
        let message = self.verifier.protocol().windowed(message);
        self.outputs.push_back(Output::Send { to, message });
    }

    /// Sends a member the last decided slot, if there is one.
    pub(super) fn show_last_decision(&mut self, to: ReplicaId) {
        if let Some(record) = self.last_record.clone() {
            self.send(Recipients::One(to), Message::Decided(Box::new(record)));
        }
    }

    pub(super) fn report(&mut self, member: ReplicaId, rule: Rule, evidence: Evidence) {
        self.outputs.push_back(Output::Misbehaviour(Misbehaviour { member, rule, evidence }));
    }

    /// ★ Promises about views are durable before anything that follows from them leaves.
    pub(super) fn persist_view(&mut self) {
        let record = ViewRecord {
            epoch: self.verifier.committee().epoch_id(),
            view: self.view,
            in_view_change: self.in_view_change,
            base: self.base,
            stable: self.checkpoint.clone(),
        };
        self.outputs.push_back(Output::Persist(record.encode()));
    }

    /// ★ Promises about a slot are durable before the votes that follow.
    pub(super) fn persist_slot(&mut self, slot: Height) {
        let epoch = self.verifier.committee().epoch_id();
        if let Some(known) = self.window.get(slot) {
            self.outputs.push_back(Output::Persist(known.record(epoch, slot)));
        }
    }

    pub(super) fn sign_alone(&self, statement: &[u8]) -> Vec<u8> {
        self.verifier.sign_alone(&self.config.identity, &self.config.voting, statement)
    }

    pub(super) fn statement(&self, kind: Kind, proposal: &Proposal) -> Vec<u8> {
        self.verifier.statement(kind, proposal)
    }
}
