//! Accounts, code and storage: how they lie in the state, and the machine's view of them.
//!
//! | key | value | |
//! |---|---|---|
//! | address | [`Account`] | in the [map](crate::map), under its root |
//! | address ‖ slot | 32 bytes, big-endian, never zero | in the map |
//! | `c` ‖ hash of code | the code | beside it; an account names the hash |

use super::stored;
use crate::map::{MapWriter, entries};
use alloy_primitives::map::B256HashMap;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::Mutex;
use quorate_types::service::{State, StateError};
use revm::database_interface::DBErrorMarker;
use revm::primitives::AddressMap;
use revm::state::{self, AccountInfo, Bytecode};
use revm::{Database, DatabaseCommit};
use std::collections::BTreeMap;
use std::mem;

const CODE: u8 = b'c';

/// Account as it is stored, beside its storage.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Account {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance of the account, in wei.
    pub balance: U256,
    /// Keccak-256 of its code.
    pub code_hash: B256,
}

impl Default for Account {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY }
    }
}

/// The key of an account in the map.
#[must_use]
pub fn account_key(address: Address) -> Vec<u8> {
    address.to_vec()
}

/// The key of a storage slot in the map.
#[must_use]
pub fn slot_key(address: Address, slot: U256) -> Vec<u8> {
    [&address[..], &slot.to_be_bytes::<32>()].concat()
}

/// An account as it is stored; `None` where there is none.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn account(state: &dyn State, at: Address) -> Result<Option<Account>, StateError> {
    let Some(entry) = entries::get(state, &account_key(at))? else { return Ok(None) };
    stored::decode(entries::decode(&entry)?.1).map(Some)
}

/// A storage slot as it is stored.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn slot(state: &dyn State, at: Address, slot: U256) -> Result<U256, StateError> {
    let Some(entry) = entries::get(state, &slot_key(at, slot))? else { return Ok(U256::ZERO) };
    let (_, value) = entries::decode(&entry)?;
    U256::try_from_be_slice(value).ok_or_else(stored::damaged)
}

/// Code by its hash.
///
/// # Errors
/// When the state cannot be read, or lacks it.
pub(super) fn code(state: &dyn State, hash: B256) -> Result<Bytes, StateError> {
    if hash == KECCAK256_EMPTY {
        return Ok(Bytes::new());
    }
    state.get(&stored::key(CODE, &[&hash[..]]))?.map(Bytes::from).ok_or_else(stored::damaged)
}

/// Code that was prepared for the machine, by hash. Contracts are few and called often.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<B256HashMap<Bytecode>>);

/// Number of codes beyond which all are forgotten.
const CODES_MAX: usize = 4_096;

impl Codes {
    fn get(&self, state: &dyn State, hash: B256) -> Result<Bytecode, StateError> {
        if let Some(known) = self.0.lock().get(&hash) {
            return Ok(known.clone());
        }
        let code = Bytecode::new_raw(code(state, hash)?);
        let mut codes = self.0.lock();
        if codes.len() >= CODES_MAX {
            codes.clear();
        }
        codes.insert(hash, code.clone());
        Ok(code)
    }
}

/// The state could not be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct ReadError(pub(super) StateError);

impl DBErrorMarker for ReadError {}

/// The state with what transactions changed of it so far.
pub(super) struct World<'a> {
    state: &'a dyn State,
    codes: &'a Codes,
    hashes: &'a dyn Fn(u64) -> Result<B256, StateError>,
    changes: Changes,
}

/// Changes of accounts and slots, in the order of keys.
#[derive(Debug, Default)]
pub(super) struct Changes {
    accounts: BTreeMap<Address, Option<Account>>,
    slots: BTreeMap<(Address, U256), U256>,
    codes: BTreeMap<B256, Bytes>,
}

impl<'a> World<'a> {
    /// A view without changes; `hashes` knows the hashes of blocks.
    pub(super) fn new(
        state: &'a dyn State,
        codes: &'a Codes,
        hashes: &'a dyn Fn(u64) -> Result<B256, StateError>,
    ) -> Self {
        Self { state, codes, hashes, changes: Changes::default() }
    }

    pub(super) fn take_changes(&mut self) -> Changes {
        mem::take(&mut self.changes)
    }

    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        match self.changes.accounts.get(&address) {
            Some(account) => Ok(account.clone()),
            None => account(self.state, address),
        }
    }
}

impl Database for World<'_> {
    type Error = ReadError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, ReadError> {
        let account = self.account(address).map_err(ReadError)?;
        Ok(account.map(|Account { nonce, balance, code_hash }| AccountInfo {
            nonce,
            balance,
            code_hash,
            ..AccountInfo::default().without_code()
        }))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, ReadError> {
        match self.changes.codes.get(&hash) {
            Some(code) => Ok(Bytecode::new_raw(code.clone())),
            None => self.codes.get(self.state, hash).map_err(ReadError),
        }
    }

    fn storage(&mut self, address: Address, index: U256) -> Result<U256, ReadError> {
        match self.changes.slots.get(&(address, index)) {
            Some(value) => Ok(*value),
            None => slot(self.state, address, index).map_err(ReadError),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, ReadError> {
        (self.hashes)(number).map_err(ReadError)
    }
}

impl DatabaseCommit for World<'_> {
    /// Takes the changes of a transaction. Only what it created can have destroyed itself
    /// (EIP-6780), so that no stored slots are ever to be removed with an account.
    fn commit(&mut self, changes: AddressMap<state::Account>) {
        for (address, account) in changes {
            if account.is_touched() {
                self.changes.take(address, account);
            }
        }
    }
}

impl Changes {
    fn take(&mut self, address: Address, account: state::Account) {
        if account.is_selfdestructed() || account.is_empty() {
            self.accounts.insert(address, None);
            return;
        }
        let AccountInfo { nonce, balance, code_hash, code, .. } = account.info;
        if let Some(code) = code
            && account.status.contains(state::AccountStatus::Created)
            && code_hash != KECCAK256_EMPTY
        {
            self.codes.insert(code_hash, code.original_bytes());
        }
        self.accounts.insert(address, Some(Account { nonce, balance, code_hash }));
        for (slot, value) in account.storage {
            if value.is_changed() {
                self.slots.insert((address, slot), value.present_value);
            }
        }
    }

    /// An account as the genesis has it.
    pub(super) fn put(&mut self, address: Address, account: &alloy_genesis::GenesisAccount) {
        let code = account.code.clone().unwrap_or_default();
        let code_hash = alloy_primitives::keccak256(&code);
        let nonce = account.nonce.unwrap_or_default();
        self.accounts.insert(address, Some(Account { nonce, balance: account.balance, code_hash }));
        if !code.is_empty() {
            self.codes.insert(code_hash, code);
        }
        for (slot, value) in account.storage.iter().flatten() {
            self.slots.insert((address, (*slot).into()), (*value).into());
        }
    }

    /// Writes them. The map's tree is yet to follow.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub(super) fn write(self, state: &mut dyn State) -> Result<MapWriter<'_>, StateError> {
        for (hash, code) in &self.codes {
            state.put(&stored::key(CODE, &[&hash[..]]), code)?;
        }
        let mut map = MapWriter::new(state);
        for (address, account) in &self.accounts {
            let value = account.as_ref().map(stored::encode);
            map.set(&account_key(*address), value.as_deref())?;
        }
        for ((address, slot), value) in &self.slots {
            let bytes = value.to_be_bytes::<32>();
            map.set(&slot_key(*address, *slot), (!value.is_zero()).then_some(&bytes))?;
        }
        Ok(map)
    }
}
