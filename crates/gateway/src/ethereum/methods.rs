//! Methods of `eth_`, `net_` and `web3_`, by subject, and all others. Those that read the state or
//! compute run on the threads for that.

use super::arguments::{Arguments, Quantity, Slot};
use super::chain::check_end;
use super::context::Context;
use super::error::{self, Failure, internal, invalid};
use super::module::{Module, Registered, computing, instant, method};
use super::{convert, dry_runs, fees, forks, otterscan, quorate, simulate, tokens, traces, txpool};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, B256, Bytes, U64, U256, keccak256};
use alloy_rpc_types_eth::{Block, Filter, Index, Transaction, TransactionReceipt};
use quorate_ledger::evm::{BlockAt, FoundBlock, FoundTransaction, Query, TransactionLocation};
use std::collections::BTreeMap;
use tokio::task::spawn_blocking;

/// Most slots of one question.
const SLOTS_MAX: usize = 1_024;

/// Registers every method of the server.
pub(super) fn register(module: &mut Module) -> Registered {
    network(module)?;
    forks::register(module)?;
    blocks(module)?;
    transactions(module)?;
    txpool::register(module)?;
    state(module)?;
    dry_runs::register(module)?;
    simulate::register(module)?;
    traces::register(module)?;
    otterscan::register(module)?;
    tokens::register(module)?;
    money(module)?;
    logs(module)?;
    quorate::register(module)
}

fn network(module: &mut Module) -> Registered {
    instant(module, "web3_clientVersion", |_| {
        format!("Quorate/v{}/{}", env!("CARGO_PKG_VERSION"), std::env::consts::OS)
    })?;
    method(module, "web3_sha3", |_, mut arguments| Ok(keccak256(arguments.next::<Bytes>()?)))?;
    instant(module, "net_version", |context| context.genesis.chain_id.to_string())?;
    instant(module, "net_listening", |_| true)?;
    instant(module, "net_peerCount", |context| U64::from(context.connection.members_connected()))?;
    instant(module, "eth_chainId", |context| U64::from(context.genesis.chain_id))?;
    instant(module, "eth_syncing", |_| false)?;
    instant(module, "eth_accounts", |_| Vec::<Address>::new())?;
    instant(module, "eth_coinbase", |context| context.genesis.fees_to)
}

fn blocks(module: &mut Module) -> Registered {
    instant(module, "eth_blockNumber", |context| U64::from(context.chain.newest()))?;
    method(module, "eth_getBlockByNumber", |context, mut arguments| {
        let found = context.chain.block_by_tag(arguments.next()?, true)?;
        block(found, arguments.optional()?)
    })?;
    method(module, "eth_getBlockByHash", |context, mut arguments| {
        let found = context.chain.block(BlockAt::Hash(arguments.next()?), true)?;
        block(found, arguments.optional()?)
    })?;
    method(module, "eth_getBlockTransactionCountByNumber", |context, mut arguments| {
        Ok(context.chain.block_by_tag(arguments.next()?, false)?.map(|found| count(&found)))
    })?;
    method(module, "eth_getBlockTransactionCountByHash", |context, mut arguments| {
        let at = BlockAt::Hash(arguments.next()?);
        Ok(context.chain.block(at, false)?.map(|found| count(&found)))
    })?;
    for name in ["eth_getUncleCountByBlockNumber", "eth_getUncleCountByBlockHash"] {
        method(module, name, |_, _| Ok(U64::ZERO))?;
    }
    computing(module, "eth_getBlockReceipts", |context, mut arguments| {
        let found = match arguments.next::<BlockId>()? {
            BlockId::Number(tag) => context.chain.block_by_tag(tag, true)?,
            BlockId::Hash(hash) => context.chain.block(BlockAt::Hash(hash.block_hash), true)?,
        };
        found.map(|found| receipts(&found)).transpose()
    })
}

fn block(found: Option<FoundBlock>, full: Option<bool>) -> Result<Option<Block>, Failure> {
    found.map(|found| convert::block(found, full.unwrap_or_default())).transpose()
}

fn count(found: &FoundBlock) -> U64 {
    U64::from(found.block.transactions)
}

fn receipts(found: &FoundBlock) -> Result<Vec<TransactionReceipt>, Failure> {
    let receipt = |(index, transaction)| convert::receipt(&found.block, index, transaction);
    (0..).zip(&found.transactions).map(receipt).collect()
}

fn transactions(module: &mut Module) -> Registered {
    method(module, "eth_sendRawTransaction", |context, mut arguments| {
        context.pool.take(arguments.next::<Bytes>()?.0)
    })?;
    method(module, "eth_getTransactionByHash", |context, mut arguments| {
        context.transaction(arguments.next()?)
    })?;
    module.register_async_method("eth_getTransactionReceipt", |params, context, _| async move {
        let hash = Arguments::of(&params).next()?;
        context.pool.settled(&hash).await;
        let found = spawn_blocking(move || context.chain.transaction(hash));
        let found = found.await.map_err(internal)??;
        found.map(|found| receipt(&found)).transpose()
    })?;
    method(module, "eth_getTransactionByBlockNumberAndIndex", |context, mut arguments| {
        let found = context.chain.block_by_tag(arguments.next()?, true)?;
        in_block(found, arguments.next()?)
    })?;
    method(module, "eth_getTransactionByBlockHashAndIndex", |context, mut arguments| {
        let found = context.chain.block(BlockAt::Hash(arguments.next()?), true)?;
        in_block(found, arguments.next()?)
    })
}

