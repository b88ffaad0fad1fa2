//! Blocks with their transactions and receipts, as they lie beside the map: the last ones of them,
//! and what finds them by hash and by what they logged.
//!
//! | key | value |
//! |---|---|
//! | `b` ‖ height | [`StoredBlock`] |
//! | `n` ‖ hash of a block | its height |
//! | `t` ‖ height ‖ part | up to [`PART`] [`StoredTransaction`]s |
//! | `h` ‖ hash of a transaction | [`TransactionLocation`] |
//! | `l` ‖ address ‖ height | nothing: the address logged something there |
//! | `m` | [`Meta`] |
//!
//! None of it is under the map's root. A block's hash is under the service's root, and Ethereum's
//! own roots in the block's header cover its transactions and receipts.

use super::stored::{self, damaged, decode, encode};
use alloy_consensus::{
    BlockBody, Eip658Value, Header, Receipt, ReceiptWithBloom, Transaction as _, TxEnvelope,
};
use alloy_eips::eip2718::Decodable2718;
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::map::{AddressMap, B256HashMap};
use alloy_primitives::{Address, B256, Bloom, Bytes, Log, keccak256};
use alloy_rlp::{BufMut, Decodable, Encodable};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::service::{KeyRange, State, StateError};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const BLOCK: u8 = b'b';
const NUMBER: u8 = b'n';
const TRANSACTIONS: u8 = b't';
const HASH: u8 = b'h';
const LOGGED: u8 = b'l';
const META: &[u8] = b"m";

/// Returns `true` if a key of the state is that of [`Meta`].
pub(super) fn is_meta(key: &[u8]) -> bool {
    key == META
}

/// Number of transactions that lie together.
const PART: u32 = 32;

/// Meta data of the history: its newest block.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Meta {
    pub(super) height: u64,
    pub(super) hash: B256,
    /// The oldest block whose transactions are kept.
    pub(super) oldest: u64,
}

/// A block without its transactions.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StoredBlock {
    /// Its hash: of its header.
    pub hash: B256,
    /// Its header, in RLP.
    pub header: Bytes,
    /// Number of transactions in the block.
    pub transactions: u32,
    /// Bytes of header and transactions.
    pub bytes: u64,
}

impl StoredBlock {
    /// A block of these.
    pub(super) fn of(header: &Header, transactions: &[StoredTransaction]) -> Self {
        let mut rlp = Vec::with_capacity(600);
        header.encode(&mut rlp);
        let raw: usize = transactions.iter().map(|transaction| transaction.raw.len()).sum();
        let bytes = (rlp.len() + raw) as u64;
        let transactions =
            u32::try_from(transactions.len()).expect("a block's operations are counted in 32 bits");
        Self { hash: keccak256(&rlp), header: rlp.into(), transactions, bytes }
    }

    /// The header, decoded.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn header(&self) -> Result<Header, StateError> {
        Header::decode(&mut &self.header[..]).map_err(|_| damaged())
    }
}

/// A transaction with what it came to.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StoredTransaction {
    /// Bytes as they were signed.
    pub raw: Bytes,
    /// Hash of the transaction, as Ethereum names it.
    pub hash: B256,
    /// Address whose key signed it.
    pub sender: Address,
    /// Set if it took effect; otherwise only its gas was paid for.
    pub success: bool,
    /// Gas that it used.
    pub gas_used: u64,
    /// Gas that it and those before it in its block used.
    pub cumulative_gas: u64,
    /// Wei a unit of gas.
    pub gas_price: u128,
    /// The contract that it created.
    pub created: Option<Address>,
    /// Logs that it emitted, in order.
    pub logs: Vec<StoredLog>,
    /// Number of logs that the block has before its first one.
    pub logs_before: u32,
}

impl StoredTransaction {
    /// The receipt as its block's root covers it (EIP-2718).
    #[must_use]
    pub fn encoded_receipt(&self) -> Bytes {
        let mut encoded = Vec::new();
        put_receipt(self, &self.receipt(), &mut encoded);
        encoded.into()
    }
}

/// Encodes a receipt after its transaction's type.
pub(super) fn put_receipt(
    transaction: &StoredTransaction,
    receipt: &FullReceipt,
    buffer: &mut dyn BufMut,
) {
    // A legacy transaction begins with its list's length, any other with its type.
    let kind = transaction.raw[0];
    if kind < 0xc0 {
        buffer.put_u8(kind);
    }
    receipt.encode(buffer);
}

