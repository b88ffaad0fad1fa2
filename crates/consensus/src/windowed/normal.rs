//! Normal case at every member: accept a pre-prepare, prepare, commit (PBFT §4.2; paper 002 §V-C,
//! §V-E).

use super::collectors::collectors;
use super::messages::{CommitShare, Message, SignShare};
use super::rules::{VALUES_BYTES_MAX, WINDOW};
use super::slots::Slot;
use super::state::Windowed;
use super::values::{PrePrepare, Proof, Proposal, Shares, SlotCertificate};
use crate::{Evidence, Ignored, Output, Rule};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest, Share};
use quorate_types::{
    BlockId, BodyRef, Height, Kind, Payload, Purpose, Recipients, ReplicaId, Time, View,
};
use std::cmp::Ordering;

/// Pre-prepares of the next view that are kept until it begins.
pub(super) const EARLY_MAX: usize = 64;

impl Windowed {
    // ---- accepting ------------------------------------------------------------------------------

    /// Pre-prepare, its signature checked (PBFT §4.2, paper 002 §V-C).
    pub(super) fn on_pre_prepare(&mut self, now: Time, proposed: PrePrepare) -> Option<Ignored> {
        let proposal = proposed.proposal();
        if let Some(reason) = self.ignore_pre_prepare(&proposal, &proposed.payload) {
            let is_kept = self.buffer_early(proposed);
            return (!is_kept).then_some(reason);
        }
        if self.is_too_early(now, &proposed.payload) {
            let evidence = Evidence::Proposal {
                view: proposal.view,
                digest: proposal.digest,
                height: proposal.slot,
                proposed_at_ms: proposed.payload.header.proposed_at_ms,
            };
            self.report(self.primary(), Rule::ProposalTime, evidence);
            return None;
        }
        let slot = self.window.open(proposal.slot).expect("covered");
        let known = slot.value_in(proposal.view);
        if let Some(first) = known.filter(|known| *known != proposal.digest)
            && !mutants::active(Mutant::WindowedAcceptTwice)
        {
            let other = slot.pre_prepare.clone();
            self.convict_primary(now, first, other, proposed);
            return None;
        }
        let shares = proposed.shares.clone();
        slot.is_stored &= known == Some(proposal.digest);
        slot.proposed = Some((proposal.view, proposal.digest));
        slot.keep(proposed.payload.clone());
        slot.pre_prepare = Some(proposed);
        let primary = self.primary();
        self.add_sign_share(now, primary, proposal, shares);
        self.request_bodies(proposal.slot);
        self.prepare_valued(now, proposal.slot);
        if mutants::active(Mutant::VoteWithoutBodies) {
            self.accept(now, proposal.slot);
        }
        None
    }

    fn ignore_pre_prepare(&self, proposal: &Proposal, payload: &Payload) -> Option<Ignored> {
        let Proposal { view, slot, digest } = *proposal;
        let ignored = self.ignore_view(view);
        if ignored.is_some() {
            return ignored;
        }
        if self.is_begun_with(slot) || !self.window.covers(slot) {
            return Some(Ignored::OutsideWindow);
        }
        if self.is_primary() {
            return Some(Ignored::NotNeeded);
        }
        let repeats = self.window.get(slot).is_some_and(|known| {
            known.pre_prepare.is_some() && known.value_in(view) == Some(digest)
        });
        if repeats {
            return Some(Ignored::Duplicate);
        }
        self.is_full_with(payload).then_some(Ignored::WindowFull)
    }

    /// Returns `true` if the values of undecided slots and this one would not fit a view change,
    /// which shows those that are prepared: a primary could end all view changes by filling the
    /// window. The slots before are decided first, and this one is proposed again.
    fn is_full_with(&self, payload: &Payload) -> bool {
        let undecided = self.window.after(self.decided);
        let bodies: usize = undecided.map(|(_, slot)| slot.reported_bodies(self.view)).sum();
        (bodies + payload.bodies.len()) * BodyRef::BYTES > VALUES_BYTES_MAX
    }

    /// ★ Returns `true` for slots that the view itself began with (PBFT §4.4).
    fn is_begun_with(&self, slot: Height) -> bool {
        slot <= self.base && !mutants::active(Mutant::WindowedFillNewView)
    }

    /// Reason to ignore proposals and certificates of any view but the one that has begun.
    fn ignore_view(&self, view: View) -> Option<Ignored> {
        match view.cmp(&self.view) {
            Ordering::Less => Some(Ignored::StaleView),
            Ordering::Greater => Some(Ignored::FutureView),
            Ordering::Equal => (!self.has_begun()).then_some(Ignored::ViewNotBegun),
        }
    }

    /// Returns `true` if its primary stamped a value further ahead of the own clock than is
    /// allowed.
    fn is_too_early(&self, now: Time, payload: &Payload) -> bool {
        let clock = self.config.wall_origin_ms + now.as_millis();
        payload.header.proposed_at_ms > clock + self.config.clock_drift_max_ms
    }

