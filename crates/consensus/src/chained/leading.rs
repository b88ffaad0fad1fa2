//! Who leads, and who collects.
//!
//! By turns; or, where leaders have a reputation, whoever comes next in turn and is not passed
//! over, as the block says whose certificate leads to the view. After timeouts always by turns:
//! their certificate names no chain that everybody has.

use super::messages::Block;
use super::state::Chained;
use crate::block_tree::TreeBlock;
use crate::leader::Standing;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, ReplicaId, View};

impl Chained {
    /// Who leads the current view.
    pub(super) fn leader(&self) -> ReplicaId {
        if !self.entered_by_qc() {
            return self.leaders.leader(self.view);
        }
        self.expected_leader(self.high_qc.id, self.view)
    }

    pub(super) fn leads(&self) -> bool {
        self.leader() == self.config.id
    }

    /// Who leads a view that this block's certificate leads to; unknown where the block is.
    fn leader_after(&self, block: BlockId, view: View) -> Option<ReplicaId> {
        if !self.config.liveness.leader_reputation {
            return Some(self.leaders.leader(view));
        }
        let members = self.verifier.committee().size();
        let standing = self.tree.standing(block)?;
        Some(standing.leader(view, self.leaders.as_ref(), members))
    }

    /// The same, as far as this replica can tell: by turns where the block is missing.
    fn expected_leader(&self, block: BlockId, view: View) -> ReplicaId {
        self.leader_after(block, view).unwrap_or_else(|| self.leaders.leader(view))
    }

    /// Whether this block is of its view's leader; it may be as long as its parent is not here.
    pub(super) fn may_be_its_leaders(&self, block: &Block) -> bool {
        let leader = match block.tc {
            Some(_) => Some(self.leaders.leader(block.view)),
            None => self.leader_after(block.parent(), block.view),
        };
        leader.is_none_or(|leader| leader == block.author)
    }

    /// The standing that a block of this author has to have; unknown where its parent is.
    pub(super) fn standing_of(&self, block: &Block) -> Option<Standing> {
        if !self.config.liveness.leader_reputation {
            return Some(Standing::new());
        }
        let views = (block.parent_view(), block.view);
        let weights = self.verifier.committee().weights();
        let parent = self.tree.standing(block.parent())?;
        Some(parent.after(views, block.author, self.leaders.as_ref(), weights))
    }

    /// Who collects the votes for a block: the next leader, whose block shows what they make; or
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

    /// The leaders of the current view and of those after it, if nothing goes wrong.
    #[must_use]
    pub fn coming_leaders(&self, views: u64) -> Vec<ReplicaId> {
        let later = |ahead: u64| self.expected_leader(self.high_qc.id, View(self.view.0 + ahead));
        let first = (views > 0).then(|| self.leader());
        first.into_iter().chain((1..views).map(later)).collect()
    }
}
