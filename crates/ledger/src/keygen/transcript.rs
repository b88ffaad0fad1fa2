//! Transcript of a generation: the steps, from which everything public follows.

use super::ceremony::{Ceremony, Failure, Generated, Refusal};
use super::plan::{Plan, PlanError, ceremony_committee};
use super::step::SignedStep;
use bytes::Bytes;
use quorate_types::CommitteeFile;
use std::sync::Arc;

/// The committee whose members generated keys, and the steps that they signed, in the order in
/// which they were decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Committee file that they generated for: a founding one, or that of a network's next epoch,
    /// with the keys that they had before.
    pub generators: CommitteeFile,
    /// Name that tells this generation of theirs from others.
    pub label: String,
    /// Their steps, encoded, up to the one that settled the result.
    pub steps: Vec<Bytes>,
}

/// Reason for which a transcript proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// Its committee cannot have threshold keys.
    #[error("the transcript's committee is refused: {0}")]
    Plan(#[from] PlanError),
    /// A step that is none.
    #[error("step {step} of the transcript is none")]
    Undecodable {
        /// Index of the step, from 0.
        step: usize,
    },
    /// A step that the members refuse.
    #[error("step {step} of the transcript is refused: {reason}")]
    Refused {
        /// Index of the step, from 0.
        step: usize,
        /// Reason for the refusal.
        reason: Refusal,
    },
    /// It ends early, or too late.
    #[error(
        "the transcript does not end where its keys were generated: it was cut short or added to"
    )]
    Unfinished,
    /// The generation ended without keys.
    #[error("nothing was generated: {0}")]
    Failed(#[from] Failure),
    /// The keys are others.
    #[error("the committee file is not what the transcript's steps come to")]
    OtherCommittee,
}

impl Transcript {
    /// Transcript of a ceremony of these members.
    #[must_use]
    pub fn of(generators: &CommitteeFile, label: &str, ceremony: &Ceremony) -> Self {
        let (generators, label) = (generators.clone(), label.to_owned());
        Self { generators, label, steps: ceremony.steps().to_vec() }
    }

    /// Takes every step again: signatures, proofs and commitments are checked as the members
    /// checked them. That the members decided this order, only they can say; any order of these
    /// steps that comes to keys was signed for by those who dealt.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn replay(&self) -> Result<Ceremony, TranscriptError> {
        let plan = Arc::new(Plan::new(&ceremony_committee(&self.generators, &self.label))?);
        let mut ceremony = Ceremony::new(plan);
        for (step, bytes) in self.steps.iter().enumerate() {
            let signed = SignedStep::decode(bytes).ok_or(TranscriptError::Undecodable { step })?;
            let refused = |reason| TranscriptError::Refused { step, reason };
            ceremony.apply(&signed).map_err(refused)?;
        }
        match ceremony.result() {
            Some(Ok(_)) if ceremony.steps().len() == self.steps.len() => Ok(ceremony),
            Some(Err(failure)) => Err(failure.clone().into()),
            _ => Err(TranscriptError::Unfinished),
        }
    }

    /// Checks that these steps come to this committee, as [`Generated::check`] does.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(
        &self,
        committee: &CommitteeFile,
    ) -> Result<(Ceremony, Arc<Generated>), TranscriptError> {
        let proven = self.with_proofs_of(committee);
        let ceremony = proven.replay()?;
        let generated = match ceremony.result() {
            Some(Ok(generated)) => Arc::clone(generated),
            _ => return Err(TranscriptError::Unfinished),
        };
        generated.check(&proven.generators, committee)?;
        Ok((ceremony, generated))
    }

    /// This transcript with the proofs that its members hold their identities, if it was written
    /// before founding committees had any. They are checked as if it had brought them along.
    fn with_proofs_of(&self, committee: &CommitteeFile) -> Self {
        let mut proven = self.clone();
        for (member, theirs) in proven.generators.members.iter_mut().zip(&committee.members) {
            if member.identity_proof.is_empty() && member.identity == theirs.identity {
                member.identity_proof.clone_from(&theirs.identity_proof);
            }
        }
        proven
    }
}

impl Generated {
    /// Checks that a committee votes with these keys: network, members, weights, redundancy and
    /// keys. Name, settings and addresses are its own, and so is the epoch of a founding one.
    ///
    /// # Errors
    /// [`TranscriptError::OtherCommittee`].
    pub fn check(
        &self,
        generators: &CommitteeFile,
        committee: &CommitteeFile,
    ) -> Result<(), TranscriptError> {
        let mut expected = self.committee(generators);
        expected.name.clone_from(&committee.name);
        expected.settings.clone_from(&committee.settings);
        if generators.network.is_none() {
            expected.epoch = committee.epoch;
        }
        for (member, theirs) in expected.members.iter_mut().zip(&committee.members) {
            member.address.clone_from(&theirs.address);
        }
        (expected == *committee).then_some(()).ok_or(TranscriptError::OtherCommittee)
    }
}
