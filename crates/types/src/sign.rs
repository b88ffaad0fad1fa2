//! Statements that are signed (★):
//! `"quorate/v1/" ‖ kind ‖ chain_id[32] ‖ epoch u64 ‖ canonical payload`.
//!
//! One kind per statement, never shared: a signature made for one kind, chain or epoch is refused
//! for every other.

use crate::{ChainId, Epoch};
use borsh::BorshSerialize;

/// The statement a signature makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A leader's proposal for a view.
    Propose,
    /// A vote for a block in Jolteon.
    JolteonVote,
    /// A member's timeout of a view in Jolteon.
    JolteonTimeout,
    /// A vote of chained HotStuff.
    HotStuffVote,
    /// A complaint of chained HotStuff: a view timed out.
    HotStuffComplaint,
    /// A vote of basic HotStuff's first phase.
    HotStuffBasicPrepare,
    /// A vote of its second phase.
    HotStuffBasicPreCommit,
    /// A vote of its third phase.
    HotStuffBasicCommit,
    /// A complaint of basic HotStuff.
    HotStuffBasicComplaint,
    /// A primary's proposal for a slot.
    PrePrepare,
    /// A vote for what a primary proposed for a slot.
    Prepare,
    /// A vote to decide what was prepared for a slot.
    Commit,
    /// A member's view change: the slots as it knows them when its view timed out.
    ViewChange,
    /// A primary's new view: the values that its view begins with.
    NewView,
    /// The state at a height, which may replace everything before it.
    Checkpoint,
    /// A member's acknowledgement of an author's bodies.
    Available,
    /// The root that a member came to by executing a height.
    Executed,
    /// A member's step in generating keys.
    KeyGeneration,
    /// A client's request for operations.
    Client,
    /// A client's word that a session is its own.
    Voucher,
    /// A replica's reply to a client.
    Reply,
    /// An owner spends outputs, or an issuer issues some.
    TxOwner,
    /// An authority's vote for a transaction.
    TxVote,
    /// An authority's votes for all transactions in a tree.
    MerkleRoot,
    /// A payer's memo to the one whom it pays.
    TxMemo,
    /// A member's question after its own newest signatures.
    OwnQuestion,
}

impl Kind {
    /// Every kind, for tests that replay each as each other.
    pub const ALL: [Self; 26] = [
        Self::Propose,
        Self::JolteonVote,
        Self::JolteonTimeout,
        Self::HotStuffVote,
        Self::HotStuffComplaint,
        Self::HotStuffBasicPrepare,
        Self::HotStuffBasicPreCommit,
        Self::HotStuffBasicCommit,
        Self::HotStuffBasicComplaint,
        Self::PrePrepare,
        Self::Prepare,
        Self::Commit,
        Self::ViewChange,
        Self::NewView,
        Self::Checkpoint,
        Self::Available,
        Self::Executed,
        Self::KeyGeneration,
        Self::Client,
        Self::Voucher,
        Self::Reply,
        Self::TxOwner,
        Self::TxVote,
        Self::MerkleRoot,
        Self::TxMemo,
        Self::OwnQuestion,
    ];

    /// The label in the signed bytes. Ends in a slash so that no label is a prefix of another.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Propose => "PROPOSE/",
            Self::JolteonVote => "VOTE/jolteon/",
            Self::JolteonTimeout => "TIMEOUT/jolteon/",
            Self::HotStuffVote => "VOTE/hotstuff/",
            Self::HotStuffComplaint => "COMPLAIN/hotstuff/",
            Self::HotStuffBasicPrepare => "VOTE/hotstuff-basic/prepare/",
            Self::HotStuffBasicPreCommit => "VOTE/hotstuff-basic/pre-commit/",
            Self::HotStuffBasicCommit => "VOTE/hotstuff-basic/commit/",
            Self::HotStuffBasicComplaint => "COMPLAIN/hotstuff-basic/",
            Self::PrePrepare => "PRE-PREPARE/",
            Self::Prepare => "PREPARE/",
            Self::Commit => "COMMIT/",
            Self::ViewChange => "VIEW-CHANGE/",
            Self::NewView => "NEW-VIEW/",
            Self::Checkpoint => "CHECKPOINT/",
            Self::Available => "AVAILABLE/",
            Self::Executed => "EXECUTED/",
            Self::KeyGeneration => "KEY-GENERATION/",
            Self::Client => "CLIENT/",
            Self::Voucher => "VOUCHER/",
            Self::Reply => "REPLY/",
            Self::TxOwner => "TX-OWNER/",
            Self::TxVote => "TX-VOTE/",
            Self::MerkleRoot => "MERKLE-ROOT/",
            Self::TxMemo => "TX-MEMO/",
            Self::OwnQuestion => "OWN-QUESTION/",
        }
    }
}

/// The bytes that are signed for `payload`, whose encoding must be of a width fixed by `kind`.
///
/// # Panics
/// Never: encoding into memory cannot fail.
#[must_use]
pub fn statement(
    kind: Kind,
    chain: ChainId,
    epoch: Epoch,
    payload: &impl BorshSerialize,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(192);
    bytes.extend_from_slice(b"quorate/v1/");
    bytes.extend_from_slice(kind.label().as_bytes());
    bytes.extend_from_slice(&chain.0);
    bytes.extend_from_slice(&epoch.0.to_be_bytes());
    payload.serialize(&mut bytes).expect("encoding into memory cannot fail");
    bytes
}

#[cfg(test)]
mod tests;
