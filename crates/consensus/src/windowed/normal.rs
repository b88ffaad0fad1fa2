//! The normal case, as every member takes part in it: accept, prepare, commit.

use super::collectors::collectors;
use super::messages::{
    CommitShare, Message, Place, PrePrepare, Proof, Shares, SignShare, SlotCertificate,
};
use super::rules::WINDOW;
use super::state::Windowed;
use crate::{Fault, Output};
use quorate_crypto::Share;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, Kind, Payload, Purpose, Recipients, ReplicaId, Time, View};

/// Slots of a view that is about to begin, kept until it does.
const EARLY_MAX: usize = 64;

impl Windowed {
    // ---- proposing ------------------------------------------------------------------------------

    /// The engine hands over what to propose.
    pub(super) fn on_payload(&mut self, now: Time, view: View, payload: Payload) {
        let slot = payload.header.height;
        let is_wished = view == self.view && slot == self.next && self.takes_part();
        if !is_wished || !self.is_primary() || !self.window.covers(slot) {
            return;
        }
        self.next = slot.next();
        let place = Place { view, slot, digest: super::messages::digest_of(&payload) };
        let known = self.window.open(slot).expect("covered");
        known.proposed = Some((view, place.digest));
        known.accepted = known.proposed;
        known.is_stored = true;
        known.keep(payload.clone());
        self.persist_slot(slot);
        let shares = self.shares(&place);
        let signature = self.sign_alone(&self.statement(Kind::PrePrepare, &place));
        let proposed = PrePrepare { view, payload, shares: shares.clone(), signature };
        if let Some(known) = self.window.get_mut(slot) {
            known.pre_prepare = Some(proposed.clone());
        }
        self.send(Recipients::All, Message::PrePrepare(proposed));
        self.count_shares(now, self.id(), place, shares);
    }

    // ---- accepting ------------------------------------------------------------------------------

    /// The primary's value for a slot, its signature checked.
    pub(super) fn on_pre_prepare(&mut self, now: Time, proposed: PrePrepare) {
        let place = proposed.place();
        if self.ignores_view(place.view) {
            self.keep_early(proposed);
            return;
        }
        if place.slot <= self.base || !self.window.covers(place.slot) || self.is_primary() {
            return;
        }
        if self.is_too_early(now, &proposed.payload) {
            self.blame(self.primary(), Fault::InvalidProposal);
            return;
        }
        let slot = self.window.open(place.slot).expect("covered");
        let current = |known: &Option<(View, _)>| known.filter(|(view, _)| *view == place.view);
        let known = current(&slot.proposed).or_else(|| current(&slot.accepted));
        match known {
            Some((_, digest)) if digest != place.digest => {
                let other = slot.pre_prepare.clone();
                if !mutants::active(Mutant::WindowedAcceptTwice) {
                    self.on_two_values(now, other, proposed);
                    return;
                }
            }
            Some(_) if slot.pre_prepare.is_some() => return,
            _ => {}
        }
        let shares = proposed.shares.clone();
        slot.is_stored &= known == Some((place.view, place.digest));
        slot.proposed = Some((place.view, place.digest));
        slot.keep(proposed.payload.clone());
        slot.pre_prepare = Some(proposed);
        let primary = self.primary();
        self.count_shares(now, primary, place, shares);
        self.want_bodies(place.slot);
    }

    /// A value that its primary stamped so far ahead of the own clock gets no vote.
    fn is_too_early(&self, now: Time, payload: &Payload) -> bool {
        let clock = self.config.wall_origin_ms + now.as_millis();
        payload.header.proposed_at_ms > clock + self.config.clock_drift_max_ms
    }

    fn ignores_view(&self, view: View) -> bool {
        view != self.view || !self.has_begun()
    }

