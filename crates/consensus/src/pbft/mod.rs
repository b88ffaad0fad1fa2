//! PBFT with signatures, and linear PBFT, whose votes go through collectors.
//!
//! Sources: Castro and Liskov, "Practical Byzantine Fault Tolerance" (OSDI 1999); paper 002, §V-E.
//! The machine, its rules and the argument for them: [`crate::windowed`].
//!
//! # In this machine
//!
//! | PBFT §4 | here |
//! |---|---|
//! | `⟨PRE-PREPARE, v, n, d⟩, m` | `PrePrepare`; its bodies travel on their own |
//! | `⟨PREPARE, v, n, d, i⟩` | `SignShare`, to all; the primary's is in its pre-prepare |
//! | prepared(m, v, n, i) | a certificate of a quorum's votes, made by each member for itself |
//! | `⟨COMMIT, v, n, D(m), i⟩` | `CommitShare`, to all |
//! | committed-local(m, v, n, i) | a slow proof, made by each member for itself |
//! | `⟨CHECKPOINT, n, d, i⟩` | the engine's, every 128 heights |
//! | `⟨VIEW-CHANGE, v+1, n, C, P, i⟩` | `ViewChange`; `P` holds one certificate a slot |
//! | `⟨NEW-VIEW, v+1, V, O⟩` | `NewView`; `V` by digest, `O` computed by everybody |
//!
//! Linear PBFT (§V-E) sends both rounds of votes to the slot's collectors, who broadcast the
//! certificate and the proof: `O(n)` messages a slot, and two delays more.
//!
//! # Deviations from the paper
//!
//! - *Votes are signatures, not authenticators* (§5.2): certificates must convince others, in view
//!   changes and in fetched history. A certificate is what a set of prepares in `P` would be.
//! - *Counts are quorums of the committee*, `⌊(n+f)/2⌋+1`, where the paper has `2f+1` of `3f+1`:
//!   with other `n` two sets of `2f+1` need not share an honest member.
//! - *The primary's vote is in its pre-prepare*, and counts as one of the quorum's; the paper
//!   counts the pre-prepare beside `2f` prepares of backups.
//! - *No tentative execution and no read-only requests* (§5.1): the latter may wait for ever while
//!   writes go on.
//! - *A slot that a new view fills is executed once* as in the paper: one that was delivered gets
//!   no vote again, for its bodies may be released; its decided slot is sent instead.

use crate::windowed::Rules;

/// PBFT: votes go to everybody, and every member combines them.
pub const RULES: Rules = Rules { collectors: false, fast_path: false };

/// Linear PBFT: votes go to collectors, which broadcast one certificate for all.
pub const LINEAR_RULES: Rules = Rules { collectors: true, fast_path: false };
