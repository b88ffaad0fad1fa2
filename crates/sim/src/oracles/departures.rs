//! No view is left unsaid: 004's theorem that no honest replica leaves a view without an honest
//! vote or timeout in it.
//!
//! A view is left by a certificate. The honest signers of any that a correct member shows must have
//! said what it certifies, all but one of them: who collects a certificate does not send its own
//! vote.

use super::shown::{phase_of, shown};
use super::{Observation, Oracle};
use quorate_consensus::ProtocolKind;
use quorate_consensus::chained::{Message as Statement, Phase, Qc, Tc, Vote};
use quorate_engine::Message;
use quorate_types::{BlockId, ReplicaId, View};
use std::collections::BTreeSet;

/// Remembers what correct members said, and holds certificates against it.
#[derive(Debug)]
pub struct Departures {
    correct: Vec<bool>,
    votes: BTreeSet<(View, BlockId, Phase, ReplicaId)>,
    timeouts: BTreeSet<(View, ReplicaId)>,
}

impl Departures {
    /// Tells of each member, by index, whether it is correct.
    #[must_use]
    pub fn new(correct: Vec<bool>) -> Self {
        Self { correct, votes: BTreeSet::new(), timeouts: BTreeSet::new() }
    }

    fn voted(&mut self, phase: Phase, vote: &Vote) {
        self.votes.insert((vote.view, vote.id, phase, vote.signer));
    }

    fn qc(&self, phase: Phase, qc: &Qc) -> Result<(), String> {
        if qc.view == View(0) {
            return Ok(());
        }
        let signers = qc.certificate.signers.iter();
        let said = |member| self.votes.contains(&(qc.view, qc.id, phase, member));
        self.judge(&format!("a certificate of {}", qc.view), signers, said)
    }

    fn tc(&self, phased: bool, tc: &Tc) -> Result<(), String> {
        let signers = tc.groups.iter().flat_map(|(_, group)| group.signers.iter());
        let said = |member| self.timeouts.contains(&(tc.view, member));
        self.judge(&format!("a timeout certificate of {}", tc.view), signers, said)?;
        self.qc(phase_of(phased, &tc.high_qc), &tc.high_qc)
    }

    fn judge(
        &self,
        what: &str,
        signers: impl Iterator<Item = usize>,
        said: impl Fn(ReplicaId) -> bool,
    ) -> Result<(), String> {
        let is_correct = |signer: &usize| self.correct.get(*signer).copied().unwrap_or(false);
        let correct: Vec<ReplicaId> = signers
            .filter(is_correct)
            .map(|signer| ReplicaId(u16::try_from(signer).expect("few members")))
            .collect();
        let unsaid: Vec<ReplicaId> =
            correct.iter().copied().filter(|member| !said(*member)).collect();
        if correct.is_empty() {
            return Err(format!("{what} has no correct signer"));
        }
        let heard = unsaid.len() <= 1;
        heard
            .then_some(())
            .ok_or_else(|| format!("{what} is signed by {unsaid:?}, who never said so"))
    }
}

impl Oracle for Departures {
    fn name(&self) -> &'static str {
        "departures"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        let Observation::Released { message, .. } = observation else {
            return Ok(());
        };
        let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
            return Ok(());
        };
        let shown = shown(inner);
        if let Some((phase, vote)) = shown.vote {
            self.voted(phase, vote);
        }
        if let Some(Statement::Timeout(timeout)) = inner.chained() {
            self.timeouts.insert((timeout.view, timeout.signer));
        }
        let phased = inner.protocol() == ProtocolKind::HotStuffBasic;
        shown.qc.map_or(Ok(()), |(phase, qc)| self.qc(phase, qc))?;
        shown.tc.map_or(Ok(()), |tc| self.tc(phased, tc))
    }
}