/// A block that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FoundBlock {
    /// Block that was found.
    pub block: StoredBlock,
    /// Its transactions; none where they are not kept any more, or were not asked for.
    pub transactions: Vec<StoredTransaction>,
}

impl FoundBlock {
    /// The block in RLP, with its transactions.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn encoded(&self) -> Result<Bytes, StateError> {
        let transactions = self.transactions.iter().map(StoredTransaction::envelope);
        let body = BlockBody {
            transactions: transactions.collect::<Result<Vec<TxEnvelope>, _>>()?,
            ommers: Vec::new(),
            withdrawals: Some(Withdrawals::default()),
        };
        let block = alloy_consensus::Block { header: self.block.header()?, body };
        Ok(alloy_rlp::encode(block).into())
    }
}

/// Something that a contract logged.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StoredLog {
    /// Address of the contract that logged it.
    pub address: Address,
    /// Topics of the log, up to four.
    pub topics: Vec<B256>,
    /// Data of the log, beside its topics.
    pub data: Bytes,
}

impl StoredLog {
    /// Converts it to the form of Ethereum's libraries.
    #[must_use]
    pub fn log(&self) -> Log {
        Log::new_unchecked(self.address, self.topics.clone(), self.data.clone())
    }
}

impl From<Log> for StoredLog {
    fn from(log: Log) -> Self {
        let (topics, data) = log.data.split();
        Self { address: log.address, topics, data }
    }
}

/// A receipt that Ethereum's receipts root covers.
pub(super) type FullReceipt = ReceiptWithBloom<Receipt>;

impl StoredTransaction {
    /// The transaction, decoded.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn envelope(&self) -> Result<TxEnvelope, StateError> {
        TxEnvelope::decode_2718(&mut &self.raw[..]).map_err(|_| damaged())
    }

    /// Receipt as Ethereum's root of receipts covers it.
    #[must_use]
    pub fn receipt(&self) -> FullReceipt {
        self.receipt_by(&mut BloomHashes::default())
    }

    /// As [`StoredTransaction::receipt`], one of several.
    pub(super) fn receipt_by(&self, hashes: &mut BloomHashes) -> FullReceipt {
        let receipt = Receipt {
            status: Eip658Value::Eip658(self.success),
            cumulative_gas_used: self.cumulative_gas,
            logs: self.logs.iter().map(StoredLog::log).collect(),
        };
        let logs_bloom = hashes.bloom(&receipt.logs);
        ReceiptWithBloom { receipt, logs_bloom }
    }
}

/// Hashes of addresses and topics for the blooms of a block's receipts. A block has few contracts
/// and few kinds of events, and each is hashed once.
#[derive(Debug, Default)]
pub(super) struct BloomHashes {
    addresses: AddressMap<B256>,
    topics: B256HashMap<B256>,
}

impl BloomHashes {
    fn bloom(&mut self, logs: &[Log]) -> Bloom {
        let mut bloom = Bloom::ZERO;
        for log in logs {
            let address = self.addresses.entry(log.address);
            bloom.m3_2048_hashed(address.or_insert_with(|| keccak256(log.address)));
            for topic in log.topics() {
                let hash = self.topics.entry(*topic);
                bloom.m3_2048_hashed(hash.or_insert_with(|| keccak256(topic)));
            }
        }
        bloom
    }
}

/// Price that a transaction pays for a unit of gas, in wei.
pub(super) fn gas_price(envelope: &TxEnvelope, base_fee: u64) -> u128 {
    envelope.effective_gas_price(Some(base_fee))
}

/// Location of a transaction in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct TransactionLocation {
    /// Height of the transaction's block.
    pub height: u64,
    /// Its index in the block.
    pub index: u32,
}

/// The newest block; `None` before the genesis.
pub(super) fn meta(state: &dyn State) -> Result<Option<Meta>, StateError> {
    state.get(META)?.map(|bytes| decode(&bytes)).transpose()
}

/// Block at a height; `None` beyond the newest.
pub(super) fn block(state: &dyn State, height: u64) -> Result<Option<StoredBlock>, StateError> {
    let found = state.get(&stored::key(BLOCK, &[&height.to_be_bytes()]))?;
    found.map(|bytes| decode(&bytes)).transpose()
}

/// The height of a block by its hash.
pub(super) fn height_of(state: &dyn State, hash: B256) -> Result<Option<u64>, StateError> {
    let found = state.get(&stored::key(NUMBER, &[&hash[..]]))?;
    found.map(|bytes| decode(&bytes)).transpose()
}

