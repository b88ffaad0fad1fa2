//! All that the protocols of this machine differ in.
//!
//! | | Jolteon | HotStuff | basic HotStuff |
//! |---|---|---|---|
//! | a certificate decides | its block's parent | its grandparent | its block (third phase) |
//! | if views follow one another over | one link | two links | – |
//! | a view ends with | a certificate | a certificate | a certificate of the third phase |
//! | votes go to | the next leader | the next leader | the view's own leader |
//! | a leader waits for | the certificate | the certificate | it, and a quorum's new-views |
//! | a replica locks | by timing out | a certified block's parent | a block of phase two |
//! | after a timeout it votes in that view | never | if its lock allows | if its lock allows |
//! | after a timeout extends | at least what is reported | anything: locks decide | as HotStuff |

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Kind, View};

/// The votes of a view, in the order in which they are cast. Where there is one phase alone, it is
/// the first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize,
)]
pub enum Phase {
    /// Vote for a block.
    #[default]
    Prepare,
    /// For the first certificate of a block.
    PreCommit,
    /// For the second, and locked on it.
    Commit,
}

/// One protocol's side of the differences.
#[derive(Debug)]
pub struct Rules {
    /// The domain of the first block's id, from which, link by link, all ids follow: no block, vote
    /// or certificate of one protocol means anything in another (★).
    pub genesis: &'static str,
    /// Kind of statement that a vote for a block signs.
    pub vote: Kind,
    /// Kinds of the later phases, where it takes more to decide a block within its view (★: each
    /// another).
    pub later: Option<LaterPhases>,
    /// Kind of statement that a timeout signs.
    pub timeout: Kind,
    /// Links from a certificate's block down to the one that it decides, its *base*.
    pub links: u64,
    /// Set if a block is voted for only if it extends the lock or its certificate is of a later
    /// view than the lock (★).
    pub locks: bool,
    /// Set if a replica whose view timed out never votes in it (★).
    pub timeout_ends_voting: bool,
    /// Set if a block after a timeout certificate must extend at least what that reports (★).
    pub extends_report: bool,
}

/// Kinds of statements that votes after the first phase sign.
#[derive(Debug)]
pub struct LaterPhases {
    /// Kind of votes of [`Phase::PreCommit`].
    pub pre_commit: Kind,
    /// Kind of votes of [`Phase::Commit`].
    pub commit: Kind,
}

impl Rules {
    /// Returns `true` if a view has several phases.
    #[must_use]
    pub fn is_phased(&self) -> bool {
        self.later.is_some()
    }

    /// Returns `true` if members vote in this phase. Where a view has one, votes do not name it.
    #[must_use]
    pub fn has_phase(&self, phase: Phase) -> bool {
        self.is_phased() || phase == Phase::Prepare
    }

    /// Kind of statement that votes of a phase sign.
    #[must_use]
    pub fn kind(&self, phase: Phase) -> Kind {
        match &self.later {
            _ if mutants::active(Mutant::BasicPhaseUnsigned) => self.vote,
            Some(later) if phase == Phase::PreCommit => later.pre_commit,
            Some(later) if phase == Phase::Commit => later.commit,
            _ => self.vote,
        }
    }

    /// The phase of a vote or certificate that may be of the first or the last one: the last one's
    /// alone name their own block as what they decide.
    #[must_use]
    pub fn phase_of(&self, view: View, base_view: View) -> Phase {
        if self.is_phased() && base_view == view { Phase::Commit } else { Phase::Prepare }
    }

    /// Returns `true` if votes of a phase may name this base.
    #[must_use]
    pub fn is_base(&self, phase: Phase, block: (View, BlockId), base: (View, BlockId)) -> bool {
        if self.is_phased() && phase == Phase::Commit { base == block } else { base.0 < block.0 }
    }

    /// The first view that nobody who gives `view` up can have a certificate of.
    #[must_use]
    pub fn unreported_from(&self, view: View) -> View {
        if self.is_phased() { view.next() } else { view }
    }

    /// Links from a certificate's block to its base.
    #[must_use]
    pub fn links(&self) -> u64 {
        if mutants::active(Mutant::HotStuffTwoChain) { self.links.min(1) } else { self.links }
    }
}
