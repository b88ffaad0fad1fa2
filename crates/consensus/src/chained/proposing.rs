//! Duties of a view's leader.

use super::messages::{Block, Message, PhaseVote, Proposal};
use super::rules::Phase;
use super::state::Chained;
use super::statements::proposal_message;
use crate::block_tree::TreeBlock;
use crate::leader::LeaderReputation;
use crate::{Output, ProposeRequest};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Payload, Recipients, Time, View};
use std::sync::Arc;

/// With so many blocks undecided before it, a block orders nothing: every promise is written with
/// the whole chain, and a chain that only grows must at least not grow by megabytes. It cannot be
/// bounded in length, since whatever ends it is two blocks more.
pub(super) const LADEN_MAX: usize = 32;

impl Chained {
    /// As the leader of the current view: sends again what it proposed, or asks for a payload.
    pub(super) fn request_payload(&mut self) {
        if !self.leads() || !self.config.signs {
            return;
        }
        if let Some(proposal) = self.last_proposal.clone()
            && proposal.block.view >= self.view
        {
            self.send(Recipients::All, Message::Proposal(proposal));
            self.show_phases_again();
            return;
        }
        if !self.may_propose() {
            return;
        }
        let Some(path) = self.tree.path(self.high_qc.id) else {
            return;
        };
        let stops = path.iter().any(|block| block.payload.ends_epoch());
        let (height, stamp) = self.tree.position(self.high_qc.id).expect("its path is known");
        self.outputs.push_back(Output::RequestPayload(ProposeRequest {
            view: self.view,
            parent: self.high_qc.id,
            height: height.next(),
            stamp_floor_ms: stamp,
            carried: path.iter().flat_map(|block| block.payload.bodies.iter().copied()).collect(),
            at_once: path.len() >= LADEN_MAX || path.iter().any(|block| !block.payload.is_empty()),
            nothing: path.len() >= LADEN_MAX || (stops && !mutants::active(Mutant::LadenAfterStop)),
            concurrent: 1,
        }));
    }

    pub(super) fn on_payload(&mut self, now: Time, view: View, parent: BlockId, payload: Payload) {
        let is_new = self.last_proposal.as_ref().is_none_or(|last| last.block.view < view);
        if view != self.view || !is_new || !self.leads() || !self.config.signs {
            return;
        }
        if self.high_qc.view >= view {
            // Another machine proposed in this view under the same key, and its block is certified.
            return;
        }
        if parent != self.high_qc.id || !self.tree.contains(parent) {
            // A higher certificate came while the payload was made.
            self.request_payload();
            return;
        }
        let mut block = Block {
            epoch: self.verifier.committee().epoch_id(),
            view,
            author: self.config.id,
            justify: self.high_qc.clone(),
            tc: self.entered_by_tc(),
            reputation: LeaderReputation::new(),
            payload,
        };
        block.reputation = self.reputation_of(&block).expect("its parent is here");
        let block = Arc::new(block);
        let id = block.id();
        let signature = self.sign_proposal(view, id);
        let proposal = Proposal { block: block.as_ref().clone(), signature };
        self.last_proposal = Some(proposal.clone());
        self.proposals_seen.entry(view).or_default().insert(id, self.config.id);
        self.plant(block);
        self.stored.insert(id);
        self.update_work(now);
        // One record holds the proposal and the own vote: one sync, then both leave.
        let vote = self.decide_vote(now, id);
        if !mutants::active(Mutant::ChainedProposeBeforePersist) {
            self.persist();
        }
        self.send(Recipients::All, Message::Proposal(proposal));
        if let Some(vote) = vote {
            self.deliver_vote(now, PhaseVote { phase: Phase::Prepare, vote });
        }
    }

    fn sign_proposal(&self, view: View, id: BlockId) -> Vec<u8> {
        let message = proposal_message(&self.verifier, view, id);
        self.verifier.sign_alone(&self.config.identity, &self.config.voting, &message)
    }
}
