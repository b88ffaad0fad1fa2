//! The log of everything signed about slots, kept outside the replicas and across their restarts.
//!
//! A correct member votes for one value a slot and view, says nothing for views that it gave up,
//! and tells the next primary everything that it said: of every slot that is not stable the last
//! value that it voted for, and the last that it voted to decide. What it passes on is signed by
//! enough.

use super::{Observation, Oracle};
use quorate_consensus::windowed::{
    FastReport, Message as Statement, Path, Proof, Proposal, SlotCertificate, SlotReport,
    SlowReport, ViewChange,
};
use quorate_crypto::Digest;
use quorate_engine::Message;
use quorate_types::{Height, ReplicaId, View};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that no correct member contradicts itself, and weighs what certifies slots.
#[derive(Clone, Debug)]
pub struct Slots {
    members: usize,
    redundant: usize,
    /// `true` if members that accepted a value must report it: there is a fast path.
    reports_accepted: bool,
    /// Certificates are not looked at: too many members are faulty.
    members_only: bool,
    said: BTreeMap<ReplicaId, Member>,
    prepared: BTreeMap<(View, Height), Digest>,
}

/// Statements of one member so far.
#[derive(Clone, Debug, Default)]
struct Member {
    votes: BTreeMap<(Height, View), Digest>,
    commits: BTreeMap<(Height, View), Digest>,
    proposed: BTreeMap<(Height, View), Digest>,
    given_up: View,
    /// View changes that were judged: they are shown to others again.
    changes: BTreeSet<Digest>,
}

impl Slots {
    /// For so many members, of whom some are redundant.
    #[must_use]
    pub fn new(members: usize, redundant: usize, reports_accepted: bool) -> Self {
        Self {
            members,
            redundant,
            reports_accepted,
            members_only: false,
            said: BTreeMap::new(),
            prepared: BTreeMap::new(),
        }
    }

    /// More members are faulty than is tolerated: still no correct member contradicts itself.
    #[must_use]
    pub fn of_members(self) -> Self {
        Self { members_only: true, ..self }
    }

    fn certificate(
        &mut self,
        what: &str,
        needed: usize,
        certificate: &SlotCertificate,
    ) -> Result<(), String> {
        if self.members_only {
            return Ok(());
        }
        let SlotCertificate { proposal, certificate } = certificate;
        let signers = certificate.signers.iter().count();
        if signers < needed {
            return Err(format!("{what} of {proposal:?} is signed by {signers}, not {needed}"));
        }
        let known = *self.prepared.entry((proposal.view, proposal.slot)).or_insert(proposal.digest);
        let same = known == proposal.digest;
        let text = || {
            format!(
                "in {} both {known} and {} are certified for {}",
                proposal.view, proposal.digest, proposal.slot
            )
        };
        same.then_some(()).ok_or_else(text)
    }

    fn quorum(&self) -> usize {
        let faulty = (self.members - 1 - 2 * self.redundant) / 3;
        (self.members + faulty) / 2 + 1
    }

    fn proof(&mut self, proof: &Proof) -> Result<(), String> {
        let needed = match proof.path {
            Path::Fast => self.members - self.redundant,
            Path::Slow => self.quorum(),
        };
        self.certificate("a proof", needed, &proof.certificate)
    }

    fn change(&mut self, replica: ReplicaId, change: &ViewChange) -> Result<(), String> {
        for report in &change.slots {
            if let SlowReport::Prepared(certificate, _) = &report.slow {
                self.certificate("a report", self.quorum(), certificate)?;
            }
        }
        let reports_accepted = self.reports_accepted;
        self.said.entry(replica).or_default().change(replica, change, reports_accepted)
    }
}

