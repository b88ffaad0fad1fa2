//! All that the protocols of this machine differ in.
//!
//! | | PBFT | linear PBFT | with the fast path | SBFT |
//! |---|---|---|---|---|
//! | votes go to | everybody | the slot's collectors | the slot's collectors | the slot's collectors |
//! | a certificate is made by | each for itself | a collector for all | a collector for all | a collector for all |
//! | all but `c` votes decide at once | no | no | yes | yes |
//! | a client is answered by | `f+1` replies | `f+1` replies | `f+1` replies | one certified reply |
//!
//! The last row is the engine's, not this machine's: any protocol can issue execution certificates.

/// One protocol's side of the differences.
#[derive(Debug)]
pub struct Rules {
    /// Whether votes go to collectors, who show everybody what they add up to. Otherwise they go to
    /// everybody.
    pub collectors: bool,
    /// Whether a value is decided at once when all but the redundant members voted for it.
    pub fast_path: bool,
}

/// Slots under way beyond the last stable one (paper 002: `win`).
pub const WINDOW: u64 = 256;
/// Slots that a primary has under way at once by default: half of paper 002's (§V). Where processors are
/// what limits a committee, each further one only waits for them (docs/results/sbft.md).
pub const CONCURRENT: u64 = 2;
/// A checkpoint is made every so many slots.
pub const CHECKPOINT_EVERY: u64 = WINDOW / 2;
