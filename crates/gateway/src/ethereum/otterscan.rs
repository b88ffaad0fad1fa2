//! Methods of Otterscan's, `ots_`, as Erigon has them: what an explorer asks for and a wallet does
//! not. Those that look for an account's transactions read the index beside the state.

use super::arguments::{Arguments, Quantity};
use super::context::Context;
use super::error::{Failure, internal, invalid, server};
use super::module::{Module, Registered, computing, instant, method};
use super::{convert, internal_calls};
use alloy_eips::BlockId;
use alloy_eips::eip1898::LenientBlockNumberOrTag;
use alloy_primitives::{Address, B256, Bytes, U256};
use quorate_ledger::evm::{
    BlockAt, FoundBlock, FoundTransaction, IndexQuery, PAGE_MAX, Query, StoredBlock,
    StoredTransaction, TransactionPage,
};
use quorate_types::Height;
use quorate_types::service::ScanOrder;
use serde_json::{Value, json};

/// Version of the methods (Otterscan's `MIN_API_LEVEL`).
const API_LEVEL: u64 = 8;

/// Hexadecimal digits of a call's selector, with what is before them.
const SELECTOR_CHARACTERS: usize = 10;

pub(super) fn register(module: &mut Module) -> Registered {
    instant(module, "ots_getApiLevel", |_| API_LEVEL)?;
    method(module, "ots_hasCode", |context, mut arguments| {
        let query = Query::Code(arguments.next()?);
        let at = arguments.optional::<LenientBlockNumberOrTag>()?.map(BlockId::from);
        let code: Bytes = context.chain.query_at(context.chain.state(at)?, &query)?;
        Ok(!code.is_empty())
    })?;
    blocks(module)?;
    accounts(module)?;
    internal_calls::register(module)
}

fn blocks(module: &mut Module) -> Registered {
    method(module, "erigon_getHeaderByNumber", |context, mut arguments| {
        let found = numbered(context, &mut arguments, false)?;
        found.map(|found| convert::header(&found.block)).transpose()
    })?;
    computing(module, "ots_getBlockDetails", |context, mut arguments| {
        details(numbered(context, &mut arguments, true)?)
    })?;
    computing(module, "ots_getBlockDetailsByHash", |context, mut arguments| {
        details(context.chain.block(BlockAt::Hash(arguments.next()?), true)?)
    })?;
    computing(module, "ots_getBlockTransactions", |context, mut arguments| {
        let found = numbered(context, &mut arguments, true)?;
        let page = arguments.next::<Quantity>()?.number();
        let size = page_size(&mut arguments)?;
        found.map(|found| block_page(&found, page, size)).transpose()
    })
}

fn accounts(module: &mut Module) -> Registered {
    let search = computing::<Value>;
    search(module, "ots_searchTransactionsBefore", |context, mut arguments| {
        let (account, height) = account_and_height(&mut arguments)?;
        let page = find(context, account, height, ScanOrder::Backward, &mut arguments)?;
        show(&page.transactions, height.is_none(), !page.has_more)
    })?;
    search(module, "ots_searchTransactionsAfter", |context, mut arguments| {
        let (account, height) = account_and_height(&mut arguments)?;
        let mut page = find(context, account, height, ScanOrder::Forward, &mut arguments)?;
        page.transactions.reverse();
        show(&page.transactions, !page.has_more, height.is_none())
    })?;
    computing(module, "ots_getTransactionBySenderAndNonce", |context, mut arguments| {
        by_nonce(context, arguments.next()?, arguments.next::<Quantity>()?.number())
    })
}

/// The block that the next argument names by its number.
fn numbered(
    context: &Context,
    arguments: &mut Arguments<'_>,
    transactions: bool,
) -> Result<Option<FoundBlock>, Failure> {
    let tag = arguments.next::<LenientBlockNumberOrTag>()?;
    context.chain.block_by_tag(tag.into(), transactions)
}

fn page_size(arguments: &mut Arguments<'_>) -> Result<u32, Failure> {
    let size = arguments.next::<Quantity>()?.number();
    let size = u32::try_from(size).ok().filter(|size| (1..=PAGE_MAX).contains(size));
    size.ok_or_else(|| invalid(format!("a page has 1 to {PAGE_MAX} transactions")))
}

/// An account and the block beyond which its transactions are wanted: 0 means all.
fn account_and_height(arguments: &mut Arguments<'_>) -> Result<(Address, Option<u64>), Failure> {
    let account = arguments.next()?;
    let height = arguments.next::<Quantity>()?.number();
    Ok((account, (height > 0).then_some(height)))
}

fn find(
    context: &Context,
    account: Address,
    beyond: Option<u64>,
    order: ScanOrder,
    arguments: &mut Arguments<'_>,
) -> Result<TransactionPage, Failure> {
    let most = page_size(arguments)?;
    context.chain.query(&Query::Index(IndexQuery::Transactions { account, beyond, order, most }))
}

