//! End of one epoch and beginning of the next.
//!
//! A quorum of an epoch's members signs, once it has executed the last height, what the next epoch
//! begins with. Whoever holds these few hundred bytes goes from one committee file to the next
//! without trusting anybody, and everything that is signed in the next epoch names them (★).

use crate::{BlockId, Epoch, EpochId, Height, Kind, NetworkId, Scope, sign};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash_parts};

/// The statement "this epoch ended at this height, and the next one begins with this state under
/// this file".
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    BorshSerialize,
    BorshDeserialize,
)]
pub struct HandOver {
    /// Last height of the epoch that ended.
    pub height: Height,
    /// Id of the block that is decided there, with which it ended.
    pub stop: BlockId,
    /// [`Header::root`](crate::Header::root) at that height.
    pub root: Digest,
    /// [`CommitteeFile::digest`](crate::CommitteeFile::digest) of the file that is in force next.
    pub file: Digest,
}

impl HandOver {
    /// The bytes that a member signs; `scope` is that of the epoch that ended.
    #[must_use]
    pub fn statement(&self, scope: Scope) -> Vec<u8> {
        sign::statement(Kind::HandOver, scope, self)
    }

    /// Id of the epoch of this number that it begins (★).
    #[must_use]
    pub fn begins(&self, network: NetworkId, epoch: Epoch) -> EpochId {
        let by_number = mutants::active(Mutant::EpochByNumber);
        let content = if by_number { Self::default() } else { *self };
        let content = borsh::to_vec(&content).expect("encoding into memory cannot fail");
        let parts: [&[u8]; 3] = [&network.0, &epoch.0.to_be_bytes(), &content];
        EpochId(hash_parts("quorate v1 epoch id", &parts).0)
    }

    /// Content in the place of a hand-over before a network's first epoch: no height, no block, no
    /// state. For the file stands the network's own id, which leaves out addresses: whoever moves
    /// in the first epoch goes on signing for the same one.
    #[must_use]
    pub fn of_genesis(network: NetworkId) -> Self {
        Self { file: Digest(network.0), ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
