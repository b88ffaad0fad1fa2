//! Taking certificates in, and entering the views that they lead to.

use super::messages::{Qc, Tc};
use super::records::Lock;
use super::state::Chained;
use crate::Output;
use crate::verifier::WINDOW;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, ReplicaId, Time, View};

impl Chained {
    /// Takes a checked certificate in, wherever it came from: it may decide, and it may end the
    /// view.
    pub(super) fn on_qc(&mut self, now: Time, qc: &Qc) {
        let rules = self.verifier.rules();
        let led = (self.view, self.leader());
        // Deciding may take the block out of the tree.
        let author = self.tree.get(qc.id).map(|block| block.author);
        if qc.outranks(&self.high_qc, rules) && !mutants::active(Mutant::HotStuffStuckHighQc) {
            self.high_qc = qc.clone();
            self.voted = self.voted.split_off(&qc.view.next());
        }
        self.raise_lock(qc);
        if qc.is_commit(rules) {
            self.commit(now, qc);
        }
        if qc.view >= self.high_qc.view {
            self.fetch_if_missing(qc);
        }
        self.advance(now, author);
        self.take_over(led);
        self.try_phase_vote(now);
    }

    /// A certificate that comes after the timeouts of its view may name another leader for the view
    /// that they led to: it proposes, unless somebody did.
    fn take_over(&mut self, (view, leader): (View, ReplicaId)) {
        if self.view == view && self.leader() != leader && self.voted_view < view {
            self.request_payload();
        }
    }

    /// Asks a signer for a certified block that is not here.
    pub(super) fn fetch_if_missing(&mut self, qc: &Qc) {
        if !self.tree.contains(qc.id) && !self.halted {
            let source = qc.certificate.signers.iter().next();
            let source = source.and_then(|i| u16::try_from(i).ok()).map(ReplicaId);
            self.outputs.push_back(Output::Behind { target: qc.id, source });
        }
    }

    /// The parent of a certified block is the new lock, if it is later than the old one; where a
    /// view has several phases, the second one's certificate locks instead. Where that block is
    /// missing the lock waits for it, as its votes do.
    pub(super) fn raise_lock(&mut self, qc: &Qc) {
        if self.verifier.rules().is_phased() {
            return;
        }
        if let Some((view, id)) = self.tree.parent_of(qc.id)
            && view > self.lock.view
        {
            self.lock = Lock { view, id };
        }
    }

    pub(super) fn on_tc(&mut self, now: Time, tc: Tc) {
        self.on_qc(now, &tc.high_qc);
        if self.high_tc.as_ref().is_none_or(|high| tc.view > high.view) {
            self.high_tc = Some(tc);
        }
        self.advance(now, None);
    }

    /// Enters the view that the highest certificates lead to (★: no view without a certificate). If
    /// a block's certificate leads there, this is the author whose view came to something.
    fn advance(&mut self, now: Time, author: Option<ReplicaId>) {
        let by_tc = self.high_tc.as_ref().map_or(View(0), |tc| tc.view);
        let by_qc = self.view_by_qc();
        let target = by_qc.max(by_tc.next());
        if target <= self.view {
            return;
        }
        let timed_out = target != by_qc;
        if timed_out {
            self.on_view_timed_out(by_tc);
        } else if let Some(author) = author {
            self.leader_failures.succeeded(author);
        }
        self.view_changes += u64::from(timed_out);
        self.enter(now, target);
    }

    /// A view timed out: for whom others wait less from now on, and the timer perhaps longer.
    fn on_view_timed_out(&mut self, view: View) {
        let current = if view == self.view { Some(self.leader()) } else { None };
        let leader = current.unwrap_or_else(|| self.leaders.leader(view));
        self.leader_failures.failed(leader);
        self.pacemaker.failed(leader, self.verifier.committee().weights());
    }

    /// The view that the highest certificate leads to.
    pub(super) fn view_by_qc(&self) -> View {
        self.high_qc.leads_to(self.verifier.rules())
    }

    /// Returns `true` if the current view was entered by the highest certificate.
    pub(super) fn entered_by_qc(&self) -> bool {
        self.view_by_qc() == self.view
    }

    /// Timeout certificate that led to the current view, unless the highest certificate did.
    pub(crate) fn entered_by_tc(&self) -> Option<Tc> {
        self.high_tc.clone().filter(|_| !self.entered_by_qc())
    }

    pub(super) fn enter(&mut self, now: Time, view: View) {
        assert!(view >= self.view, "views only grow");
        let is_next = view == self.view.next();
        self.view = view;
        self.verifier.publish(view);
        self.prune();
        // The view depends on its leader to propose and on somebody to collect.
        let depends_on = self.depends_on();
        let is_trusted = depends_on.iter().all(|member| self.leader_failures.trusts(*member));
        self.leader_failures.entered(&depends_on, is_next && self.entered_by_qc());
        self.pacemaker.set_full_span(is_trusted || !self.config.liveness.shorten_failed_turns);
        self.update_work(now);
        self.pacemaker.enter(now);
        self.say_new_view();
        self.request_payload();
        let waiting: Vec<BlockId> =
            self.proposals_seen.get(&view).into_iter().flatten().map(|(id, _)| *id).collect();
        for id in waiting {
            self.try_vote(now, id);
        }
    }

    fn prune(&mut self) {
        let view = self.view;
        self.proposals_seen.retain(|v, _| *v >= view);
        // Blocks of views that went by while their ancestors were asked for still lead to later
        // ones.
        self.parked.retain(|(v, _), _| v.0.saturating_add(WINDOW) >= view.0);
        self.votes.prune(view);
        self.timeouts.prune(view);
        self.tree.prune(View(view.0.saturating_sub(WINDOW)), &self.indispensable());
        let tree = &self.tree;
        self.stored.retain(|id| tree.get(*id).is_some());
    }
}
