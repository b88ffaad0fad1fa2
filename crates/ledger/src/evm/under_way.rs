//! Transactions that came to a member and are not executed yet.
//!
//! A member reads each one ahead of execution, in a request of a client or in a body of another
//! member's. So it knows what all members have under way, and gateways beside them know of one
//! another's transactions without a word of their own. It is a hint: what never comes into the
//! order is forgotten after some heights, and no outcome depends on it.

use super::transaction::Recovered;
use super::{Address, stored};
use alloy_consensus::Transaction as _;
use alloy_primitives::B256;
use alloy_primitives::map::{B256HashMap, B256HashSet};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_types::service::StateError;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most transactions that are remembered, and most bytes of those that are under way.
const ARRIVALS_MAX: usize = 65_536;
const BYTES_MAX: usize = 64 << 20;

/// Heights after which one that was not executed is forgotten.
const HEIGHTS_MAX: u64 = 256;

/// Most transactions of an answer.
const ANSWER_MAX: usize = 4_096;

/// What is asked of the transactions under way.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum UnderWayQuery {
    /// One by its hash: an `Option<`[`PendingTransaction`]`>`.
    Transaction(B256),
    /// Those of a sender, or of all: up to 4,096 `Vec<`[`PendingTransaction`]`>`, by sender and
    /// nonce.
    Of(Option<Address>),
    /// Hashes of those that came from this number on, `None`: from now on: [`Arrivals`].
    Since(Option<u64>),
}

/// Transaction that is not executed yet.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PendingTransaction {
    /// Bytes as they were signed.
    pub raw: alloy_primitives::Bytes,
    /// Hash of the transaction, as Ethereum names it.
    pub hash: B256,
    /// Address whose key signed it.
    pub sender: Address,
    /// Nonce of its sender that it uses.
    pub nonce: u64,
}

impl PendingTransaction {
    /// The transaction: its sender was recovered when it came.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn recovered(self) -> Result<Recovered, StateError> {
        Recovered::known(&self.raw, self.sender, self.hash)
    }
}

/// Transactions in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Arrivals {
    /// Hashes of those that came, as far as they are remembered.
    pub hashes: Vec<B256>,
    /// Number of the next that comes.
    pub next: u64,
}

/// Transactions that are under way, followed from when somebody first asks for them.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    is_followed: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    by_hash: B256HashMap<Pending>,
    by_place: BTreeMap<(Address, u64), B256>,
    bytes: usize,
    /// The newest arrivals with the height each came at, executed or not, and a set of them.
    arrived: VecDeque<(B256, u64)>,
    known: B256HashSet,
    /// Number of arrivals that are forgotten.
    forgotten: u64,
    /// Heights that were executed since the beginning, and the transactions of the last one.
    heights: u64,
    executed: Vec<B256>,
}

#[derive(Debug)]
struct Pending {
    raw: Bytes,
    transaction: Arc<Recovered>,
}

impl Pending {
    fn place(&self) -> (Address, u64) {
        (self.transaction.sender, self.transaction.envelope.nonce())
    }

    fn shown(&self) -> PendingTransaction {
        let ((sender, nonce), hash) = (self.place(), self.transaction.hash());
        PendingTransaction { raw: self.raw.clone().into(), hash, sender, nonce }
    }
}

impl UnderWay {
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// Notes that a transaction came.
    pub(super) fn note(&self, raw: &[u8], transaction: &Arc<Recovered>) {
        if self.is_followed() {
            // Of its own: else it keeps the body that it came in.
            let raw = Bytes::copy_from_slice(raw);
            self.content.lock().note(Pending { raw, transaction: Arc::clone(transaction) });
        }
    }

    /// A height is executed, with these transactions. They are shown until the next one is: those
    /// who read views of the state do not see them there yet.
    pub(super) fn executed<'a>(&self, transactions: impl Iterator<Item = &'a Arc<Recovered>>) {
        if self.is_followed() {
            let hashes = transactions.map(|transaction| transaction.hash()).collect();
            self.content.lock().end_height(hashes);
        }
    }

    /// Answers a question, encoded.
    pub(super) fn answer(&self, query: &UnderWayQuery) -> Vec<u8> {
        self.is_followed.store(true, Ordering::Relaxed);
        let content = self.content.lock();
        match query {
            UnderWayQuery::Transaction(hash) => {
                stored::encode(&content.by_hash.get(hash).map(Pending::shown))
            }
            UnderWayQuery::Of(sender) => stored::encode(&content.of(*sender)),
            UnderWayQuery::Since(from) => stored::encode(&content.since(*from)),
        }
    }
}

impl Content {
    fn note(&mut self, pending: Pending) {
        let hash = pending.transaction.hash();
        if !self.known.insert(hash) {
            return;
        }
        self.arrived.push_back((hash, self.heights));
        self.bytes += pending.raw.len();
        self.by_place.insert(pending.place(), hash);
        self.by_hash.insert(hash, pending);
        while self.arrived.len() > ARRIVALS_MAX || self.bytes > BYTES_MAX {
            self.forget_oldest();
        }
    }

    fn end_height(&mut self, executed: Vec<B256>) {
        for hash in mem::replace(&mut self.executed, executed) {
            self.remove(&hash);
        }
        self.heights += 1;
        let heights = self.heights;
        while self.arrived.front().is_some_and(|(_, since)| since + HEIGHTS_MAX < heights) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((hash, _)) = self.arrived.pop_front() else { return };
        self.forgotten += 1;
        self.known.remove(&hash);
        self.remove(&hash);
    }

