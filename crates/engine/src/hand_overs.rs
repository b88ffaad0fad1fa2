//! The end of an epoch, as a quorum of its members certifies it.
//!
//! Who has executed the last height signs what the next epoch begins with, and sends its share to
//! everybody; whoever has a quorum's over one content has the certificate. Until it is here the
//! share goes out again every so often; who has it answers a share with it.
//!
//! ★ A member whose own state is not the certified one hands nothing over.
//!
//! Who has the certificate stays for those who are nearly there: the other members, and newcomers
//! of the next committee that follow it. What they lack of this epoch is served by who is still in
//! it; after a view timeout they go on from a snapshot.

use crate::certifier_output::CertifierOutput;
use crate::successors::Successors;
use crate::{Message, ReplicaConfig};
use quorate_consensus::tally::{Ballots, Collector};
use quorate_consensus::{Misbehaviour, Occupancy};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest, Share, VotingSecret};
use quorate_types::machine::{CombineOutcome, Halt};
use quorate_types::{
    ClientId, Committee, CommitteeFile, HandOver, Height, Purpose, Recipients, ReplicaId,
    SignedHandOver, Time,
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
    /// Members that have executed the last height, by their own word.
    there: Bitmap,
    /// Members of the next epoch.
    next: Successors,
    /// Time at which nobody is waited for any more.
    leave_at: Option<Time>,
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
            there: Bitmap::new(committee.size()),
            next: Successors::unknown(),
            leave_at: None,
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

    /// The epoch ended so here, now or in an earlier run, and the next one has this file.
    pub(crate) fn ended(&mut self, now: Time, content: HandOver, next: &CommitteeFile) {
        if self.own != Some(content) {
            self.own = Some(content);
            self.next = Successors::of(next);
            let there = self.there.clone();
            there.iter().for_each(|member| self.note_there(member));
            self.sign(now);
        }
    }

    /// A learner has the last height.
    pub(crate) fn learner_is_there(&mut self, learner: ClientId) {
        self.next.is_there(&learner.0);
    }

    fn note_there(&mut self, member: usize) {
        self.there.insert(member);
        let id = ReplicaId(u16::try_from(member).expect("members are few"));
        if let Some(key) = self.committee.identity(id) {
            self.next.is_there(key);
        }
    }

    /// Returns `true` if the own state at the epoch's end is known to be of this root.
    pub(crate) fn has_ended_with(&self, root: Digest) -> bool {
        self.own.is_some_and(|own| own.root == root)
    }

    fn sign(&mut self, now: Time) {
        self.send_at = None;
        let Some(content) = self.own.filter(|_| self.signs) else { return };
        // Once in any case, but for what an earlier run had: others stay until they have heard it.
        if self.certified.is_some() && self.leave_at.is_none() {
            return;
        }
        self.send_at = self.certified.is_none().then(|| now + self.again);
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
        if self.certified.is_none() {
            self.count(now, from, content, share);
            return;
        }
        self.note_there(from.index());
        let is_due = self.answered.get(&from).is_none_or(|at| now.since(*at) >= self.again);
        if let Some(certified) = self.certified.as_ref().filter(|_| is_due) {
            self.answered.insert(from, now);
            let answer = Message::HandOver(certified.clone());
            self.output.outbox.push_back((Recipients::One(from), answer));
        }
    }

    fn count(&mut self, now: Time, from: ReplicaId, content: HandOver, share: Share) {
        let scope = self.committee.scope();
        self.note_there(from.index());
        self.ballots.add(from, content, || content.statement(scope), share);
        self.output.jobs.extend(self.ballots.combine(now, &mut self.collector));
    }

    /// A job of this collector's came back.
    pub(crate) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut invalid = Vec::new();
        let made = self.ballots.combined(outcome, &mut self.collector, &mut invalid);
        self.output.misbehaviour.extend(invalid.into_iter().map(Misbehaviour::from));
        match made {
            Some((content, certificate)) => {
                self.learn(now, SignedHandOver { content, certificate });
            }
            None => self.output.jobs.extend(self.ballots.combine(now, &mut self.collector)),
        }
    }

    /// A quorum hands this over, as was checked.
    pub(crate) fn learn(&mut self, now: Time, signed: SignedHandOver) {
        match &self.certified {
            Some(known) if *known == signed => {}
            Some(_) => self.conflict = Some(signed),
            None => {
                (self.certified, self.send_at) = (Some(signed), None);
                self.leave_at = Some(now + self.again);
            }
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

    /// Nobody is waited for any more: all that are expected have the last height, or had the time
    /// for it.
    fn may_leave(&self, now: Time) -> bool {
        let is_time = self.leave_at.is_none_or(|at| at <= now);
        let are_there = self.there.count() == self.committee.size() && self.next.are_all_there();
        are_there || is_time || !self.signs
    }

    /// ★ The certificate, once the own state is what it hands over: once in each run.
    pub(crate) fn take_handed(&mut self, now: Time) -> Option<SignedHandOver> {
        if !self.may_leave(now) {
            return None;
        }
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
        let leave_at = self.leave_at.filter(|_| self.own.is_some() && !self.is_given);
        self.send_at.into_iter().chain(leave_at).min()
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 2] {
        let members = self.committee.size();
        [Occupancy::new("answered", self.answered.len(), members), self.next.occupancy()]
    }
}

#[cfg(test)]
mod tests;
