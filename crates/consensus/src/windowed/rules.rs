//! Differences between the protocols of this machine, all of them.
//!
//! | | votes, certificates | `n−c` votes decide | answer to a client |
//! |---|---|---|---|
//! | PBFT | to everybody, each for itself | no | `f+1` replies |
//! | linear PBFT | to collectors, one for all | no | `f+1` replies |
//! | with the fast path | to collectors, one for all | yes | `f+1` replies |
//! | SBFT | to collectors, one for all | yes | one certified reply |
//!
//! The last column is the engine's: any protocol can issue execution certificates.

/// Switches of one protocol.
#[derive(Debug)]
pub struct Rules {
    /// Votes go to collectors, which broadcast certificates and proofs. Otherwise they go to
    /// everybody.
    pub collectors: bool,
    /// Votes of all but the redundant members decide at once.
    pub fast_path: bool,
}

/// Number of slots between the water marks (PBFT §4.2; paper 002: `win`).
pub const WINDOW: u64 = 256;
/// Undecided slots that a primary has at once by default: half of paper 002's (§V-C). Where a
/// committee is limited by its processors, each further one only waits (docs/results/sbft.md).
pub const CONCURRENT: u64 = 2;
/// Slots from one checkpoint to the next (paper 002 §V-F: `win/2`).
pub const CHECKPOINT_EVERY: u64 = WINDOW / 2;
/// Bytes of values that undecided slots may name: half of what fits a view change's frame.
pub(super) const VALUES_BYTES_MAX: usize = 2 * 1024 * 1024;
