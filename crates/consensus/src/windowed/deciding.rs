//! Deciding slots in any order, delivering them in theirs, and discarding those that are stable.

use super::messages::Message;
use super::rules::WINDOW;
use super::runs::Run;
use super::state::Windowed;
use super::values::{DecidedSlot, Path, Proof, Proposal};
use crate::epoch_end::EpochEnd;
use crate::{Decided, Ignored, Output};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::machine::Halt;
use quorate_types::{BlockId, Height, Recipients, ReplicaId, Time};

/// Number of delivered values that are remembered by digest.
pub(super) const DECIDED_KEPT: usize = 2 * WINDOW as usize;
/// Slots beyond the last delivered one from which on a gap is fetched as history, not slot by slot.
const GAP_MAX: u64 = 32;

impl Windowed {
    /// Commit proof of a slot, of whatever view.
    pub(super) fn on_proof(&mut self, now: Time, from: ReplicaId, proof: Proof) -> Option<Ignored> {
        let proposal = proof.certificate.proposal;
        let is_beyond = |from: Height, by: u64| proposal.slot.0 > from.0.saturating_add(by);
        // What the window has no room for is not kept, however near, and never asked for again.
        let is_far = is_beyond(self.decided, GAP_MAX) || is_beyond(self.window.stable, WINDOW);
        if is_far {
            self.outputs.push_back(Output::Behind {
                target: BlockId(proposal.digest),
                source: (from != self.id()).then_some(from),
            });
        }
        if let Some(reason) = self.ignore_proof(&proposal) {
            return (!is_far).then_some(reason);
        }
        let slot = self.window.open(proposal.slot)?;
        if slot.proof.is_some() {
            self.halt_on_conflict(&proof);
            return None;
        }
        slot.proof = Some(proof);
        slot.votes.clear();
        self.deliver(now);
        self.request_value(now, from, proposal.slot);
        None
    }

    fn ignore_proof(&self, proposal: &Proposal) -> Option<Ignored> {
        if !self.window.covers(proposal.slot) {
            return Some(Ignored::OutsideWindow);
        }
        let known = self.window.get(proposal.slot)?.proof.as_ref()?;
        let is_known = known.certificate.proposal.digest == proposal.digest;
        is_known.then_some(Ignored::AlreadyDecided)
    }

    /// Decided slot with its payload.
    pub(super) fn on_decided(
        &mut self,
        now: Time,
        from: ReplicaId,
        decided: DecidedSlot,
    ) -> Option<Ignored> {
        let DecidedSlot { payload, proof } = decided;
        let Proposal { slot, digest, .. } = proof.certificate.proposal;
        let mut is_new = false;
        if let Some(known) = self.window.open(slot) {
            is_new = !known.payloads.contains_key(&digest);
            known.keep(payload);
        }
        let ignored = self.on_proof(now, from, proof);
        self.deliver(now);
        ignored.filter(|_| !is_new)
    }

    /// Delivers slots in order, as far as proofs and payloads are here.
    pub(super) fn deliver(&mut self, now: Time) {
        let before = self.decided;
        while !self.is_void()
            && let Some((proof, payload)) =
                self.window.get(self.decided.next()).and_then(|slot| slot.decided())
        {
            let record = DecidedSlot { payload: payload.clone(), proof: proof.clone() };
            self.deliver_one(record);
        }
        if self.decided > before {
            self.on_progress(now);
        }
    }

    /// ★ Slots behind the stop slot are void, also those that are decided already.
    fn is_void(&self) -> bool {
        self.ended.is_some() && !mutants::active(Mutant::DeliverBeyondStop)
    }

    /// Nothing is signed in this epoch any more (★), and no timer runs.
    pub(super) fn end_epoch(&mut self) {
        self.ended = Some(EpochEnd::new(self.config.timeout / 4));
        if !mutants::active(Mutant::SignAfterStop) {
            self.stop_signing();
        }
    }

    /// A member that has not decided the stop block is shown it. Two decisions are recognised here
    /// as before.
    pub(super) fn answer_after_the_end(&mut self, now: Time, from: ReplicaId, message: &Message) {
        let proof = match message {
            Message::Proof(proof) => Some(proof),
            Message::Decided(decided) => Some(&decided.proof),
            _ => None,
        };
        if let Some(proof) = proof {
            let Proposal { slot, digest, .. } = proof.certificate.proposal;
            if slot == self.decided && digest != self.tip.0 {
                self.halt_on_conflict(proof);
            }
            if slot == self.decided {
                return;
            }
        }
        if self.ended.as_mut().is_some_and(|end| end.is_due(now, from)) {
            self.show_last_decision(from);
        }
    }

