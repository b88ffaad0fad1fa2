//! Taking proposals in.

use super::messages::{Block, Proposal};
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::verifier::WINDOW;
use crate::{Evidence, Ignored, MessageKind, Output, Rule};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, ReplicaId, Time};
use std::sync::Arc;

/// Proposals without a parent that wait for it.
pub(super) const PARKED_MAX: usize = 2 * WINDOW as usize;

impl Chained {
    pub(super) fn on_proposal(&mut self, now: Time, from: ReplicaId, proposal: Proposal) {
        let block = Arc::new(proposal.block);
        assert_eq!(block.author, from, "a proposal is checked to be its sender's");
        // The certificates first: they move us whatever becomes of the block.
        if !mutants::active(Mutant::HotStuffLearnVotedOnly) {
            self.on_qc(now, &block.justify);
        }
        if let Some(tc) = block.tc.clone() {
            self.on_tc(now, tc);
        }
        let id = block.id();
        let ignored = self.ignore_proposal(id, &block);
        if let Some(reason) = ignored.or_else(|| self.remember_proposal(id, &block)) {
            self.ignored.count(MessageKind::Proposal, reason);
            return;
        }
        self.accept(now, id, block);
    }

    fn ignore_proposal(&self, id: BlockId, block: &Block) -> Option<Ignored> {
        if block.view < self.view && !self.wants_late(id) {
            return Some(Ignored::StaleView);
        }
        (!self.may_be_its_leaders(block)).then_some(Ignored::NotFromLeader)
    }

    /// A certificate, or a later block, may come before a block that it rests on: then that one is
    /// wanted, however late. Which blocks are between here and a certified one that is missing
    /// nobody knows yet.
    fn wants_late(&self, id: BlockId) -> bool {
        id == self.high_qc.id
            || !self.tree.contains(self.high_qc.id)
            || self.parked.values().any(|parked| parked.parent() == id)
    }

    /// Remembers whose block it is, to recognise a second one of the view. Two are the evidence;
    /// more would only be memory.
    fn remember_proposal(&mut self, id: BlockId, block: &Block) -> Option<Ignored> {
        let seen = self.proposals_seen.entry(block.view).or_default();
        let is_other = |(other, by): &(&BlockId, &ReplicaId)| **by == block.author && **other != id;
        let mut others = seen.iter().filter(is_other).map(|(other, _)| *other);
        let (first, is_third) = (others.next(), others.next().is_some());
        let is_new = !seen.contains_key(&id);
        if !is_third {
            seen.insert(id, block.author);
        }
        if let Some(first) = first.filter(|_| is_new) {
            let evidence = Evidence::Conflict { view: block.view, first: first.0, second: id.0 };
            self.report(block.author, Rule::Equivocation, evidence);
        }
        is_third.then_some(Ignored::Conflicting)
    }

    /// Puts a block whose certificates are good into the tree, or aside until its parent is here.
    fn accept(&mut self, now: Time, id: BlockId, block: Arc<Block>) {
        if self.tree.contains(id) {
            // FamilyMessage again by its leader: our vote may have been lost.
            self.resend_votes(id);
            self.try_vote(now, id);
            return;
        }
        let Some(parent) = self.tree.position(block.parent()) else {
            self.park(id, block);
            return;
        };
        if let Some(rule) = self.broken_rule(now, &block, parent) {
            self.report_proposal(rule, id, &block);
            return;
        }
        self.plant(Arc::clone(&block));
        self.update_work(now);
        self.request_bodies(&block);
        self.retry_pending_commit(now);
        if id == self.high_qc.id {
            // Its certificate came first: what waited for it can go on.
            self.request_payload();
        }
        self.unpark(now);
    }

    pub(super) fn request_bodies(&mut self, block: &Block) {
        self.outputs.push_back(Output::RequestBodies {
            block: block.id(),
            height: block.payload.header.height,
            bodies: block.payload.bodies.clone(),
            change: block.payload.header.change,
            source: block.author,
        });
    }

    /// Adds a block whose parent is in the tree, and learns from its certificate.
    pub(super) fn plant(&mut self, block: Arc<Block>) {
        let justify = block.justify.clone();
        let is_high = block.id() == self.high_qc.id;
        self.tree.insert(block);
        self.raise_lock(&justify);
        if is_high {
            self.raise_lock(&self.high_qc.clone());
        }
    }

    /// The first rule that the block breaks, of those that only its parent shows.
    fn broken_rule(
        &self,
        now: Time,
        block: &Block,
        (parent_height, parent_time_ms): (Height, u64),
    ) -> Option<Rule> {
        let header = block.payload.header;
        let newest_ms =
            self.config.wall_origin_ms + now.as_millis() + self.config.clock_drift_max_ms;
        if !self.may_be_its_leaders(block) {
            return Some(Rule::WrongLeader);
        }
        if self.reputation_of(block).is_none_or(|reputation| reputation != block.reputation) {
            return Some(Rule::LeaderReputation);
        }
        if header.height != parent_height.next() {
            return Some(Rule::HeightSuccession);
        }
        if !block.payload.is_empty() && self.follows_a_stop(block) {
            return Some(Rule::PayloadAfterStop);
        }
        let fits = (parent_time_ms..=newest_ms).contains(&header.proposed_at_ms);
        (!fits).then_some(Rule::ProposalTime)
    }

    /// Returns `true` if an undecided ancestor of the block ends the epoch: what it orders would
    /// be void once that is decided, and must not be decided otherwise (★).
    fn follows_a_stop(&self, block: &Block) -> bool {
        let path = self.tree.path(block.parent()).unwrap_or_default();
        path.iter().any(|ancestor| ancestor.payload.ends_epoch())
            && !mutants::active(Mutant::LadenAfterStop)
    }

    fn report_proposal(&mut self, rule: Rule, id: BlockId, block: &Block) {
        let header = block.payload.header;
        let evidence = Evidence::Proposal {
            view: block.view,
            digest: id.0,
            height: header.height,
            proposed_at_ms: header.proposed_at_ms,
        };
        self.report(block.author, rule, evidence);
    }

    fn park(&mut self, id: BlockId, block: Arc<Block>) {
        let (target, source) = (block.parent(), block.author);
        self.parked.insert((block.view, id), block);
        while self.parked.len() > PARKED_MAX {
            self.parked.pop_first();
        }
        self.outputs.push_back(Output::Behind { target, source: Some(source) });
    }

    /// Tries parked blocks again, lowest view first, after the tree has grown.
    pub(super) fn unpark(&mut self, now: Time) {
        for (key, block) in std::mem::take(&mut self.parked) {
            if self.tree.contains(block.parent()) {
                self.accept(now, key.1, block);
            } else {
                self.parked.insert(key, block);
            }
        }
    }

    pub(super) fn on_stored(&mut self, now: Time, id: BlockId) {
        if self.tree.contains(id) {
            self.stored.insert(id);
            self.release_withheld_vote(now, id);
            self.try_vote(now, id);
            self.try_phase_vote(now);
        }
    }
}
