//! Statements that this replica's promises account for, and those of others that its certificates
//! prove.

use super::messages::{Message, Qc, Tc};
use super::rules::Phase;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::{SignedStatement, Statement};
use quorate_crypto::Certificate;
use quorate_types::{BlockId, ReplicaId, View};

impl Message {
    /// Certificate in it that its check has checked, with the phase where only the message tells.
    pub(crate) fn shown_qc(&self) -> Option<(Option<Phase>, &Qc)> {
        match self {
            Self::Proposal(proposal) => Some((None, &proposal.block.justify)),
            Self::Certificates { high_qc: qc, .. } | Self::NewView(qc) => Some((None, qc)),
            Self::PreCommitted(qc) => Some((Some(Phase::PreCommit), qc)),
            // A late timeout is answered unchecked.
            Self::Timeout(_) | Self::Vote(_) | Self::PhaseVote(_) => None,
        }
    }
}

impl Qc {
    /// Vote that each of its signers cast, in the phase that it is of.
    pub(crate) fn certified(&self, phase: Phase) -> (Statement, &Certificate) {
        let (block, base) = ((self.view, self.id), (self.base_view, self.base_id));
        (Statement::Vote { phase, block, base }, &self.certificate)
    }
}

impl Tc {
    /// Timeout of each of its signers, by the certificate's view that they report.
    fn certified(&self) -> impl Iterator<Item = (Statement, &Certificate)> {
        self.groups.iter().map(|(reported, certificate)| {
            (Statement::Timeout { view: self.view, reported: *reported }, certificate)
        })
    }
}

impl Chained {
    /// ★ Nothing is signed twice nor back: every record has the last view of each kind of
    /// statement, and the last of each kind.
    pub(super) fn accounts_for_statement(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Proposal { view, id } => self.accounts_for_proposal(*view, *id),
            Statement::Vote { phase, block, .. } => self.accounts_for_vote(*phase, *block),
            Statement::Timeout { view, reported } => {
                *view <= self.timeout_view && *reported <= self.high_qc.view
            }
            Statement::PrePrepare(_)
            | Statement::Prepare(_)
            | Statement::Commit(_)
            | Statement::ViewChange { .. }
            | Statement::NewView { .. } => true,
        }
    }

    fn accounts_for_proposal(&self, view: View, id: BlockId) -> bool {
        let last = self.last_proposal.as_ref().map(|last| &last.block);
        last.is_some_and(|last| view < last.view || (view == last.view && id == last.id()))
    }

    /// One block of a view may get the vote of its first phase, and another those of later phases,
    /// whose certificates outweigh it: the first vote is not kept then. So votes of one phase are
    /// compared, and one that was dropped is accounted for.
    fn accounts_for_vote(&self, phase: Phase, (view, id): (View, BlockId)) -> bool {
        if view != self.voted_view {
            return view < self.voted_view;
        }
        let first = self.last_vote.iter().map(|vote| (Phase::Prepare, vote));
        let later = self.phases.voted.votes.iter().map(|said| (said.phase, &said.vote));
        let is_other =
            first.chain(later).any(|(of, vote)| of == phase && vote.view == view && vote.id != id);
        !is_other && phase <= self.phases.voted.voted
    }

    /// From the certificates that are kept anyway: the highest, the one that decided last, and the
    /// last timeouts'.
    pub(super) fn statements_certified_by(&self, signer: ReplicaId) -> Vec<SignedStatement> {
        let rules = self.verifier.rules();
        let known = std::iter::once(&self.high_qc).chain(self.last_commit.as_ref());
        let votes = known
            .filter(|qc| qc.view > View(0))
            .map(|qc| qc.certified(rules.phase_of(qc.view, qc.base_view)));
        let timeouts = self.high_tc.iter().flat_map(Tc::certified);
        let proven = |it| SignedStatement::certified(it, signer, &self.verifier);
        votes.chain(timeouts).filter_map(proven).collect()
    }
}
