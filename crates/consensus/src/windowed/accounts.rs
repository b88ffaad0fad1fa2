//! Statements that this replica's promises account for, and those of others that its certificates
//! prove.

use super::state::Windowed;
use super::values::{Path, Proof, Proposal, SlotCertificate};
use crate::{SignedStatement, Statement};
use quorate_crypto::{Certificate, Digest};
use quorate_types::{ReplicaId, View};

impl SlotCertificate {
    /// Vote to prepare that each of its signers cast, where it is a prepared certificate.
    pub(crate) fn certified(&self) -> (Statement, &Certificate) {
        (Statement::Prepare(self.proposal), &self.certificate)
    }
}

impl Proof {
    /// Vote that each of its signers cast.
    pub(crate) fn certified(&self) -> (Statement, &Certificate) {
        let SlotCertificate { proposal, certificate } = &self.certificate;
        match self.path {
            Path::Fast => (Statement::Prepare(*proposal), certificate),
            Path::Slow => (Statement::Commit(*proposal), certificate),
        }
    }
}

impl Windowed {
    /// ★ Each slot after the stable checkpoint has the last value that got a vote and the last that
    /// was prepared; about earlier slots nothing is signed any more.
    pub(super) fn accounts_for_statement(&self, statement: &Statement) -> bool {
        match statement {
            Statement::ViewChange { view, .. } | Statement::NewView { view, .. } => {
                *view <= self.view
            }
            Statement::PrePrepare(value) | Statement::Prepare(value) => {
                let known = self.window.get(value.slot).and_then(|slot| slot.accepted);
                self.accounts_for_value(value, known)
            }
            Statement::Commit(value) => {
                let prepared = |proposal: Proposal| (proposal.view, proposal.digest);
                let slot = self.window.get(value.slot);
                let known = slot.and_then(|slot| slot.prepared.as_ref());
                self.accounts_for_value(value, known.map(|known| prepared(known.proposal)))
            }
            Statement::Proposal { .. } | Statement::Vote { .. } | Statement::Timeout { .. } => true,
        }
    }

    fn accounts_for_value(&self, value: &Proposal, known: Option<(View, Digest)>) -> bool {
        let is_known =
            |(view, digest)| value.view < view || (value.view == view && value.digest == digest);
        value.slot <= self.window.stable || known.is_some_and(is_known)
    }

    /// From the certificates that are kept anyway: the last decision's, and those of the newest
    /// slots that have one with the member's name.
    pub(super) fn statements_certified_by(&self, signer: ReplicaId) -> Vec<SignedStatement> {
        let proven = |it| SignedStatement::certified(it, signer, &self.verifier);
        let slots = || self.window.iter().map(|(_, slot)| slot);
        let newest = |it: &SignedStatement| it.statement.position();
        let prepared = slots()
            .filter_map(|slot| proven(slot.prepared.as_ref()?.certified()))
            .max_by_key(newest);
        let decided =
            slots().filter_map(|slot| proven(slot.proof.as_ref()?.certified())).max_by_key(newest);
        let last = self.last_record.as_ref().and_then(|last| proven(last.proof.certified()));
        [prepared, decided, last].into_iter().flatten().collect()
    }
}
