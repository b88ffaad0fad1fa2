//! Coins of a wallet, each with what keeps it from being spent.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::release::Decision;
use quorate_payments::{Coin, TxId};

/// A coin that was not spent, as far as this wallet knows.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Held {
    pub(super) coin: Coin,
    pub(super) hold: Hold,
    pub(super) release: Option<Release>,
}

/// Claim on a coin that keeps it from being spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Hold {
    /// Nothing holds the coin: it can be spent, unless it is under release.
    Free,
    /// A payment that is not finished.
    Reserved(TxId),
    /// A payment that lost against another one of the same owner: some authorities are locked for
    /// either.
    Frozen(TxId),
    /// Its state is not known since the book was made again, or since others may have had it.
    Unasked,
    /// Authorities locked it for a transaction of this owner that the book does not have.
    Stuck(TxId),
}

/// Release of a coin, as far as this wallet knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Release {
    /// Asked for, or begun by somebody.
    Asked,
    /// Ended, as the committee's state proved.
    Decided(Decision),
}

impl Hold {
    /// Transaction that the coin is kept for.
    pub(super) fn holder(self) -> Option<TxId> {
        match self {
            Self::Free | Self::Unasked => None,
            Self::Reserved(tx) | Self::Frozen(tx) | Self::Stuck(tx) => Some(tx),
        }
    }
}

impl Held {
    pub(super) fn new(coin: Coin, hold: Hold) -> Self {
        Self { coin, hold, release: None }
    }

    /// Tells whether the coin is under release, or its refund is not begun.
    pub(super) fn is_under_release(&self) -> bool {
        match self.release {
            Some(Release::Asked) => true,
            Some(Release::Decided(Decision::Refund)) => !matches!(self.hold, Hold::Reserved(_)),
            Some(Release::Decided(Decision::Spend(_))) | None => false,
        }
    }

    /// Tells whether the release was decided for this transaction.
    pub(super) fn is_due_to(&self, tx: TxId) -> bool {
        self.release == Some(Release::Decided(Decision::Spend(tx)))
    }

    /// Tells whether a payment can take the coin: one that is made now, or that was made before.
    pub(super) fn yields_to(&self, tx: TxId) -> bool {
        let is_open = match self.hold {
            Hold::Free | Hold::Unasked => true,
            Hold::Stuck(holder) => holder == tx,
            Hold::Reserved(_) | Hold::Frozen(_) => false,
        };
        match self.release {
            Some(Release::Decided(_)) => self.is_due_to(tx),
            Some(Release::Asked) | None => is_open,
        }
    }

    /// Tells whether a refund can take the coin (★): it was decided.
    pub(super) fn is_refunded(&self) -> bool {
        let is_early = self.release.is_some() && mutants::active(Mutant::PayRefundUndecided);
        self.release == Some(Release::Decided(Decision::Refund)) || is_early
    }
}
