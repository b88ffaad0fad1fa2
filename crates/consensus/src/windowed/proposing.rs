//! Normal case at the primary: asking the engine for payloads, and pre-prepares (PBFT §4.2, paper
//! 002 §V-C).

use super::messages::Message;
use super::slots::Slot;
use super::state::Windowed;
use super::values::{PrePrepare, Proposal, digest_of};
use crate::{Output, ProposeRequest};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BodyRef, Kind, Payload, Recipients, Time, View};
use std::collections::BTreeSet;

impl Windowed {
    /// Asks for a payload if this replica may propose one: it is primary, `next` is within the
    /// window, and fewer than [`active_window`](Self::active_window) of its slots are undecided.
    pub(super) fn request_payload(&mut self) {
        // Slots that are decided need no proposal, whoever decided them.
        self.next = self.next.max(self.decided.next());
        let may = self.takes_part()
            && self.is_primary()
            && self.window.covers(self.next)
            && !self.follows_a_stop()
            && self.open_slots() < self.active_window();
        if !may || self.payload_requested {
            return;
        }
        self.payload_requested = true;
        let filled = self.filled().flat_map(|slot| slot.payloads.values());
        let carried: BTreeSet<BodyRef> =
            filled.flat_map(|payload| &payload.bodies).copied().collect();
        self.outputs.push_back(Output::RequestPayload(ProposeRequest {
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

    /// Proposes the payload that the engine hands over.
    pub(super) fn propose(&mut self, now: Time, view: View, payload: Payload) {
        let slot = payload.header.height;
        let is_wished = view == self.view && slot == self.next && self.takes_part();
        if !is_wished || !self.is_primary() || !self.window.covers(slot) {
            return;
        }
        self.next = slot.next();
        let proposal = Proposal { view, slot, digest: digest_of(&payload) };
        let known = self.window.open(slot).expect("covered");
        known.proposed = Some((view, proposal.digest));
        known.accepted = known.proposed;
        known.is_stored = true;
        known.keep(payload.clone());
        // ★ Its own promise, as that of any other vote.
        if !mutants::active(Mutant::WindowedProposeBeforePersist) {
            self.persist_slot(slot);
        }
        let shares = self.shares(&proposal);
        let signature = self.sign_alone(&self.statement(Kind::PrePrepare, &proposal));
        let proposed = PrePrepare { view, payload, shares: shares.clone(), signature };
        if let Some(known) = self.window.get_mut(slot) {
            known.pre_prepare = Some(proposed.clone());
        }
        self.send(Recipients::All, Message::PrePrepare(proposed));
        self.add_sign_share(now, self.id(), proposal, shares);
    }

    /// Returns `true` if a known slot is still to be decided or delivered.
    pub(super) fn has_open_slots(&self) -> bool {
        let mut undelivered = self.window.after(self.decided);
        let is_of_view = |(view, _)| view == self.view;
        undelivered.any(|(_, slot)| {
            slot.proof.is_some() || slot.unvalued.is_some() || slot.proposed.is_some_and(is_of_view)
        })
    }

    /// Undelivered slots before `next`. Proposals of earlier views for later ones are void.
    fn filled(&self) -> impl Iterator<Item = &Slot> {
        let undelivered = self.window.after(self.decided);
        undelivered.take_while(|(slot, _)| *slot < self.next).map(|(_, known)| known)
    }

    /// Returns `true` if one of those ends the epoch: whatever came behind it would be void.
    fn follows_a_stop(&self) -> bool {
        let ends = |slot: &Slot| slot.current_value(self.view).is_some_and(Payload::ends_epoch);
        self.filled().any(ends) && !mutants::active(Mutant::ProposeBeyondStop)
    }

    /// Number of those that are not decided.
    fn open_slots(&self) -> u64 {
        self.filled().filter(|slot| slot.proof.is_none()).count() as u64
    }

    /// Undecided slots that a primary may have: as configured, and no more than the paper's active
    /// window `⌊(n−1)/(c+1)⌋` (002 §VIII), in which each member collects for about one.
    fn active_window(&self) -> u64 {
        let weights = self.verifier.committee().weights();
        let collectors = weights.redundant_members() + 1;
        ((self.members() as u64 - 1) / collectors).clamp(1, self.config.liveness.concurrent_slots)
    }
}
