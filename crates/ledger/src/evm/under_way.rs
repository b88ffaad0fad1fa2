//! Transactions that came to a member and are not executed yet.
//!
//! A member reads each one ahead of execution, in a request of a client or in a body of another
//! member's. So it knows what all members have under way, and gateways beside them know of one
//! another's transactions without a word of their own. It is a hint: what never comes into the
//! order is forgotten after some heights, and no outcome depends on it.

use super::execution::Candidate;
use super::history::StoredTransaction;
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

/// Binary digits of the arrivals that a height may have, on average.
const NUMBERS_OF_HEIGHT: u32 = 24;

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
    pub fn recovered(&self) -> Result<Recovered, StateError> {
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
    /// Those of a sender's nonce, the newest last.
    by_place: BTreeMap<(Address, u64), Vec<B256>>,
    bytes: usize,
    /// The newest arrivals with the height each came at, and the number of each by its hash.
    arrived: VecDeque<(B256, u64)>,
    numbers: B256HashMap<u64>,
    /// Number of the first of them: arrivals before it are forgotten.
    first: u64,
    /// Heights that were executed since the beginning, and the transactions of the last one.
    heights: u64,
    executed: Vec<B256>,
}

#[derive(Clone, Debug)]
struct Pending {
    raw: Bytes,
    transaction: Arc<Recovered>,
}

impl Pending {
    fn place(&self) -> (Address, u64) {
        (self.transaction.sender, self.transaction.envelope.nonce())
    }

    fn shown(self) -> PendingTransaction {
        let ((sender, nonce), hash) = (self.place(), self.transaction.hash());
        PendingTransaction { raw: self.raw.into(), hash, sender, nonce }
    }
}

impl UnderWay {
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// Numbers arrivals from here on: further than those of whoever executed lower heights.
    pub(super) fn begin_at(&self, height: u64) {
        self.content.lock().first = height << NUMBERS_OF_HEIGHT;
    }

    /// Notes that a transaction came.
    pub(super) fn note(&self, raw: &[u8], transaction: &Arc<Recovered>) {
        if self.is_followed() {
            // Of its own: else it keeps the body that it came in.
            let raw = Bytes::copy_from_slice(raw);
            self.content.lock().note(Pending { raw, transaction: Arc::clone(transaction) });
        }
    }

    /// Names of transactions that are about to be executed.
    pub(super) fn named(&self, candidates: &[Candidate]) -> Vec<B256> {
        if !self.is_followed() {
            return Vec::new();
        }
        let read = candidates.iter().filter_map(|candidate| candidate.read.as_ref().ok());
        read.map(|transaction| transaction.hash()).collect()
    }

    /// A height is executed, to which these came, and these are in its block: they are shown until
    /// the next height is, since those who read views of the state do not see them there yet.
    /// Those that were refused are here no more, and new if they come again.
    pub(super) fn executed(&self, came: &[B256], included: &[StoredTransaction]) {
        if self.is_followed() {
            self.content.lock().end_height(came, included);
        }
    }

    /// Answers a question, encoded.
    pub(super) fn answer(&self, query: &UnderWayQuery) -> Vec<u8> {
        self.is_followed.store(true, Ordering::Relaxed);
        // Encoded without the lock, which execution takes.
        match query {
            UnderWayQuery::Transaction(hash) => {
                let found = self.content.lock().by_hash.get(hash).cloned();
                stored::encode(&found.map(Pending::shown))
            }
            UnderWayQuery::Of(sender) => {
                let found = self.content.lock().of(*sender);
                stored::encode(&found.into_iter().map(Pending::shown).collect::<Vec<_>>())
            }
            UnderWayQuery::Since(from) => {
                let arrivals = self.content.lock().since(*from);
                stored::encode(&arrivals)
            }
        }
    }
}

impl Content {
    fn note(&mut self, pending: Pending) {
        let hash = pending.transaction.hash();
        let number = self.first + self.arrived.len() as u64;
        if self.numbers.contains_key(&hash) {
            return;
        }
        self.numbers.insert(hash, number);
        self.arrived.push_back((hash, self.heights));
        self.bytes += pending.raw.len();
        self.by_place.entry(pending.place()).or_default().push(hash);
        self.by_hash.insert(hash, pending);
        while self.arrived.len() > ARRIVALS_MAX || self.bytes > BYTES_MAX {
            self.forget_oldest();
        }
    }

