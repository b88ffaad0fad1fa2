//! Durable records: decided heights, and what a replica must never forget.

use super::messages::{Block, PhaseVote, Proposal, Qc, Tc, Vote};
use super::rules::Phase;
use crate::block_tree::TreeBlock;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::{BlockId, EpochId, View};
use std::io::{self, Read, Write};

/// A decided block with the certificate that decided it: itself or a descendant. A stop block's
/// proves itself: its descendants are void, and nobody has them as decided blocks.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DecidedBlock {
    /// Block that is decided.
    pub block: Block,
    /// Its base is this block or a descendant.
    pub commit: Qc,
    /// Of a stop block, its descendants down to the certificate's base, oldest first.
    pub void: Vec<Block>,
}

impl DecidedBlock {
    /// A block that nothing void stands behind.
    #[must_use]
    pub const fn new(block: Block, commit: Qc) -> Self {
        Self { block, commit, void: Vec::new() }
    }

    /// Id of the block that the certificate decides, if its void descendants are linked.
    pub(super) fn tip(&self) -> Option<BlockId> {
        self.void.iter().try_fold(self.block.id(), |parent, block| {
            (block.parent() == parent && block.payload.is_empty()).then(|| block.id())
        })
    }
}

/// Promises that a replica must never forget (★), as one record.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SafetyRecord {
    /// The epoch of these promises, by how it began (★).
    pub epoch: EpochId,
    /// No vote in this view or before.
    pub voted_view: View,
    /// The last vote, to send it again byte for byte.
    pub last_vote: Option<Vote>,
    /// The highest certificate: what the next timeout reports.
    pub high_qc: Qc,
    /// The highest timeout certificate: with it the view is known again.
    pub high_tc: Option<Tc>,
    /// The last view that timed out.
    pub timeout_view: View,
    /// The last proposal, to send it again byte for byte.
    pub last_proposal: Option<Proposal>,
    /// The undecided chains up to the highest certificate's block and to every block voted for
    /// since: if everybody loses power at once, a certified block must still be somewhere.
    pub blocks: Vec<Block>,
    /// Lock of the last votes; absent, to the last byte, where the protocol has no locks.
    #[borsh(serialize_with = "write_if_any", deserialize_with = "read_if_any")]
    pub lock: Option<Lock>,
    /// Phases of `voted_view` that were voted in; absent likewise where there is but one.
    #[borsh(serialize_with = "write_if_any", deserialize_with = "read_if_any")]
    pub later: Option<LaterVotes>,
}

/// The newest block that a replica knows to be the parent of a certified one, or, where views have
/// several phases, to have a certificate of the second one (★): it votes against it only when a
/// later certificate shows that this is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Lock {
    /// View of the block.
    pub view: View,
    /// Id of the block that is locked.
    pub id: BlockId,
}

/// The votes of one view after the first phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaterVotes {
    /// No vote of this phase or before (★).
    pub voted: Phase,
    /// Those cast, to send them again byte for byte.
    pub votes: Vec<PhaseVote>,
}

/// Nothing at the end of a record is nothing at all: records without locks and phases stay as they
/// were.
fn write_if_any<T: BorshSerialize, W: Write>(value: &Option<T>, writer: &mut W) -> io::Result<()> {
    value.as_ref().map_or(Ok(()), |value| value.serialize(writer))
}

fn read_if_any<T: BorshDeserialize, R: Read>(reader: &mut R) -> io::Result<Option<T>> {
    let mut first = [0; 1];
    if reader.read(&mut first)? == 0 {
        return Ok(None);
    }
    T::deserialize_reader(&mut first.as_slice().chain(reader)).map(Some)
}
