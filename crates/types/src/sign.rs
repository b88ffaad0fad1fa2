//! Statements that are signed (★):
//! `"quorate/v1/" ‖ kind ‖ network[32] ‖ epoch id[32] ‖ canonical payload`.
//!
//! One kind per statement, never shared: a signature made for one kind, network or epoch is refused
//! for every other. The epoch's id names the hand-over that began it, so that a vote is bound to
//! that hand-over and not to a number.

use crate::{EpochId, NetworkId};
use borsh::{BorshDeserialize, BorshSerialize};

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
    /// The end of an epoch, and with what the next one begins.
    HandOver,
    /// Consent of a member to a change of the committee.
    Change,
    /// Readiness of a member of the next committee.
    Acceptance,
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
    /// An owner's wish that its coins be released.
    TxRelease,
    /// An authority's report of what a frozen coin is locked for.
    TxReport,
    /// Consent of a payment authority to the next network file, or readiness for it.
    TxChange,
    /// An authority's report of everything that it locked in an epoch that ended.
    TxClosing,
    /// A payment authority's word that it votes in an epoch.
    TxEntered,
    /// A member's question after its own newest signatures.
    OwnQuestion,
}

impl Kind {
    /// Every kind, for tests that replay each as each other.
    pub const ALL: [Self; 34] = [
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
        Self::HandOver,
        Self::Change,
        Self::Acceptance,
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
        Self::TxRelease,
        Self::TxReport,
        Self::TxChange,
        Self::TxClosing,
        Self::TxEntered,
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
            Self::HandOver => "HANDOVER/",
            Self::Change => "CHANGE/",
            Self::Acceptance => "ACCEPTANCE/",
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
            Self::TxRelease => "TX-RELEASE/",
            Self::TxReport => "TX-REPORT/",
            Self::TxChange => "TX-CHANGE/",
            Self::TxClosing => "TX-CLOSING/",
            Self::TxEntered => "TX-ENTERED/",
            Self::OwnQuestion => "OWN-QUESTION/",
        }
    }
}

/// Part of the world for which a statement is good.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Scope {
    /// Network that the statement is made in.
    pub network: NetworkId,
    /// Epoch that it is made in; all zeros, which is no epoch's id, for all of them.
    pub epoch: EpochId,
}

impl Scope {
    /// Scope of statements that hold in every epoch of a network, as a client's requests do.
    #[must_use]
    pub const fn network(network: NetworkId) -> Self {
        Self { network, epoch: EpochId([0; 32]) }
    }
}

/// The bytes that are signed for `payload`, whose encoding must be of a width fixed by `kind`.
///
/// # Panics
/// Never: encoding into memory cannot fail.
#[must_use]
pub fn statement(kind: Kind, scope: Scope, payload: &impl BorshSerialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(224);
    bytes.extend_from_slice(b"quorate/v1/");
    bytes.extend_from_slice(kind.label().as_bytes());
    bytes.extend_from_slice(&scope.network.0);
    bytes.extend_from_slice(&scope.epoch.0);
    payload.serialize(&mut bytes).expect("encoding into memory cannot fail");
    bytes
}

#[cfg(test)]
mod tests;
