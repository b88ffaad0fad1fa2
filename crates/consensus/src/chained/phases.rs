//! Views of several phases: what comes after the first certificate of a block, until the last
//! decides it.
//!
//! The leader shows each certificate that it collects, and whoever holds it votes in the phase that
//! it begins; the last one ends the view, and everybody tells the next leader so.

use super::messages::{Message, PhaseVote, Qc, Vote};
use super::records::{LaterVotes, Lock};
use super::rules::Phase;
use super::state::Chained;
use crate::{Ignored, MessageKind};
use quorate_crypto::Bitmap;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Purpose, Recipients, ReplicaId, Time, View};

impl Chained {
    /// Votes in the phase that the view has come to, if every rule allows it, durably first (★).
    pub(super) fn try_phase_vote(&mut self, now: Time) {
        let Some((phase, qc)) = self.phase_reached() else { return };
        let (view, id) = (qc.view, qc.id);
        let base = if phase == Phase::Commit { (view, id) } else { (qc.base_view, qc.base_id) };
        if self.may_vote_in(phase, view, id) {
            let vote = self.promise_phase_vote(phase, (view, id), base);
            if !mutants::active(Mutant::BasicVoteBeforePersist) {
                self.persist();
            }
            self.deliver_vote(now, PhaseVote { phase, vote });
        }
    }

    /// The latest phase of the current view that a certificate begins.
    fn phase_reached(&self) -> Option<(Phase, &Qc)> {
        if !self.verifier.rules().is_phased() {
            return None;
        }
        let is_current = |qc: &&Qc| qc.view == self.view;
        let locked = self.phases.pre_committed.as_ref().filter(is_current);
        let prepared = Some(&self.high_qc).filter(is_current);
        locked.map(|qc| (Phase::Commit, qc)).or(prepared.map(|qc| (Phase::PreCommit, qc)))
    }

    /// In no phase of a view twice, and never back (★); with block and bodies here, for whoever is
    /// asked for them.
    fn may_vote_in(&self, phase: Phase, view: View, id: BlockId) -> bool {
        let is_new = (view, phase) > (self.voted_view, self.phases.voted.voted)
            || mutants::active(Mutant::BasicVoteTwiceInPhase);
        let is_here = self.tree.get(id).is_some() && self.stored.contains(&id);
        is_new && is_here && self.config.signs && !self.halted
    }

    fn promise_phase_vote(
        &mut self,
        phase: Phase,
        (view, id): (View, BlockId),
        (base_view, base_id): (View, BlockId),
    ) -> Vote {
        let share = self.sign_vote(phase, (view, id), (base_view, base_id));
        let vote = Vote { view, id, base_view, base_id, signer: self.config.id, share };
        if view > self.voted_view {
            self.phases.voted = LaterVotes::default();
        }
        // What is said of a view is of one block.
        self.last_vote = self.last_vote.take().filter(|first| first.id == id);
        self.voted_view = view;
        self.voted.insert(view, id);
        self.phases.voted.voted = phase;
        self.phases.voted.votes.push(PhaseVote { phase, vote: vote.clone() });
        vote
    }

    /// The leader's certificate of pre-commit votes.
    pub(super) fn on_pre_committed(&mut self, now: Time, qc: Qc) {
        match self.ignore_pre_committed(&qc) {
            Some(reason) => self.ignored.count(MessageKind::PreCommitted, reason),
            None => self.take_pre_committed(now, qc),
        }
    }

    fn ignore_pre_committed(&self, qc: &Qc) -> Option<Ignored> {
        let known = self.phases.pre_committed.as_ref();
        known.filter(|known| known.view >= qc.view).map(|_| Ignored::AlreadyCertified)
    }

    /// A certificate of pre-commit votes locks (★): its block may be decided from here on.
    pub(super) fn take_pre_committed(&mut self, now: Time, qc: Qc) {
        if mutants::active(Mutant::BasicDecideOnPreCommit) {
            self.commit(now, &Qc { base_view: qc.view, base_id: qc.id, ..qc.clone() });
        }
        if self.ignore_pre_committed(&qc).is_some() {
            return;
        }
        if qc.view > self.lock.view && !mutants::active(Mutant::BasicNoLock) {
            self.lock = Lock { view: qc.view, id: qc.id };
        }
        self.fetch_if_missing(&qc);
        self.phases.pre_committed = Some(qc);
        self.try_phase_vote(now);
    }

