//! Jolteon: HotStuff that commits after two consecutive certified blocks, with timeout
//! certificates.
//!
//! Sources: Gelashvili et al., "Jolteon and Ditto" (arXiv 2106.10362), and Li, Sonnino, Jovanovic,
//! "Performance of EdDSA and BLS Signatures in Committee-Based Consensus".
//!
//! # Assumptions
//!
//! Members of less than a third of the weight are Byzantine, `f = ⌊(n−1)/3⌋` of `n` where all weigh
//! the same ([`quorate_types::Weights`]); channels authenticate their ends; the network may lose,
//! delay, repeat and reorder. Time is used for liveness alone.
//!
//! # The protocol
//!
//! ```text
//!  view r     leader(r)   ──Proposal(B, QC(r−1))──▶ all ──Vote(B)──▶ leader(r+1)
//!  view r+1   leader(r+1) ──Proposal(B′, QC(B))──▶ all ──Vote(B′)──▶ leader(r+2)
//!  view r+2   leader(r+2) ──Proposal(B″, QC(B′))──▶ all: B is decided
//! ```
//!
//! - A replica votes once a view, for a block that extends its certificate's block in the next
//!   view, or whose timeout certificate explains the gap and whose parent is at least what that
//!   certificate reports. It votes only after the block's bodies are stored: a certificate proves
//!   availability.
//! - A certificate for view r whose block's parent is of view r−1 decides the parent and its
//!   ancestors.
//! - A replica that waits too long signs a timeout that reports its highest certificate. A quorum
//!   of them is a timeout certificate and leads to the next view.
//!
//! # Deviations from the papers
//!
//! - A vote names its block's parent, so that a certificate alone shows what it commits; and a
//!   leader that decides with nothing left to propose broadcasts the certificate, so that idling
//!   costs no view.
//! - Timeouts carry the signer's last vote: everybody can make the certificate that a faulty
//!   collector withheld. Timeout certificates are broadcast.
//! - Vote and timeout shares are checked when they are combined, all at once, not as they come: the
//!   channel has proven their sender, and a bad share is found by bisection and blamed.
//! - The safety record keeps the undecided chains as well, up to every block voted for since the
//!   highest certificate: after a power cut of the whole committee a certified block must still
//!   exist somewhere.
//! - A replica with nothing left to decide answers a timeout of its own view with what decided
//!   last: the sender missed it, and a later certificate that decides nothing may hide it.
//! - Views that depend on a member whose last turn came to nothing get an eighth of the span
//!   ([`crate::pacemaker::LeaderFailures`]).
//!
//! # Why it is safe
//!
//! Two certificates of one view share an honest voter, who votes once a view, across restarts. If
//! QC(B) and QC(B′) stand in views r and r+1, the honest voters of B′ had stored QC(B) before they
//! voted and cannot vote in r+1 after giving it up; so every timeout certificate of a view ≥ r+1
//! reports a certificate of view ≥ r, and what extends it extends B.

use crate::chained::Rules;
use quorate_types::Kind;

/// Jolteon's side of what differs within the family.
pub const RULES: Rules = Rules {
    genesis: "quorate v1 jolteon genesis",
    vote: Kind::JolteonVote,
    later: None,
    timeout: Kind::JolteonTimeout,
    links: 1,
    locks: false,
    timeout_ends_voting: true,
    extends_report: true,
};