    fn remove(&mut self, hash: &B256) {
        let Some(pending) = self.by_hash.remove(hash) else { return };
        self.bytes -= pending.raw.len();
        let place = pending.place();
        // Another of its nonce may have come after it.
        if self.by_place.get(&place) == Some(hash) {
            self.by_place.remove(&place);
        }
    }

    fn of(&self, sender: Option<Address>) -> Vec<PendingTransaction> {
        let all = match sender {
            Some(sender) => self.by_place.range((sender, 0)..=(sender, u64::MAX)),
            None => self.by_place.range(..),
        };
        all.take(ANSWER_MAX).map(|(_, hash)| self.by_hash[hash].shown()).collect()
    }

    fn since(&self, from: Option<u64>) -> Arrivals {
        let end = self.forgotten + self.arrived.len() as u64;
        let from = from.map_or(end, |from| from.clamp(self.forgotten, end));
        let skipped = usize::try_from(from - self.forgotten).expect("as many as there are");
        let hashes: Vec<B256> =
            self.arrived.iter().skip(skipped).take(ANSWER_MAX).map(|(hash, _)| *hash).collect();
        let next = from + hashes.len() as u64;
        Arrivals { hashes, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evm::{Genesis, Signer};
    use alloy_consensus::TxLegacy;

    const CHAIN: u64 = 7;

    fn transaction(name: &str, nonce: u64, gas_limit: u64) -> (Bytes, Arc<Recovered>) {
        let unsigned = TxLegacy { chain_id: Some(CHAIN), nonce, gas_limit, ..TxLegacy::default() };
        let raw = Signer::derived(name).0.sign(unsigned);
        let read = Recovered::read(&raw, Genesis::new(CHAIN).rules(1)).expect("a transaction");
        (raw, Arc::new(read))
    }

    fn ask<T: BorshDeserialize>(under_way: &UnderWay, query: &UnderWayQuery) -> T {
        T::try_from_slice(&under_way.answer(query)).expect("the question's answer")
    }

    fn followed() -> UnderWay {
        let under_way = UnderWay::default();
        under_way.answer(&UnderWayQuery::Since(None));
        under_way
    }

    fn note(under_way: &UnderWay, (raw, transaction): &(Bytes, Arc<Recovered>)) -> B256 {
        under_way.note(raw, transaction);
        transaction.hash()
    }

    #[test]
    fn what_came_is_there_until_it_is_executed() {
        let under_way = followed();
        let (first, second) = (transaction("a", 1, 21_000), transaction("a", 0, 21_000));
        let hashes = [note(&under_way, &first), note(&under_way, &second)];
        note(&under_way, &first);
        let of_a = UnderWayQuery::Of(Some(first.1.sender));
        let nonces = || -> Vec<u64> {
            let all: Vec<PendingTransaction> = ask(&under_way, &of_a);
            all.iter().map(|pending| pending.nonce).collect()
        };
        assert_eq!(nonces(), [0, 1]);
        let came: Arrivals = ask(&under_way, &UnderWayQuery::Since(Some(0)));
        assert_eq!(came, Arrivals { hashes: hashes.to_vec(), next: 2 });
        let shown: Option<PendingTransaction> =
            ask(&under_way, &UnderWayQuery::Transaction(hashes[0]));
        assert_eq!(shown.expect("it is there").raw[..], first.0[..]);

        under_way.executed([&second.1].into_iter());
        assert_eq!(nonces(), [0, 1], "views may not show it yet");
        under_way.executed([].into_iter());
        assert_eq!(nonces(), [1]);
        // A copy in another body, which comes late, is nothing new.
        note(&under_way, &second);
        assert_eq!(nonces(), [1]);
        let came: Arrivals = ask(&under_way, &UnderWayQuery::Since(Some(2)));
        assert_eq!(came, Arrivals { hashes: Vec::new(), next: 2 });
    }

    #[test]
    fn of_two_with_one_nonce_the_newer_shows_until_it_is_gone() {
        let under_way = followed();
        let (old, new) = (transaction("a", 0, 21_000), transaction("a", 0, 22_000));
        note(&under_way, &old);
        let hash = note(&under_way, &new);
        let of_all = UnderWayQuery::Of(None);
        let shown: Vec<PendingTransaction> = ask(&under_way, &of_all);
        assert_eq!(shown.iter().map(|pending| pending.hash).collect::<Vec<_>>(), [hash]);
        under_way.executed([&old.1, &new.1].into_iter());
        under_way.executed([].into_iter());
        assert!(ask::<Vec<PendingTransaction>>(&under_way, &of_all).is_empty());
    }

    #[test]
    fn what_is_never_executed_is_forgotten() {
        let under_way = followed();
        note(&under_way, &transaction("a", 0, 21_000));
        let count = || ask::<Vec<PendingTransaction>>(&under_way, &UnderWayQuery::Of(None)).len();
        for _ in 0..HEIGHTS_MAX {
            under_way.executed([].into_iter());
        }
        assert_eq!(count(), 1);
        under_way.executed([].into_iter());
        assert_eq!(count(), 0);
        let content = under_way.content.lock();
        assert_eq!((content.bytes, content.known.len(), content.forgotten), (0, 0, 1));
    }

    #[test]
    fn its_bytes_are_bounded() {
        let under_way = followed();
        let (raw, read) = transaction("a", 0, 21_000);
        let mut content = under_way.content.lock();
        content.bytes = BYTES_MAX;
        content.note(Pending { raw, transaction: read });
        assert!(content.by_hash.is_empty(), "the oldest give way, and it was the one");
    }

    #[test]
    fn nothing_is_kept_that_nobody_asks_for() {
        let under_way = UnderWay::default();
        note(&under_way, &transaction("a", 0, 21_000));
        assert!(under_way.content.lock().arrived.is_empty());
    }
}
