//! Loads of the EVM ledger that are made as they go.

use quorate_ledger::evm::mix::{self, Mix};

/// A load that is made as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixPlan {
    /// Kinds of transactions and their shares.
    pub shape: mix::Shape,
    /// Accounts that send them in turn, at least 1.
    pub accounts: usize,
}

impl MixPlan {
    /// Identifier of the chain that the transactions are for.
    pub const CHAIN_ID: u64 = 7_770;

    /// The load from its first transaction on.
    #[must_use]
    pub fn start(self, seed: u64) -> Mix {
        Mix::new(Self::CHAIN_ID, self.shape, self.accounts, seed)
    }
}

impl Default for MixPlan {
    /// Everything, from 4,000 accounts: each waits long enough for its last transaction.
    fn default() -> Self {
        Self { shape: mix::Shape::Mixed, accounts: 4_000 }
    }
}
