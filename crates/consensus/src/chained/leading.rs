//! Leaders and collectors of views.
//!
//! By turns; or, where leaders have a reputation, whoever comes next in turn and is not passed
//! over, as the block says whose certificate leads to the view. After timeouts always by turns:
//! their certificate names no chain that everybody has.

use super::messages::Block;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::leader::LeaderReputation;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, ReplicaId, View};

impl Chained {
    /// Leader of the current view.
    pub(super) fn leader(&self) -> ReplicaId {
        if !self.entered_by_qc() {
            return self.leaders.leader(self.view);
        }
        self.expected_leader(self.high_qc.id, self.view)
    }

    pub(super) fn leads(&self) -> bool {
        self.leader() == self.config.id
    }

    /// Leader of a view that this block's certificate leads to; unknown where the block is.
    fn leader_after(&self, block: BlockId, view: View) -> Option<ReplicaId> {
        if !self.config.liveness.leader_reputation {
            return Some(self.leaders.leader(view));
        }
        let members = self.verifier.committee().size();
        let reputation = self.tree.reputation(block)?;
        Some(reputation.leader(view, self.leaders.as_ref(), members))
    }

    /// The same, as far as this replica can tell: by turns where the block is missing.
    fn expected_leader(&self, block: BlockId, view: View) -> ReplicaId {
        self.leader_after(block, view).unwrap_or_else(|| self.leaders.leader(view))
    }

    /// Returns `true` if this block is of its view's leader; it may be as long as its parent is not
    /// here.
    pub(super) fn may_be_its_leaders(&self, block: &Block) -> bool {
        let leader = match block.tc {
            Some(_) => Some(self.leaders.leader(block.view)),
            None => self.leader_after(block.parent(), block.view),
        };
        leader.is_none_or(|leader| leader == block.author)
    }

    /// The reputation that a block of this author has to have; unknown where its parent is.
    pub(super) fn reputation_of(&self, block: &Block) -> Option<LeaderReputation> {
        if !self.config.liveness.leader_reputation {
            return Some(LeaderReputation::new());
        }
        let views = (block.parent_view(), block.view);
        let weights = self.verifier.committee().weights();
        let parent = self.tree.reputation(block.parent())?;
        Some(parent.after(views, block.author, self.leaders.as_ref(), weights))
    }

    /// Collector of the votes for a block: the next leader, whose block shows what they make; or
    /// its own, where more phases follow.
    pub(super) fn collector(&self, view: View, id: BlockId) -> ReplicaId {
        if mutants::active(Mutant::HotStuffVoteToProposer) {
            return self.leaders.leader(view);
        }
        if !self.verifier.rules().is_phased() {
            return self.expected_leader(id, view.next());
        }
        let author = self.tree.get(id).map(|block| block.author);
        author.unwrap_or_else(|| self.leaders.leader(view))
    }

    pub(super) fn collects(&self, view: View, id: BlockId) -> bool {
        self.collector(view, id) == self.config.id
    }

    /// Those without whom the current view comes to nothing: its leader, and whoever collects.
    pub(super) fn depends_on(&self) -> [ReplicaId; 2] {
        let leader = self.leader();
        if self.verifier.rules().is_phased() {
            return [leader; 2];
        }
        [leader, self.expected_leader(self.high_qc.id, self.view.next())]
    }

    /// Leader of the view that is so many views ahead of the current one, if nothing goes wrong.
    pub(super) fn coming_leader(&self, ahead: u64) -> ReplicaId {
        if ahead == 0 {
            return self.leader();
        }
        self.expected_leader(self.high_qc.id, View(self.view.0.saturating_add(ahead)))
    }
}