    /// As the leader of the view: what its votes have come to begins the next phase for all.
    pub(super) fn show_phase(&mut self, phase: Phase, qc: &Qc) {
        if !self.verifier.rules().is_phased() || qc.view != self.view || !self.leads() {
            return;
        }
        match phase {
            Phase::Prepare => self.show_qc(Recipients::All, qc.clone()),
            Phase::PreCommit => self.send(Recipients::All, Message::PreCommitted(qc.clone())),
            // It is shown when it decides.
            Phase::Commit => {}
        }
    }

    /// Shows again what the current view has come to.
    pub(super) fn show_phases_again(&mut self) {
        let pre_committed = self.phases.pre_committed.clone();
        self.show_phase(Phase::Prepare, &self.high_qc.clone());
        if let Some(qc) = pre_committed {
            self.show_phase(Phase::PreCommit, &qc);
        }
    }

    /// A view was entered: its leader hears of it, if a decision led here. A timeout certificate
    /// stands for the new-views of those in it.
    pub(super) fn say_new_view(&mut self) {
        self.phases.new_views.clear();
        let rules = self.verifier.rules();
        let decided = self.high_qc.is_commit(rules) && self.high_qc.view.next() == self.view;
        let begins = self.view == View(1);
        if !rules.is_phased() || !decided || begins || !self.config.signs {
            return;
        }
        let leader = self.leader();
        if leader == self.config.id {
            self.phases.new_views.insert(leader.index());
        } else {
            self.send(Recipients::One(leader), Message::NewView(self.high_qc.clone()));
        }
    }

    pub(super) fn on_new_view(&mut self, now: Time, from: ReplicaId, qc: &Qc) {
        self.on_qc(now, qc);
        if let Some(reason) = self.ignore_new_view(qc) {
            self.ignored.count(MessageKind::NewView, reason);
            return;
        }
        assert!(from.index() < self.verifier.committee().size());
        let waited = !self.may_propose();
        self.phases.new_views.insert(from.index());
        if waited && self.may_propose() {
            self.request_payload();
            self.show_decision_to_the_silent();
        }
    }

    /// Asked after its certificate was taken in, which leads to its view at least.
    fn ignore_new_view(&self, qc: &Qc) -> Option<Ignored> {
        if qc.view.next() != self.view {
            return Some(Ignored::StaleView);
        }
        (!self.leads()).then_some(Ignored::NotLeader)
    }

    /// While there is work the next proposal shows what was decided. When there is none, whoever
    /// was left out by the leader before would hear of it from nobody.
    fn show_decision_to_the_silent(&mut self) {
        if self.pacemaker.is_working() || !self.config.signs {
            return;
        }
        let said = |member: &ReplicaId| self.phases.new_views.contains(&member.index());
        let members = self.verifier.committee().members();
        let silent: Vec<ReplicaId> = members.filter(|member| !said(member)).collect();
        for member in silent {
            self.show_qc(Recipients::One(member), self.high_qc.clone());
        }
    }

    /// With several phases a view: a timeout certificate, or a quorum of new-views, shows that no
    /// block can be locked above the highest certificate.
    pub(super) fn may_propose(&self) -> bool {
        let phased = self.verifier.rules().is_phased();
        let after_timeouts = self.high_tc.as_ref().is_some_and(|tc| tc.view.next() == self.view);
        !phased
            || self.view == View(1)
            || after_timeouts
            || self.has_new_views()
            || mutants::active(Mutant::BasicNoNewViews)
    }

    fn has_new_views(&self) -> bool {
        let committee = self.verifier.committee();
        let senders = self.phases.new_views.iter().copied();
        committee.are_enough(Purpose::Vote, &Bitmap::from_indices(committee.size(), senders))
    }
}