    pub(super) fn deliver_one(&mut self, record: DecidedSlot) {
        let id = record.id();
        self.count_path(&record.proof);
        self.decided = self.decided.next();
        self.remember_tip(id);
        self.outputs.push_back(Output::Decided(Decided {
            block: id,
            payload: record.payload.clone(),
            record: record.encode(),
            signers: Some(record.proof.certificate.certificate.signers.clone()),
        }));
        let ends_epoch = record.payload.ends_epoch();
        self.last_record = Some(record);
        if ends_epoch {
            self.show_end_of_epoch();
            self.end_epoch();
        }
    }

    /// Counts a path: the fast timers learn from all slots, whoever collected them.
    pub(super) fn count_path(&mut self, proof: &Proof) {
        self.paths.count(proof.path);
        match proof.path {
            Path::Slow => self.fast_timer.missed(),
            Path::Fast => {
                self.fast_timer.met();
                let is_whole = proof.certificate.certificate.signers.count() == self.members();
                if is_whole { self.whole_timer.met() } else { self.whole_timer.missed() }
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

    pub(super) fn on_progress(&mut self, now: Time) {
        if self.has_ended() {
            return;
        }
        self.pacemaker.decided();
        if self.pacemaker.is_working() && !self.in_view_change {
            self.pacemaker.rearm(now);
        }
        self.retransmission.progressed(now);
        if let Some(later) = self.later_checkpoint.take() {
            self.on_checkpoint(now, later);
        }
        self.update_work(now);
    }

    /// Shows everybody the stop block that was just delivered.
    fn show_end_of_epoch(&mut self) {
        if let Some(record) = self.last_record.clone().filter(|_| self.config.signs) {
            self.send(Recipients::All, Message::Decided(Box::new(record)));
        }
    }

    /// Halts with the evidence of two decisions for one slot.
    pub(super) fn halt_on_conflict(&mut self, proof: &Proof) {
        self.halted = true;
        self.outputs.push_back(Output::Halt(Halt::ConflictingDecisions {
            height: proof.certificate.proposal.slot,
            evidence: format!("{proof:?} signed by {:?}", proof.certificate.certificate.signers),
        }));
    }

    /// Decided slots fetched from another member.
    pub(super) fn on_run(&mut self, now: Time, run: Run) {
        if run.conflicts {
            if let Some(first) = run.decided.first() {
                self.halt_on_conflict(&first.proof.clone());
            }
            return;
        }
        let before = self.decided;
        for record in run.decided {
            if record.payload.header.height != self.decided.next() || self.is_void() {
                continue;
            }
            let conflicts = |known: &Proof| known.certificate.proposal.digest != record.id().0;
            let slot = self.window.open(self.decided.next());
            if let Some(slot) = slot {
                if slot.proof.as_ref().is_some_and(conflicts) {
                    self.halt_on_conflict(&record.proof);
                    return;
                }
                slot.proof = Some(record.proof.clone());
                slot.votes.clear();
                slot.keep(record.payload.clone());
            }
            self.deliver_one(record);
        }
        self.deliver(now);
        if self.decided > before {
            self.on_progress(now);
        }
    }

    /// State of a decided height, installed from other members (paper 002 §VIII).
    pub(super) fn on_installed(&mut self, now: Time, record: &Bytes) {
        let Some(record) = DecidedSlot::decode(record) else { return };
        let height = record.payload.header.height;
        if height > self.decided {
            self.decided = height;
            self.remember_tip(record.id());
            let ends_epoch = record.payload.ends_epoch();
            self.last_record = Some(record);
            if ends_epoch {
                self.end_epoch();
                return;
            }
            self.deliver(now);
            self.on_progress(now);
        }
    }

    /// Stable checkpoint: moves the window, once its height is decided here too (PBFT §4.3, paper
    /// 002 §V-F).
    pub(super) fn on_checkpoint(
        &mut self,
        now: Time,
        checkpoint: CheckpointCertificate,
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_checkpoint(checkpoint.height) {
            return Some(reason);
        }
        if checkpoint.height > self.decided {
            self.later_checkpoint = Some(checkpoint);
            self.retransmission.ask_by(now + self.retransmission.every() / 4);
            return None;
        }
        self.window.forget(checkpoint.height);
        self.outputs.push_back(Output::Stable(checkpoint.clone()));
        self.checkpoint = Some(checkpoint);
        // ★ Before the promises of a later slot overwrite those of a discarded one.
        if !mutants::active(Mutant::WindowedForgetStable) {
            self.persist_view();
        }
        None
    }

    fn ignore_checkpoint(&self, height: Height) -> Option<Ignored> {
        if height <= self.window.stable {
            return Some(Ignored::AlreadyDecided);
        }
        let known = self.later_checkpoint.as_ref().filter(|_| height > self.decided)?;
        (known.height >= height).then_some(Ignored::AlreadyCertified)
    }
}
