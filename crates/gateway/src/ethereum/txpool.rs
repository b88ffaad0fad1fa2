//! Methods of `txpool_`: what waits here, and what is under way anywhere in the committee.

use super::convert;
use super::error::{Failure, server};
use super::module::{Module, Registered, computing};
use super::pool::Pooled;
use alloy_consensus::Transaction as _;
use alloy_primitives::{TxKind, U64};
use alloy_rpc_types_eth::Transaction;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Most bytes of the transactions of one answer.
const BYTES_MAX: usize = 8 << 20;

/// Transactions by their nonces, in decimal.
type ByNonce<T> = BTreeMap<String, T>;

#[derive(Serialize)]
struct Lists<T> {
    pending: T,
    queued: T,
}

pub(super) fn register(module: &mut Module) -> Registered {
    computing(module, "txpool_status", |context, _| {
        let (pending, queued) = context.pool.transactions(None)?;
        Ok(json!({ "pending": U64::from(pending.len()), "queued": U64::from(queued.len()) }))
    })?;
    computing(module, "txpool_content", |context, _| {
        lists(context.pool.transactions(None)?, |all| by_sender(all, whole))
    })?;
    computing(module, "txpool_contentFrom", |context, mut arguments| {
        lists(context.pool.transactions(Some(arguments.next()?))?, |all| by_nonce(all, whole))
    })?;
    computing(module, "txpool_inspect", |context, _| {
        lists(context.pool.transactions(None)?, |all| by_sender(all, summary))
    })
}

fn lists<T>(
    (pending, queued): (Vec<Pooled>, Vec<Pooled>),
    shown: impl Fn(&[Pooled]) -> T,
) -> Result<Lists<T>, Failure> {
    let bytes: usize = pending.iter().chain(&queued).map(|pooled| pooled.bytes).sum();
    if bytes > BYTES_MAX {
        let text = format!("more than {} MiB: ask txpool_contentFrom", BYTES_MAX >> 20);
        return Err(server(text));
    }
    Ok(Lists { pending: shown(&pending), queued: shown(&queued) })
}

fn by_nonce<T>(all: &[Pooled], shown: fn(&Pooled) -> T) -> ByNonce<T> {
    let nonce = |pooled: &Pooled| pooled.transaction.envelope.nonce().to_string();
    all.iter().map(|pooled| (nonce(pooled), shown(pooled))).collect()
}

fn by_sender<T>(all: &[Pooled], shown: fn(&Pooled) -> T) -> BTreeMap<String, ByNonce<T>> {
    let of = |pooled: &Pooled| pooled.transaction.sender;
    let lists = all.chunk_by(|one, next| of(one) == of(next));
    lists.map(|list| (of(&list[0]).to_checksum(None), by_nonce(list, shown))).collect()
}

fn whole(pooled: &Pooled) -> Transaction {
    let transaction = &pooled.transaction;
    convert::pending(transaction.envelope.clone(), transaction.sender)
}

/// A line as Geth writes it.
fn summary(pooled: &Pooled) -> String {
    let tx = &pooled.transaction.envelope;
    let to = match tx.kind() {
        TxKind::Create => "contract creation".to_owned(),
        TxKind::Call(to) => to.to_checksum(None),
    };
    let (value, gas, price) = (tx.value(), tx.gas_limit(), tx.max_fee_per_gas());
    format!("{to}: {value} wei + {gas} gas × {price} wei")
}
