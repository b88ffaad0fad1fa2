//! The index beside the state: what finds an account's transactions and a token's transfers again.
//!
//! | key | value | |
//! |---|---|---|
//! | `a` ‖ account ‖ height | indexes | the block's transactions that touched the account |
//! | `c` ‖ contract | [`TransactionLocation`] | the transaction that created the contract |
//! | `f` ‖ account ‖ height | indexes, each with a log | the block's transfers from or to it |
//! | `t` ‖ token ‖ height | indexes, each with a log | the block's transfers of this token |
//! | `h` ‖ token ‖ account (‖ id) | nothing | the account took part in a transfer of it |
//!
//! A block has one entry for an account or a token, however much it did there: entries are what an
//! index costs. Numbers are big-endian, of eight bytes in keys and four in values, and a log is
//! named by its place among its transaction's; a page of the newest is the end of a range. Hosts
//! keep it with the history of the state, or not at all: what is older than that, or is in the
//! genesis alone, is not found.

use super::Genesis;
use super::call::{Call, CallBlock, Called, Simulation};
use super::execution::ExecutedBlock;
use super::found::{FoundLog, FoundLogs, FoundTransaction, find_at};
use super::history::{self, StoredTransaction, TransactionLocation};
use super::overrides::Overrides;
use super::stored::{self, damaged, decode, encode};
use super::token::{self, Transfer};
use super::world::Codes;
use alloy_primitives::{Address, U256};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{Index, IndexEntries, KeyRange, ScanOrder, State, StateError};
use std::ops::ControlFlow;

const ACCOUNT: u8 = b'a';
const CREATED: u8 = b'c';
const TRANSFERS: u8 = b'f';
const TOKEN: u8 = b't';
const HOLDER: u8 = b'h';

/// Most transactions or transfers that are asked for at once. Transactions of the last block come
/// on top.
pub const PAGE_MAX: u32 = 1_000;

/// Most holders of a token that are asked for at once: the token is called for each.
pub const HOLDERS_MAX: u32 = 100;

/// Most holders that a transaction is noted for: a number of a kind costs it little gas.
const HOLDERS_EACH_MAX: usize = 1_024;

/// Gas with which a token says a holder's balance.
const BALANCE_GAS: u64 = 500_000;

/// Bytes of transactions after which no further block's are added to an answer.
const TRANSACTIONS_BYTES: usize = 4 << 20;

/// Query of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum IndexQuery {
    /// The first block that the index knows: an `Option<u64>`, `None` where there is no index.
    Begins,
    /// Transactions that touched an account: a [`TransactionPage`].
    Transactions {
        /// Account that they touched.
        account: Address,
        /// Blocks beyond this one, in the order; `None`: from the newest, or the oldest.
        beyond: Option<u64>,
        /// Order of the blocks, and of transactions in them.
        order: ScanOrder,
        /// Number after which no further block's are added.
        most: u32,
    },
    /// The transaction that created a contract: an `Option<`[`FoundTransaction`]`>`.
    Creation(Address),
    /// Transfers of tokens, newest first: a [`TransferPage`].
    Transfers {
        /// Account or token whose transfers they are.
        of: TransfersOf,
        /// Those before this one; `None`: from the newest.
        before: Option<LogLocation>,
        /// Most that are wanted.
        most: u32,
    },
    /// Holders of a token, in the order of their addresses: a [`HolderPage`].
    Holders {
        /// Contract that keeps the balances.
        token: Address,
        /// Those after this one; `None`: from the first.
        after: Option<HolderKey>,
        /// Most that are wanted.
        most: u32,
    },
}

/// Whose transfers of tokens are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TransfersOf {
    /// Those from or to an account, of all tokens.
    Account(Address),
    /// Those of a token.
    Token(Address),
}

/// Location of a log in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct LogLocation {
    /// Transaction that emitted it.
    pub transaction: TransactionLocation,
    /// Its place among that transaction's logs.
    pub log: u32,
}

/// Transactions of an account, of whole blocks, without what they logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TransactionPage {
    /// Transactions in the order that was asked for.
    pub transactions: Vec<FoundTransaction>,
    /// `true` if there are more beyond them.
    pub has_more: bool,
}