    /// What the next primary proposes may overtake what its view begins with.
    fn keep_early(&mut self, proposed: PrePrepare) {
        let view = proposed.view;
        let is_next = view > self.view || (view == self.view && self.changing);
        if is_next && self.changes.is_about_to_begin(view) {
            self.changes.early.insert(proposed.place().slot, proposed);
            if self.changes.early.len() > EARLY_MAX {
                self.changes.early.pop_last();
            }
        }
    }

    /// What the early ones were early for.
    pub(super) fn take_early(&mut self, now: Time) {
        for (_, proposed) in std::mem::take(&mut self.changes.early) {
            if proposed.view == self.view {
                self.on_pre_prepare(now, proposed);
            }
        }
    }

    /// Two values for one slot, signed by the primary: the view is at an end, for everybody.
    fn on_two_values(&mut self, now: Time, one: Option<PrePrepare>, other: PrePrepare) {
        self.blame(self.primary(), Fault::Equivocation);
        if let Some(one) = one {
            self.send(Recipients::All, Message::Equivocation(Box::new((one, other))));
        }
        self.give_up(now);
    }

    /// Somebody else found it out.
    pub(super) fn on_equivocation(&mut self, now: Time, both: (PrePrepare, PrePrepare)) {
        if both.0.view == self.view && !self.changing && self.config.signs {
            self.on_two_values(now, Some(both.0), both.1);
        }
    }

    /// A value gets its vote once its bodies are stored: they are asked for. One that is delivered here
    /// gets none: its bodies may be executed and let go, and it is shown to who misses it.
    pub(super) fn want_bodies(&mut self, slot: Height) {
        if self.is_delivered(slot) {
            return;
        }
        let Some(known) = self.window.get(slot) else { return };
        let Some((view, digest)) = known.proposed.filter(|_| !known.is_stored) else { return };
        if view != self.view || !self.has_begun() {
            return;
        }
        let Some(payload) = known.payloads.get(&digest) else { return };
        let bodies = payload.bodies.clone();
        let source = self.primary();
        self.outputs.push_back(Output::WantBodies { block: BlockId(digest), bodies, source });
    }

    /// Whether it was delivered here, by its proof: what a snapshot skipped was not.
    fn is_delivered(&self, slot: Height) -> bool {
        let is_proven = |known: &super::slots::Slot| known.proof.is_some();
        slot <= self.decided && self.window.get(slot).is_some_and(is_proven)
    }

    /// Every body of this value is stored here.
    pub(super) fn on_stored(&mut self, now: Time, id: BlockId) {
        let waits = |known: &super::slots::Slot| {
            known.proposed.is_some_and(|(_, digest)| digest == id.0) && !known.is_stored
        };
        let slots = self.window.iter().filter(|(_, known)| waits(known)).map(|(slot, _)| slot);
        let undelivered = slots.filter(|slot| !self.is_delivered(*slot)).min();
        if let Some(slot) = undelivered {
            self.accept(now, slot);
        }
    }

    /// ★ A promise: no other value gets a vote for this slot in this view.
    fn accept(&mut self, now: Time, slot: Height) {
        if !self.takes_part() {
            return;
        }
        let view = self.view;
        let Some(known) = self.window.get_mut(slot) else { return };
        let Some((_, digest)) = known.proposed.filter(|(proposed, _)| *proposed == view) else {
            return;
        };
        known.is_stored = true;
        let is_promised = known.accepted == Some((view, digest));
        known.accepted = Some((view, digest));
        if !is_promised && !mutants::active(Mutant::WindowedVoteBeforePersist) {
            self.persist_slot(slot);
        }
        self.vote(now, slot);
    }

