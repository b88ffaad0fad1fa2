//! All that the protocols of this machine differ in.
//!
//! | | Jolteon | HotStuff |
//! |---|---|---|
//! | a certificate decides | its block's parent | its block's grandparent |
//! | if views follow one another over | one link | two links |
//! | a replica is locked | by giving a view up | on the parent of a certified block |
//! | after a timeout it votes in that view | never | if its lock allows |
//! | a block after a timeout certificate extends | at least what that reports | anything; the voters' locks decide |

use super::messages::Qc;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Kind;

/// One protocol's side of the differences.
#[derive(Debug)]
pub struct Rules {
    /// The domain of the first block's id, from which, link by link, all ids follow: no block, vote or
    /// certificate of one protocol means anything in another (★).
    pub genesis: &'static str,
    /// What a vote signs.
    pub vote: Kind,
    /// What a timeout signs.
    pub timeout: Kind,
    /// Links from a certificate's block down to the one that it decides, its *base*.
    pub links: u64,
    /// Whether a block is voted for only if it extends the lock or its certificate is of a later view
    /// than the lock (★).
    pub locks: bool,
    /// Whether a replica that gave a view up never votes in it (★).
    pub timeout_ends_voting: bool,
    /// Whether a block after a timeout certificate must extend at least what that reports (★).
    pub extends_report: bool,
}

impl Rules {
    /// Whether a certificate decides its block's base: every view from there to its own has a block (★).
    /// Views grow along links, so the distance alone says so.
    #[must_use]
    pub fn is_commit(&self, qc: &Qc) -> bool {
        let gap = qc.view.0.saturating_sub(qc.base_view.0);
        gap == self.links() || (gap > self.links() && mutants::active(Mutant::JolteonCommitGap))
    }

    /// Links from a certificate's block to its base.
    #[must_use]
    pub fn links(&self) -> u64 {
        if mutants::active(Mutant::HotStuffTwoChain) { 1 } else { self.links }
    }
}