/// Transfers of tokens, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TransferPage {
    /// Logs of the transfers.
    pub logs: Vec<FoundLog>,
    /// The last of them, where there are more before it.
    pub next: Option<LogLocation>,
}

/// Holder of a token; of one with many kinds (ERC-1155), of the kind with this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HolderKey {
    /// Account that holds it.
    pub account: Address,
    /// Id of the kind of token.
    pub id: Option<U256>,
}

/// Holders of a token with what the token says that they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HolderPage {
    /// Those that have any.
    pub holders: Vec<(HolderKey, U256)>,
    /// The last one that was looked at, where there are more after it.
    pub next: Option<HolderKey>,
}

/// Adds a block's transactions to the index.
pub(super) fn add_block(entries: &mut IndexEntries, height: u64, executed: &ExecutedBlock) {
    for ((index, transaction), touched) in (0..).zip(&executed.included).zip(&executed.touched) {
        let at = TransactionLocation { height, index };
        for account in &touched.accounts {
            add_place(entries, block_key(ACCOUNT, *account, height), index.to_be_bytes());
        }
        for contract in &touched.created {
            entries.insert(stored::key(CREATED, &[&contract[..]]), encode(&at));
        }
        add_transfers(entries, at, transaction);
    }
}

fn add_transfers(entries: &mut IndexEntries, at: TransactionLocation, of: &StoredTransaction) {
    let mut holders_left = HOLDERS_EACH_MAX;
    for (log, stored) in (0..).zip(&of.logs) {
        let Some(Transfer { from, to, ids }) = token::transfer(stored) else { continue };
        let place = (u64::from(at.index) << 32 | log).to_be_bytes();
        add_place(entries, block_key(TOKEN, stored.address, at.height), place);
        // The zero address stands for nobody: tokens come from there, and go there.
        for account in [from, to].into_iter().filter(|account| !account.is_zero()) {
            add_place(entries, block_key(TRANSFERS, account, at.height), place);
            for id in ids.iter().take(holders_left) {
                let key = HolderKey { account, id: *id };
                entries.insert(holder_key(stored.address, &key), Vec::new());
            }
            holders_left = holders_left.saturating_sub(ids.len());
        }
    }
}

/// Adds a place to those of a block, which come in their order, unless it is there.
fn add_place<const N: usize>(entries: &mut IndexEntries, key: Vec<u8>, place: [u8; N]) {
    let places = entries.entry(key).or_default();
    if places.last_chunk() != Some(&place) {
        places.extend(place);
    }
}

fn block_key(kind: u8, of: Address, height: u64) -> Vec<u8> {
    stored::key(kind, &[&of[..], &height.to_be_bytes()])
}

fn holder_key(token: Address, holder: &HolderKey) -> Vec<u8> {
    let id = holder.id.map(|id| id.to_be_bytes::<32>());
    let id: &[u8] = id.as_ref().map_or(&[], |id| id);
    stored::key(HOLDER, &[&token[..], &holder.account[..], id])
}

/// Height at the end of a block's key.
fn height_in(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |height| u64::from_be_bytes(*height))
}

/// Transactions of a block at the places in an entry.
fn transactions_at(
    key: &[u8],
    places: &[u8],
) -> impl DoubleEndedIterator<Item = TransactionLocation> {
    let (height, (places, _)) = (height_in(key), places.as_chunks());
    places
        .iter()
        .map(move |index| TransactionLocation { height, index: u32::from_be_bytes(*index) })
}

/// Logs of a block at the places in an entry.
fn logs_at(key: &[u8], places: &[u8]) -> impl DoubleEndedIterator<Item = LogLocation> {
    let (height, (places, _)) = (height_in(key), places.as_chunks());
    places.iter().map(move |place| {
        let place = u64::from_be_bytes(*place);
        let index = u32::try_from(place >> 32).expect("the upper half");
        LogLocation { transaction: TransactionLocation { height, index }, log: place as u32 }
    })
}

/// An index beside the state that its entries are of.
pub(super) struct Reading<'a> {
    pub(super) genesis: &'a Genesis,
    pub(super) codes: &'a Codes,
    pub(super) state: &'a dyn State,
    pub(super) index: &'a dyn Index,
}