    /// Sends its vote for what it accepted in this view.
    pub(super) fn vote(&mut self, now: Time, slot: Height) {
        let Some(known) = self.window.get(slot) else { return };
        let Some((view, digest)) = known.accepted.filter(|_| known.is_stored) else { return };
        if view != self.view || !self.takes_part() {
            return;
        }
        let place = Place { view, slot, digest };
        let shares = self.shares(&place);
        if let Some(known) = self.window.get_mut(slot) {
            known.voted_at.get_or_insert(now);
        }
        let known = self.window.get(slot).expect("known");
        // A primary's vote travels with its value, unless its view began with it.
        if known.pre_prepare.is_none() || !self.is_primary() {
            for to in self.collectors_of(&place) {
                self.send(to, Message::SignShare(SignShare { at: place, shares: shares.clone() }));
            }
        }
        self.count_shares(now, self.id(), place, shares);
    }

    /// Its vote for a value: for both thresholds where they have keys of their own.
    pub(super) fn shares(&self, place: &Place) -> Shares {
        let statement = self.statement(Kind::Prepare, place);
        let is_near = place.slot.0 <= self.decided.0 + WINDOW / 4;
        let splits = self.rules.fast_path && self.verifier.committee().splits_keys();
        let fast = (splits && is_near).then(|| self.sign(Purpose::Fast, &statement));
        Shares { slow: self.sign(Purpose::Vote, &statement), fast }
    }

    fn sign(&self, purpose: Purpose, statement: &[u8]) -> Share {
        self.verifier.committee().sign(purpose, &self.config.voting, statement)
    }

    /// Who adds up votes for this.
    pub(super) fn collectors_of(&self, place: &Place) -> Vec<Recipients> {
        if !self.rules.collectors {
            return vec![Recipients::All];
        }
        let others = self.ranked(place.view, place.slot).into_iter();
        others.filter(|other| *other != self.id()).map(Recipients::One).collect()
    }

    /// The collectors of a slot, in the order of their turns.
    pub(super) fn ranked(&self, view: View, slot: Height) -> Vec<ReplicaId> {
        let committee = self.verifier.committee();
        let redundancy = committee.weights().redundant_members();
        collectors(committee.epoch(), view, slot, committee.size(), redundancy)
    }

    // ---- preparing and committing ---------------------------------------------------------------

    /// A quorum voted for a value in this view.
    pub(super) fn on_prepare(&mut self, now: Time, prepared: SlotCertificate) {
        let place = prepared.at;
        if self.ignores_view(place.view) {
            return;
        }
        let Some(slot) = self.window.open(place.slot) else { return };
        if slot.prepared.as_ref().is_some_and(|known| known.at.view >= place.view) {
            return;
        }
        slot.prepared = Some(prepared);
        slot.voted_at = Some(now);
        if !mutants::active(Mutant::WindowedCommitBeforePersist) {
            self.persist_slot(place.slot);
        }
        self.commit(now, place);
    }

    /// Sends its vote to decide what was prepared in this view.
    pub(super) fn commit(&mut self, now: Time, place: Place) {
        if !self.takes_part() {
            return;
        }
        let vote = self.commit_share(&place);
        for to in self.collectors_of(&place) {
            self.send(to, Message::CommitShare(vote.clone()));
        }
        self.count_commit(now, self.id(), place, vote.share);
    }

    /// Its vote to decide a value.
    pub(super) fn commit_share(&self, place: &Place) -> CommitShare {
        let share = self.sign(Purpose::Vote, &self.statement(Kind::Commit, place));
        CommitShare { at: *place, share }
    }

    /// What a collector made, to everybody; without collectors everybody makes it.
    pub(super) fn show_proof(&mut self, now: Time, proof: Proof) {
        if self.rules.collectors && self.config.signs {
            self.send(Recipients::All, Message::Proof(proof.clone()));
        }
        self.on_proof(now, self.id(), proof);
    }

    /// As [`Windowed::show_proof`].
    pub(super) fn show_prepare(&mut self, now: Time, prepared: SlotCertificate) {
        if self.rules.collectors && self.config.signs {
            self.send(Recipients::All, Message::Prepare(prepared.clone()));
        }
        self.on_prepare(now, prepared);
    }
}