impl Oracle for Slots {
    fn name(&self) -> &'static str {
        "slots"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        let Observation::Released { replica, message, .. } = observation else {
            return Ok(());
        };
        let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
            return Ok(());
        };
        let Some(said) = inner.windowed() else { return Ok(()) };
        match said {
            Statement::Prepare(prepared) => {
                return self.certificate("a certificate", self.quorum(), prepared);
            }
            Statement::Proof(proof) => return self.proof(proof),
            Statement::ViewChange(change) if change.signer == *replica => {
                return self.change(*replica, change);
            }
            _ => {}
        }
        let member = self.said.entry(*replica).or_default();
        match said {
            Statement::PrePrepare(proposed) => {
                let proposal = proposed.proposal();
                once(&mut member.proposed, "proposed", *replica, &proposal)?;
                member.vote(*replica, &proposal)
            }
            Statement::SignShare(share) => member.vote(*replica, &share.proposal),
            Statement::CommitShare(share) => member.commit(*replica, &share.proposal),
            _ => Ok(()),
        }
    }
}

fn once(
    said: &mut BTreeMap<(Height, View), Digest>,
    what: &str,
    replica: ReplicaId,
    proposal: &Proposal,
) -> Result<(), String> {
    let first = *said.entry((proposal.slot, proposal.view)).or_insert(proposal.digest);
    let text = || {
        let Proposal { view, slot, digest } = proposal;
        format!("{replica} {what} {first} and {digest} for {slot} in {view}")
    };
    (first == proposal.digest).then_some(()).ok_or_else(text)
}

impl Member {
    fn vote(&mut self, replica: ReplicaId, proposal: &Proposal) -> Result<(), String> {
        self.in_time(replica, proposal)?;
        once(&mut self.votes, "voted for", replica, proposal)
    }

    fn commit(&mut self, replica: ReplicaId, proposal: &Proposal) -> Result<(), String> {
        self.in_time(replica, proposal)?;
        once(&mut self.commits, "voted to decide", replica, proposal)
    }

    fn in_time(&self, replica: ReplicaId, proposal: &Proposal) -> Result<(), String> {
        let text =
            || format!("{replica} voted in {} after it wanted {}", proposal.view, self.given_up);
        (proposal.view >= self.given_up).then_some(()).ok_or_else(text)
    }

    fn change(
        &mut self,
        replica: ReplicaId,
        change: &ViewChange,
        reports_accepted: bool,
    ) -> Result<(), String> {
        if !self.changes.insert(change.digest()) {
            return Ok(());
        }
        if change.view < self.given_up {
            return Err(format!("{replica} wants {} after {}", change.view, self.given_up));
        }
        self.given_up = change.view;
        let stable = change.stable.as_ref().map_or(Height(0), |stable| stable.height);
        let reports: BTreeMap<Height, &SlotReport> =
            change.slots.iter().map(|report| (report.slot, report)).collect();
        let is_told = |said: &BTreeMap<(Height, View), Digest>,
                       told: fn(&SlotReport) -> Option<View>| {
            said.keys()
                .filter(|(slot, _)| *slot > stable)
                .find(|(slot, view)| {
                    let told = reports.get(slot).and_then(|report| told(report));
                    told.is_none_or(|told| told < *view)
                })
                .copied()
        };
        if let Some((slot, view)) = is_told(&self.commits, prepared_in) {
            return Err(format!("{replica} hides that it voted to decide {slot} in {view}"));
        }
        let hidden = is_told(&self.votes, accepted_in).filter(|_| reports_accepted);
        hidden.map_or(Ok(()), |(slot, view)| {
            Err(format!("{replica} hides that it voted for {slot} in {view}"))
        })
    }
}

/// The view whose certificate a report shows; the last of all for a decision.
fn prepared_in(report: &SlotReport) -> Option<View> {
    match (&report.slow, &report.fast) {
        (SlowReport::Decided(_), _) | (_, FastReport::Decided(_)) => Some(View(u64::MAX)),
        (SlowReport::Prepared(certificate, _), _) => Some(certificate.proposal.view),
        (SlowReport::Nothing, _) => None,
    }
}

/// The view whose value a report says was accepted; likewise.
fn accepted_in(report: &SlotReport) -> Option<View> {
    match (&report.slow, &report.fast) {
        (SlowReport::Decided(_), _) | (_, FastReport::Decided(_)) => Some(View(u64::MAX)),
        (_, FastReport::Accepted(view, _)) => Some(*view),
        (_, FastReport::Nothing) => None,
    }
}
