//! What a dry run takes for granted of the state and its block, instead of what they are.

use super::world::World;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::StateError;
use revm::context::BlockEnv;

/// Accounts and block as a dry run is to find them.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Overrides {
    /// Accounts that are not as the state has them, each once.
    pub accounts: Vec<(Address, AccountOverride)>,
    /// Block that it takes part in.
    pub block: BlockOverride,
}

/// What is different of an account; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AccountOverride {
    /// Transactions sent, or contracts created.
    pub nonce: Option<u64>,
    /// Wei that it has.
    pub balance: Option<U256>,
    /// Code that it runs; empty: none.
    pub code: Option<Bytes>,
    /// All of its storage: slots that are not named are zero.
    pub storage: Option<Vec<(B256, B256)>>,
    /// Slots, beside those that it has.
    pub slots: Vec<(B256, B256)>,
}

/// What is different of a block; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BlockOverride {
    /// Height, as NUMBER shows it.
    pub number: Option<U256>,
    /// Seconds since the Unix epoch, as TIMESTAMP shows them.
    pub time: Option<u64>,
    /// Gas of all its transactions, as GASLIMIT shows it.
    pub gas_limit: Option<u64>,
    /// Address that tips go to, as COINBASE shows it.
    pub coinbase: Option<Address>,
    /// Randomness, as PREVRANDAO shows it.
    pub random: Option<B256>,
    /// Wei a unit of gas, as BASEFEE shows them.
    pub base_fee: Option<u64>,
}

impl Overrides {
    /// Puts the accounts in the place of those that a world has.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn apply(&self, world: &mut World<'_>) -> Result<(), StateError> {
        for (address, with) in &self.accounts {
            let mut account = world.account(*address)?;
            account.nonce = with.nonce.unwrap_or(account.nonce);
            account.balance = with.balance.unwrap_or(account.balance);
            if let Some(code) = &with.code {
                account.code_hash = keccak256(code);
                world.put_code(account.code_hash, code.clone());
            }
            world.put_account(*address, account);
            if with.storage.is_some() {
                world.clear_storage(*address);
            }
            for (slot, value) in with.storage.iter().flatten().chain(&with.slots) {
                world.put_slot(*address, (*slot).into(), (*value).into());
            }
        }
        Ok(())
    }
}

impl BlockOverride {
    /// The block as it is to be.
    pub(super) fn apply(&self, block: &mut BlockEnv) {
        block.number = self.number.unwrap_or(block.number);
        block.timestamp = self.time.map_or(block.timestamp, U256::from);
        block.gas_limit = self.gas_limit.unwrap_or(block.gas_limit);
        block.beneficiary = self.coinbase.unwrap_or(block.beneficiary);
        block.prevrandao = self.random.or(block.prevrandao);
        block.basefee = self.base_fee.unwrap_or(block.basefee);
    }
}
