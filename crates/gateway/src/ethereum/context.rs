//! State that all methods share.

use super::chain::Chain;
use super::computing::Computing;
use super::convert;
use super::error::{Failure, server};
use super::filters::Filters;
use super::pool::Pool;
use crate::Connection;
use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::Transaction;
use quorate_ledger::evm::{Genesis, Recovered};
use quorate_types::Height;
use std::sync::Arc;

/// State of a server, shared by its methods and subscriptions.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) chain: Chain,
    pub(super) pool: Arc<Pool>,
    pub(super) genesis: Arc<Genesis>,
    pub(super) filters: Filters,
    pub(super) connection: Connection,
    pub(super) computing: Computing,
}

impl Context {
    /// A transaction by its hash, in its block or on its way there.
    pub(super) fn transaction(&self, hash: B256) -> Result<Option<Transaction>, Failure> {
        // Looked up before the state is read: what leaves in between is in that state.
        let waiting = self.pool.get(hash)?;
        let pending = |tx: Arc<Recovered>| convert::pending(tx.envelope.clone(), tx.sender);
        match self.chain.transaction(hash)? {
            Some(found) => convert::found(&found).map(Some),
            None => Ok(waiting.map(pending)),
        }
    }

    /// Checks that a height was executed here.
    pub(super) fn executed(&self, height: U64) -> Result<Height, Failure> {
        let height = height.to::<u64>();
        if height > self.chain.newest() {
            return Err(server(format!("block {height} is not executed yet")));
        }
        Ok(Height(height))
    }
}
