//! Catching up, and helping others to.

use super::messages::{Block, Message, encode};
use super::runs::{Run, servable};
use super::state::Chained;
use crate::block_tree::TreeBlock;
use bytes::Bytes;
use quorate_types::{BlockId, Time};
use std::sync::Arc;

impl Chained {
    /// Takes in blocks that were fetched. Their links were checked from a certified block downwards.
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
            self.wish_to_propose();
        }
    }

    /// Whoever missed a proposal may still vote in the later phases of its view.
    fn take_fetched(&mut self, block: &Arc<Block>) {
        self.plant(Arc::clone(block));
        if block.view >= self.view {
            self.want_bodies(block);
        }
    }

    /// The undecided blocks from the last decided one, which must be `after`, up to `target`.
    #[must_use]
    pub fn tail(&self, after: BlockId, target: BlockId) -> Option<Vec<Bytes>> {
        if self.tree.root().id != after {
            return None;
        }
        let path = self.tree.path(target)?;
        Some(path.iter().map(|block| Bytes::from(encode(block.as_ref()))).collect())
    }

    /// The certified block that a message rests on, and its certificate: the highest that this
    /// replica knows where the message shows none.
    #[must_use]
    pub fn rests_on(&self, message: &Message) -> (BlockId, Bytes) {
        let qc = message.rests_on().unwrap_or(&self.high_qc);
        (qc.id, Bytes::from(encode(qc)))
    }

    /// How many of these decided records, oldest first, can be served together.
    #[must_use]
    pub fn servable(&self, records: &[Bytes]) -> usize {
        servable(records, self.verifier.rules())
    }
}
