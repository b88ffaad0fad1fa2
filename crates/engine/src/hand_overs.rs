//! The end of an epoch, as a quorum of its members certifies it.
//!
//! Who has executed the last height signs what the next epoch begins with, and sends its share to
//! everybody; whoever has a quorum's over one content has the certificate. Until it is here the
//! share goes out again every so often; who has it answers a share with it.
//!
//! ★ A member whose own state is not the certified one hands nothing over.

use crate::certifier_output::CertifierOutput;
use crate::{Message, ReplicaConfig};
use quorate_consensus::tally::{Ballots, Collector};
use quorate_consensus::{Misbehaviour, Occupancy};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, Share, VotingSecret};
use quorate_types::machine::{CombineOutcome, Halt};
use quorate_types::{
    Committee, HandOver, Height, Purpose, Recipients, ReplicaId, SignedHandOver, Time,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A replica's part in certifying the end of its epoch.
#[derive(Debug)]
pub(crate) struct HandOvers {
    id: ReplicaId,
    committee: Arc<Committee>,
    voting: Arc<VotingSecret>,
    signs: bool,
    collector: Collector,
    /// Between two sends of the own share, and between two answers to one member.
    again: Duration,
    own: Option<HandOver>,
    send_at: Option<Time>,
    ballots: Ballots<HandOver>,
    certified: Option<SignedHandOver>,
    is_recorded: bool,
    is_given: bool,
    /// Time at which each member's share was last answered.
    answered: BTreeMap<ReplicaId, Time>,
    conflict: Option<SignedHandOver>,
    pub(crate) output: CertifierOutput,
}

impl HandOvers {
    /// One whose epoch goes on.
    pub(crate) fn new(config: &ReplicaConfig) -> Self {
        let committee = Arc::clone(config.verifier.committee());
        let collector =
            Collector::new(Arc::clone(&committee), Purpose::HandOver, config.settings.verify);
        Self {
            id: config.id,
            voting: Arc::clone(&config.voting),
            signs: config.signs,
            collector,
            again: config.settings.timeout(),
            own: None,
            send_at: None,
            ballots: Ballots::new(committee.size(), Duration::ZERO),
            certified: None,
            is_recorded: false,
            is_given: false,
            answered: BTreeMap::new(),
            conflict: None,
            output: CertifierOutput::default(),
            committee,
        }
    }

    /// An earlier run recorded this.
    pub(crate) fn recover(&mut self, signed: SignedHandOver) {
        (self.certified, self.is_recorded) = (Some(signed), true);
    }

    /// The epoch ended so here, now or in an earlier run.
    pub(crate) fn ended(&mut self, now: Time, content: HandOver) {
        if self.own != Some(content) {
            self.own = Some(content);
            self.sign(now);
        }
    }

    /// Returns `true` if the own state at the epoch's end is known to be of this root.
    pub(crate) fn has_ended_with(&self, root: Digest) -> bool {
        self.own.is_some_and(|own| own.root == root)
    }

    fn sign(&mut self, now: Time) {
        self.send_at = None;
        let is_open = self.signs && self.certified.is_none();
        let Some(content) = self.own.filter(|_| is_open) else { return };
        self.send_at = Some(now + self.again);
        let statement = content.statement(self.committee.scope());
        let share = self.committee.sign(Purpose::HandOver, &self.voting, &statement);
        self.output
            .outbox
            .push_back((Recipients::All, Message::HandOverShare(content, share.clone())));
        self.count(now, self.id, content, share);
    }

    /// ★ Signs no more, and drops what has not left: its records are older than its signatures.
    pub(crate) fn stop_signing(&mut self) {
        (self.signs, self.send_at) = (false, None);
        self.output.outbox.clear();
    }

    /// A member's share, its signature unchecked. Who sends one has not seen the certificate.
    pub(crate) fn on_share(&mut self, now: Time, from: ReplicaId, content: HandOver, share: Share) {
        let Some(certified) = &self.certified else {
            self.count(now, from, content, share);
            return;
        };
        let is_due = self.answered.get(&from).is_none_or(|at| now.since(*at) >= self.again);
        if is_due {
            self.answered.insert(from, now);
            let answer = Message::HandOver(certified.clone());
            self.output.outbox.push_back((Recipients::One(from), answer));
        }
    }

    fn count(&mut self, now: Time, from: ReplicaId, content: HandOver, share: Share) {
        let scope = self.committee.scope();
        self.ballots.add(from, content, || content.statement(scope), share);
        self.output.jobs.extend(self.ballots.combine(now, &mut self.collector));
    }

    /// A job of this collector's came back.
    pub(crate) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut invalid = Vec::new();
        let made = self.ballots.combined(outcome, &mut self.collector, &mut invalid);
        self.output.misbehaviour.extend(invalid.into_iter().map(Misbehaviour::from));
        match made {
            Some((content, certificate)) => self.learn(SignedHandOver { content, certificate }),
            None => self.output.jobs.extend(self.ballots.combine(now, &mut self.collector)),
        }
    }

    /// A quorum hands this over, as was checked.
    pub(crate) fn learn(&mut self, signed: SignedHandOver) {
        match &self.certified {
            Some(known) if *known == signed => {}
            Some(_) => self.conflict = Some(signed),
            None => (self.certified, self.send_at) = (Some(signed), None),
        }
    }

    /// The certificate, once it is here.
    pub(crate) fn certified(&self) -> Option<&SignedHandOver> {
        self.certified.as_ref()
    }

    /// The certificate, once: to be made durable.
    pub(crate) fn take_unrecorded(&mut self) -> Option<SignedHandOver> {
        let new = self.certified.clone().filter(|_| !self.is_recorded);
        self.is_recorded = self.certified.is_some();
        new
    }

    /// ★ The certificate, once the own state is what it hands over: once in each run.
    pub(crate) fn take_handed(&mut self) -> Option<SignedHandOver> {
        let trusts = mutants::active(Mutant::HandOverTrustOwn);
        let is_own =
            |signed: &SignedHandOver| self.own.is_some_and(|own| own == signed.content || trusts);
        let handed = self.certified.clone().filter(|signed| !self.is_given && is_own(signed));
        self.is_given |= handed.is_some();
        handed
    }

    /// The height at which the own state is not the certified one.
    pub(crate) fn diverged(&self) -> Option<Height> {
        let certified = self.certified.as_ref()?.content;
        let own = self.own.filter(|own| *own != certified)?;
        // The block and the file are what the protocol decided: the state alone is this member's.
        let is_same = HandOver { root: certified.root, ..own } == certified;
        is_same.then_some(own.height)
    }

    /// Two hand-overs of one epoch, if there are: nothing after them can be trusted.
    pub(crate) fn halt(&self) -> Option<Halt> {
        let first = self.certified.as_ref()?;
        let own = self.own.filter(|own| *own != first.content && self.diverged().is_none());
        let second = match (&self.conflict, own) {
            (Some(second), _) => format!("{second:?}"),
            (None, Some(own)) => format!("{own:?}, which came out here"),
            (None, None) => return None,
        };
        let evidence = format!("{first:?} and {second}");
        Some(Halt::ConflictingHandOvers { height: first.content.height, evidence })
    }

    /// Sends the share again.
    pub(crate) fn due(&mut self, now: Time) {
        if self.send_at.is_some_and(|at| at <= now) {
            self.sign(now);
        }
    }

    /// When [`HandOvers::due`] has something.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.send_at
    }

    pub(crate) fn occupancy(&self, members: usize) -> Occupancy {
        Occupancy::new("answered", self.answered.len(), members)
    }
}

#[cfg(test)]
mod tests;
