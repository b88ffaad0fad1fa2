//! Accounts, what they hold of one token, and transfers between them, all from numbers.
//!
//! A transfer is of coin and token at once: it changes two accounts, and two slots of the token's.

use alloy_primitives::{Address, B256, U256, keccak256};
use std::collections::BTreeMap;

/// The token's contract.
pub(crate) const TOKEN: Address = Address::repeat_byte(0x70);

/// What an account has: of coin, and how many transfers it sent.
#[derive(Clone, Copy)]
pub(crate) struct Account {
    pub(crate) nonce: u64,
    pub(crate) balance: U256,
}

/// Newest values of what a height changed, in the order of their keys.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) accounts: BTreeMap<Address, Account>,
    pub(crate) slots: BTreeMap<B256, U256>,
}

/// What all accounts have.
pub(crate) struct Ledger {
    holders: Vec<Holder>,
    random: Random,
}

struct Holder {
    address: Address,
    /// Slot of the token's contract that says what it holds of the token.
    slot: B256,
    account: Account,
    tokens: U256,
}

impl Ledger {
    /// So many accounts, each with coins and tokens.
    pub(crate) fn new(accounts: u64) -> Self {
        let endowment = U256::from(10).pow(U256::from(21));
        let holder = |number: u64| {
            let address = Address::from_word(keccak256(number.to_be_bytes()));
            // Solidity's place of an entry of the mapping at slot 0.
            let slot = keccak256([address.into_word().0, [0; 32]].concat());
            let account = Account { nonce: 0, balance: endowment };
            Holder { address, slot, account, tokens: endowment }
        };
        Self { holders: (0..accounts).map(holder).collect(), random: Random(accounts) }
    }

    /// Everything that there is, in parts of so many holders.
    pub(crate) fn parts(&self, holders: usize) -> impl Iterator<Item = Changes> {
        self.holders.chunks(holders).map(|part| {
            let mut changes = Changes::default();
            part.iter().for_each(|holder| changes.note(holder));
            changes
        })
    }

    /// A height of so many transfers between any two accounts.
    pub(crate) fn height(&mut self, transfers: u64) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..transfers {
            let [from, to] = [(); 2].map(|()| self.random.below(self.holders.len()));
            let amount = U256::from(1 + self.random.below(1_000_000));
            let sender = &mut self.holders[from];
            sender.account.nonce += 1;
            sender.account.balance -= amount;
            sender.tokens -= amount;
            let receiver = &mut self.holders[to];
            receiver.account.balance += amount;
            receiver.tokens += amount;
            for holder in [from, to] {
                changes.note(&self.holders[holder]);
            }
        }
        changes
    }
}

impl Changes {
    fn note(&mut self, holder: &Holder) {
        self.accounts.insert(holder.address, holder.account);
        self.slots.insert(holder.slot, holder.tokens);
    }
}

/// A generator of random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
