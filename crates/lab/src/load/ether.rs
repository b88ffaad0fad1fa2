//! Transfers of ether: what an EVM ledger takes whatever its genesis holds.

use super::Source;
use alloy_consensus::TxEip1559;
use alloy_primitives::TxKind;
use bytes::Bytes;
use quorate_ledger::evm::{Address, Signer, U256};

/// Gas of a transfer.
const GAS: u64 = 21_000;

/// Accounts that send a wei to one another in turn.
#[derive(Debug)]
pub struct EtherMix {
    chain_id: u64,
    accounts: Vec<Signer>,
    sent: u64,
}

impl EtherMix {
    /// A load of these accounts, at least one, none of which has sent anything yet.
    #[must_use]
    pub fn new(chain_id: u64, accounts: Vec<Signer>) -> Self {
        Self { chain_id, accounts, sent: 0 }
    }
}

impl Source for EtherMix {
    fn next_transaction(&mut self) -> Bytes {
        let count = self.accounts.len() as u64;
        let (at, nonce) = (self.sent % count, self.sent / count);
        let to = self.accounts[((at + 1) % count) as usize].address();
        self.sent += 1;
        send_ether(&self.accounts[at as usize], self.chain_id, nonce, to, U256::from(1))
    }
}

/// A transfer of so many wei, signed and encoded.
#[must_use]
pub fn send_ether(from: &Signer, chain_id: u64, nonce: u64, to: Address, value: U256) -> Bytes {
    from.sign(TxEip1559 {
        chain_id,
        nonce,
        gas_limit: GAS,
        max_fee_per_gas: 1,
        max_priority_fee_per_gas: 0,
        to: TxKind::Call(to),
        value,
        ..TxEip1559::default()
    })
}