fn receipt(found: &FoundTransaction) -> Result<TransactionReceipt, Failure> {
    convert::receipt(&found.block, u64::from(found.location.index), &found.transaction)
}

fn in_block(found: Option<FoundBlock>, index: Index) -> Result<Option<Transaction>, Failure> {
    let Some(FoundBlock { block, mut transactions }) = found else { return Ok(None) };
    if index.0 >= transactions.len() {
        return Ok(None);
    }
    let transaction = transactions.swap_remove(index.0);
    let height = block.header().map_err(internal)?.number;
    let index = u32::try_from(index.0).map_err(invalid)?;
    convert::found(&FoundTransaction {
        location: TransactionLocation { height, index },
        block,
        transaction,
    })
    .map(Some)
}

fn state(module: &mut Module) -> Registered {
    method(module, "eth_getBalance", |context, mut arguments| {
        let of = arguments.next()?;
        let at = context.chain.state(arguments.optional()?)?;
        Ok(context.chain.account(at, of)?.balance)
    })?;
    method(module, "eth_getTransactionCount", |context, mut arguments| {
        let (of, at) = (arguments.next()?, arguments.optional::<BlockId>()?);
        let nonce = match at {
            Some(BlockId::Number(BlockNumberOrTag::Pending)) => context.pool.next_nonce(of)?,
            _ => context.chain.account(context.chain.state(at)?, of)?.nonce,
        };
        Ok(U64::from(nonce))
    })?;
    method(module, "eth_getCode", |context, mut arguments| {
        let query = Query::Code(arguments.next()?);
        context.chain.query_at::<Bytes>(context.chain.state(arguments.optional()?)?, &query)
    })?;
    method(module, "eth_getStorageAt", |context, mut arguments| {
        let slot = (arguments.next()?, arguments.next::<Slot>()?.0);
        let values = slots(context, vec![slot], arguments.optional()?)?;
        values.into_iter().next().ok_or_else(|| internal("a slot has a value"))
    })?;
    computing(module, "eth_getStorageValues", |context, mut arguments| {
        let asked = arguments.next::<BTreeMap<Address, Vec<Slot>>>()?;
        let all: Vec<(Address, U256)> = asked
            .iter()
            .flat_map(|(address, slots)| slots.iter().map(|slot| (*address, slot.0)))
            .collect();
        if all.is_empty() {
            return Err(invalid("empty request"));
        }
        if all.len() > SLOTS_MAX {
            return Err(invalid(format!("too many slots (max {SLOTS_MAX})")));
        }
        let mut values = slots(context, all, arguments.optional()?)?.into_iter();
        let of_each = asked.into_iter().map(|(address, slots)| {
            let values: Vec<B256> = values.by_ref().take(slots.len()).collect();
            (address, values)
        });
        Ok(of_each.collect::<BTreeMap<Address, Vec<B256>>>())
    })
}

/// Values of storage slots, all of one state.
fn slots(
    context: &Context,
    slots: Vec<(Address, U256)>,
    at: Option<BlockId>,
) -> Result<Vec<B256>, Failure> {
    let at = context.chain.state(at)?;
    let values: Vec<U256> = context.chain.query_at(at, &Query::Slots(slots))?;
    Ok(values.into_iter().map(B256::from).collect())
}

fn money(module: &mut Module) -> Registered {
    for name in ["eth_gasPrice", "eth_baseFee"] {
        instant(module, name, |context| U256::from(context.genesis.base_fee))?;
    }
    instant(module, "eth_maxPriorityFeePerGas", |_| U256::ZERO)?;
    computing(module, "eth_feeHistory", |context, mut arguments| {
        let count = arguments.next::<Quantity>()?;
        let newest = context.chain.height(arguments.next()?);
        let percentiles = arguments.optional::<Vec<f64>>()?;
        fees::history(&context.chain, count, newest, percentiles.as_deref())
    })
}

fn logs(module: &mut Module) -> Registered {
    computing(module, "eth_getLogs", |context, mut arguments| {
        let filter = arguments.next::<Filter>()?;
        check_end(&filter, context.chain.newest())?;
        let Some(filter) = context.chain.filter(&filter)? else {
            return Err(error::not_found("unknown block"));
        };
        context.chain.logs(filter).map(|found| convert::logs(&found))
    })?;
    method(module, "eth_newFilter", |context, mut arguments| {
        let filter = arguments.next::<Filter>()?;
        context.filters.add_logs(context.chain.newest(), filter)
    })?;
    method(module, "eth_newBlockFilter", |context, _| {
        context.filters.add_blocks(context.chain.newest())
    })?;
    method(module, "eth_newPendingTransactionFilter", |context, _| {
        context.filters.add_pending(&context.chain)
    })?;
    method(module, "eth_uninstallFilter", |context, mut arguments| {
        Ok(context.filters.remove(arguments.next()?))
    })?;
    computing(module, "eth_getFilterChanges", |context, mut arguments| {
        context.filters.changes(&context.chain, arguments.next()?)
    })?;
    computing(module, "eth_getFilterLogs", |context, mut arguments| {
        context.filters.all(&context.chain, arguments.next()?)
    })
}
