//! Accounts, code and storage: how they lie in the state, and the machine's view of them.
//!
//! | key | value | |
//! |---|---|---|
//! | address | [`Account`] | in the [map](crate::map), under its root |
//! | address ‖ slot | 32 bytes, big-endian, never zero | in the map |
//! | `c` ‖ hash of code | the code | beside it; an account names the hash |

use super::stored;
use super::touched::Touched;
use crate::map::{MapWriter, entries};
use alloy_primitives::map::{AddressMap, AddressSet, B256HashMap, Entry, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::Mutex;
use quorate_types::service::{State, StateError};
use revm::database_interface::DBErrorMarker;
use revm::state::{self, AccountInfo, Bytecode};
use revm::{Database, DatabaseCommit, DatabaseRef};
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
    read_account(state, at).map(|read| read.now)
}

fn read_account(state: &dyn State, at: Address) -> Result<Kept<Option<Account>>, StateError> {
    let entry = entries::get(state, &account_key(at))?;
    Ok(Kept::read(account_in(entry.as_deref())?, entry))
}

/// The account in an entry of the map.
///
/// # Errors
/// When the entry is none of an account's.
pub(super) fn account_in(entry: Option<&[u8]>) -> Result<Option<Account>, StateError> {
    entry.map(|entry| stored::decode(entries::decode(entry)?.1)).transpose()
}

/// A storage slot as it is stored.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn slot(state: &dyn State, at: Address, slot: U256) -> Result<U256, StateError> {
    read_slot(state, at, slot).map(|read| read.now)
}

fn read_slot(state: &dyn State, at: Address, slot: U256) -> Result<Kept<U256>, StateError> {
    let entry = entries::get(state, &slot_key(at, slot))?;
    Ok(Kept::read(slot_in(entry.as_deref())?, entry))
}

/// The value of a slot in an entry of the map.
///
/// # Errors
/// When the entry is none of a slot's.
pub(super) fn slot_in(entry: Option<&[u8]>) -> Result<U256, StateError> {
    let Some(entry) = entry else { return Ok(U256::ZERO) };
    U256::try_from_be_slice(entries::decode(entry)?.1).ok_or_else(stored::damaged)
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

/// The state with what a block's transactions changed of it so far. Each account and each slot is
/// read once; gas bounds how many are.
pub(super) struct World<'a> {
    state: &'a dyn State,
    codes: &'a Codes,
    hashes: &'a dyn Fn(u64) -> Result<B256, StateError>,
    accounts: AddressMap<Kept<Option<Account>>>,
    slots: HashMap<(Address, U256), Kept<U256>>,
    /// Code that accounts got.
    created: BTreeMap<B256, Bytecode>,
    /// Accounts whose storage is taken for empty, but for the slots here.
    cleared: AddressSet,
    /// What the last transaction touched and created.
    touched: Touched,
}

/// A value of the map as it is by now.
#[derive(Debug)]
struct Kept<T> {
    now: T,
    stored: Stored,
    /// The map may have another value.
    is_changed: bool,
}

/// What the map has.
#[derive(Debug)]
enum Stored {
    /// Nobody has looked.
    Unread,
    /// An entry, or none.
    Entry(Option<Vec<u8>>),
}

impl<T: Default + PartialEq> Kept<T> {
    /// What the map has.
    fn read(value: T, entry: Option<Vec<u8>>) -> Self {
        Self { now: value, stored: Stored::Entry(entry), is_changed: false }
    }

    /// What the map may have, whatever it is.
    fn unread() -> Self {
        Self { now: T::default(), stored: Stored::Unread, is_changed: true }
    }

    fn set(&mut self, value: T) {
        self.is_changed |= self.now != value;
        self.now = value;
    }
}

impl<'a> World<'a> {
    /// A view without changes; `hashes` knows the hashes of blocks.
    pub(super) fn new(
        state: &'a dyn State,
        codes: &'a Codes,
        hashes: &'a dyn Fn(u64) -> Result<B256, StateError>,
    ) -> Self {
        let (accounts, slots, created, cleared, touched) = Default::default();
        Self { state, codes, hashes, accounts, slots, created, cleared, touched }
    }

