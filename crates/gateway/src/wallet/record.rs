//! Records of a wallet's file.

use super::payment::Order;
use super::request::{RequestId, RequestTerms};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_payments::release::Decided;
use quorate_payments::{OutputId, PayReceipt, PaymentOutcome, Transaction, TxId};
use quorate_types::NetworkId;

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
}
