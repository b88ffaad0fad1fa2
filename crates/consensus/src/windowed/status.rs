//! Statuses: asking for lost messages, and sending again what others lack (paper 002 §II).

use super::messages::{Message, SignShare, Status};
use super::state::Windowed;
use super::values::{DecidedSlot, PrePrepare, Proposal};
use crate::{Ignored, Output};
use quorate_crypto::Digest;
use quorate_types::{BlockId, Height, Recipients, ReplicaId, Time, View};

/// Slots that one answer covers at most.
const SLOTS_MAX: usize = 16;

impl Windowed {
    // ---- asking ---------------------------------------------------------------------------------

    /// Broadcasts its status if one is due.
    pub(super) fn send_status_if_due(&mut self, now: Time) {
        if self.retransmission.is_due(now) {
            self.fetch_missing_changes();
            self.fetch_history();
            let status = self.own_status();
            self.send(Recipients::All, Message::Status(status));
        }
    }

    /// Asks the engine for history if a later slot is decided and the next one is not, or its value
    /// is not here: members that have it may have it on disk alone.
    fn fetch_history(&mut self) {
        let next = self.decided.next();
        let is_missing = self.window.get(next).is_none_or(|slot| slot.decided().is_none());
        let later = self.window.after(next).filter_map(|(_, slot)| slot.proof.as_ref()).next();
        if let Some(proof) = later.filter(|_| is_missing) {
            let target = BlockId(proof.certificate.proposal.digest);
            self.outputs.push_back(Output::Behind { target, source: None });
        }
    }

    /// Asks the sender of a certificate or proof for its value, if that is not here.
    pub(super) fn request_value(&mut self, now: Time, from: ReplicaId, slot: Height) {
        let lacks =
            self.window.get(slot).is_some_and(|known| known.missing_values().next().is_some());
        if lacks {
            let status = self.own_status();
            self.send(Recipients::One(from), Message::Status(status));
            self.retransmission.ask_by(now + self.retransmission.every());
        }
    }

    fn own_status(&self) -> Status {
        let beyond = || self.window.after(self.decided);
        let has = beyond().filter(|(_, slot)| slot.proof.is_some()).map(|(slot, _)| slot);
        let lacks =
            beyond().flat_map(|(slot, known)| known.missing_values().map(move |d| (slot, d)));
        Status {
            view: self.view,
            in_view_change: self.in_view_change,
            stable: self.window.stable,
            decided: self.decided,
            has: has.collect(),
            lacks: lacks.take(SLOTS_MAX).collect(),
            turn: self.retransmission.turn(),
        }
    }

    /// A message of a view that this member has not entered. Where nobody has that view's new-view
    /// any more, since all restarted or it follows only, it never will: it asks what was decided.
    /// Twice, since what the message is about may be decided only after the first.
    pub(super) fn hear_of_later_view(&mut self, now: Time) {
        self.retransmission.ask_times_by(now + self.retransmission.every(), 2);
    }

    // ---- answering ------------------------------------------------------------------------------

    /// Status of a member that waits for something: sends again what it lacks.
    pub(super) fn on_status(
        &mut self,
        now: Time,
        from: ReplicaId,
        status: &Status,
    ) -> Option<Ignored> {
        let is_ahead = status.decided > self.decided;
        if is_ahead {
            self.retransmission.ask_times_by(now + self.retransmission.every() / 4, 1);
        }
        if let Some(reason) = self.ignore_status(now, from) {
            return (!is_ahead).then_some(reason);
        }
        self.retransmission.note_answer(now, from);
        self.answer_status(from, status);
        None
    }

    fn ignore_status(&self, now: Time, from: ReplicaId) -> Option<Ignored> {
        self.retransmission.has_answered(now, from).then_some(Ignored::Duplicate)
    }

