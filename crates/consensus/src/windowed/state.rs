//! The machine: its state, its inputs, and how slots come to be delivered in order.

use super::fast_timer::FastTimer;
use super::messages::{Message, Path, Place, Proof, digest_of};
use super::records::{DecidedSlot, ViewRecord};
use super::rules::{Rules, WINDOW};
use super::slots::{Paths, Slot, Window};
use super::view_changes::ViewChanges;
use super::{collectors, status::Helping};
use crate::pacemaker::Pacemaker;
use crate::stagger::Stagger;
use crate::tally::Collector;
use crate::verify::Verifier;
use crate::{Decided, Fault, Input, Output, PayloadWish, ProtocolConfig, ProtocolStatus};
use crate::{VerifiedRun, windowed::Run};
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::Halt;
use quorate_types::{
    BlockId, BodyRef, Height, Kind, Machine, Purpose, Recipients, ReplicaId, Time, Verified, View,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Jobs over votes that decide at once are numbered from here, those of a quorum's below.
const FIRST_FAST_JOB: u64 = 1 << 62;
/// Decided slots remembered by value beyond the window, to know them again.
const DECIDED_KEPT: usize = 2 * WINDOW as usize;
/// A primary has so many timeouts from the beginning of its view to order what was passed over.
const OVERTAKING_PATIENCE: u32 = 4;
/// A slot decided so far beyond what is delivered here is fetched as history, not asked for slot by
/// slot.
const GAP_MAX: u64 = 32;

/// One replica of a windowed protocol.
#[derive(Debug)]
pub struct Windowed {
    pub(super) config: ProtocolConfig,
    pub(super) verifier: Arc<Verifier>,
    pub(super) rules: &'static Rules,
    pub(super) outputs: VecDeque<Output>,

    pub(super) view: View,
    /// The view has not begun: nothing but view changes is signed (★).
    pub(super) changing: bool,
    /// Slots up to here are what this view began with (★).
    pub(super) base: Height,
    /// The next slot that this replica fills, while it is primary.
    pub(super) next: Height,
    /// A payload is wished for.
    pub(super) wished: bool,
    pub(super) window: Window,
    pub(super) checkpoint: Option<CheckpointCertificate>,
    /// Of a height that is not decided here yet.
    pub(super) later_checkpoint: Option<CheckpointCertificate>,
    /// Everything up to here is delivered.
    pub(super) decided: Height,
    tip: BlockId,
    pub(super) last_record: Option<DecidedSlot>,
    /// The last delivered values.
    recent: BTreeSet<Digest>,
    recent_order: VecDeque<Digest>,
    paths: Paths,

    pub(super) changes: ViewChanges,
    pub(super) collector: Collector,
    pub(super) fast_collector: Collector,
    pub(super) fast_timer: FastTimer,
    /// Likewise for the votes of the redundant: when all have signed, nothing is interpolated.
    pub(super) whole_timer: FastTimer,
    pub(super) stagger: Stagger,
    pub(super) helping: Helping,
    pub(super) pacemaker: Pacemaker,
    pub(super) engine_has_work: bool,
    pub(super) view_changes: u64,
    /// When the current view began here.
    pub(super) began: Time,
    pub(super) halted: bool,
}

impl Windowed {
    /// A replica that waits for [`Input::Recovered`].
    #[must_use]
    pub fn new(config: ProtocolConfig, rules: &'static Rules) -> Self {
        let verifier = Arc::clone(&config.verifier);
        let committee = verifier.committee();
        let of = |purpose| Collector::new(Arc::clone(committee), purpose, config.policy);
        let mut collector = of(Purpose::Vote);
        if rules.fast_path {
            collector = collector.with_plenty(committee.weights().fast());
        }
        Self {
            outputs: VecDeque::new(),
            view: View(1),
            changing: false,
            base: Height(0),
            next: Height(1),
            wished: false,
            window: Window::default(),
            checkpoint: None,
            later_checkpoint: None,
            decided: Height(0),
            tip: verifier.genesis(),
            last_record: None,
            recent: BTreeSet::new(),
            recent_order: VecDeque::new(),
            paths: Paths::default(),
            changes: ViewChanges::default(),
            collector,
            fast_collector: of(Purpose::Fast).numbered_from(FIRST_FAST_JOB),
            fast_timer: FastTimer::new(config.timeout / 8),
            whole_timer: FastTimer::new(super::collecting::INTERPOLATING),
            stagger: Stagger::new(config.timeout / 8),
            helping: Helping::new(config.timeout / 4),
            pacemaker: Pacemaker::new(config.timeout, 100),
            engine_has_work: false,
            view_changes: 0,
            began: Time(0),
            halted: false,
            rules,
            verifier,
            config,
        }
    }

    // ---- what it shows --------------------------------------------------------------------------

    /// What it shows of itself.
    #[must_use]
    pub fn status(&self) -> ProtocolStatus {
        let proof = self.last_record.as_ref().map(|record| &record.proof.certificate.certificate);
        ProtocolStatus {
            view: self.view,
            leader: self.primary(),
            view_changes: self.view_changes,
            certificate_bytes: proof.map_or(0, |proof| super::messages::encode(proof).len() as u64),
            fast_decisions: self.paths.fast,
            slow_decisions: self.paths.slow,
        }
    }

    /// The current view.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// The last delivered value.
    #[must_use]
    pub fn tip(&self) -> BlockId {
        self.tip
    }

    /// Whether this value is delivered here, not long ago.
    #[must_use]
    pub fn has_block(&self, id: BlockId) -> bool {
        self.recent.contains(&id.0)
    }

    /// Whether a vote for this value could still be cast.
    #[must_use]
    pub fn may_vote(&self, id: BlockId) -> bool {
        let current = Some((self.view, id.0));
        self.window.after(self.decided).any(|(_, slot)| slot.proposed == current && !slot.is_stored)
    }

    /// The bodies that values not delivered yet order.
    pub fn undecided_bodies(&self) -> impl Iterator<Item = &BodyRef> {
        let slots = self.window.after(self.decided);
        slots.flat_map(|(_, slot)| slot.payloads.values()).flat_map(|payload| &payload.bodies)
    }

    /// The primaries of this view and of those after it.
    #[must_use]
    pub fn coming_leaders(&self, views: u64) -> Vec<ReplicaId> {
        let members = self.verifier.committee().size();
        (0..views).map(|ahead| collectors::primary(View(self.view.0 + ahead), members)).collect()
    }

    /// Sends a member the last decided slot.
    pub fn show_last_decision(&mut self, to: ReplicaId) {
        if let Some(record) = self.last_record.clone() {
            self.send(Recipients::One(to), Message::Decided(Box::new(record)));
        }
    }

    // ---- what all parts use ---------------------------------------------------------------------

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

    /// Whether it may sign for slots of its view.
    pub(super) fn takes_part(&self) -> bool {
        self.config.signs && self.has_begun()
    }

    /// ★ What a view begins with is not known before it has begun.
    pub(super) fn has_begun(&self) -> bool {
        !self.changing || mutants::active(Mutant::WindowedActBeforeNewView)
    }

    pub(super) fn send(&mut self, to: Recipients, message: Message) {
        if to == Recipients::One(self.id()) {
            return;
        }
        let message = self.verifier.protocol().windowed(message);
        self.outputs.push_back(Output::Send { to, message });
    }

    pub(super) fn blame(&mut self, member: ReplicaId, fault: Fault) {
        self.outputs.push_back(Output::Blame(member, fault));
    }

    /// ★ Its views are durable before anything that follows from them leaves.
    pub(super) fn persist_view(&mut self) {
        let record = ViewRecord {
            epoch: self.verifier.committee().epoch(),
            view: self.view,
            changing: self.changing,
            base: self.base,
            stable: self.checkpoint.clone(),
        };
        self.outputs.push_back(Output::Persist(record.encode()));
    }

    /// ★ So are its promises about a slot.
    pub(super) fn persist_slot(&mut self, slot: Height) {
        let epoch = self.verifier.committee().epoch();
        if let Some(known) = self.window.get(slot) {
            self.outputs.push_back(Output::Persist(known.record(epoch, slot)));
        }
    }

    pub(super) fn sign_alone(&self, statement: &[u8]) -> Vec<u8> {
        self.verifier.sign_alone(&self.config.identity, &self.config.voting, statement)
    }

    pub(super) fn statement(&self, kind: Kind, place: &Place) -> Vec<u8> {
        place.statement(kind, &self.verifier)
    }

    // ---- deciding -------------------------------------------------------------------------------

    /// A slot is decided, in whatever view.
    pub(super) fn on_proof(&mut self, now: Time, from: ReplicaId, proof: Proof) {
        let place = proof.certificate.at;
        if place.slot.0 > self.decided.0 + GAP_MAX {
            self.outputs.push_back(Output::Behind {
                target: BlockId(place.digest),
                source: (from != self.id()).then_some(from),
            });
        }
        let Some(slot) = self.window.open(place.slot) else { return };
        match &slot.proof {
            Some(known) if known.certificate.at.digest != place.digest => {
                self.halt_on_conflict(&proof);
                return;
            }
            Some(_) => return,
            None => slot.proof = Some(proof),
        }
        slot.collecting.clear();
        self.deliver(now);
        self.ask_soon(now, from, place.slot);
    }

    /// A decided slot as a whole.
    fn on_decided(&mut self, now: Time, from: ReplicaId, decided: DecidedSlot) {
        let DecidedSlot { payload, proof } = decided;
        if let Some(slot) = self.window.open(proof.certificate.at.slot) {
            slot.keep(payload);
        }
        self.on_proof(now, from, proof);
        self.deliver(now);
    }

    /// Delivers what is decided and here, in order.
    pub(super) fn deliver(&mut self, now: Time) {
        let before = self.decided;
        while let Some((proof, payload)) =
            self.window.get(self.decided.next()).and_then(|slot| slot.decided())
        {
            let record = DecidedSlot { payload: payload.clone(), proof: proof.clone() };
            self.deliver_one(record);
        }
        if self.decided > before {
            self.on_progress(now);
        }
    }

    pub(super) fn deliver_one(&mut self, record: DecidedSlot) {
        let id = record.id();
        self.learn_path(&record.proof);
        self.decided = self.decided.next();
        self.remember_tip(id);
        self.outputs.push_back(Output::Decided(Decided {
            block: id,
            payload: record.payload.clone(),
            record: record.encode(),
        }));
        self.last_record = Some(record);
    }

    /// Which way a slot was decided: collectors wait by it.
    fn learn_path(&mut self, proof: &Proof) {
        self.paths.count(proof.path);
        match proof.path {
            Path::Slow => self.fast_timer.missed(),
            Path::Fast => {
                self.fast_timer.made_it();
                let is_whole = proof.certificate.certificate.signers.count() == self.members();
                if is_whole { self.whole_timer.made_it() } else { self.whole_timer.missed() }
            }
        }
    }

    pub(super) fn remember_tip(&mut self, id: BlockId) {
        self.tip = id;
        self.recent.insert(id.0);
        self.recent_order.push_back(id.0);
        if self.recent_order.len() > DECIDED_KEPT
            && let Some(oldest) = self.recent_order.pop_front()
        {
            self.recent.remove(&oldest);
        }
    }

    fn on_progress(&mut self, now: Time) {
        self.pacemaker.decided();
        if self.pacemaker.is_working() && !self.changing {
            self.pacemaker.rearm(now);
        }
        self.helping.progressed(now);
        if let Some(later) = self.later_checkpoint.take() {
            self.on_checkpoint(now, later);
        }
        self.update_work(now);
    }

    /// Two decisions: the evidence, and nothing more.
    fn halt_on_conflict(&mut self, proof: &Proof) {
        self.halted = true;
        self.outputs.push_back(Output::Halt(Halt::ConflictingDecisions {
            height: proof.certificate.at.slot,
            evidence: format!("{proof:?} signed by {:?}", proof.certificate.certificate.signers),
        }));
    }

    /// Slots that this replica missed.
    fn on_run(&mut self, now: Time, run: Run) {
        if run.conflicts {
            if let Some(first) = run.decided.first() {
                self.halt_on_conflict(&first.proof.clone());
            }
            return;
        }
        let before = self.decided;
        for record in run.decided {
            if record.payload.header.height != self.decided.next() {
                continue;
            }
            let conflicts = |known: &Proof| known.certificate.at.digest != record.id().0;
            let slot = self.window.open(self.decided.next());
            if let Some(slot) = slot {
                if slot.proof.as_ref().is_some_and(conflicts) {
                    self.halt_on_conflict(&record.proof);
                    return;
                }
                slot.proof = Some(record.proof.clone());
                slot.collecting.clear();
                slot.keep(record.payload.clone());
            }
            self.deliver_one(record);
        }
        self.deliver(now);
        if self.decided > before {
            self.on_progress(now);
        }
    }

    /// The state of a decided height came from other members.
    fn on_installed(&mut self, now: Time, record: &Bytes) {
        let Some(record) = DecidedSlot::decode(record) else { return };
        let height = record.payload.header.height;
        if height > self.decided {
            self.decided = height;
            self.remember_tip(record.id());
            self.last_record = Some(record);
            self.deliver(now);
            self.on_progress(now);
        }
    }

    // ---- forgetting -----------------------------------------------------------------------------

    /// A quorum keeps the state of a height: what was before it may be forgotten, once it is decided
    /// here too.
    pub(super) fn on_checkpoint(&mut self, now: Time, checkpoint: CheckpointCertificate) {
        if checkpoint.height <= self.window.stable {
            return;
        }
        if checkpoint.height > self.decided {
            let known = self.later_checkpoint.as_ref().map(|known| known.height);
            if known.is_none_or(|known| known < checkpoint.height) {
                self.later_checkpoint = Some(checkpoint);
                self.helping.ask_by(now + self.helping.every() / 4);
            }
            return;
        }
        self.window.forget(checkpoint.height);
        self.outputs.push_back(Output::Stable(checkpoint.clone()));
        self.checkpoint = Some(checkpoint);
        // ★ Before a later slot takes the place of a forgotten one's promises.
        if !mutants::active(Mutant::WindowedForgetStable) {
            self.persist_view();
        }
    }

    // ---- proposing ------------------------------------------------------------------------------

    /// Asks for a payload where this replica may propose one.
    pub(super) fn wish(&mut self) {
        let may = self.takes_part()
            && self.is_primary()
            && self.next > self.decided
            && self.window.covers(self.next)
            && self.open_slots() < self.active_window();
        if !may || self.wished {
            return;
        }
        self.wished = true;
        let filled = self.filled().flat_map(|slot| slot.payloads.values());
        let carried: BTreeSet<BodyRef> =
            filled.flat_map(|payload| &payload.bodies).copied().collect();
        self.outputs.push_back(Output::WantPayload(PayloadWish {
            view: self.view,
            parent: self.tip,
            height: self.next,
            stamp_floor_ms: 0,
            carried: carried.into_iter().collect(),
            at_once: false,
            nothing: false,
            concurrent: self.active_window(),
        }));
    }

    /// Whether something is to be decided or delivered, as far as this replica knows.
    fn has_open_slots(&self) -> bool {
        let mut undelivered = self.window.after(self.decided);
        let is_of_view = |(view, _)| view == self.view;
        undelivered.any(|(_, slot)| slot.proof.is_some() || slot.proposed.is_some_and(is_of_view))
    }

    /// Slots that this view filled and that are not delivered. What earlier views wanted for later ones
    /// is nothing any more.
    fn filled(&self) -> impl Iterator<Item = &Slot> {
        let undelivered = self.window.after(self.decided);
        undelivered.take_while(|(slot, _)| *slot < self.next).map(|(_, known)| known)
    }

    /// Those of them that are not decided.
    fn open_slots(&self) -> u64 {
        self.filled().filter(|slot| slot.proof.is_none()).count() as u64
    }

    /// Slots that a primary fills before the first of them is decided: as it is set, and no more than the
    /// paper's active window `⌊(n−1)/(c+1)⌋` (002, §VIII), in which each member
    /// collects for one of them about.
    fn active_window(&self) -> u64 {
        let weights = self.verifier.committee().weights();
        let collectors = weights.redundant_members() + 1;
        ((self.members() as u64 - 1) / collectors).clamp(1, self.config.liveness.concurrent_slots)
    }

    /// The primary passes bodies over: it loses its view, unless that began just now.
    fn on_overtaken(&mut self, now: Time) {
        let has_had_time = now.since(self.began) >= OVERTAKING_PATIENCE * self.config.timeout;
        if has_had_time && self.takes_part() && !self.is_primary() {
            self.give_up(now);
        }
    }

    // ---- work and time --------------------------------------------------------------------------

    /// The view's timer runs only while there is something to decide.
    pub(super) fn update_work(&mut self, now: Time) {
        let working = self.engine_has_work || self.has_open_slots();
        if !self.changing {
            self.pacemaker.set_working(now, working && self.config.signs);
        }
        let needs_help = working || self.changing || self.later_checkpoint.is_some();
        self.helping.set_needed(now, needs_help);
    }

    fn on_message(&mut self, now: Time, from: ReplicaId, message: Message) {
        match message {
            Message::PrePrepare(proposed) => self.on_pre_prepare(now, proposed),
            Message::SignShare(share) => self.on_sign_share(now, from, share),
            Message::Prepare(prepared) => {
                self.learn_pace(now, from, prepared.at.slot);
                self.on_prepare(now, prepared);
            }
            Message::CommitShare(share) => self.on_commit_share(now, from, share),
            Message::Proof(proof) => {
                self.learn_pace(now, from, proof.certificate.at.slot);
                self.on_proof(now, from, proof);
            }
            Message::Payload(payload) => self.on_value(now, payload),
            Message::Decided(slot) => self.on_decided(now, from, *slot),
            Message::ViewChange(change) => self.on_view_change(now, *change),
            Message::NewView(new_view) => self.on_new_view(now, new_view),
            Message::FetchViewChanges(view, members) => {
                self.on_fetch_view_changes(now, from, view, &members);
            }
            Message::Status(status) => self.on_status(now, from, &status),
            Message::Stable(checkpoint) => self.on_checkpoint(now, checkpoint),
            Message::Equivocation(both) => self.on_equivocation(now, *both),
        }
    }

    /// A value for whoever knows its digest alone.
    fn on_value(&mut self, now: Time, payload: quorate_types::Payload) {
        let height = payload.header.height;
        let digest = digest_of(&payload);
        let Some(slot) = self.window.get_mut(height) else { return };
        if !slot.lacking().any(|lacking| lacking == digest) {
            return;
        }
        slot.keep(payload);
        self.want_bodies(height);
        self.deliver(now);
    }

    /// What follows from any input.
    fn settle(&mut self, now: Time) {
        if self.halted {
            // Nothing follows a halt.
            let halt = self.outputs.iter().position(|output| matches!(output, Output::Halt(_)));
            if let Some(at) = halt {
                self.outputs.truncate(at + 1);
            }
            return;
        }
        self.update_work(now);
        self.wish();
    }
}

impl Machine for Windowed {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        if self.halted {
            return;
        }
        match input {
            Input::Recovered { safety, slots, executed, decided, stored } => {
                self.recover(now, safety.as_ref(), &slots, executed.as_ref(), &decided, &stored);
            }
            Input::Installed(record) => self.on_installed(now, &record),
            Input::Message { from, message } => {
                if let Some(message) = Verified::into_inner(*message).into_windowed() {
                    self.on_message(now, from, message);
                }
            }
            Input::Payload { view, payload, .. } => {
                self.wished = false;
                self.on_payload(now, view, payload);
            }
            Input::Stored(id) => self.on_stored(now, id),
            Input::Combined(outcome) => self.on_combined(now, &outcome),
            Input::Run(run) => {
                if let VerifiedRun::Windowed(run) = *run {
                    self.on_run(now, run);
                }
            }
            Input::Stable(checkpoint) => self.on_checkpoint(now, *checkpoint),
            Input::Overtaken => self.on_overtaken(now),
            Input::Work(working) => self.engine_has_work = working,
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.halted {
            return;
        }
        self.combine_due(now);
        if self.pacemaker.is_due(now) {
            self.give_up(now);
        }
        self.ask_due(now);
        self.settle(now);
    }

    fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        if self.halted {
            return None;
        }
        let times = [self.pacemaker.deadline(), self.combine_at(), self.helping.deadline()];
        times.into_iter().flatten().min()
    }
}
