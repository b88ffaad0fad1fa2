//! Accounts that transactions touch, as the index has them.

use super::transaction::Recovered;
use alloy_consensus::Transaction as _;
use alloy_primitives::Address;

/// Accounts that a transaction touched, and contracts that it created.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    pub(super) accounts: Vec<Address>,
    pub(super) created: Vec<Address>,
}

impl Touched {
    /// As whoever looks for this transaction sees it: those that it names are among them whatever
    /// it came to, and who merely gets its fees is not.
    pub(super) fn of(mut self, transaction: &Recovered, fees_to: Address) -> Self {
        self.accounts.retain(|account| *account != fees_to);
        self.accounts.push(transaction.sender);
        self.accounts.extend(transaction.envelope.to());
        self
    }
}
