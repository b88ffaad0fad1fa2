//! From a certificate to decided heights.

use super::messages::{Block, Message, Qc, encode};
use super::records::DecidedBlock;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::epoch_end::EpochEnd;
use crate::{Decided, Output};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Halt;
use quorate_types::{Recipients, ReplicaId, Time};
use std::sync::Arc;

/// Number of blocks of a path that are delivered: up to the first stop block (★).
fn end_of_delivery(path: &[Arc<Block>]) -> usize {
    if mutants::active(Mutant::DeliverBeyondStop) {
        return path.len();
    }
    let stop = path.iter().position(|block| block.payload.ends_epoch());
    stop.map_or(path.len(), |stop| stop + 1)
}

/// Decided blocks remembered by view, to recognise a certificate that contradicts them.
pub(super) const DECIDED_KEPT: usize = 256;

impl Chained {
    /// A deciding certificate decides its block's base and that one's ancestors, oldest first, once
    /// each.
    pub(super) fn commit(&mut self, now: Time, qc: &Qc) {
        let over = self.ended.is_some() && !mutants::active(Mutant::DeliverBeyondStop);
        if over || mutants::active(Mutant::HotStuffNothingDecides) {
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
        let void = path.split_off(end_of_delivery(&path));
        self.deliver(&path, &void, qc);
        while self.decided.len() > DECIDED_KEPT {
            self.decided.pop_first();
        }
        // While its author is known: what is decided leaves the tree.
        let collects = self.collects(qc.view, qc.id);
        let last = path.last().expect("its base is after the root");
        self.tree.decide(last.id());
        self.last_commit = Some(qc.clone());
        self.pacemaker.decided();
        if last.payload.ends_epoch() {
            self.show_end_of_epoch();
            self.end_epoch(now);
            return;
        }
        self.update_work(now);
        if collects {
            self.announce();
        }
    }

    /// Delivers the blocks of a path that a certificate decides; `void` are those behind a stop
    /// block, down to the certificate's base.
    fn deliver(&mut self, path: &[Arc<Block>], void: &[Arc<Block>], commit: &Qc) {
        for (place, block) in path.iter().enumerate() {
            self.decided.insert(block.view, block.id());
            let is_last = place + 1 == path.len();
            let void = if is_last { void } else { &[] };
            let record = DecidedBlock {
                block: block.as_ref().clone(),
                commit: commit.clone(),
                void: void.iter().map(|block| block.as_ref().clone()).collect(),
            };
            let mut payload = block.payload.clone();
            if mutants::active(Mutant::HotStuffKeepNewest) {
                let newer = || path[place + 1..].iter().flat_map(|newer| &newer.payload.bodies);
                payload.bodies.retain(|body| !newer().any(|other| other == body));
            }
            let is_of_commit = is_last && void.is_empty();
            self.outputs.push_back(Output::Decided(Decided {
                block: block.id(),
                payload,
                record: Bytes::from(encode(&record)),
                signers: is_of_commit.then(|| commit.certificate.signers.clone()),
            }));
        }
    }

    /// The stop block is decided: all are shown that.
    fn show_end_of_epoch(&mut self) {
        if let Some(high_qc) = self.last_commit.clone().filter(|_| self.config.signs) {
            self.show_qc(Recipients::All, high_qc);
        }
    }

    /// Nothing is signed in this epoch any more (★), and no timer runs.
    pub(super) fn end_epoch(&mut self, now: Time) {
        self.ended = Some(EpochEnd::new(self.config.timeout / 4));
        if !mutants::active(Mutant::SignAfterStop) {
            self.config.signs = false;
            self.pacemaker.set_working(now, false);
        }
    }

    /// A member that has not decided the stop block is shown what decided it. Two decisions are
    /// recognised here as before.
    pub(super) fn answer_after_the_end(&mut self, now: Time, from: ReplicaId, message: &Message) {
        if let Message::Certificates { high_qc, .. } = message
            && high_qc.is_commit(self.verifier.rules())
        {
            let stop = self.tree.root().view;
            if high_qc.base_view <= stop {
                self.check_against_decided(high_qc);
            }
            if high_qc.base_view >= stop {
                return;
            }
        }
        if self.ended.as_mut().is_some_and(|end| end.is_due(now, from)) {
            self.show_last_decision(from);
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