    /// Keeps a pre-prepare of the next view, which may overtake that view's new-view: `true` if it
    /// is one.
    fn buffer_early(&mut self, proposed: PrePrepare) -> bool {
        let view = proposed.view;
        let is_next = view > self.view || (view == self.view && self.in_view_change);
        if !is_next || !self.changes.is_about_to_begin(view) {
            return false;
        }
        self.changes.early.insert(proposed.proposal().slot, proposed);
        if self.changes.early.len() > EARLY_MAX {
            self.changes.early.pop_last();
        }
        true
    }

    /// Handles the pre-prepares that were kept for the view that begins.
    pub(super) fn replay_early(&mut self, now: Time) {
        for (_, proposed) in std::mem::take(&mut self.changes.early) {
            if proposed.view == self.view {
                self.on_pre_prepare(now, proposed);
            }
        }
    }

    /// Shows everybody two pre-prepares of the primary for one slot, and leaves its view (paper 002
    /// §V-G).
    fn convict_primary(
        &mut self,
        now: Time,
        first: Digest,
        one: Option<PrePrepare>,
        other: PrePrepare,
    ) {
        let Proposal { view, digest: second, .. } = other.proposal();
        let evidence = Evidence::Conflict { view, first, second };
        self.report(self.primary(), Rule::Equivocation, evidence);
        if let Some(one) = one {
            self.send(Recipients::All, Message::Equivocation(Box::new((one, other))));
        }
        self.start_view_change(now);
    }

    /// Equivocation that another member found (paper 002 §V-G).
    pub(super) fn on_equivocation(
        &mut self,
        now: Time,
        both: (PrePrepare, PrePrepare),
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_equivocation(both.0.view) {
            return Some(reason);
        }
        let first = both.0.proposal().digest;
        self.convict_primary(now, first, Some(both.0), both.1);
        None
    }

    fn ignore_equivocation(&self, view: View) -> Option<Ignored> {
        if view != self.view {
            return self.ignore_view(view);
        }
        if self.in_view_change {
            return Some(Ignored::ViewNotBegun);
        }
        (!self.config.signs).then_some(Ignored::NotNeeded)
    }

    /// Asks the engine to store the bodies of a proposal: it gets its vote once they are stored. A
    /// delivered slot gets none: its bodies may be executed and released.
    pub(super) fn request_bodies(&mut self, slot: Height) {
        if self.is_delivered(slot) {
            return;
        }
        let Some(known) = self.window.get(slot) else { return };
        let Some((view, digest)) = known.proposed.filter(|_| !known.is_stored) else { return };
        debug_assert!(view == self.view && self.has_begun(), "proposals end with their view");
        let Some(payload) = known.payloads.get(&digest) else { return };
        let (bodies, change) = (payload.bodies.clone(), payload.header.change);
        let (block, source) = (BlockId(digest), self.holder(slot, digest));
        self.outputs.push_back(Output::RequestBodies {
            block,
            height: slot,
            bodies,
            change,
            source,
        });
    }

    /// Member to ask first for the bodies of a proposal: one that voted for a value that its view
    /// began with, which is known to have stored them; or the primary.
    fn holder(&self, slot: Height, digest: Digest) -> ReplicaId {
        let voters = self.changes.voters(slot, digest).into_iter().flat_map(Bitmap::iter);
        let others = voters.filter_map(|voter| u16::try_from(voter).ok()).map(ReplicaId);
        others.into_iter().find(|voter| *voter != self.id()).unwrap_or(self.primary())
    }

    /// Returns `true` if a slot was delivered by its proof, not skipped by a snapshot.
    fn is_delivered(&self, slot: Height) -> bool {
        let is_proven = |known: &Slot| known.proof.is_some();
        slot <= self.decided && self.window.get(slot).is_some_and(is_proven)
    }

    /// All bodies of this value are stored here.
    pub(super) fn on_stored(&mut self, now: Time, id: BlockId) {
        let waits = |known: &Slot| {
            known.proposed.is_some_and(|(_, digest)| digest == id.0) && !known.is_stored
        };
        let slots = self.window.iter().filter(|(_, known)| waits(known)).map(|(slot, _)| slot);
        let undelivered = slots.filter(|slot| !self.is_delivered(*slot)).min();
        if let Some(slot) = undelivered {
            self.accept(now, slot);
        }
    }

    /// ★ Accepts a proposal: a promise that no other gets a vote for this slot in this view.
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

    /// Sends the vote for the proposal accepted in this view (PBFT §4.2: prepare; paper 002 §V-C).
    pub(super) fn vote(&mut self, now: Time, slot: Height) {
        let Some(known) = self.window.get(slot) else { return };
        let Some((view, digest)) = known.accepted.filter(|_| known.is_stored) else { return };
        if view != self.view || !self.takes_part() {
            return;
        }
        let proposal = Proposal { view, slot, digest };
        let shares = self.shares(&proposal);
        if let Some(known) = self.window.get_mut(slot) {
            known.voted_at.get_or_insert(now);
        }
        let known = self.window.get(slot).expect("known");
        // A primary's vote travels in its pre-prepare, but for slots that its view began with.
        if known.pre_prepare.is_none() || !self.is_primary() {
            for to in self.collectors_of(&proposal) {
                self.send(to, Message::SignShare(SignShare { proposal, shares: shares.clone() }));
            }
        }
        self.add_sign_share(now, self.id(), proposal, shares);
    }