/// Transactions with their receipts, newest first; receipts have no logs.
fn show(found: &[FoundTransaction], first: bool, last: bool) -> Result<Value, Failure> {
    let receipts = found.iter().map(|found| {
        let index = u64::from(found.location.index);
        let mut shown = receipt(&found.block, index, &found.transaction)?;
        (shown["logs"], shown["logsBloom"]) = (Value::Null, Value::Null);
        Ok(shown)
    });
    Ok(json!({
        "txs": found.iter().map(convert::found).collect::<Result<Vec<_>, _>>()?,
        "receipts": receipts.collect::<Result<Vec<_>, Failure>>()?,
        "firstPage": first,
        "lastPage": last,
    }))
}

/// A receipt with the time of its block.
fn receipt(block: &StoredBlock, index: u64, of: &StoredTransaction) -> Result<Value, Failure> {
    let mut shown = value(convert::receipt(block, index, of)?)?;
    shown["timestamp"] = json!(block.header().map_err(internal)?.timestamp);
    Ok(shown)
}

fn value(content: impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(content).map_err(internal)
}

/// A block without its transactions, and the fees that they paid.
fn details(found: Option<FoundBlock>) -> Result<Option<Value>, Failure> {
    let Some(found) = found else { return Ok(None) };
    let fee = |of: &StoredTransaction| U256::from(of.gas_used) * U256::from(of.gas_price);
    let fees = found.transactions.iter().map(fee).sum::<U256>();
    let block = FoundBlock { transactions: Vec::new(), ..found };
    Ok(Some(json!({ "block": slim(block)?, "issuance": {}, "totalFees": fees })))
}

/// A block with the number of its transactions, and without their bloom filter.
fn slim(found: FoundBlock) -> Result<Value, Failure> {
    let count = found.block.transactions;
    let mut shown = value(convert::block(found, true)?)?;
    shown["logsBloom"] = Value::Null;
    shown["transactionCount"] = json!(count);
    Ok(shown)
}

/// Some of a block's transactions: pages begin with its last ones. Inputs are cut to selectors, and
/// receipts have no logs.
fn block_page(found: &FoundBlock, page: u64, size: u32) -> Result<Value, Failure> {
    let all = found.transactions.len();
    let before = usize::try_from(page.saturating_mul(size.into())).unwrap_or(usize::MAX);
    let end = all.saturating_sub(before);
    let some = end.saturating_sub(size as usize)..end;
    let receipts = some.clone().map(|index| {
        let mut shown = receipt(&found.block, index as u64, &found.transactions[index])?;
        (shown["logs"], shown["logsBloom"]) = (Value::Null, Value::Null);
        Ok(shown)
    });
    let receipts = receipts.collect::<Result<Vec<_>, Failure>>()?;
    let transactions = some.map(|index| {
        let timestamp = found.block.header().map_err(internal)?.timestamp;
        let of = &found.transactions[index];
        let mut shown = value(convert::transaction(&found.block, timestamp, index as u64, of)?)?;
        if let Some(Value::String(input)) = shown.get_mut("input") {
            input.truncate(SELECTOR_CHARACTERS);
        }
        Ok(shown)
    });
    let transactions = transactions.collect::<Result<Vec<_>, Failure>>()?;
    let mut block = slim(FoundBlock { block: found.block.clone(), transactions: Vec::new() })?;
    block["transactions"] = Value::Array(transactions);
    Ok(json!({ "fullblock": block, "receipts": receipts }))
}

/// The transaction with a sender's nonce: the block in which the sender's next nonce goes beyond it
/// has it, and past states say which one that is.
fn by_nonce(context: &Context, sender: Address, nonce: u64) -> Result<Option<B256>, Failure> {
    let newest = context.chain.newest();
    let sent_by = |height: u64| {
        let account = context.chain.account(Some(Height(height)), sender)?;
        Ok::<bool, Failure>(account.nonce > nonce)
    };
    let Some(first) = context.chain.query::<Option<u64>>(&Query::Index(IndexQuery::Begins))? else {
        return Err(server("this validator keeps no past states: it has no archive"));
    };
    let (mut before, mut by) = (first - 1, newest);
    if !sent_by(by)? || sent_by(before)? {
        return Ok(None);
    }
    while by - before > 1 {
        let middle = before + (by - before) / 2;
        if sent_by(middle)? {
            by = middle;
        } else {
            before = middle;
        }
    }
    let Some(found) = context.chain.block(BlockAt::Height(by), true)? else { return Ok(None) };
    for transaction in &found.transactions {
        let is_its = transaction.sender == sender;
        if is_its && convert::nonce(transaction)? == nonce {
            return Ok(Some(transaction.hash));
        }
    }
    Ok(None)
}
