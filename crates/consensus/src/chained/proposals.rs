//! Taking proposals in.

use super::messages::{Block, Proposal};
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::verify::WINDOW;
use crate::{Fault, Output};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, ReplicaId, Time};
use std::sync::Arc;

/// Proposals without a parent that wait for it.
const PARKED_MAX: usize = 2 * WINDOW as usize;

impl Chained {
    pub(super) fn on_proposal(&mut self, now: Time, from: ReplicaId, proposal: Proposal) {
        let block = Arc::new(proposal.block);
        // The certificates first: they move us whatever becomes of the block.
        if !mutants::active(Mutant::HotStuffLearnVotedOnly) {
            self.on_qc(now, &block.justify);
        }
        if let Some(tc) = block.tc.clone() {
            self.on_tc(now, tc);
        }
        let id = block.id();
        if self.ignore_proposal(from, id, &block) {
            return;
        }
        self.accept(now, id, block);
    }

    /// Whether the block is not worth keeping: too late, the wrong leader's, a second or third of one
    /// view, or at odds with its parent.
    fn ignore_proposal(&mut self, from: ReplicaId, id: BlockId, block: &Block) -> bool {
        let wanted = block.view >= self.view || id == self.high_qc.id;
        if !wanted || !self.may_be_its_leaders(block) {
            return true;
        }
        let seen = self.proposals_seen.entry(block.view).or_default();
        let others = seen.iter().filter(|(other, by)| **by == from && **other != id).count();
        if others > 0 && !seen.contains_key(&id) {
            self.outputs.push_back(Output::Blame(from, Fault::Equivocation));
        }
        // Two are the evidence; more would only be memory.
        if others >= 2 {
            return true;
        }
        seen.insert(id, from);
        false
    }

    /// Puts a block whose certificates are good into the tree, or aside until its parent is here.
    fn accept(&mut self, now: Time, id: BlockId, block: Arc<Block>) {
        if self.tree.contains(id) {
            // Said again by its leader: our vote may have been lost.
            self.resend_votes(id);
            self.try_vote(now, id);
            return;
        }
        let Some((height, stamp)) = self.tree.position(block.parent()) else {
            self.park(id, block);
            return;
        };
        let fits = self.may_be_its_leaders(&block)
            && self.standing_of(&block).is_some_and(|standing| standing == block.standing)
            && self.fits(now, &block, height, stamp);
        if !fits {
            self.outputs.push_back(Output::Blame(block.author, Fault::InvalidProposal));
            return;
        }
        self.plant(Arc::clone(&block));
        self.update_work(now);
        self.want_bodies(&block);
        self.retry_pending_commit(now);
        if id == self.high_qc.id {
            // Its certificate came first: what waited for it can go on.
            self.wish_to_propose();
            self.unpark(now);
        }
    }

    pub(super) fn want_bodies(&mut self, block: &Block) {
        self.outputs.push_back(Output::WantBodies {
            block: block.id(),
            bodies: block.payload.bodies.clone(),
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

    /// The height follows the parent's; the stamp is not before the parent's nor far ahead of our
    /// clock.
    fn fits(&self, now: Time, block: &Block, parent: Height, parent_stamp: u64) -> bool {
        let header = block.payload.header;
        let newest = self.config.wall_origin_ms + now.as_millis() + self.config.clock_drift_max_ms;
        header.height == parent.next()
            && header.proposed_at_ms >= parent_stamp
            && header.proposed_at_ms <= newest
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
