//! Catching up, and helping others to.

use super::messages::Block;
use super::runs::Run;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use quorate_types::Time;
use std::sync::Arc;

impl Chained {
    /// Takes in blocks that were fetched. Their links were checked from a certified block
    /// downwards.
    pub(super) fn on_run(&mut self, now: Time, run: Run) {
        if run.conflicts {
            if let Some(proof) = run.proof {
                self.halt_on_conflict(&proof);
            }
            return;
        }
        for block in run.decided.into_iter().chain(run.tail) {
            let follows = self
                .tree
                .position(block.parent())
                .is_some_and(|(height, _)| block.payload.header.height == height.next());
            if follows && !self.tree.contains(block.id()) {
                self.take_fetched(&Arc::new(block));
            }
        }
        self.update_work(now);
        if let Some(proof) = run.proof {
            self.on_qc(now, &proof);
        }
        self.unpark(now);
        self.retry_pending_commit(now);
        if !self.tree.contains(self.high_qc.id) {
            let high_qc = self.high_qc.clone();
            self.on_qc(now, &high_qc);
        } else {
            self.request_payload();
        }
    }

    /// Plants a fetched block: whoever missed its proposal may still vote in later phases of its
    /// view.
    fn take_fetched(&mut self, block: &Arc<Block>) {
        self.plant(Arc::clone(block));
        if block.view >= self.view {
            self.request_bodies(block);
        }
    }
}
