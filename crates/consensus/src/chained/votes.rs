//! Voting and collecting votes.

use super::collecting::Subject;
use super::messages::{Block, Message, PhaseVote, Qc, Vote, encode};
use super::records::{LaterVotes, SafetyRecord};
use super::rules::Phase;
use super::state::Chained;
use super::statements::vote_message;
use crate::block_tree::TreeBlock;
use crate::tally::{InvalidShare, Progress, Tally};
use crate::{Evidence, Ignored, MessageKind, Output, Rule};
use bytes::Bytes;
use quorate_crypto::Share;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{CombineOutcome, Record, RecordKind};
use quorate_types::{BlockId, Recipients, ReplicaId, Time, View};
use std::collections::BTreeMap;

impl Chained {
    /// Votes for a block if every rule allows it, durably first.
    pub(super) fn try_vote(&mut self, now: Time, id: BlockId) {
        if let Some(vote) = self.decide_vote(now, id) {
            if !mutants::active(Mutant::ChainedVoteBeforePersist) {
                self.persist();
            }
            self.deliver_vote(now, PhaseVote { phase: Phase::Prepare, vote });
        }
    }

    /// Makes up the vote and promises it in memory; the caller persists the promise before the vote
    /// leaves.
    pub(super) fn decide_vote(&mut self, _now: Time, id: BlockId) -> Option<Vote> {
        let block = self.tree.get(id)?;
        let bodies_here = self.stored.contains(&id) || mutants::active(Mutant::VoteWithoutBodies);
        if block.view != self.view || !bodies_here || !self.config.signs || self.halted {
            return None;
        }
        if block.view <= self.voted_view && !mutants::active(Mutant::ChainedDoubleVote) {
            return None;
        }
        if self.verifier.rules().locks && !self.lock_allows(block) {
            return None;
        }
        let (view, (base_view, base_id)) = (block.view, self.base_of(block)?);
        assert!(base_view < view, "views grow from block to block");
        let share = self.sign_vote(Phase::Prepare, (view, id), (base_view, base_id));
        let vote = Vote { view, id, base_view, base_id, signer: self.config.id, share };
        self.voted_view = view;
        self.voted.insert(view, id);
        self.last_vote = Some(vote.clone());
        self.phases.voted = LaterVotes::default();
        Some(vote)
    }

    pub(super) fn sign_vote(
        &self,
        phase: Phase,
        block: (View, BlockId),
        base: (View, BlockId),
    ) -> Share {
        self.config.voting.sign(&vote_message(&self.verifier, phase, block, base))
    }

    /// The block extends the lock, or its own certificate is later than the lock: then those who
    /// certified it knew of no decision against it (★).
    fn lock_allows(&self, block: &Block) -> bool {
        let shown =
            if mutants::active(Mutant::HotStuffVoidLock) { block.view } else { block.justify.view };
        shown > self.lock.view || self.tree.extends(block.id(), (self.lock.view, self.lock.id))
    }

    /// The ancestor that a certificate of the block may decide.
    fn base_of(&self, block: &Block) -> Option<(View, BlockId)> {
        let parent = (block.justify.view, block.justify.id);
        (1..self.verifier.rules().links()).try_fold(parent, |(_, id), _| self.tree.parent_of(id))
    }

    /// Sends the vote to its collector, who may be ourselves.
    pub(super) fn deliver_vote(&mut self, now: Time, vote: PhaseVote) {
        if self.collects(vote.vote.view, vote.vote.id) {
            let _ = self.count_vote(now, vote);
        } else {
            self.send_vote(vote);
        }
    }

    fn send_vote(&mut self, PhaseVote { phase, vote }: PhaseVote) {
        let collector = Recipients::One(self.collector(vote.view, vote.id));
        let message = match phase {
            Phase::Prepare => Message::Vote(vote),
            Phase::PreCommit | Phase::Commit => Message::PhaseVote(PhaseVote { phase, vote }),
        };
        self.send(collector, message);
    }

    /// The last vote for a block, and those of the same view that followed it, unless the block's
    /// bodies were lost since (★): what others may hear of. None of one that may not sign.
    pub(super) fn said_votes(&self) -> Vec<PhaseVote> {
        let first = self.last_vote.iter().cloned();
        let first = first.map(|vote| PhaseVote { phase: Phase::Prepare, vote });
        let all = first.chain(self.phases.voted.votes.iter().cloned());
        let is_said = |said: &PhaseVote| self.withheld != Some(said.vote.id);
        all.filter(|said| self.config.signs && is_said(said)).collect()
    }

    /// Sends the votes for this block again, byte for byte, if they were the last ones.
    pub(super) fn resend_votes(&mut self, id: BlockId) {
        for said in self.said_votes().into_iter().filter(|said| said.vote.id == id) {
            if !self.collects(said.vote.view, said.vote.id) {
                self.send_vote(said);
            }
        }
    }

    /// Returns `true` if a certificate of these votes would be no news.
    fn is_past(&self, phase: Phase, view: View) -> bool {
        let decided = self.view_by_qc() > view;
        let pre_committed = self.phases.pre_committed.as_ref().map_or(View(0), |qc| qc.view);
        match phase {
            Phase::Prepare => view <= self.high_qc.view,
            Phase::PreCommit => decided || view <= pre_committed,
            Phase::Commit => decided,
        }
    }

    /// Takes a vote in that was sent to us as the collector.
    pub(super) fn on_vote(&mut self, now: Time, from: ReplicaId, said: PhaseVote) {
        assert_eq!(said.vote.signer, from, "a vote is checked to be its sender's");
        let kind = match said.phase {
            Phase::Prepare => MessageKind::Vote,
            Phase::PreCommit | Phase::Commit => MessageKind::PhaseVote,
        };
        if let Some(reason) = self.count_vote(now, said) {
            self.ignored.count(kind, reason);
        }
    }

