//! The height that an epoch's protocol begins after.

use crate::Height;

/// Last height before an epoch: its machines begin as if it had been decided there and were stable.
/// Of a network's first epoch it is height zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Height of the stop block of the epoch before.
    pub height: Height,
    /// Time of that block, in milliseconds since the Unix epoch.
    pub proposed_at_ms: u64,
}
