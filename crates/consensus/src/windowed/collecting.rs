//! Normal case at a collector: votes in, certificates and proofs out (paper 002 §V-B, §V-C, §V-E).
//!
//! The first collector of a slot acts when it can; each later one waits for its turn, and acts only
//! if none before it did (§V-E: staggered, the primary last). In PBFT every member collects for
//! itself.

use super::messages::{CommitShare, SignShare};
use super::slot_votes::{INTERPOLATION_TIME, Lags, SlotVotes, Waits};
use super::state::Windowed;
use super::values::{Path, Proof, Proposal, Shares, SlotCertificate};
use crate::tally::{Ballots, InvalidShare};
use crate::{Evidence, Ignored, Output, Rule};
use quorate_crypto::{Certificate, Digest, Share};
use quorate_types::machine::{CombineJob, CombineOutcome};
use quorate_types::{Height, Kind, Purpose, ReplicaId, Time, View};

impl Windowed {
    /// Member's vote, its share unchecked until it is combined (§V-C, §V-E).
    pub(super) fn on_sign_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        share: SignShare,
    ) -> Option<Ignored> {
        self.add_sign_share(now, from, share.proposal, share.shares)
    }

    /// Member's vote to commit, unchecked likewise (§V-E).
    pub(super) fn on_commit_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        share: CommitShare,
    ) -> Option<Ignored> {
        self.add_commit_share(now, from, share.proposal, share.share)
    }

    pub(super) fn add_sign_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        proposal: Proposal,
        shares: Shares,
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_vote(&proposal) {
            return Some(reason);
        }
        self.collect(proposal.view, proposal.slot);
        self.report_double_vote(from, proposal, |votes| &votes.prepares);
        let votes = self.window.votes(proposal.view, proposal.slot)?;
        let SlotVotes { earlier, prepares_turn, .. } = votes;
        prepares_turn.start(|| now + self.collector_backoff.delay_after(now, earlier));
        let statement = || self.verifier.statement(Kind::Prepare, &proposal);
        let is_new = votes.prepares.add(from, proposal.digest, statement, shares.slow);
        let committee = self.verifier.committee();
        let may_decide =
            self.rules.fast_path && (shares.fast.is_some() || !committee.splits_keys());
        if let Some(fast) = shares.fast {
            votes.fast.add(from, proposal.digest, statement, fast);
        }
        let lags = if may_decide { votes.lags(now, from, committee) } else { Lags::default() };
        if let Some(lag) = lags.fast {
            self.fast_timer.observed(lag);
        }
        if let Some(lag) = lags.whole.filter(|lag| *lag <= INTERPOLATION_TIME) {
            self.whole_timer.observed(lag);
        }
        self.combine_votes(now, proposal.view, proposal.slot);
        (!is_new).then_some(Ignored::Duplicate)
    }

    pub(super) fn add_commit_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        proposal: Proposal,
        share: Share,
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_vote(&proposal) {
            return Some(reason);
        }
        self.collect(proposal.view, proposal.slot);
        self.report_double_vote(from, proposal, |votes| &votes.commits);
        let votes = self.window.votes(proposal.view, proposal.slot)?;
        let SlotVotes { earlier, commits_turn, .. } = votes;
        commits_turn.start(|| now + self.collector_backoff.delay_after(now, earlier));
        let statement = || self.verifier.statement(Kind::Commit, &proposal);
        let is_new = votes.commits.add(from, proposal.digest, statement, share);
        self.combine_votes(now, proposal.view, proposal.slot);
        (!is_new).then_some(Ignored::Duplicate)
    }

    /// A member votes for one value of a slot and view.
    fn report_double_vote(
        &mut self,
        from: ReplicaId,
        Proposal { view, slot, digest: second, .. }: Proposal,
        ballots: fn(&SlotVotes) -> &Ballots<Digest>,
    ) {
        let Some(votes) = self.window.votes(view, slot) else { return };
        let first = ballots(votes).stated_by(from).copied();
        if let Some(first) = first.filter(|first| *first != second) {
            self.report(from, Rule::DoubleVote, Evidence::Conflict { view, first, second });
        }
    }

    /// Reason to ignore a vote: it is neither of this view nor of the next, its slot is decided or
    /// not within the window, or others collect it.
    fn ignore_vote(&self, proposal: &Proposal) -> Option<Ignored> {
        let Proposal { view, slot, .. } = *proposal;
        if view < self.view {
            return Some(Ignored::StaleView);
        }
        if view > self.view.next() {
            return Some(Ignored::FutureView);
        }
        if !self.window.covers(slot) {
            return Some(Ignored::OutsideWindow);
        }
        match self.window.get(slot) {
            Some(known) if known.proof.is_some() => Some(Ignored::AlreadyDecided),
            Some(known) if known.votes.contains_key(&view) => None,
            _ => self.earlier(view, slot).is_none().then_some(Ignored::NotCollector),
        }
    }

    /// Learns from a certificate how long collectors take.
    pub(super) fn observe_collector(&mut self, now: Time, from: ReplicaId, slot: Height) {
        if !self.rules.collectors {
            return;
        }
        let voted_at = self.window.get_mut(slot).and_then(|known| known.voted_at.take());
        if let Some(voted_at) = voted_at {
            self.collector_backoff.observed(from, now.since(voted_at));
        }
    }

    /// Backs off from the collectors before this one, which missed their turns.
    fn back_off_earlier(&mut self, now: Time, view: View, slot: Height) {
        if let Some(collecting) = self.window.votes(view, slot) {
            self.collector_backoff.timed_out(now, &collecting.earlier);
        }
    }

    /// Begins to collect the votes of a slot in a view, as one of its collectors.
    fn collect(&mut self, view: View, slot: Height) {
        let is_new = self.window.get(slot).is_none_or(|known| !known.votes.contains_key(&view));
        if let Some(earlier) = self.earlier(view, slot).filter(|_| is_new) {
            let votes = SlotVotes::new(self.members(), self.waits_at(slot), earlier);
            self.window.open(slot).expect("covered").votes.insert(view, votes);
        }
    }

    fn waits_at(&self, slot: Height) -> Waits {
        if !self.rules.fast_path {
            return Waits::default();
        }
        Waits { fast: self.fast_timer.wait_at(slot), whole: self.whole_timer.wait_at(slot) }
    }

    /// Collectors of a slot before this one; `None` if this replica is none of them.
    fn earlier(&self, view: View, slot: Height) -> Option<Vec<ReplicaId>> {
        if !self.rules.collectors {
            return Some(Vec::new());
        }
        let mut ranked = self.ranked(view, slot);
        let rank = ranked.iter().position(|member| *member == self.id())?;
        ranked.truncate(rank);
        Some(ranked)
    }

    /// Starts the combining jobs that are ripe; `true` if there are any.
    fn combine_votes(&mut self, now: Time, view: View, slot: Height) -> bool {
        let is_over = self.in_view_change || view != self.view;
        let splits = self.verifier.committee().splits_keys();
        let Some(known) = self.window.get_mut(slot).filter(|_| !is_over) else { return false };
        let shown = known.is_certified_in(view);
        let Some(collecting) = known.votes.get_mut(&view) else { return false };
        collecting.prepared |= shown;
        let mut jobs: Vec<CombineJob> = Vec::new();
        if collecting.prepares_turn.has_come(now) {
            if splits && self.rules.fast_path {
                jobs.extend(collecting.fast.combine(now, &mut self.fast_collector));
            }
            if !collecting.prepared && !collecting.is_fast_imminent() {
                jobs.extend(collecting.prepares.combine(now, &mut self.collector));
            }
        }
        if collecting.commits_turn.has_come(now) {
            jobs.extend(collecting.commits.combine(now, &mut self.collector));
        }
        let is_any = !jobs.is_empty();
        self.outputs.extend(jobs.into_iter().map(Output::Combine));
        is_any
    }

    /// Combines votes whose waits are over.
    pub(super) fn combine_due(&mut self, now: Time) {
        let is_due = |collecting: &SlotVotes| collecting.deadline().is_some_and(|at| at <= now);
        let view = self.view;
        let due: Vec<Height> = self
            .window
            .after(self.decided)
            .filter(|(_, slot)| slot.votes.get(&view).is_some_and(is_due))
            .map(|(slot, _)| slot)
            .collect();
        for slot in due {
            let acts = self.combine_votes(now, view, slot);
            if acts && self.rules.collectors {
                self.back_off_earlier(now, view, slot);
            }
        }
    }

    /// Time at which [`Windowed::combine_due`] has something to combine.
    pub(super) fn combine_deadline(&self) -> Option<Time> {
        if self.in_view_change {
            return None;
        }
        let undelivered = self.window.after(self.decided);
        let collecting = undelivered.filter_map(|(_, slot)| slot.votes.get(&self.view));
        collecting.filter_map(SlotVotes::deadline).min()
    }

    /// Result of a combining job: a certificate, or members whose shares are bad.
    pub(super) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut invalid = Vec::new();
        let made = self.take_combined(outcome, &mut invalid);
        self.outputs.extend(invalid.into_iter().map(|share| Output::Misbehaviour(share.into())));
        let Some((view, slot, made)) = made else { return };
        let proposal = |digest| Proposal { view, slot, digest };
        match made {
            Made::Prepared(digest, certificate) => {
                let certificate = SlotCertificate { proposal: proposal(digest), certificate };
                self.on_prepared(now, certificate);
            }
            Made::Fast(digest, certificate) => {
                let certificate = SlotCertificate { proposal: proposal(digest), certificate };
                self.remember_certificate(Kind::Prepare, Purpose::Fast, &certificate);
                self.broadcast_proof(now, Proof { path: Path::Fast, certificate });
            }
            Made::Committed(digest, certificate) => {
                let certificate = SlotCertificate { proposal: proposal(digest), certificate };
                self.remember_certificate(Kind::Commit, Purpose::Vote, &certificate);
                self.broadcast_proof(now, Proof { path: Path::Slow, certificate });
            }
            Made::Nothing => drop(self.combine_votes(now, view, slot)),
        }
    }

    fn take_combined(
        &mut self,
        outcome: &CombineOutcome,
        invalid: &mut Vec<InvalidShare>,
    ) -> Option<(View, Height, Made)> {
        for (slot, known) in self.window.after_mut(self.decided) {
            for (view, collecting) in &mut known.votes {
                let made = if collecting.prepares.awaits(outcome.id) {
                    let made = collecting.prepares.combined(outcome, &mut self.collector, invalid);
                    made.map(|(digest, made)| Made::Prepared(digest, made))
                } else if collecting.fast.awaits(outcome.id) {
                    let made = collecting.fast.combined(outcome, &mut self.fast_collector, invalid);
                    made.map(|(digest, made)| Made::Fast(digest, made))
                } else if collecting.commits.awaits(outcome.id) {
                    let made = collecting.commits.combined(outcome, &mut self.collector, invalid);
                    made.map(|(digest, made)| Made::Committed(digest, made))
                } else {
                    continue;
                };
                return Some((*view, slot, made.unwrap_or(Made::Nothing)));
            }
        }
        None
    }

    /// Certificate of a quorum's votes or more: where one key serves both thresholds, one by all
    /// but the redundant members is a fast proof (§V-C); otherwise it prepares (§V-E).
    fn on_prepared(&mut self, now: Time, certificate: SlotCertificate) {
        let committee = self.verifier.committee();
        let signers = &certificate.certificate.signers;
        let decides = self.rules.fast_path
            && !committee.splits_keys()
            && committee.are_enough(Purpose::Fast, signers);
        if decides {
            self.remember_certificate(Kind::Prepare, Purpose::Fast, &certificate);
            self.broadcast_proof(now, Proof { path: Path::Fast, certificate });
            return;
        }
        self.remember_certificate(Kind::Prepare, Purpose::Vote, &certificate);
        self.broadcast_prepare(now, certificate);
    }

    /// Remembers a certificate made here: it needs no check when it comes back.
    fn remember_certificate(&self, kind: Kind, purpose: Purpose, certificate: &SlotCertificate) {
        self.verifier.remember_slot(kind, purpose, certificate);
    }
}

/// Certificate that a combining job made, by the votes in it.
enum Made {
    Prepared(Digest, Certificate),
    Fast(Digest, Certificate),
    Committed(Digest, Certificate),
    Nothing,
}
