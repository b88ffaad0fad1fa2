//! The log of everything signed, kept outside the replicas and across their restarts.
//!
//! A statement counts from the moment at which its host lets it go: what a crash kept inside was
//! never said. Votes inside timeouts count too, and so do the signers of certificates that a
//! correct member passes on, for correct members pass on checked ones only.

use super::shown::{Shown, shown};
use super::{Observation, Oracle};
use quorate_consensus::ProtocolKind;
use quorate_consensus::chained::{Message as Statement, Phase, Proposal, Timeout, Vote};
use quorate_crypto::Digest;
use quorate_crypto::hash;
use quorate_engine::Message;
use quorate_types::{BlockId, ReplicaId, View};
use std::collections::BTreeMap;

/// Checks that no correct member contradicts itself.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Certificates are not looked at: too many members are faulty.
    members_only: bool,
    members: BTreeMap<ReplicaId, Member>,
    certified: BTreeMap<View, BlockId>,
}

/// Statements of one member so far.
#[derive(Clone, Debug, Default)]
struct Member {
    votes: BTreeMap<(View, Phase), Vote>,
    given_up: View,
    high_qc: View,
    proposals: BTreeMap<View, Digest>,
}

impl Oracle for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        let Observation::Released { replica, message, .. } = observation else {
            return Ok(());
        };
        let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
            return Ok(());
        };
        let Some(statement) = inner.chained() else { return Ok(()) };
        if !self.members_only {
            self.certificates(&shown(inner))?;
        }
        // HotStuff's locks do what Jolteon's timeouts do.
        let ends_voting = inner.protocol() == ProtocolKind::Jolteon;
        let member = self.members.entry(*replica).or_default();
        if let Some((phase, vote)) = shown(inner).vote {
            member.vote(*replica, phase, vote, ends_voting)?;
        }
        match statement {
            Statement::Proposal(proposal) => member.propose(*replica, proposal),
            Statement::Timeout(timeout) => member.time_out(*replica, timeout),
            _ => Ok(()),
        }
    }
}

impl Audit {
    /// For a committee in which more members are faulty than is tolerated: two blocks of one view
    /// may be certified, and still no correct member contradicts itself.
    #[must_use]
    pub fn of_members() -> Self {
        Self { members_only: true, ..Self::default() }
    }

    /// One block is certified in a view.
    fn certificates(&mut self, shown: &Shown<'_>) -> Result<(), String> {
        for qc in shown.certificates() {
            let first = *self.certified.entry(qc.view).or_insert(qc.id);
            if first != qc.id {
                return Err(format!("in {} both {first} and {} are certified", qc.view, qc.id));
            }
        }
        Ok(())
    }
}

impl Member {
    fn propose(&mut self, replica: ReplicaId, proposal: &Proposal) -> Result<(), String> {
        let block = &proposal.block;
        if block.author != replica {
            return Err(format!("{replica} sent a proposal of {}", block.author));
        }
        // The bytes, not the block's own id: sent again it must be the same to the letter.
        let content = hash(&borsh::to_vec(block).expect("encoding into memory"));
        let first = *self.proposals.entry(block.view).or_insert(content);
        let same = first == content;
        same.then_some(()).ok_or_else(|| format!("{replica} proposed twice in {}", block.view))
    }

    fn vote(
        &mut self,
        replica: ReplicaId,
        phase: Phase,
        vote: &Vote,
        timeout_ends_voting: bool,
    ) -> Result<(), String> {
        if vote.signer != replica {
            return Err(format!("{replica} sent a vote of {}", vote.signer));
        }
        if let Some(before) = self.votes.get(&(vote.view, phase)) {
            let same = before == vote;
            return same.then_some(()).ok_or_else(|| {
                format!("{replica} voted in {} for {} and for {}", vote.view, before.id, vote.id)
            });
        }
        let too_late =
            vote.view < self.given_up || (timeout_ends_voting && vote.view == self.given_up);
        if too_late {
            return Err(format!(
                "{replica} voted in {} after its timeout of {}",
                vote.view, self.given_up
            ));
        }
        let newest = self.votes.last_key_value().map(|(key, _)| *key).unwrap_or_default();
        if (vote.view, phase) < newest {
            return Err(format!(
                "{replica} voted in {} ({phase:?}) after voting in {} ({:?})",
                vote.view, newest.0, newest.1
            ));
        }
        self.votes.insert((vote.view, phase), vote.clone());
        Ok(())
    }

    fn time_out(&mut self, replica: ReplicaId, timeout: &Timeout) -> Result<(), String> {
        if timeout.signer != replica {
            return Err(format!("{replica} sent a timeout of {}", timeout.signer));
        }
        if timeout.view < self.given_up {
            return Err(format!("{replica} gave up {} after {}", timeout.view, self.given_up));
        }
        // What a replica reports as its highest certificate is its lock: it never goes back.
        if timeout.high_qc.view < self.high_qc {
            return Err(format!(
                "{replica} reported a certificate of {} in {}, before one of {}",
                timeout.high_qc.view, timeout.view, self.high_qc
            ));
        }
        self.given_up = timeout.view;
        self.high_qc = timeout.high_qc.view;
        Ok(())
    }
}