    /// Shares over a proposal: for both thresholds where they have keys of their own (§V-E, §V-F).
    pub(super) fn shares(&self, proposal: &Proposal) -> Shares {
        let statement = self.statement(Kind::Prepare, proposal);
        let is_near = proposal.slot.0 <= self.decided.0.saturating_add(WINDOW / 4);
        let splits = self.rules.fast_path && self.verifier.committee().splits_keys();
        let fast = (splits && is_near).then(|| self.sign(Purpose::Fast, &statement));
        Shares { slow: self.sign(Purpose::Vote, &statement), fast }
    }

    fn sign(&self, purpose: Purpose, statement: &[u8]) -> Share {
        self.verifier.committee().sign(purpose, &self.config.voting, statement)
    }

    /// Members to which votes for this proposal go (§V-B).
    pub(super) fn collectors_of(&self, proposal: &Proposal) -> Vec<Recipients> {
        if !self.rules.collectors {
            return vec![Recipients::All];
        }
        let others = self.ranked(proposal.view, proposal.slot).into_iter();
        others.filter(|other| *other != self.id()).map(Recipients::One).collect()
    }

    /// Collectors of a slot, in the order of their turns.
    pub(super) fn ranked(&self, view: View, slot: Height) -> Vec<ReplicaId> {
        let committee = self.verifier.committee();
        let redundancy = committee.weights().redundant_members();
        collectors(committee.epoch(), view, slot, committee.size(), redundancy)
    }

    // ---- preparing and committing ---------------------------------------------------------------

    /// Certificate of a quorum's votes in this view (PBFT §4.2: prepared; paper 002 §V-E).
    pub(super) fn on_prepare(
        &mut self,
        now: Time,
        from: ReplicaId,
        prepared: SlotCertificate,
    ) -> Option<Ignored> {
        let proposal = prepared.proposal;
        if let Some(reason) = self.ignore_prepare(&proposal) {
            return Some(reason);
        }
        let slot = self.window.open(proposal.slot)?;
        // ★ The value is part of what is prepared (PBFT §4.2: the request is in the log): a later
        // view may have to propose it again.
        let is_here = slot.payloads.contains_key(&proposal.digest);
        if !is_here && !mutants::active(Mutant::WindowedCommitWithoutValue) {
            slot.unvalued = Some(prepared);
            self.request_value(now, from, proposal.slot);
            return None;
        }
        slot.prepared = Some(prepared);
        slot.voted_at = Some(now);
        if !mutants::active(Mutant::WindowedCommitBeforePersist) {
            self.persist_slot(proposal.slot);
        }
        self.commit(now, proposal);
        None
    }

    fn ignore_prepare(&self, proposal: &Proposal) -> Option<Ignored> {
        let ignored = self.ignore_view(proposal.view);
        if ignored.is_some() {
            return ignored;
        }
        if !self.window.covers(proposal.slot) {
            return Some(Ignored::OutsideWindow);
        }
        let known = self.window.get(proposal.slot)?;
        known.is_certified_in(proposal.view).then_some(Ignored::AlreadyCertified)
    }

    /// Goes on with a certificate that waited for the value that came.
    pub(super) fn prepare_valued(&mut self, now: Time, slot: Height) {
        let certificate = self.window.get_mut(slot).and_then(Slot::take_valued);
        if let Some(certificate) = certificate {
            self.on_prepare(now, self.id(), certificate);
        }
    }

    /// Sends the vote to decide what was prepared in this view (PBFT §4.2, paper 002 §V-E).
    pub(super) fn commit(&mut self, now: Time, proposal: Proposal) {
        if !self.takes_part() {
            return;
        }
        let vote = self.commit_share(&proposal);
        for to in self.collectors_of(&proposal) {
            self.send(to, Message::CommitShare(vote.clone()));
        }
        self.add_commit_share(now, self.id(), proposal, vote.share);
    }

    /// Share over a proposal to commit it.
    pub(super) fn commit_share(&self, proposal: &Proposal) -> CommitShare {
        let share = self.sign(Purpose::Vote, &self.statement(Kind::Commit, proposal));
        CommitShare { proposal: *proposal, share }
    }

    /// Broadcasts a proof made here; without collectors every member makes its own.
    pub(super) fn broadcast_proof(&mut self, now: Time, proof: Proof) {
        if self.rules.collectors && self.config.signs {
            self.send(Recipients::All, Message::Proof(proof.clone()));
        }
        self.on_proof(now, self.id(), proof);
    }

    /// Broadcasts a prepared certificate made here, under the same condition.
    pub(super) fn broadcast_prepare(&mut self, now: Time, prepared: SlotCertificate) {
        if self.rules.collectors && self.config.signs {
            self.send(Recipients::All, Message::Prepare(prepared.clone()));
        }
        self.on_prepare(now, self.id(), prepared);
    }
}
