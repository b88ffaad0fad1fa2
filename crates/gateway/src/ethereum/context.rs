//! State that all methods share.

use super::chain::Chain;
use super::computing::Computing;
use super::error::{Failure, server};
use super::filters::Filters;
use super::pool::Pool;
use crate::Connection;
use alloy_primitives::U64;
use quorate_ledger::evm::Genesis;
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
    /// Checks that a height was executed here.
    pub(super) fn executed(&self, height: U64) -> Result<Height, Failure> {
        let height = height.to::<u64>();
        if height > self.chain.newest() {
            return Err(server(format!("block {height} is not executed yet")));
        }
        Ok(Height(height))
    }
}
