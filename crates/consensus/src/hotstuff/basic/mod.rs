//! Basic HotStuff: one block a view, decided in it by three phases of votes to the view's own
//! leader.
//!
//! Sources: Yin, Malkhi, Reiter, Gueta, Abraham, "HotStuff: BFT Consensus with Linearity and
//! Responsiveness" (PODC 2019, Algorithm 2), and a dissertation's listings of it with a pacemaker
//! of complaints. The machine is that of all [chained](crate::chained) protocols, with the phases
//! of `chained/phases.rs` beside it; [`RULES`] is what tells basic HotStuff from the others.
//!
//! # Assumptions
//!
//! Those of [Jolteon](crate::jolteon#assumptions).
//!
//! # The protocol
//!
//! ```text
//!  all ──NEW-VIEW(commitQC(v−1))──▶ leader(v): a quorum's, or a timeout certificate of v−1
//!
//!              from the leader to all        votes of all to the leader make
//!  PREPARE     Proposal(b, commitQC(v−1))    prepareQC(b)
//!  PRE-COMMIT  prepareQC(b)                  precommitQC(b)
//!  COMMIT      precommitQC(b), who lock      commitQC(b)
//!  DECIDE      commitQC(b): b is decided, and view v+1 begins
//! ```
//!
//! - **Block.** By the leader of its view. Its certificate is the commitQC of the view before; or
//!   any, with a timeout certificate of the view before.
//! - **Vote in PREPARE.** In the current view, for a block that extends the lock or whose
//!   certificate is of a later view than the lock (★).
//! - **Later votes.** In the current view, on its certificate of the phase before. Each phase signs
//!   under a label of its own (★), in no phase of a view is there a second vote and never one in an
//!   earlier phase or view (★), and each vote is durable before it leaves (★).
//! - **Lock.** On the block of a precommitQC, durable before the COMMIT vote (★).
//! - **Decision.** A commitQC decides its block and that one's ancestors, oldest first.
//! - **Complaint.** As in [chained HotStuff](crate::hotstuff). It reports the highest certificate,
//!   which may be of the view that timed out, and shows the last vote in COMMIT, or in PREPARE
//!   where there is none.
//!
//! # Deviations from the papers
//!
//! - A commitQC serves wherever a prepareQC of its view and block would: its signers held that. So
//!   it is what a block shows of its parent and what NEW-VIEW reports; one certificate proves both
//!   that the view before is over and what the next block extends, and whoever missed DECIDE
//!   catches up by the next proposal. A leader that holds it could propose at once; it waits for a
//!   quorum's NEW-VIEW all the same, since the paper's protocol is the one to measure. After a
//!   timeout, and in view 1, nothing is waited for.
//! - When all are idle, the next leader shows the commitQC to those whose NEW-VIEW it did not wait
//!   for: no proposal follows that would, and the leader before may have left them out.
//! - NEW-VIEW is not signed: the channel proves its sender, and nobody hands it on.
//! - What a certificate of the first or the last phase is of is in what it signs: the votes of
//!   COMMIT name their own block as what they decide, those before it the parent. Certificates of
//!   PRE-COMMIT votes travel in a message of their own. Certificates are remembered by what they
//!   sign, too.
//! - A certificate of a view's first phase moves its receivers into that view, not past it: honest
//!   members were there.
//! - Votes need block and bodies in every phase, so that the block survives whoever is lost.
//! - A commitQC that a leader took with it is made again from complaints. Those of the earlier
//!   phases are not: the next leader goes on from the highest that anybody reports.
//! - What the pacemaker, the safety record, idling and the shared checks do otherwise is said with
//!   [Jolteon](crate::jolteon#deviations-from-the-papers).
//!
//! # Why it is safe
//!
//! Let a commitQC of b stand in view v: a quorum had locked b, durably, when it voted. Take the
//! first view w after v with a prepareQC of a block c that does not extend b. An honest member
//! signed both. It did not vote in w before it voted in v, for nobody votes in an earlier view
//! again. So when it voted for c, it was locked on b, or on a block of a later view u < w, which
//! was prepared in u and hence extends b. As c does not extend that lock, its certificate is of a
//! later view than v and earlier than w; its block was prepared there, extends b, and c with it.
//! Two prepareQCs of one view share an honest voter, and so do those of later phases, which only
//! certify what was prepared in their view.
//!
//! # What it costs
//!
//! Of n members, for a decision in the good case: `8·(n−1)` messages (NEW-VIEW, four by the leader
//! to all, three votes), `3·n + 1` signatures, `3·(n−1)` certificate checks and three combinations
//! by the leader; with proposals of B, certificates of Q and votes of V bytes `(n−1)·(B + 4·Q +
//! 3·V)` bytes, and seven message delays from a proposal to everybody's decision, eight from one
//! proposal to the next. One crashed leader costs its view alone.

use crate::chained::{LaterPhases, Rules};
use quorate_types::Kind;

/// Basic HotStuff's side of what differs within the family.
pub const RULES: Rules = Rules {
    genesis: "quorate v1 hotstuff-basic genesis",
    vote: Kind::HotStuffBasicPrepare,
    later: Some(LaterPhases {
        pre_commit: Kind::HotStuffBasicPreCommit,
        commit: Kind::HotStuffBasicCommit,
    }),
    timeout: Kind::HotStuffBasicComplaint,
    links: 0,
    locks: true,
    timeout_ends_voting: false,
    extends_report: false,
};

#[cfg(test)]
mod tests;
