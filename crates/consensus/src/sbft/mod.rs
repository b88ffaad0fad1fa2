//! SBFT: linear PBFT with a fast path; with execution certificates, which are the engine's, a
//! client needs one answer.
//!
//! Source: Golan Gueta et al., "SBFT: a Scalable and Decentralized Trust Infrastructure" (paper
//! 002). The machine, its rules and the argument for them: [`crate::windowed`].
//!
//! # In addition to linear PBFT
//!
//! - **Fast path** (§V-C). Votes to prepare by all but `c` members are a proof. A collector that
//!   has a quorum's votes waits for them as long as they usually come later, and then shows the
//!   prepared certificate instead (§V-E).
//! - **Redundant members** (§V). Of `n = 3f+2c+1`, `c` may be slow or dead and the fast path goes
//!   on; `c+1` backups collect for each slot, then the primary (§V-B, §V-E).
//! - **Two modes in a view change** (§V-G). A report has two sides: the last certificate on the
//!   slow path, and the last proposal accepted, of which `f+c+1` in a view or later may hide a fast
//!   decision.
//! - **Execution** (§V-D). Shares over the root of each height are the engine's, for any protocol.
//!
//! # Deviations from the paper
//!
//! - *σ's threshold is `3f+c+1`* (§V-B, and the proofs of §VI), not `3f+2c+1` (§V).
//! - *Votes to commit sign the proposal under a kind of their own.* The paper's `τ(τ(h))`, a
//!   signature over a signature, breaks where two collectors make two.
//! - *With multi-signatures one share serves both thresholds*; a certificate counts as a fast proof
//!   by the number of its signers. With threshold keys σ and τ are independent sharings (★), and
//!   σ's share is sent within `win/4` of what its signer decided (§V-F).
//! - *`ls` moves by checkpoints of a quorum alone*, never by a fast commit (§V-F): a view change
//!   could not prove the latter. A quorum's shares, not `π`'s `f+1`, make a checkpoint stable: one
//!   honest holder is too few to discard anything.
//! - *The signature of a view change stands for the σ shares in it* (§V-G): hundreds of shares need
//!   not be checked one by one, and a member that lies about its own votes is one of the `f`.
//! - *A report names the last proposal accepted, whether or not σ's share was sent.*
//! - *A collector that missed its turn is not waited for for ten seconds*, and the primary is
//!   always the last: safety does not depend on who collects.
//! - *Two slots are under way at once* where the paper has four blocks (§V-C), by measurement
//!   (docs/results/sbft.md), and never more than its active window of `⌊(n−1)/(c+1)⌋` (§VIII).
//! - *View changes over hash chains* (§V-G.1) are not implemented: slots could not be decided out
//!   of order.

use crate::windowed::Rules;

/// SBFT: votes go to collectors, and those of all but the redundant members decide at once.
pub const RULES: Rules = Rules { collectors: true, fast_path: true };
