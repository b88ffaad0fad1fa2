//! From a certificate to decided heights.

use super::messages::{Qc, encode};
use super::records::DecidedBlock;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::{Decided, Output};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Halt;
use quorate_types::{Recipients, Time};

/// Decided blocks remembered by view, to recognise a certificate that contradicts them.
pub(super) const DECIDED_KEPT: usize = 256;

impl Chained {
    /// A deciding certificate decides its block's base and that one's ancestors, oldest first, once
    /// each.
    pub(super) fn commit(&mut self, now: Time, qc: &Qc) {
        if mutants::active(Mutant::HotStuffNothingDecides) {
            return;
        }
        let root = self.tree.root();
        if qc.base_view <= root.view {
            self.check_against_decided(qc);
            return;
        }
        let Some(path) = self.tree.path(qc.base_id) else {
            if self.pending_commit.as_ref().is_none_or(|pending| pending.view < qc.view) {
                self.pending_commit = Some(qc.clone());
            }
            return;
        };
        let mut path = path;
        if mutants::active(Mutant::ChainedNewestFirst) {
            path.reverse();
        }
        for (place, block) in path.iter().enumerate() {
            self.decided.insert(block.view, block.id());
            let record = DecidedBlock { block: block.as_ref().clone(), commit: qc.clone() };
            let mut payload = block.payload.clone();
            if mutants::active(Mutant::HotStuffKeepNewest) {
                let newer = || path[place + 1..].iter().flat_map(|newer| &newer.payload.bodies);
                payload.bodies.retain(|body| !newer().any(|other| other == body));
            }
            self.outputs.push_back(Output::Decided(Decided {
                block: block.id(),
                payload,
                record: Bytes::from(encode(&record)),
                signers: (place + 1 == path.len()).then(|| qc.certificate.signers.clone()),
            }));
        }
        while self.decided.len() > DECIDED_KEPT {
            self.decided.pop_first();
        }
        // While its author is known: what is decided leaves the tree.
        let collects = self.collects(qc.view, qc.id);
        self.tree.decide(qc.base_id);
        self.last_commit = Some(qc.clone());
        self.pacemaker.decided();
        self.update_work(now);
        if collects {
            self.announce();
        }
    }

    pub(super) fn retry_pending_commit(&mut self, now: Time) {
        if let Some(qc) = self.pending_commit.take() {
            self.commit(now, &qc);
        }
    }

    /// A commit certificate for something older than the last decided block must name a decided
    /// block.
    fn check_against_decided(&mut self, qc: &Qc) {
        let Some((oldest, _)) = self.decided.first_key_value() else {
            return;
        };
        if qc.base_view < *oldest || self.decided.get(&qc.base_view) == Some(&qc.base_id) {
            return;
        }
        self.halt_on_conflict(qc);
    }

    /// Two conflicting decisions: the evidence, and nothing more.
    pub(super) fn halt_on_conflict(&mut self, qc: &Qc) {
        self.halted = true;
        self.outputs.push_back(Output::Halt(Halt::ConflictingDecisions {
            height: self.tree.root().height,
            evidence: format!("{qc:?} signed by {:?}", qc.certificate.signers),
        }));
    }

    /// The collector of a deciding certificate is the only one that knows it. With work left, its
    /// proposal carries it; with none, or where the collector does not lead next, it is broadcast,
    /// or everybody else would wait and time out.
    fn announce(&mut self) {
        let by_itself = self.verifier.rules().is_phased() || !self.tree.has_payload();
        if by_itself && self.config.signs {
            self.show_qc(Recipients::All, self.high_qc.clone());
        }
    }
}
