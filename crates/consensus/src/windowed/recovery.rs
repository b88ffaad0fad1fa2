//! Recovery: promises of earlier runs still bind (★), and their votes are sent again.

use super::messages::Message;
use super::records::{SlotRecord, ViewRecord};
use super::state::Windowed;
use super::values::{DecidedSlot, PrePrepare, Proposal, digest_of};
use crate::Output;
use crate::read_back::check_bodies;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Halt;
use quorate_types::{BodyRef, EpochId, Height, Kind, Payload, Recipients, Time};
use std::collections::BTreeSet;

impl Windowed {
    pub(super) fn recover(
        &mut self,
        now: Time,
        safety: Option<&Bytes>,
        slots: &[Bytes],
        executed: Option<&Bytes>,
        decided: &[Bytes],
        stored: &BTreeSet<BodyRef>,
    ) {
        let restored = self.restore(safety, slots, executed, decided);
        if let Err(reason) = restored {
            self.halted = true;
            self.outputs.push_back(Output::Halt(Halt::CorruptRecovery(reason)));
            return;
        }
        self.verifier.publish(self.view);
        if self.has_ended() {
            return;
        }
        self.pacemaker.enter(now);
        if self.in_view_change {
            self.pacemaker.rest();
            if self.config.signs {
                self.broadcast_view_change(now);
            }
        } else {
            self.resend_votes(now, stored);
        }
        self.retransmission.start(now);
    }

    fn restore(
        &mut self,
        safety: Option<&Bytes>,
        slots: &[Bytes],
        executed: Option<&Bytes>,
        decided: &[Bytes],
    ) -> Result<(), String> {
        let epoch = self.verifier.committee().epoch_id();
        if let Some(bytes) = safety.filter(|_| !mutants::active(Mutant::WindowedAmnesia)) {
            self.restore_view(decode(bytes, "view record")?, epoch)?;
        }
        for bytes in slots.iter().filter(|_| !mutants::active(Mutant::WindowedAmnesia)) {
            self.restore_slot(decode(bytes, "slot record")?, epoch)?;
        }
        for (index, bytes) in executed.into_iter().chain(decided).enumerate() {
            let record: DecidedSlot = decode(bytes, "decided record")?;
            check_bodies("a decided record", [&record.payload])?;
            let height = record.payload.header.height;
            let is_executed = index < executed.iter().len();
            if height <= self.verifier.anchor().height {
                return Err(format!("height {height} is of an epoch before this one"));
            }
            if !is_executed && height != self.decided.next() {
                return Err(format!("height {height} follows {}", self.decided));
            }
            self.restore_decided(record, is_executed);
        }
        self.next = self.base.max(self.last_accepted()).max(self.window.stable).next();
        Ok(())
    }

    fn restore_view(&mut self, record: ViewRecord, epoch: EpochId) -> Result<(), String> {
        same_epoch(record.epoch, epoch)?;
        self.view = record.view;
        self.in_view_change = record.in_view_change;
        // ★ Values that the view began with are not the primary's to replace.
        if !mutants::active(Mutant::WindowedForgetBase) {
            self.base = record.base;
        }
        self.window.stable =
            record.stable.as_ref().map_or(self.verifier.anchor().height, |stable| stable.height);
        self.outputs.extend(record.stable.clone().map(Output::Stable));
        self.checkpoint = record.stable;
        Ok(())
    }

    fn restore_slot(&mut self, record: SlotRecord, epoch: EpochId) -> Result<(), String> {
        same_epoch(record.epoch, epoch)?;
        if !record.is_complete() {
            return Err(format!("slot {} is prepared without its value", record.slot));
        }
        check_bodies("a slot record", &record.payloads)?;
        if let Some(known) = self.window.open(record.slot) {
            known.accepted = record.accepted;
            known.prepared = record.prepared;
            record.payloads.into_iter().for_each(|payload| known.keep(payload));
        }
        Ok(())
    }

    /// Restores a decided slot. The executed one was delivered in an earlier run, like all before
    /// it.
    fn restore_decided(&mut self, record: DecidedSlot, is_executed: bool) {
        let height = record.payload.header.height;
        if let Some(known) = self.window.open(height) {
            known.proof = Some(record.proof.clone());
            known.keep(record.payload.clone());
        }
        if is_executed {
            self.decided = height;
            self.remember_tip(record.id());
            let ends_epoch = record.payload.ends_epoch();
            self.last_record = Some(record);
            if ends_epoch {
                self.end_epoch();
            }
        } else {
            self.deliver_one(record);
        }
    }

    /// Last slot that got a vote in this view.
    fn last_accepted(&self) -> Height {
        let is_of_view = |(view, _): (_, _)| view == self.view;
        let accepted =
            self.window.iter().filter(|(_, known)| known.accepted.is_some_and(is_of_view));
        accepted.map(|(slot, _)| slot).last().unwrap_or(Height(0))
    }

    /// ★ Sends the promised votes of this view again, byte for byte. A vote says that its bodies
    /// are stored here: one whose bodies were lost waits until they are fetched.
    fn resend_votes(&mut self, now: Time, stored: &BTreeSet<BodyRef>) {
        let view = self.view;
        let mut ready = Vec::new();
        for (slot, known) in self.window.iter_mut() {
            let Some((_, digest)) = known.accepted.filter(|(accepted, _)| *accepted == view) else {
                continue;
            };
            known.proposed = known.accepted;
            let Some(payload) = known.payloads.get(&digest) else { continue };
            let is_decided = known.proof.is_some();
            // A change of epoch is asked for and checked anew.
            let are_here =
                !payload.ends_epoch() && payload.bodies.iter().all(|body| stored.contains(body));
            if (are_here || mutants::active(Mutant::WindowedSayWithoutBodies)) && !is_decided {
                known.is_stored = true;
                ready.push((slot, payload.clone()));
            }
        }
        for (slot, payload) in ready {
            if self.is_primary() && slot > self.base && self.config.signs {
                self.resend_pre_prepare(slot, payload);
            }
            self.vote(now, slot);
            let prepared = self.window.get(slot).and_then(|known| known.prepared.as_ref());
            let prepared = prepared.map(|prepared| prepared.proposal);
            if let Some(proposal) = prepared.filter(|prepared| prepared.view == view) {
                self.commit(now, proposal);
            }
        }
        let slots: Vec<Height> = self.window.after(self.decided).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.request_bodies(slot));
    }

    fn resend_pre_prepare(&mut self, slot: Height, payload: Payload) {
        let digest = digest_of(&payload);
        let proposal = Proposal { view: self.view, slot, digest };
        let signature = self.sign_alone(&self.statement(Kind::PrePrepare, &proposal));
        let shares = self.shares(&proposal);
        let proposed = PrePrepare { view: self.view, payload, shares, signature };
        if let Some(known) = self.window.get_mut(slot) {
            known.pre_prepare = Some(proposed.clone());
        }
        self.send(Recipients::All, Message::PrePrepare(proposed));
    }
}

fn decode<T: borsh::BorshDeserialize>(bytes: &Bytes, what: &str) -> Result<T, String> {
    borsh::from_slice(bytes).map_err(|error| format!("a {what} does not decode: {error}"))
}

fn same_epoch(found: EpochId, epoch: EpochId) -> Result<(), String> {
    if found == epoch { Ok(()) } else { Err(format!("a record of epoch {found}, not {epoch}")) }
}
