//! Giving a view up, and collecting those who did.

use super::messages::{Message, PhaseVote, Tc, Timeout, Vote};
use super::rules::Phase;
use super::state::Chained;
use super::statements::timeout_message;
use crate::tally::{Progress, Tally};
use crate::{Ignored, MessageKind, Output};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::CombineOutcome;
use quorate_types::{Recipients, ReplicaId, Time, View};
use std::time::Duration;

impl Chained {
    /// The view has taken too long, or enough others say so: promises what that binds it to (★),
    /// says so, and says so again each time the timer fires.
    pub(super) fn time_out(&mut self, now: Time) {
        if !self.config.signs {
            return;
        }
        let timeout = match self.last_timeout.take().filter(|last| last.view == self.view) {
            Some(said) => said,
            None => self.promise_timeout(),
        };
        // Where a vote may follow a timeout, the next one shows it.
        let timeout = Timeout { last_vote: self.shown_vote(), ..timeout };
        self.last_timeout = Some(timeout.clone());
        self.send(self.hears_timeouts(), Message::Timeout(timeout.clone()));
        self.pacemaker.rearm(now);
        if mutants::active(Mutant::ChainedEnterUncertified) {
            self.enter(now, self.view.next());
        }
        // The own vote went to the collector alone: with the others' from their timeouts, it may
        // make the certificate that the collector withheld.
        for said in self.said_votes() {
            let _ = self.count_vote(now, said);
        }
        // Also after a restart, when the promise is older than the tally; a repeat is dropped.
        let _ = self.count_timeout(now, timeout);
    }

    /// The vote that a timeout shows, for others to collect in the place of who did not: the last
    /// one, or the one before where a quorum of the last would decide nothing.
    fn shown_vote(&self) -> Option<Vote> {
        if !self.config.liveness.vote_salvage || mutants::active(Mutant::HotStuffNoSalvage) {
            return None;
        }
        let is_shown = |said: &PhaseVote| said.phase != Phase::PreCommit;
        self.said_votes().into_iter().rfind(is_shown).map(|said| said.vote)
    }

    /// All, not the next leader alone: it may be as dead as this one.
    fn hears_timeouts(&self) -> Recipients {
        if mutants::active(Mutant::HotStuffComplainToNext) {
            return Recipients::One(self.leaders.leader(self.view.next()));
        }
        Recipients::All
    }