    /// The account at an address, the empty one where there is none.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn account(&self, at: Address) -> Result<Account, StateError> {
        self.find_account(at).map(Option::unwrap_or_default)
    }

    fn find_account(&self, at: Address) -> Result<Option<Account>, StateError> {
        match self.accounts.get(&at) {
            Some(kept) => Ok(kept.now.clone()),
            None => account(self.state, at),
        }
    }

    /// The value of a slot.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn slot(&self, at: Address, index: U256) -> Result<U256, StateError> {
        match self.slots.get(&(at, index)) {
            Some(kept) => Ok(kept.now),
            None if self.cleared.contains(&at) => Ok(U256::ZERO),
            None => slot(self.state, at, index),
        }
    }

    /// Takes an account for this one.
    pub(super) fn put_account(&mut self, at: Address, account: Account) {
        self.accounts.entry(at).or_insert_with(Kept::unread).set(Some(account));
    }

    /// Takes a slot for this.
    pub(super) fn put_slot(&mut self, at: Address, index: U256, value: U256) {
        self.slots.entry((at, index)).or_insert_with(Kept::unread).set(value);
    }

    /// Takes code for known.
    pub(super) fn put_code(&mut self, hash: B256, code: Bytes) {
        self.created.insert(hash, Bytecode::new_raw(code));
    }

    /// Takes the storage of an account for empty.
    pub(super) fn clear_storage(&mut self, at: Address) {
        self.slots.retain(|(address, _), _| *address != at);
        self.cleared.insert(at);
    }

    /// Accounts that were touched and created since this was asked before.
    pub(super) fn take_touched(&mut self) -> Touched {
        mem::take(&mut self.touched)
    }

    /// What was changed, and is forgotten here. What has the value that it had before it was
    /// changed may be among it.
    pub(super) fn take_changes(&mut self) -> Changes {
        let codes = mem::take(&mut self.created).into_iter();
        let codes = codes.map(|(hash, code)| (hash, code.original_bytes())).collect();
        let mut changes = Changes { codes, ..Changes::default() };
        for (address, account) in self.accounts.drain().filter(|(_, kept)| kept.is_changed) {
            changes.account(address, account.stored, account.now.as_ref());
        }
        for ((address, slot), value) in self.slots.drain().filter(|(_, kept)| kept.is_changed) {
            changes.slot((address, slot), value.stored, value.now);
        }
        changes
    }

    fn take(&mut self, address: Address, account: state::Account) {
        let kept = self.accounts.entry(address).or_insert_with(Kept::unread);
        if account.is_selfdestructed() || account.is_empty() {
            kept.set(None);
            return;
        }
        let AccountInfo { nonce, balance, code_hash, code, .. } = account.info;
        let code_before = kept.now.as_ref().map_or(KECCAK256_EMPTY, |account| account.code_hash);
        kept.set(Some(Account { nonce, balance, code_hash }));
        // A contract that is created, or an account that is delegated (EIP-7702).
        if let Some(code) = code
            && code_hash != code_before
            && code_hash != KECCAK256_EMPTY
        {
            self.created.insert(code_hash, code);
        }
        for (slot, value) in account.storage {
            if value.is_changed() {
                let kept = self.slots.entry((address, slot)).or_insert_with(Kept::unread);
                kept.set(value.present_value);
            }
        }
    }
}

impl Database for World<'_> {
    type Error = ReadError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, ReadError> {
        let kept = match self.accounts.entry(address) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(place) => {
                place.insert(read_account(self.state, address).map_err(ReadError)?)
            }
        };
        Ok(kept.now.clone().map(info))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, ReadError> {
        self.code_by_hash_ref(hash)
    }

    fn storage(&mut self, address: Address, index: U256) -> Result<U256, ReadError> {
        let kept = match self.slots.entry((address, index)) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(place) if self.cleared.contains(&address) => {
                place.insert(Kept::read(U256::ZERO, None))
            }
            Entry::Vacant(place) => {
                place.insert(read_slot(self.state, address, index).map_err(ReadError)?)
            }
        };
        Ok(kept.now)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, ReadError> {
        self.block_hash_ref(number)
    }
}