    fn ignore_vote(&self, phase: Phase, vote: &Vote) -> Option<Ignored> {
        if vote.view.next() < self.view {
            return Some(Ignored::StaleView);
        }
        self.is_past(phase, vote.view).then_some(Ignored::AlreadyCertified)
    }

    /// Counts a vote: sent to us, our own, or found in a timeout. Returns why it was not counted.
    pub(super) fn count_vote(
        &mut self,
        now: Time,
        PhaseVote { phase, vote }: PhaseVote,
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_vote(phase, &vote) {
            return Some(reason);
        }
        let (members, wait) = (self.verifier.committee().size(), self.config.vote_wait);
        let (id, base_view, base_id) = (vote.id, vote.base_view, vote.base_id);
        let subject = Subject { phase, id, base_view, base_id };
        let tallies = self.votes.tallies.entry(vote.view).or_default();
        let is_other = |other: &Subject| other.phase == phase && *other != subject;
        let mut others = tallies.iter().filter(|(o, t)| is_other(o) && t.has(vote.signer));
        let (first, is_third) = (others.next().map(|(other, _)| other.id), others.next().is_some());
        if let Some(first) = first {
            let evidence = Evidence::Conflict { view: vote.view, first: first.0, second: id.0 };
            self.report(vote.signer, Rule::DoubleVote, evidence);
        }
        if is_third {
            return Some(Ignored::Conflicting);
        }
        let message = vote.message(&self.verifier, phase);
        let tallies = self.votes.tallies.entry(vote.view).or_default();
        let tally = tallies.entry(subject).or_insert_with(|| Tally::new(members, wait));
        if !tally.add(vote.signer, (), || message, vote.share) {
            return Some(Ignored::Duplicate);
        }
        assert!(tally.counted().contains(vote.signer.index()));
        let jobs = tally.combine(now, &mut self.collector);
        self.outputs.extend(jobs.into_iter().map(Output::Combine));
        None
    }

    /// Starts what has waited long enough for votes beyond the quorum.
    pub(super) fn combine_ripe_votes(&mut self, now: Time) {
        for tally in self.votes.tallies.values_mut().flat_map(BTreeMap::values_mut) {
            if tally.deadline().is_some_and(|deadline| deadline <= now) {
                let jobs = tally.combine(now, &mut self.collector);
                self.outputs.extend(jobs.into_iter().map(Output::Combine));
            }
        }
    }

    /// A combining job came back: for votes or for timeouts.
    pub(super) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut invalid = Vec::new();
        let certificate = self.certificate_from(now, outcome, &mut invalid);
        self.report_shares(invalid);
        match certificate {
            Some((phase, qc)) => self.on_collected(now, phase, qc),
            None => self.on_combined_timeouts(now, outcome),
        }
    }

    /// Votes became a certificate.
    fn on_collected(&mut self, now: Time, phase: Phase, qc: Qc) {
        self.verifier.remember_qc(self.verifier.rules().kind(phase), &qc);
        self.show_phase(phase, &qc);
        match phase {
            Phase::Prepare | Phase::Commit => self.on_qc(now, &qc),
            Phase::PreCommit => self.take_pre_committed(now, qc),
        }
    }

    fn certificate_from(
        &mut self,
        now: Time,
        outcome: &CombineOutcome,
        invalid: &mut Vec<InvalidShare>,
    ) -> Option<(Phase, Qc)> {
        for (view, tallies) in &mut self.votes.tallies {
            for (subject, tally) in tallies {
                if let Progress::Done(mut certificates) =
                    tally.combined(outcome, &mut self.collector, invalid)
                {
                    let ((), certificate) = certificates.pop()?;
                    let Subject { phase, id, base_view, base_id } = *subject;
                    return Some((phase, Qc { view: *view, id, base_view, base_id, certificate }));
                }
                let jobs = tally.combine(now, &mut self.collector);
                self.outputs.extend(jobs.into_iter().map(Output::Combine));
            }
        }
        None
    }

    pub(super) fn report_shares(&mut self, invalid: Vec<InvalidShare>) {
        self.outputs.extend(invalid.into_iter().map(|share| Output::Misbehaviour(share.into())));
    }

    /// The tips of what must not be lost: the highest certificate's block, and every block voted
    /// for since. A collector may show a certificate for any of these at any time, and then it is
    /// the highest, and somebody must still have the block.
    pub(super) fn indispensable(&self) -> Vec<BlockId> {
        let mut tips = vec![self.high_qc.id];
        tips.extend(self.voted.range(self.high_qc.view.next()..).map(|(_, id)| *id));
        tips
    }

    /// Writes every promise as one record (★).
    pub(super) fn persist(&mut self) {
        let chains = self.tree.chains(&self.indispensable());
        let blocks = chains.iter().map(|block| block.as_ref().clone()).collect();
        let record = SafetyRecord {
            epoch: self.verifier.committee().epoch_id(),
            voted_view: self.voted_view,
            last_vote: self.last_vote.clone(),
            high_qc: self.high_qc.clone(),
            high_tc: self.high_tc.clone(),
            timeout_view: self.timeout_view,
            last_proposal: self.last_proposal.clone(),
            blocks,
            lock: self.verifier.rules().locks.then_some(self.lock),
            later: self.verifier.rules().is_phased().then(|| self.phases.voted.clone()),
        };
        self.outputs.push_back(Output::Persist(Record {
            kind: RecordKind::Safety,
            bytes: Bytes::from(encode(&record)),
        }));
    }
}
