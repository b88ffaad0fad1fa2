//! Records of a wallet's file.

use super::archive::ArchivePoint;
use super::held::Held;
use super::payment::{Line, Order};
use super::request::{Request, RequestId, RequestTerms};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::release::Decided;
use quorate_payments::{OutputId, PayReceipt, PaymentOutcome, Transaction, TxId};
use quorate_types::NetworkId;
use std::collections::{BTreeMap, BTreeSet};

/// Beginning of a book that was folded.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Folded {
    /// Archive that has the lines which are not kept.
    pub(super) archive: ArchivePoint,
    /// Number of records that follow, all of what is kept.
    pub(super) records: u64,
    /// Number of lines among them.
    pub(super) lines: u64,
    /// Number of the next line of the history.
    pub(super) line_next: u64,
    /// Serial number of the next issue.
    pub(super) serial_next: u64,
    pub(super) is_restored: bool,
    pub(super) is_recovery_due: bool,
    pub(super) doubtful: BTreeSet<TxId>,
    pub(super) unstored: BTreeSet<TxId>,
    /// Coins that transactions spent which the wallet does not have.
    pub(super) spent: BTreeMap<OutputId, TxId>,
    /// Length of the archive whose records each authority removed.
    pub(super) removed: BTreeMap<IdentityKey, u64>,
}

impl Folded {
    /// Most records up to this one: the owner's, the network's, and it.
    const AT_MOST: usize = 3;

    /// The one of a book, and the number of records before it, if the book was folded.
    pub(super) fn of(book: &[Vec<u8>]) -> Option<(usize, Self)> {
        let head = book.iter().take(Self::AT_MOST).enumerate();
        head.into_iter().find_map(|(at, content)| match borsh::from_slice(content).ok()? {
            Record::Folded(folded) => Some((at, folded)),
            _ => None,
        })
    }
}

/// Record of the wallet's file, in order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Record {
    /// Key that the wallet belongs to. The first record, and the only one of its kind.
    Owner(IdentityKey),
    /// Network that it pays in; known when the wallet is first used.
    Network(NetworkId),
    /// Coins that were not known before, and who paid them. Checked before they were written.
    Received { receipt: PayReceipt, at_ms: u64 },
    /// A payment, before anybody was shown it (★): after a crash the same bytes are sent again, and
    /// a second transaction over the same coins is never made.
    Begun { order: Order, key: Option<String>, transaction: Transaction, at_ms: u64 },
    /// Outcome of a payment becomes known.
    Ended { tx: TxId, outcome: PaymentOutcome, at_ms: u64 },
    /// The book was made again, from a copy or from nothing (★): the state of every coin is to be
    /// asked for, of those too that come in later.
    Restored { at_ms: u64 },
    /// Records of a quorum of authorities were taken in since.
    Recovered { at_ms: u64 },
    /// A payment that was begun before, as a record tells, with the coins that it takes.
    Regained {
        by: Option<String>,
        order: Order,
        key: Option<String>,
        transaction: Transaction,
        at_ms: u64,
    },
    /// States of coins, as a quorum of authorities told them.
    Asked { free: Vec<OutputId>, taken: Vec<(OutputId, TxId)>, at_ms: u64 },
    /// Receipts of these transactions are recorded with a quorum of authorities.
    Stored(Vec<TxId>),
    /// As [`Record::Begun`], with the name of whoever ordered it.
    BegunBy { by: String, order: Order, key: Option<String>, transaction: Transaction, at_ms: u64 },
    /// A request for payment is made. What pays it is a [`Record::Received`].
    Requested { id: RequestId, terms: RequestTerms },
    /// A request is cancelled.
    Cancelled { id: RequestId, at_ms: u64 },
    /// The release of coins is asked for, or was begun by somebody.
    ReleaseAsked { coins: Vec<OutputId>, at_ms: u64 },
    /// Releases ended, as the committee's state proved. What was decided for a payment here makes
    /// it one that is not finished; a refund is a [`Record::Begun`].
    ReleaseDecided { decided: Decided, at_ms: u64 },
    /// The book begins here with all that counts of a former one: what follows until the first
    /// record of another kind is kept, and what the archive has came before.
    Folded(Folded),
    /// A coin that is kept.
    Coin(Held),
    /// A line of the history that is kept.
    Line(Line),
    /// A request that is kept.
    Request(Request),
    /// A quorum of authorities is locked for transactions that neither book nor records have: the
    /// coins are spent, by payments whose records were removed.
    Spent { coins: Vec<(OutputId, TxId)>, at_ms: u64 },
    /// An authority removed the records of the archive's lines, up to this length of it.
    Removed { authority: IdentityKey, archive_bytes: u64 },
}
