//! Filters that clients poll, for those that have no open connection.

use super::chain::{Chain, check_filter};
use super::convert;
use super::error::{Failure, server};
use alloy_primitives::{B256, U128};
use alloy_rpc_types_eth::{Filter, FilterBlockOption};
use parking_lot::Mutex;
use quorate_ledger::evm::{Arrivals, BlockAt, UnderWayQuery};
use quorate_node::testnet::system_random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most filters at once.
const FILTERS_MAX: usize = 4_096;

/// Time without a poll after which a filter is removed.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// Most blocks' hashes that one answer lists.
const HASHES_MAX: u64 = 10_000;

/// The filters, by their ids.
#[derive(Debug, Default)]
pub(super) struct Filters(Mutex<BTreeMap<U128, Polled>>);

#[derive(Clone, Debug)]
struct Polled {
    what: What,
    /// Height that is to be reported next, and the index of a log there.
    next: (u64, u32),
    polled: Instant,
}

#[derive(Clone, Debug)]
enum What {
    Blocks,
    Logs(Box<Filter>),
    /// Transactions that come from this number on.
    Pending(u64),
}

impl Filters {
    pub(super) fn add_logs(&self, newest: u64, filter: Filter) -> Result<U128, Failure> {
        check_filter(&filter)?;
        self.add(newest, What::Logs(Box::new(filter)))
    }

    pub(super) fn add_blocks(&self, newest: u64) -> Result<U128, Failure> {
        self.add(newest, What::Blocks)
    }

    pub(super) fn add_pending(&self, chain: &Chain) -> Result<U128, Failure> {
        let Arrivals { next, .. } = chain.under_way(UnderWayQuery::Since(None))?;
        self.add(chain.newest(), What::Pending(next))
    }

    fn add(&self, newest: u64, what: What) -> Result<U128, Failure> {
        let mut known = self.0.lock();
        known.retain(|_, filter| filter.polled.elapsed() < IDLE_MAX);
        if known.len() >= FILTERS_MAX {
            return Err(server("there are too many filters; uninstall some, or subscribe"));
        }
        let id = unguessable();
        known.insert(id, Polled { what, next: (newest + 1, 0), polled: Instant::now() });
        Ok(id)
    }

    pub(super) fn remove(&self, id: U128) -> bool {
        self.0.lock().remove(&id).is_some()
    }

    /// Blocks, logs or transactions since the last call with this id: of logs as many as an answer
    /// holds, and the next call has the others.
    pub(super) fn changes(&self, chain: &Chain, id: U128) -> Result<Value, Failure> {
        let newest = chain.newest();
        let Polled { what, next, .. } = self.take(id, newest)?;
        let changes = match what {
            What::Pending(from) => return self.arrivals(chain, id, from),
            What::Blocks => hashes(chain, next.0, newest).map(|hashes| (hashes, None)),
            What::Logs(options) => logs(chain, &options, (next, newest)),
        };
        match changes {
            Ok((changes, None)) => Ok(changes),
            Ok((changes, Some(rest))) => {
                self.put_back(id, rest);
                Ok(changes)
            }
            Err(failure) => {
                self.put_back(id, next);
                Err(failure)
            }
        }
    }

    /// Transactions that came since the last call with this id, by their hashes.
    fn arrivals(&self, chain: &Chain, id: U128, from: u64) -> Result<Value, Failure> {
        let Arrivals { hashes, next } = chain.under_way(UnderWayQuery::Since(Some(from)))?;
        // Two that ask at once are not told the same twice.
        match self.0.lock().get_mut(&id).map(|filter| &mut filter.what) {
            Some(What::Pending(at)) if *at == from => *at = next,
            _ => return json(&[B256::ZERO; 0]),
        }
        json(&hashes)
    }

    /// Logs of all blocks that a filter lets pass.
    pub(super) fn all(&self, chain: &Chain, id: U128) -> Result<Value, Failure> {
        let known = self.0.lock().get(&id).cloned();
        let What::Logs(filter) = known.ok_or_else(unknown)?.what else { return Err(unknown()) };
        let filter = chain.filter(&filter)?.ok_or_else(unknown)?;
        json(&convert::logs(&chain.logs(filter)?))
    }

    /// Has the next call report again what came from this place on.
    fn put_back(&self, id: U128, next: (u64, u32)) {
        if let Some(filter) = self.0.lock().get_mut(&id) {
            filter.next = filter.next.min(next);
        }
    }

    fn take(&self, id: U128, newest: u64) -> Result<Polled, Failure> {
        let mut known = self.0.lock();
        let filter = known.get_mut(&id).ok_or_else(unknown)?;
        let before = filter.clone();
        filter.next = filter.next.max((newest + 1, 0));
        filter.polled = Instant::now();
        Ok(before)
    }
}

/// Logs from a place on, up to a height; and where the rest begins, if there is one.
fn logs(
    chain: &Chain,
    options: &Filter,
    ((height, index), newest): ((u64, u32), u64),
) -> Result<(Value, Option<(u64, u32)>), Failure> {
    let mut filter = chain.filter(options)?.ok_or_else(unknown)?;
    // "latest" as the beginning means the block after the one that was then.
    let from = if begins(options) { filter.heights.0 } else { 0 };
    filter.heights = (from.max(height), filter.heights.1.min(newest));
    if filter.heights.0 > filter.heights.1 {
        return Ok((Value::Array(Vec::new()), None));
    }
    let index = if filter.heights.0 == height { index } else { 0 };
    let page = chain.log_page(filter, index)?;
    Ok((json(&convert::logs(&page.logs))?, page.next))
}

/// Tells whether a filter names the block that it begins with.
fn begins(filter: &Filter) -> bool {
    match filter.block_option {
        FilterBlockOption::Range { from_block, .. } => {
            from_block.is_some_and(|tag| tag.is_number())
        }
        FilterBlockOption::AtBlockHash(_) => true,
    }
}

/// An id that nobody else's caller comes upon.
fn unguessable() -> U128 {
    let mut bytes = [0; 16];
    system_random(&mut bytes);
    U128::from_be_bytes(bytes)
}

fn unknown() -> Failure {
    server("filter not found")
}

fn hashes(chain: &Chain, from: u64, to: u64) -> Result<Value, Failure> {
    let from = from.max(to.saturating_sub(HASHES_MAX));
    let hash =
        |height| Ok(chain.block(BlockAt::Height(height), false)?.map(|found| found.block.hash));
    json(&(from..=to).map(hash).collect::<Result<Vec<_>, Failure>>()?)
}

fn json(content: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(content).map_err(super::error::internal)
}
