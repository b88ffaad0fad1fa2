//! Methods of the index that Otterscan's have no words for: how far back it goes, transfers of
//! tokens, and who holds them.

use super::context::Context;
use super::convert;
use super::error::{Failure, invalid};
use super::module::{Module, Registered, computing, method};
use alloy_primitives::{Address, U64, U256};
use quorate_ledger::evm::{
    HOLDERS_MAX, HolderKey, HolderPage, IndexQuery, LogLocation, PAGE_MAX, Query,
    TransactionLocation, TransferPage, TransfersOf,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Whose transfers are wanted, and which of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TransfersRequest {
    account: Option<Address>,
    token: Option<Address>,
    before: Option<Cursor>,
    limit: Option<U64>,
}

/// Place of a log, as a page names where the next one goes on.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cursor {
    block_number: U64,
    transaction_index: U64,
    log: U64,
}

/// Holder of a token, likewise.
#[derive(Deserialize, Serialize)]
struct Holder {
    account: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<U256>,
}

/// Which of a token's holders are wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldersRequest {
    token: Address,
    after: Option<Holder>,
    limit: Option<U64>,
}

pub(super) fn register(module: &mut Module) -> Registered {
    method(module, "quorate_getIndex", |context, _| {
        let begins: Option<u64> = context.chain.query(&Query::Index(IndexQuery::Begins))?;
        Ok(begins.map(|begins| json!({ "fromBlock": U64::from(begins) })))
    })?;
    computing(module, "quorate_getTokenTransfers", |context, mut arguments| {
        transfers(context, arguments.next()?)
    })?;
    computing(module, "quorate_getTokenHolders", |context, mut arguments| {
        holders(context, arguments.next()?)
    })
}

fn limit(wanted: Option<U64>, most: u32) -> Result<u32, Failure> {
    let wanted = wanted.map_or(Ok(most), u32::try_from);
    let fitting = wanted.ok().filter(|limit| (1..=most).contains(limit));
    fitting.ok_or_else(|| invalid(format!("limit is 1 to {most}")))
}

fn transfers(context: &Context, request: TransfersRequest) -> Result<Value, Failure> {
    let of = match (request.account, request.token) {
        (Some(account), None) => TransfersOf::Account(account),
        (None, Some(token)) => TransfersOf::Token(token),
        _ => return Err(invalid("name an account or a token")),
    };
    let before = request.before.map(Cursor::location).transpose()?;
    let most = limit(request.limit, PAGE_MAX)?;
    let query = Query::Index(IndexQuery::Transfers { of, before, most });
    let TransferPage { logs, next } = context.chain.query(&query)?;
    Ok(json!({ "logs": convert::logs(&logs), "next": next.map(Cursor::of) }))
}

fn holders(context: &Context, request: HoldersRequest) -> Result<Value, Failure> {
    let HoldersRequest { token, after, limit: wanted } = request;
    let after = after.map(|Holder { account, id }| HolderKey { account, id });
    let most = limit(wanted, HOLDERS_MAX)?;
    let query = Query::Index(IndexQuery::Holders { token, after, most });
    let HolderPage { holders, next } = context.chain.query(&query)?;
    let holder = |(HolderKey { account, id }, balance): (HolderKey, U256)| {
        let mut shown = json!({ "account": account, "balance": balance });
        if let Some(id) = id {
            shown["id"] = json!(id);
        }
        shown
    };
    let next = next.map(|HolderKey { account, id }| Holder { account, id });
    Ok(json!({ "holders": holders.into_iter().map(holder).collect::<Vec<_>>(), "next": next }))
}

impl Cursor {
    fn of(at: LogLocation) -> Self {
        let LogLocation { transaction: TransactionLocation { height, index }, log } = at;
        Self {
            block_number: U64::from(height),
            transaction_index: U64::from(index),
            log: U64::from(log),
        }
    }

    fn location(self) -> Result<LogLocation, Failure> {
        let index = self.transaction_index.try_into().map_err(invalid)?;
        let transaction = TransactionLocation { height: self.block_number.to(), index };
        Ok(LogLocation { transaction, log: self.log.try_into().map_err(invalid)? })
    }
}
