//! Senders of transactions, recovered ahead of execution.

use super::transaction::{ChainRules, Recovered, TransactionError};
use super::under_way::UnderWay;
use alloy_primitives::B256;
use alloy_primitives::map::B256HashMap;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::Preparation;
use std::mem;
use std::sync::Arc;

/// Result of reading a transaction.
type Read = Result<Arc<Recovered>, TransactionError>;

/// Transactions that were read ahead of execution, on other threads. A cache: what is not in it is
/// read when it is needed. They are found by a hash of ours over their bytes, which costs a sixth
/// of Ethereum's.
#[derive(Debug)]
pub(super) struct Senders {
    rules: ChainRules,
    read: Mutex<Generations>,
    under_way: Arc<UnderWay>,
}

/// The newest, and those before them; older ones are forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: B256HashMap<Read>,
    old: B256HashMap<Read>,
}

/// Transactions of one generation, and most bytes of one that is kept: the few that are longer are
/// read when they are executed.
const GENERATION: usize = 32_768;
const KEPT_BYTES_MAX: usize = 4_096;

impl Senders {
    pub(super) fn new(rules: ChainRules, under_way: Arc<UnderWay>) -> Self {
        Self { rules, read: Mutex::default(), under_way }
    }

    /// Transactions that came and are not executed.
    pub(super) fn under_way(&self) -> &UnderWay {
        &self.under_way
    }

    /// The transaction of these bytes, read now unless it was before.
    pub(super) fn take(&self, bytes: &[u8]) -> Read {
        let is_kept = bytes.len() <= KEPT_BYTES_MAX;
        let known = is_kept.then(|| self.read.lock().take(&key(bytes))).flatten();
        known.unwrap_or_else(|| Recovered::read(bytes, self.rules).map(Arc::new))
    }
}

/// ★ Names bytes in the cache: what is found was read from the same ones.
fn key(bytes: &[u8]) -> B256 {
    let named = if mutants::active(Mutant::EvmReadOfAnother) { &[] } else { bytes };
    B256::from(quorate_crypto::hash(named).0)
}

impl Generations {
    fn take(&mut self, key: &B256) -> Option<Read> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    fn holds(&self, key: &B256) -> bool {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    fn put(&mut self, key: B256, read: Read) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, read);
    }
}

impl Preparation for Senders {
    fn prepare(&self, operation: &Bytes) {
        let is_kept = operation.len() <= KEPT_BYTES_MAX;
        if !is_kept && !self.under_way.is_followed() {
            return;
        }
        let key = key(operation);
        if self.read.lock().holds(&key) {
            return;
        }
        let read = Recovered::read(operation, self.rules).map(Arc::new);
        if let Ok(transaction) = &read {
            self.under_way.note(operation, transaction);
        }
        if is_kept {
            self.read.lock().put(key, read);
        }
    }
}