/// Reads without remembering: what a transaction found, before its changes are committed.
impl DatabaseRef for World<'_> {
    type Error = ReadError;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, ReadError> {
        self.find_account(address).map(|account| account.map(info)).map_err(ReadError)
    }

    fn code_by_hash_ref(&self, hash: B256) -> Result<Bytecode, ReadError> {
        match self.created.get(&hash) {
            Some(code) => Ok(code.clone()),
            None => self.codes.get(self.state, hash).map_err(ReadError),
        }
    }

    fn storage_ref(&self, address: Address, index: U256) -> Result<U256, ReadError> {
        self.slot(address, index).map_err(ReadError)
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, ReadError> {
        (self.hashes)(number).map_err(ReadError)
    }
}

/// An account as the machine takes it.
fn info(Account { nonce, balance, code_hash }: Account) -> AccountInfo {
    AccountInfo { nonce, balance, code_hash, ..AccountInfo::default().without_code() }
}

impl DatabaseCommit for World<'_> {
    /// Takes the changes of a transaction. Only what it created can have destroyed itself
    /// (EIP-6780), so that no stored slots are ever to be removed with an account.
    fn commit(&mut self, changes: AddressMap<state::Account>) {
        self.touched = Touched::default();
        for (address, account) in changes {
            if account.is_touched() {
                self.touched.accounts.push(address);
                self.touched.created.extend(account.is_created().then_some(address));
                self.take(address, account);
            }
        }
    }
}

/// Changes of accounts and slots, and code that is new.
#[derive(Debug, Default)]
pub(super) struct Changes {
    entries: Vec<Change>,
    codes: BTreeMap<B256, Bytes>,
}

/// A key of the map with the value that it is to have.
#[derive(Debug)]
struct Change {
    key: Vec<u8>,
    before: Stored,
    value: Option<Vec<u8>>,
}

impl Changes {
    fn account(&mut self, address: Address, before: Stored, now: Option<&Account>) {
        let value = now.map(stored::encode);
        self.entries.push(Change { key: account_key(address), before, value });
    }

    fn slot(&mut self, (address, slot): (Address, U256), before: Stored, now: U256) {
        let value = (!now.is_zero()).then(|| now.to_be_bytes_vec());
        self.entries.push(Change { key: slot_key(address, slot), before, value });
    }

    /// An account as the genesis has it.
    pub(super) fn put(&mut self, address: Address, account: &alloy_genesis::GenesisAccount) {
        let code = account.code.clone().unwrap_or_default();
        let code_hash = alloy_primitives::keccak256(&code);
        let nonce = account.nonce.unwrap_or_default();
        let stored = Account { nonce, balance: account.balance, code_hash };
        self.account(address, Stored::Entry(None), Some(&stored));
        if !code.is_empty() {
            self.codes.insert(code_hash, code);
        }
        for (slot, value) in account.storage.iter().flatten() {
            self.slot((address, (*slot).into()), Stored::Entry(None), (*value).into());
        }
    }

    /// Writes them. The map's tree is yet to follow.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(super) fn write(self, state: &mut dyn State) -> Result<MapWriter<'_>, StateError> {
        for (hash, code) in &self.codes {
            state.put(&stored::key(CODE, &[&hash[..]]), code)?;
        }
        let mut map = MapWriter::new(state);
        for Change { key, before, value } in self.entries {
            let entry = match before {
                Stored::Entry(entry) => entry,
                Stored::Unread => entries::get(map.state(), &key)?,
            };
            map.replace_entry(&key, entry, value.as_deref())?;
        }
        Ok(map)
    }
}
