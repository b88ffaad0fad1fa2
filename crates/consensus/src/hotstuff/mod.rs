//! Chained HotStuff: a block is decided once three certificates stand on it in consecutive views.
//!
//! Sources: Yin, Malkhi, Reiter, Gueta, Abraham, "HotStuff: BFT Consensus with Linearity and
//! Responsiveness" (PODC 2019), and a dissertation's listings of it with a pacemaker of complaints.
//! The machine is that of all [chained](crate::chained) protocols; [`RULES`] is what is HotStuff's
//! own.
//!
//! # Assumptions
//!
//! Those of [Jolteon](crate::jolteon#assumptions).
//!
//! # The protocol
//!
//! ```text
//!  view v:    leader proposes b,  justify QC(a)    all vote, to leader(v+1)
//!  view v+1:  leader proposes b′, justify QC(b)    voters lock on a
//!  view v+2:  leader proposes b″, justify QC(b′)   voters lock on b
//!  view v+3:  leader proposes …,  justify QC(b″)   b is decided: its links are of v, v+1, v+2
//! ```
//!
//! - **Block.** By the leader of its view; its certificate is of the view before, or a timeout
//!   certificate explains the gap. What a block after a timeout certificate extends is not checked:
//!   the locks are.
//! - **Vote.** In the current view, in no view twice, for a block that extends the lock or whose
//!   own certificate is of a later view than the lock (★).
//! - **Lock.** Whatever block comes, voted for or not: the parent of the block that its certificate
//!   certifies, if that is later than the old lock.
//! - **Decision.** Three blocks in consecutive *views*, the last of them certified, decide the
//!   first and its ancestors, oldest first. Links alone decide nothing: a lock is released for a
//!   certificate of a later view, and a gap between views leaves room for one (★).
//! - **Complaint.** When a view takes too long: to everybody, with the highest certificate and the
//!   last vote. A complaint binds its sender to nothing: a proposal that comes late still gets its
//!   vote. A quorum of complaints is a timeout certificate and leads to the next view; it stands
//!   for the new-view messages of the paper, so its leader goes on at once with the highest
//!   certificate in it.
//!
//! # Deviations from the papers
//!
//! - A vote names its block's grandparent, so that a certificate alone shows what it decides.
//! - Parent and certified block are one link: there are no dummy blocks, and views are compared.
//! - Votes inside complaints make the certificate that a dead collector took with it. Three leaders
//!   in a row are then enough for a decision, where votes to the next leader alone need four: of
//!   four members with one crashed, no four in a row are up, and nothing would ever be decided.
//! - Complaints go to all, with view, certificate and signature: to the next leader alone, two
//!   faulty leaders in a row stop everything.
//! - What the pacemaker, the safety record, idling and the shared checks do otherwise is said with
//!   [Jolteon](crate::jolteon#deviations-from-the-papers).
//!
//! # Why it is safe
//!
//! Let b, b′, b″ stand in views v, v+1, v+2, and let QC(b″) exist. A quorum voted for b″ and had
//! locked b before, durably. Take the first certified block c of a view after v that does not
//! extend b. Not in v+1 or v+2, where b′ and b″ are certified and nobody votes twice. So c comes
//! after v+2, and an honest member that voted for b″ voted for it, locked on b or on something
//! later. Whatever is certified between v and c extends b, locks included; so c does not extend
//! that member's lock, and its certificate must be of a later view than v: then c's parent is
//! certified, extends b as everything before c does, and c with it.

pub mod basic;

use crate::chained::Rules;
use quorate_types::Kind;

/// HotStuff's side of what differs within the family.
pub const RULES: Rules = Rules {
    genesis: "quorate v1 hotstuff genesis",
    vote: Kind::HotStuffVote,
    later: None,
    timeout: Kind::HotStuffComplaint,
    links: 2,
    locks: true,
    timeout_ends_voting: false,
    extends_report: false,
};

#[cfg(test)]
mod tests;
