//! Two things that one member signed, of which an honest one signs one at most: whoever has the
//! committee's file can check them, and needs to trust nobody.
//!
//! They are found among what members keep of each other anyway, the newest statement of each kind
//! and the newest starts ([`crate::own_signatures`]). So what is not found is a second statement
//! that comes after a newer one of its kind, and what no two of which reach one member: a leader
//! that says two things to two halves is known to each half by the certificate of the other.

use crate::own_signatures::question::OwnQuestion;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_consensus::{Occupancy, Rule, SignedStatement, Verifier};
use quorate_types::{Rejected, ReplicaId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs of one member that are checked though they prove nothing: shares come unchecked, so false
/// ones seem to conflict with good ones.
const FALSE_PAIRS_MAX: u8 = 16;

/// Rules that two signatures prove broken: [`Rule::Equivocation`], [`Rule::DoubleVote`] and
/// [`Rule::SharedKey`].
const PROVABLE_RULES: usize = 3;

/// Two contradictory things that one member signed, unchecked until [`SignedEvidence::check`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedEvidence {
    /// Member whose signatures they are.
    pub signer: ReplicaId,
    /// The two of them.
    pub signed: SignedPair,
}

/// Two things of one kind, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SignedPair {
    /// Statements of a protocol.
    Statements(Box<[SignedStatement; 2]>),
    /// Starts of two processes under one number.
    Starts(Box<[OwnQuestion; 2]>),
}

impl SignedEvidence {
    pub(crate) fn of_statements(signer: ReplicaId, both: [&SignedStatement; 2]) -> Option<Self> {
        let signed = SignedPair::Statements(Box::new(both.map(Clone::clone)));
        Self { signer, signed }.filtered()
    }

    pub(crate) fn of_starts(signer: ReplicaId, both: [&OwnQuestion; 2]) -> Option<Self> {
        let signed = SignedPair::Starts(Box::new(both.map(Clone::clone)));
        Self { signer, signed }.filtered()
    }

    fn filtered(self) -> Option<Self> {
        self.rule().is_some().then_some(self)
    }

    /// Rule that was broken if both signatures are good; `None` if an honest member may sign both.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match &self.signed {
            SignedPair::Statements(both) => both[0].statement.conflict_with(&both[1].statement),
            SignedPair::Starts(both) => {
                let is_twin = both[0].incarnation == both[1].incarnation
                    && both[0].started_ms != both[1].started_ms;
                is_twin.then_some(Rule::SharedKey)
            }
        }
    }

    /// Checks that the member signed both, and returns the rule that it broke.
    ///
    /// # Errors
    /// When it did not, or an honest member may sign both.
    pub fn check(&self, verifier: &Verifier) -> Result<Rule, Rejected> {
        let rule = self.rule().ok_or(Rejected::RuleBroken("evidence is of two that conflict"))?;
        match &self.signed {
            SignedPair::Statements(both) => {
                both.iter().try_for_each(|signed| signed.check(self.signer, verifier))?;
            }
            SignedPair::Starts(both) => {
                both.iter().try_for_each(|start| start.check(self.signer, verifier))?;
            }
        }
        Ok(rule)
    }

    /// What the member signed, in words.
    #[must_use]
    pub fn in_words(&self) -> [String; 2] {
        match &self.signed {
            SignedPair::Statements(both) => both.each_ref().map(|it| it.statement.to_string()),
            SignedPair::Starts(both) => both.each_ref().map(|it| {
                format!("start {} at {} ms after 1970 began", it.incarnation, it.started_ms)
            }),
        }
    }
}

/// First evidence against each member by rule, checked: at most members times rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceLog {
    kept: BTreeMap<(ReplicaId, Rule), Arc<SignedEvidence>>,
    false_pairs: BTreeMap<ReplicaId, u8>,
}

impl EvidenceLog {
    /// Checks evidence that would be the first of its member and rule, and keeps it: `true`.
    pub(crate) fn take(&mut self, found: SignedEvidence, verifier: &Verifier) -> bool {
        let Some(rule) = found.rule() else { return false };
        let false_pairs = self.false_pairs.entry(found.signer).or_default();
        let is_known = self.kept.contains_key(&(found.signer, rule));
        if is_known || *false_pairs >= FALSE_PAIRS_MAX {
            return false;
        }
        if found.check(verifier).is_err() {
            *false_pairs += 1;
            return false;
        }
        self.kept.insert((found.signer, rule), Arc::new(found));
        true
    }

    /// Each member and rule, with the evidence.
    pub fn iter(&self) -> impl Iterator<Item = (ReplicaId, Rule, &SignedEvidence)> {
        self.kept.iter().map(|((member, rule), evidence)| (*member, *rule, &**evidence))
    }

    /// Evidence that `earlier` does not have.
    pub fn since<'a>(
        &'a self,
        earlier: &'a Self,
    ) -> impl Iterator<Item = (ReplicaId, Rule, &'a SignedEvidence)> {
        self.iter().filter(|(member, rule, _)| !earlier.kept.contains_key(&(*member, *rule)))
    }

    pub(crate) fn occupancy(&self, members: usize) -> [Occupancy; 2] {
        [
            Occupancy::new("evidence", self.kept.len(), members * PROVABLE_RULES),
            Occupancy::new("false_pairs", self.false_pairs.len(), members),
        ]
    }
}

#[cfg(test)]
mod tests;