/// Location of the transaction with this hash; `None` where it is not kept.
pub(super) fn location_of(
    state: &dyn State,
    hash: B256,
) -> Result<Option<TransactionLocation>, StateError> {
    let found = state.get(&stored::key(HASH, &[&hash[..]]))?;
    found.map(|bytes| decode(&bytes)).transpose()
}

/// A transaction, unless its block's are not kept any more.
pub(super) fn transaction(
    state: &dyn State,
    location: TransactionLocation,
) -> Result<Option<StoredTransaction>, StateError> {
    let mut part = part(state, location.height, location.index / PART)?;
    let index = (location.index % PART) as usize;
    Ok((index < part.len()).then(|| part.swap_remove(index)))
}

/// All transactions of a block; none once they are not kept any more.
pub(super) fn transactions(
    state: &dyn State,
    height: u64,
    count: u32,
) -> Result<Vec<StoredTransaction>, StateError> {
    let mut all = Vec::with_capacity(count as usize);
    for index in 0..count.div_ceil(PART) {
        all.append(&mut part(state, height, index)?);
    }
    Ok(all)
}

fn part(state: &dyn State, height: u64, part: u32) -> Result<Vec<StoredTransaction>, StateError> {
    let found = state.get(&part_key(height, part))?;
    found.map_or(Ok(Vec::new()), |bytes| decode(&bytes))
}

fn part_key(height: u64, part: u32) -> Vec<u8> {
    stored::key(TRANSACTIONS, &[&height.to_be_bytes(), &part.to_be_bytes()])
}

/// The heights from `from` to `to` where an address logged something, at most `most`.
pub(super) fn logged(
    state: &dyn State,
    address: Address,
    (from, to): (u64, u64),
    most: usize,
) -> Result<Vec<u64>, StateError> {
    let bound = |height: u64| stored::key(LOGGED, &[&address[..], &height.to_be_bytes()]);
    let end = bound(to.saturating_add(1));
    let mut heights = Vec::new();
    let keys = KeyRange { from: &bound(from), to: Some(&end) };
    state.scan(keys, &mut |key, _| {
        let height = key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        heights.extend(height);
        if heights.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(heights)
}

/// Adds a block, and forgets the transactions of one that is `history` blocks older.
///
/// # Errors
/// When the state cannot be read or written.
pub(super) fn append(
    state: &mut dyn State,
    header: &Header,
    transactions: &[StoredTransaction],
    history: u64,
) -> Result<Meta, StateError> {
    let (height, block) = (header.number, StoredBlock::of(header, transactions));
    let (hash, at) = (block.hash, height.to_be_bytes());
    state.put(&stored::key(BLOCK, &[&at]), &encode(&block))?;
    state.put(&stored::key(NUMBER, &[&hash[..]]), &encode(&height))?;
    for (part, chunk) in (0..).zip(transactions.chunks(PART as usize)) {
        state.put(&part_key(height, part), &encode(&chunk))?;
    }
    for (index, transaction) in (0..).zip(transactions) {
        let location = TransactionLocation { height, index };
        state.put(&stored::key(HASH, &[&transaction.hash[..]]), &encode(&location))?;
    }
    for address in loggers(transactions) {
        state.put(&stored::key(LOGGED, &[&address[..], &at]), &[])?;
    }
    let oldest = forget_before(state, (height + 1).saturating_sub(history))?;
    let meta = Meta { height, hash, oldest };
    state.put(META, &encode(&meta))?;
    Ok(meta)
}

fn loggers(transactions: &[StoredTransaction]) -> BTreeSet<Address> {
    transactions.iter().flat_map(|transaction| &transaction.logs).map(|log| log.address).collect()
}

/// Forgets the transactions of blocks below `oldest`; headers stay.
fn forget_before(state: &mut dyn State, oldest: u64) -> Result<u64, StateError> {
    let from = meta(state)?.map_or(0, |meta| meta.oldest);
    for height in from..oldest {
        let Some(block) = block(state, height)? else { continue };
        let forgotten = transactions(state, height, block.transactions)?;
        for transaction in &forgotten {
            state.delete(&stored::key(HASH, &[&transaction.hash[..]]))?;
        }
        for address in loggers(&forgotten) {
            state.delete(&stored::key(LOGGED, &[&address[..], &height.to_be_bytes()]))?;
        }
        for part in 0..block.transactions.div_ceil(PART) {
            state.delete(&part_key(height, part))?;
        }
    }
    Ok(oldest.max(from))
}

/// The bloom filter of all that a block's transactions logged.
pub(super) fn bloom(receipts: &[FullReceipt]) -> Bloom {
    receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | receipt.logs_bloom)
}
