//! Conversion of stored blocks, transactions and logs to the types of Ethereum's tools.

use super::error::{Failure, internal};
use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Receipt, ReceiptEnvelope, ReceiptWithBloom, Transaction as _, TxEnvelope};
use alloy_primitives::U256;
use alloy_rpc_types_eth::{
    Block, BlockTransactions, Header, Log, Transaction, TransactionInfo, TransactionReceipt,
};
use quorate_ledger::evm::{FoundBlock, FoundLog, FoundTransaction, StoredBlock, StoredTransaction};

/// A block, with its transactions or their hashes.
pub(super) fn block(found: FoundBlock, full: bool) -> Result<Block, Failure> {
    let FoundBlock { block, transactions } = found;
    let header = header(&block)?;
    let transactions = if full {
        let convert = |(index, transaction): (u64, _)| {
            self::transaction(&block, header.timestamp, index, transaction)
        };
        let all = (0..).zip(&transactions).map(convert).collect::<Result<_, _>>()?;
        BlockTransactions::Full(all)
    } else {
        BlockTransactions::Hashes(transactions.iter().map(|transaction| transaction.hash).collect())
    };
    let withdrawals = Some(alloy_eips::eip4895::Withdrawals::default());
    Ok(Block { header, uncles: Vec::new(), transactions, withdrawals })
}

/// Header of a stored block.
pub(super) fn header(block: &StoredBlock) -> Result<Header, Failure> {
    let inner = block.header().map_err(internal)?;
    let size = Some(U256::from(block.bytes));
    Ok(Header { hash: block.hash, inner, total_difficulty: None, size })
}

/// A transaction in a block.
pub(super) fn transaction(
    block: &StoredBlock,
    timestamp: u64,
    index: u64,
    stored: &StoredTransaction,
) -> Result<Transaction, Failure> {
    let envelope = stored.envelope().map_err(internal)?;
    let header = block.header().map_err(internal)?;
    let info = TransactionInfo {
        hash: Some(stored.hash),
        index: Some(index),
        block_hash: Some(block.hash),
        block_number: Some(header.number),
        base_fee: header.base_fee_per_gas,
        block_timestamp: Some(timestamp),
    };
    let recovered = Recovered::new_unchecked(envelope, stored.sender);
    Ok(Transaction::from_transaction(recovered, info))
}

/// The nonce of a stored transaction.
pub(super) fn nonce(stored: &StoredTransaction) -> Result<u64, Failure> {
    Ok(stored.envelope().map_err(internal)?.nonce())
}

/// A transaction that was found by its hash or place.
pub(super) fn found(found: &FoundTransaction) -> Result<Transaction, Failure> {
    let timestamp = found.block.header().map_err(internal)?.timestamp;
    transaction(&found.block, timestamp, u64::from(found.location.index), &found.transaction)
}

/// A transaction that waits.
pub(super) fn pending(envelope: TxEnvelope, sender: alloy_primitives::Address) -> Transaction {
    let recovered = Recovered::new_unchecked(envelope, sender);
    // Its price is the most that it pays, as execution-apis has it.
    Transaction::from_transaction(recovered, TransactionInfo::default())
}

/// Receipt of a transaction in a block.
pub(super) fn receipt(
    block: &StoredBlock,
    index: u64,
    stored: &StoredTransaction,
) -> Result<TransactionReceipt, Failure> {
    let envelope = stored.envelope().map_err(internal)?;
    let header = block.header().map_err(internal)?;
    let ReceiptWithBloom { receipt, logs_bloom } = stored.receipt();
    let logs = (u64::from(stored.logs_before)..).zip(receipt.logs).map(|(log_index, inner)| Log {
        inner,
        block_hash: Some(block.hash),
        block_number: Some(header.number),
        block_timestamp: Some(header.timestamp),
        transaction_hash: Some(stored.hash),
        transaction_index: Some(index),
        log_index: Some(log_index),
        removed: false,
    });
    let receipt = Receipt {
        status: receipt.status,
        cumulative_gas_used: receipt.cumulative_gas_used,
        logs: logs.collect(),
    };
    let receipt = ReceiptWithBloom { receipt, logs_bloom };
    let inner = match envelope {
        TxEnvelope::Legacy(_) => ReceiptEnvelope::Legacy(receipt),
        TxEnvelope::Eip2930(_) => ReceiptEnvelope::Eip2930(receipt),
        TxEnvelope::Eip7702(_) => ReceiptEnvelope::Eip7702(receipt),
        _ => ReceiptEnvelope::Eip1559(receipt),
    };
    Ok(TransactionReceipt {
        inner,
        transaction_hash: stored.hash,
        transaction_index: Some(index),
        block_hash: Some(block.hash),
        block_number: Some(header.number),
        gas_used: stored.gas_used,
        effective_gas_price: stored.gas_price,
        blob_gas_used: None,
        blob_gas_price: None,
        from: stored.sender,
        to: envelope.to(),
        contract_address: stored.created,
    })
}

/// Logs in the order in which they were found.
pub(super) fn logs(found: &[FoundLog]) -> Vec<Log> {
    found.iter().map(log).collect()
}

fn log(found: &FoundLog) -> Log {
    Log {
        inner: found.log.log(),
        block_hash: Some(found.block),
        block_number: Some(found.height),
        block_timestamp: Some(found.timestamp),
        transaction_hash: Some(found.transaction),
        transaction_index: Some(u64::from(found.transaction_index)),
        log_index: Some(u64::from(found.index)),
        removed: false,
    }
}