impl Reading<'_> {
    /// The first block that the index knows.
    pub(super) fn begins(&self) -> Result<Option<u64>, StateError> {
        let (oldest, _) = self.heights()?;
        Ok(self.index.known_after().map(|height| (height.0 + 1).max(oldest)))
    }

    /// First and last block whose transactions are kept: the index may know of others.
    fn heights(&self) -> Result<(u64, u64), StateError> {
        let meta = history::meta(self.state)?.ok_or_else(damaged)?;
        Ok((meta.oldest, meta.height))
    }

    /// Keys of an account's or a token's entries in these blocks.
    fn keys(kind: u8, of: Address, (from, to): (u64, u64)) -> (Vec<u8>, Vec<u8>) {
        (block_key(kind, of, from), block_key(kind, of, to.saturating_add(1)))
    }

    pub(super) fn transactions(
        &self,
        account: Address,
        beyond: Option<u64>,
        order: ScanOrder,
        most: u32,
    ) -> Result<TransactionPage, StateError> {
        let (oldest, newest) = self.heights()?;
        let heights = match (beyond, order) {
            (Some(beyond), ScanOrder::Forward) => (beyond.saturating_add(1).max(oldest), newest),
            (Some(0), ScanOrder::Backward) => return Ok(TransactionPage::default()),
            (Some(beyond), ScanOrder::Backward) => (oldest, newest.min(beyond - 1)),
            (None, _) => (oldest, newest),
        };
        let most = most.clamp(1, PAGE_MAX) as usize;
        let (from, to) = Self::keys(ACCOUNT, account, heights);
        let (mut places, mut has_more) = (Vec::<TransactionLocation>::new(), false);
        let keys = KeyRange { from: &from, to: Some(&to) };
        self.index.scan_index(keys, order, &mut |key, found| {
            has_more = places.len() >= most;
            if has_more {
                return ControlFlow::Break(());
            }
            let found = transactions_at(key, found);
            match order {
                ScanOrder::Forward => places.extend(found),
                ScanOrder::Backward => places.extend(found.rev()),
            }
            ControlFlow::Continue(())
        })?;
        self.page(&places, has_more)
    }

    /// The transactions at these places; no further block's where they are many bytes.
    fn page(
        &self,
        places: &[TransactionLocation],
        mut has_more: bool,
    ) -> Result<TransactionPage, StateError> {
        let (mut transactions, mut bytes) = (Vec::<FoundTransaction>::new(), 0);
        for at in places {
            let is_other_block =
                transactions.last().is_some_and(|last| last.location.height != at.height);
            if is_other_block && bytes > TRANSACTIONS_BYTES {
                has_more = true;
                break;
            }
            let mut found = find_at(self.state, *at)?;
            // A transaction may log thousands of times its own bytes.
            found.transaction.logs = Vec::new();
            bytes += found.transaction.raw.len();
            transactions.push(found);
        }
        Ok(TransactionPage { transactions, has_more })
    }

    pub(super) fn creation(
        &self,
        contract: Address,
    ) -> Result<Option<FoundTransaction>, StateError> {
        let key = stored::key(CREATED, &[&contract[..]]);
        let mut value = None;
        let keys = KeyRange { from: &key, to: Some(&after(&key)) };
        self.index.scan_index(keys, ScanOrder::Forward, &mut |_, found| {
            value = Some(found.to_vec());
            ControlFlow::Break(())
        })?;
        let Some(value) = value else { return Ok(None) };
        let (at, (oldest, newest)) = (decode::<TransactionLocation>(&value)?, self.heights()?);
        let is_kept = (oldest..=newest).contains(&at.height);
        is_kept.then(|| find_at(self.state, at)).transpose()
    }

    pub(super) fn transfers(
        &self,
        of: TransfersOf,
        before: Option<LogLocation>,
        most: u32,
    ) -> Result<TransferPage, StateError> {
        let (kind, of) = match of {
            TransfersOf::Account(account) => (TRANSFERS, account),
            TransfersOf::Token(token) => (TOKEN, token),
        };
        let (oldest, newest) = self.heights()?;
        let to = before.map_or(newest, |before| newest.min(before.transaction.height));
        let (from, to) = Self::keys(kind, of, (oldest, to));
        let most = most.clamp(1, PAGE_MAX) as usize;
        let (mut places, mut has_more) = (Vec::<LogLocation>::new(), false);
        let keys = KeyRange { from: &from, to: Some(&to) };
        self.index.scan_index(keys, ScanOrder::Backward, &mut |key, found| {
            let is_wanted = |at: &LogLocation| before.is_none_or(|before| *at < before);
            let mut found = logs_at(key, found).rev().filter(is_wanted);
            let wanted = most - places.len();
            places.extend(found.by_ref().take(wanted));
            has_more = found.next().is_some();
            if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let (mut found, mut last) = (FoundLogs::default(), None);
        for (count, at) in places.iter().enumerate() {
            if !found.push(self.log(*at, &mut last)?) {
                let next = count.checked_sub(1).map(|last| places[last]);
                return Ok(TransferPage { logs: found.logs, next });
            }
        }
        let next = places.last().copied().filter(|_| has_more);
        Ok(TransferPage { logs: found.logs, next })
    }

    /// A log, of the transaction that was found last or of another, which is read.
    fn log(
        &self,
        at: LogLocation,
        last: &mut Option<FoundTransaction>,
    ) -> Result<FoundLog, StateError> {
        let found = match last.take().filter(|found| found.location == at.transaction) {
            Some(found) => found,
            None => find_at(self.state, at.transaction)?,
        };
        let FoundTransaction { location, block, transaction } = last.insert(found);
        let log = transaction.logs.get(at.log as usize).ok_or_else(damaged)?.clone();
        Ok(FoundLog {
            height: location.height,
            block: block.hash,
            timestamp: block.header()?.timestamp,
            transaction: transaction.hash,
            transaction_index: location.index,
            index: transaction.logs_before + at.log,
            log,
        })
    }

    /// Accounts that took part in transfers of a token, each with the balance that the token says.
    pub(super) fn holders(
        &self,
        token: Address,
        after: Option<HolderKey>,
        most: u32,
    ) -> Result<HolderPage, StateError> {
        let first = stored::key(HOLDER, &[&token[..]]);
        let to = [&first[..], &[0xff; 53]].concat();
        let from = after.map_or(first, |last| self::after(&holder_key(token, &last)));
        let most = most.clamp(1, HOLDERS_MAX) as usize;
        let (mut keys, mut has_more) = (Vec::<HolderKey>::new(), false);
        let range = KeyRange { from: &from, to: Some(&to) };
        self.index.scan_index(range, ScanOrder::Forward, &mut |key, _| {
            has_more = keys.len() == most;
            if has_more {
                return ControlFlow::Break(());
            }
            keys.extend(read_holder(key));
            ControlFlow::Continue(())
        })?;
        let mut holders = Vec::new();
        for key in &keys {
            let balance = self.balance(token, key)?;
            holders.extend((!balance.is_zero()).then_some((*key, balance)));
        }
        Ok(HolderPage { holders, next: keys.last().copied().filter(|_| has_more) })
    }

    /// What a token says that a holder has; nothing where it does not say.
    fn balance(&self, token: Address, of: &HolderKey) -> Result<U256, StateError> {
        let call = Call {
            to: Some(token),
            gas: Some(BALANCE_GAS),
            data: token::balance_call(of.account, of.id),
            ..Call::default()
        };
        let (world, as_it_is) = ((self.genesis, self.codes), Overrides::default());
        let simulation = Simulation::new(world, self.state, CallBlock::Newest, &as_it_is)?;
        Ok(match simulation.call(&call)? {
            Called::Success { output, .. } if output.len() == 32 => U256::from_be_slice(&output),
            _ => U256::ZERO,
        })
    }
}

/// The least key after this one.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn read_holder(key: &[u8]) -> Option<HolderKey> {
    let (account, id) = key.get(21..)?.split_at_checked(20)?;
    let id = (!id.is_empty()).then(|| U256::try_from_be_slice(id)).flatten();
    Some(HolderKey { account: Address::from_slice(account), id })
}