    /// Promises, durably, that the certificate reported is the least that any later timeout
    /// reports, and where the protocol asks for it never to vote in this view again.
    fn promise_timeout(&mut self) -> Timeout {
        let ends_voting = self.verifier.rules().timeout_ends_voting;
        if ends_voting && !mutants::active(Mutant::ChainedVoteAfterTimeout) {
            self.voted_view = self.voted_view.max(self.view);
        }
        self.timeout_view = self.view;
        // A vote that nobody may hear of now is never heard of: none that is older follows a
        // timeout.
        self.forget_withheld_votes();
        if !mutants::active(Mutant::ChainedTimeoutBeforePersist) {
            self.persist();
        }
        let message = timeout_message(&self.verifier, self.view, self.high_qc.view);
        Timeout {
            view: self.view,
            high_qc: self.high_qc.clone(),
            high_tc: self.entered_by_tc(),
            last_vote: self.shown_vote(),
            signer: self.config.id,
            share: self.config.voting.sign(&message),
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time, from: ReplicaId, timeout: Timeout) {
        assert_eq!(timeout.signer, from, "a timeout is checked to be its sender's");
        self.answer_timeout(&timeout);
        if let Some(reason) = self.ignore_timeout(&timeout) {
            self.ignored.count(MessageKind::Timeout, reason);
            // Its certificates were not checked. But a quorum of timeouts may have been one without
            // its vote: whoever withholds a certificate is quick to complain.
            if !mutants::active(Mutant::HotStuffDropLateVotes) {
                self.take_shown_vote(now, &timeout);
            }
            return;
        }
        if !self.pacemaker.is_working() {
            self.show_last_decision(timeout.signer);
        }
        self.on_qc(now, &timeout.high_qc);
        if let Some(tc) = timeout.high_tc.clone() {
            self.on_tc(now, tc);
        }
        self.take_shown_vote(now, &timeout);
        if timeout.view == self.view
            && let Some(reason) = self.count_timeout(now, timeout)
        {
            self.ignored.count(MessageKind::Timeout, reason);
        }
    }

    fn ignore_timeout(&self, timeout: &Timeout) -> Option<Ignored> {
        (timeout.view < self.view).then_some(Ignored::StaleView)
    }

    /// Shows the own certificates to whoever knows less.
    fn answer_timeout(&mut self, timeout: &Timeout) {
        let knows_less = timeout.view == self.view && timeout.high_qc.view < self.high_qc.view;
        if timeout.view < self.view || knows_less {
            // The answer moves its sender; or it decides what the sender waits for, while everybody
            // else is idle in the same view.
            let by_qc = self.view_by_qc();
            let certificates = Message::Certificates {
                high_qc: self.high_qc.clone(),
                high_tc: self.high_tc.clone().filter(|tc| tc.view.next() > by_qc),
            };
            self.send(Recipients::One(timeout.signer), certificates);
        }
    }

    fn take_shown_vote(&mut self, now: Time, timeout: &Timeout) {
        if let Some(vote) = timeout.last_vote.clone() {
            let phase = self.verifier.rules().phase_of(vote.view, vote.base_view);
            let _ = self.count_vote(now, PhaseVote { phase, vote });
        }
    }

    /// For us everything is decided, for the other it is not: it missed the certificate that
    /// decided, and a later one that decides nothing may hide it.
    pub(super) fn show_last_decision(&mut self, to: ReplicaId) {
        if let Some(high_qc) = self.last_commit.clone() {
            self.show_qc(Recipients::One(to), high_qc);
        }
    }

    /// Counts a timeout of the current view: enough of them and this replica joins; a quorum and
    /// they become a certificate. Returns why it was not counted.
    fn count_timeout(&mut self, now: Time, timeout: Timeout) -> Option<Ignored> {
        let committee = self.verifier.committee();
        let (view, reported) = (timeout.view, timeout.high_qc.view);
        let message = timeout_message(&self.verifier, view, reported);
        let tally = self
            .timeouts
            .tallies
            .entry(view)
            .or_insert_with(|| Tally::new(committee.size(), Duration::ZERO));
        if !tally.add(timeout.signer, reported, || message, timeout.share) {
            return Some(Ignored::Duplicate);
        }
        self.timeouts.reported.insert((view, reported), timeout.high_qc);
        let join = committee.includes_honest(tally.counted()) && self.timeout_view < view;
        if join {
            self.time_out(now);
        }
        self.combine_timeouts(now, view);
        None
    }

    fn combine_timeouts(&mut self, now: Time, view: View) {
        if let Some(tally) = self.timeouts.tallies.get_mut(&view) {
            let jobs = tally.combine(now, &mut self.collector);
            self.outputs.extend(jobs.into_iter().map(Output::Combine));
        }
    }

    pub(super) fn on_combined_timeouts(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut invalid = Vec::new();
        let mut done = None;
        for (view, tally) in &mut self.timeouts.tallies {
            if let Progress::Done(groups) =
                tally.combined(outcome, &mut self.collector, &mut invalid)
            {
                done = Some((*view, groups));
                break;
            }
        }
        self.report_shares(invalid);
        let Some((view, groups)) = done else {
            self.combine_timeouts(now, self.view);
            return;
        };
        let Some(highest) = groups.last().map(|(reported, _)| *reported) else {
            return;
        };
        let Some(high_qc) = self.timeouts.reported.get(&(view, highest)).cloned() else {
            return;
        };
        let tc = Tc { view, high_qc, groups };
        self.verifier.remember_tc(&tc);
        self.broadcast_tc(tc.clone());
        self.on_tc(now, tc);
    }

    fn broadcast_tc(&mut self, tc: Tc) {
        let high_qc = tc.high_qc.clone();
        self.send(Recipients::All, Message::Certificates { high_qc, high_tc: Some(tc) });
    }
}