    /// Sends a member what it lacks, as far as it is here.
    fn answer_status(&mut self, from: ReplicaId, status: &Status) {
        let is_before =
            status.view < self.view || (status.view == self.view && status.in_view_change);
        if is_before {
            self.send_view(from);
        }
        if status.stable < self.window.stable
            && let Some(checkpoint) = self.checkpoint.clone()
        {
            self.send(Recipients::One(from), Message::Stable(checkpoint));
        }
        for (slot, digest) in status.lacks.iter().take(SLOTS_MAX) {
            let value = self.window.get(*slot).and_then(|known| known.payloads.get(digest));
            if let Some(payload) = value.cloned() {
                self.send(Recipients::One(from), Message::Payload(payload));
            }
        }
        let next = status.decided.next();
        if next <= self.decided && self.window.get(next).is_none() {
            // It is on disk alone: the last decision leads its receiver to history.
            self.show_last_decision(from);
            return;
        }
        let last = self.window.last().0.min(status.decided.0.saturating_add(SLOTS_MAX as u64));
        let missing = (next.0..=last).map(Height);
        let mut is_left_to_others = false;
        for slot in missing.filter(|slot| !status.has.contains(slot)) {
            match self.window.get(slot).and_then(|known| known.decided()) {
                Some((proof, payload)) if self.is_responder(from, slot, status.turn) => {
                    let decided = DecidedSlot { payload: payload.clone(), proof: proof.clone() };
                    self.send(Recipients::One(from), Message::Decided(Box::new(decided)));
                }
                Some(_) => is_left_to_others = true,
                None => self.send_undecided(from, slot, status),
            }
        }
        // Those whose turn it is may have decided less. Where nothing comes after it that would
        // tell of it, the asker hears that there is more, and asks again.
        if is_left_to_others && !self.is_working() {
            let status = self.own_status();
            self.send(Recipients::One(from), Message::Status(status));
        }
    }

    /// Sends a member of this view what is known of a slot that is undecided here.
    fn send_undecided(&mut self, to: ReplicaId, slot: Height, status: &Status) {
        let Some(known) = self.window.get(slot) else { return };
        if status.view != self.view || status.in_view_change || !self.takes_part() {
            return;
        }
        let is_own = |proposed: &PrePrepare| self.is_primary() && proposed.view == self.view;
        let proposed = known.pre_prepare.clone().filter(is_own);
        let prepared = known.prepared.clone().filter(|known| known.proposal.view == self.view);
        let accepted = known.accepted.filter(|(view, _)| *view == self.view && known.is_stored);
        if let Some(proposed) = proposed {
            self.send(Recipients::One(to), Message::PrePrepare(proposed));
        }
        if let Some(prepared) = &prepared
            && self.rules.collectors
        {
            self.send(Recipients::One(to), Message::Prepare(prepared.clone()));
        }
        self.resend_votes_to(to, slot, accepted, prepared.map(|prepared| prepared.proposal));
    }

    /// Returns `true` if it falls to this member to send a decided slot to another: `f+1` of those
    /// beside that one do, others each turn.
    fn is_responder(&self, to: ReplicaId, slot: Height, turn: u32) -> bool {
        let others = self.members() as u64 - 1;
        let own = u64::from(self.id().0) - u64::from(self.id() > to);
        let turn = slot.0.saturating_add(u64::from(turn) + own);
        turn % others <= self.verifier.committee().faulty_max()
    }

    /// Sends its votes for a slot to a collector that may have missed them.
    fn resend_votes_to(
        &mut self,
        to: ReplicaId,
        slot: Height,
        accepted: Option<(View, Digest)>,
        prepared: Option<Proposal>,
    ) {
        let collects = !self.rules.collectors || self.ranked(self.view, slot).contains(&to);
        if !collects {
            return;
        }
        if let Some((view, digest)) = accepted {
            let proposal = Proposal { view, slot, digest };
            let shares = self.shares(&proposal);
            self.send(Recipients::One(to), Message::SignShare(SignShare { proposal, shares }));
        }
        if let Some(proposal) = prepared {
            let share = self.commit_share(&proposal);
            self.send(Recipients::One(to), Message::CommitShare(share));
        }
    }
}