    fn end_height(&mut self, came: &[B256], included: &[StoredTransaction]) {
        let included: B256HashSet = included.iter().map(|stored| stored.hash).collect();
        for hash in came.iter().filter(|hash| !included.contains(*hash)) {
            self.remove(hash);
            self.numbers.remove(hash);
        }
        for hash in mem::replace(&mut self.executed, included.into_iter().collect()) {
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
        // One that was refused may have come again, and has another number then.
        if self.numbers.get(&hash) == Some(&self.first) {
            self.numbers.remove(&hash);
            self.remove(&hash);
        }
        self.first += 1;
    }

    fn remove(&mut self, hash: &B256) {
        let Some(pending) = self.by_hash.remove(hash) else { return };
        self.bytes -= pending.raw.len();
        let place = pending.place();
        if let Some(hashes) = self.by_place.get_mut(&place) {
            hashes.retain(|other| other != hash);
            if hashes.is_empty() {
                self.by_place.remove(&place);
            }
        }
    }

    /// The newest of each nonce, of a sender or of all.
    fn of(&self, sender: Option<Address>) -> Vec<Pending> {
        let all = match sender {
            Some(sender) => self.by_place.range((sender, 0)..=(sender, u64::MAX)),
            None => self.by_place.range(..),
        };
        let newest = all.filter_map(|(_, hashes)| hashes.last()).take(ANSWER_MAX);
        newest.map(|hash| self.by_hash[hash].clone()).collect()
    }

    fn since(&self, from: Option<u64>) -> Arrivals {
        let end = self.first + self.arrived.len() as u64;
        let from = from.map_or(end, |from| from.clamp(self.first, end));
        let skipped = usize::try_from(from - self.first).expect("as many as there are");
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

    fn included(transaction: &(Bytes, Arc<Recovered>)) -> StoredTransaction {
        StoredTransaction {
            raw: transaction.0.clone().into(),
            hash: transaction.1.hash(),
            sender: transaction.1.sender,
            success: true,
            gas_used: 21_000,
            cumulative_gas: 21_000,
            gas_price: 0,
            created: None,
            logs: Vec::new(),
            logs_before: 0,
        }
    }

    fn execute(under_way: &UnderWay, transactions: &[&(Bytes, Arc<Recovered>)]) {
        let came: Vec<B256> = transactions.iter().map(|(_, read)| read.hash()).collect();
        let stored: Vec<_> = transactions.iter().map(|transaction| included(transaction)).collect();
        under_way.executed(&came, &stored);
    }

    fn nonces(under_way: &UnderWay, sender: Option<Address>) -> Vec<u64> {
        let all: Vec<PendingTransaction> = ask(under_way, &UnderWayQuery::Of(sender));
        all.iter().map(|pending| pending.nonce).collect()
    }

    #[test]
    fn what_came_is_there_until_it_is_executed() {
        let under_way = followed();
        let (first, second) = (transaction("a", 1, 21_000), transaction("a", 0, 21_000));
        let hashes = [note(&under_way, &first), note(&under_way, &second)];
        note(&under_way, &first);
        let of_a = Some(first.1.sender);
        assert_eq!(nonces(&under_way, of_a), [0, 1]);
        let came: Arrivals = ask(&under_way, &UnderWayQuery::Since(Some(0)));
        assert_eq!(came, Arrivals { hashes: hashes.to_vec(), next: 2 });
        let shown: Option<PendingTransaction> =
            ask(&under_way, &UnderWayQuery::Transaction(hashes[0]));
        assert_eq!(shown.expect("it is there").raw[..], first.0[..]);

        execute(&under_way, &[&second]);
        assert_eq!(nonces(&under_way, of_a), [0, 1], "views may not show it yet");
        execute(&under_way, &[]);
        assert_eq!(nonces(&under_way, of_a), [1]);
        // A copy in another body, which comes late, is nothing new.
        note(&under_way, &second);
        assert_eq!(nonces(&under_way, of_a), [1]);
        let came: Arrivals = ask(&under_way, &UnderWayQuery::Since(Some(2)));
        assert_eq!(came, Arrivals { hashes: Vec::new(), next: 2 });
    }

    #[test]
    fn what_is_refused_is_gone_at_once_and_may_come_again() {
        let under_way = followed();
        let refused = transaction("a", 0, 21_000);
        let hash = note(&under_way, &refused);
        under_way.executed(&[hash], &[]);
        assert!(nonces(&under_way, None).is_empty());
        note(&under_way, &refused);
        assert_eq!(nonces(&under_way, None), [0]);
        let came: Arrivals = ask(&under_way, &UnderWayQuery::Since(Some(0)));
        assert_eq!(came.hashes, [hash, hash]);
        // The first arrival is forgotten, the second is not.
        under_way.content.lock().forget_oldest();
        assert_eq!(nonces(&under_way, None), [0]);
        under_way.content.lock().forget_oldest();
        assert!(nonces(&under_way, None).is_empty());
    }

    #[test]
    fn of_two_with_one_nonce_the_newer_shows_until_it_is_gone() {
        let under_way = followed();
        let (old, new) = (transaction("a", 0, 21_000), transaction("a", 0, 22_000));
        let hashes = [note(&under_way, &old), note(&under_way, &new)];
        let shown = || -> Vec<B256> {
            let all: Vec<PendingTransaction> = ask(&under_way, &UnderWayQuery::Of(None));
            all.iter().map(|pending| pending.hash).collect()
        };
        assert_eq!(shown(), [hashes[1]]);
        under_way.executed(&[hashes[1]], &[]);
        assert_eq!(shown(), [hashes[0]]);
    }

    #[test]
    fn what_is_never_executed_is_forgotten() {
        let under_way = followed();
        note(&under_way, &transaction("a", 0, 21_000));
        for _ in 0..HEIGHTS_MAX {
            execute(&under_way, &[]);
        }
        assert_eq!(nonces(&under_way, None), [0]);
        execute(&under_way, &[]);
        assert!(nonces(&under_way, None).is_empty());
        let content = under_way.content.lock();
        let left = (content.bytes, content.numbers.len(), content.by_place.len(), content.first);
        assert_eq!(left, (0, 0, 0, 1));
    }

    #[test]
    fn numbers_of_a_run_are_beyond_those_of_the_one_before() {
        let (before, after) = (followed(), followed());
        before.begin_at(7);
        after.begin_at(8);
        note(&before, &transaction("a", 0, 21_000));
        let Arrivals { next, .. } = ask(&before, &UnderWayQuery::Since(None));
        let hash = note(&after, &transaction("a", 1, 21_000));
        let came: Arrivals = ask(&after, &UnderWayQuery::Since(Some(next)));
        assert_eq!(came.hashes, [hash], "none is left out");
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
