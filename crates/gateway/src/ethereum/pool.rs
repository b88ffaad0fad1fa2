//! Transactions that were sent here and are not executed yet.
//!
//! Each sender's go into the order as soon as those before them did, and stay until the state here
//! has executed them or they cannot be executed any more. The committee's answer may come before
//! this validator's own execution: until that follows, a transaction is found here, and its nonce
//! counts as used. What the committee refuses for the moment (a nonce too high, a full block,
//! nobody answered) is sent again.
//!
//! What other members' gateways took is seen as soon as it comes to the validator here, in a body
//! of theirs: its nonces count as used, so that two gateways do not use one twice.

mod arrivals;

use super::chain::Chain;
use super::error::{Failure, internal, no_transaction, passes, server};
use crate::{CallError, Completed, Connection};
use alloy_consensus::Transaction as _;
use alloy_primitives::map::B256HashMap;
use alloy_primitives::{Address, B256};
use arrivals::Arrivals;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_ledger::evm::{Account, Genesis, PendingTransaction, Query, Recovered, UnderWayQuery};
use quorate_node::unix_ms;
use quorate_types::{Outcome, Receipt};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout_at};

/// Most transactions that wait, and most bytes of them.
const WAITING_MAX: usize = 16_384;
const WAITING_BYTES_MAX: usize = 256 << 20;

/// Most that wait for others before them, which may never come, and most bytes of them: there is
/// room for the rest.
const QUEUED_MAX: usize = WAITING_MAX / 4;
const QUEUED_BYTES_MAX: usize = WAITING_BYTES_MAX / 4;

/// Age at which a transaction that waits for others may be dropped for a new one.
const HELD_FOR: Duration = Duration::from_secs(600);

/// Largest distance of a transaction's nonce from its account's, exclusive.
const AHEAD_MAX: u64 = 256;

/// Receipts of the last transactions that were sent here.
const RECEIPTS: usize = 16_384;

/// Bytes that they take at most, about.
const RECEIPTS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a receipt beside its request: results, the way to the root, a certificate's signatures.
const RECEIPT_BYTES: usize = 2_048;

/// Pause before a transaction that nobody accepted is sent again.
const PAUSE: Duration = Duration::from_millis(200);

/// Age up to which a transaction that is under way holds up a question for its receipt.
const EXECUTED_WITHIN: Duration = Duration::from_secs(2);

/// Age of a transaction before which nobody is told that it is executed, but by those who asked
/// already. ethers 6 takes the answers to its questions for a quarter of a second: whoever sends
/// the next one sooner sends it with the nonce of this one.
const RECEIPT_AFTER: Duration = Duration::from_millis(300);

/// Proof of a transaction's place: its request's receipt, and its index among the operations.
pub(super) type Shown = (Arc<Receipt>, usize);

/// Pool of transactions that were sent here and are not executed yet.
#[derive(Debug)]
pub(super) struct Pool {
    connection: Connection,
    chain: Chain,
    genesis: Arc<Genesis>,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    by_hash: B256HashMap<Waiting>,
    by_sender: BTreeMap<Address, BTreeMap<u64, B256>>,
    /// Bytes of the transactions as they were sent.
    bytes: usize,
    receipts: Receipts,
    arrivals: Arrivals,
}

/// The newest, by hash.
#[derive(Debug, Default)]
struct Receipts {
    by_hash: B256HashMap<Shown>,
    order: VecDeque<B256>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    raw: Bytes,
    transaction: Arc<Recovered>,
    stage: Stage,
    since: Instant,
    /// Closed when it is here no more.
    here: watch::Sender<()>,
}

impl Waiting {
    fn new(raw: Bytes, transaction: Recovered) -> Self {
        let transaction = Arc::new(transaction);
        let (since, (here, _)) = (Instant::now(), watch::channel(()));
        Self { raw, transaction, stage: Stage::Held, since, here }
    }

    fn transaction(&self) -> Arc<Recovered> {
        Arc::clone(&self.transaction)
    }

    fn pooled(&self) -> Pooled {
        Pooled { transaction: self.transaction(), bytes: self.raw.len() }
    }
}

/// Progress of a transaction towards its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The transaction waits for others before it, or to be sent again.
    Held,
    /// The transaction is in the order, as far as is known here.
    Sent,
    /// The committee executed it, or another of its nonce; the state here may not have yet.
    Applied,
}

/// A transaction that is not executed yet.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub(super) transaction: Arc<Recovered>,
    pub(super) bytes: usize,
}

impl Pool {
    pub(super) fn new(connection: Connection, chain: Chain, genesis: Arc<Genesis>) -> Arc<Self> {
        Arc::new(Self { connection, chain, genesis, content: Mutex::default() })
    }

    /// Takes a transaction; its hash. Computes, and reads the state.
    pub(super) fn take(self: &Arc<Self>, raw: Bytes) -> Result<B256, Failure> {
        let rules = self.chain.query(&Query::Rules)?;
        let transaction = Recovered::read(&raw, rules).map_err(no_transaction)?;
        let hash = transaction.hash();
        let account = self.chain.account(None, transaction.sender)?;
        self.check(&transaction, &account)?;
        self.check_elsewhere(&transaction)?;
        let waiting = Waiting::new(raw, transaction);
        let sender = waiting.transaction.sender;
        self.content.lock().insert(hash, waiting, account.nonce)?;
        // With the state of now: those before it may have left since it was read.
        self.refresh(sender);
        Ok(hash)
    }

    fn check(&self, transaction: &Recovered, account: &Account) -> Result<(), Failure> {
        let (tx, next) = (&transaction.envelope, account.nonce);
        let nonce = tx.nonce();
        if nonce < next {
            let sender = transaction.sender;
            let text = format!("nonce too low: address {sender}, tx: {nonce} state: {next}");
            return Err(server(text));
        }
        if nonce - next >= AHEAD_MAX {
            let text = format!("nonce too high: {nonce} is more than {AHEAD_MAX} ahead of {next}");
            return Err(server(text));
        }
        transaction.check_terms(&self.genesis, unix_ms()).map_err(server)?;
        if transaction.cost() > account.balance {
            return Err(server("insufficient funds for gas * price + value"));
        }
        Ok(())
    }

    /// Refuses what would use a nonce again that another gateway's uses. The same transaction is
    /// taken: that gateway may have gone.
    fn check_elsewhere(&self, transaction: &Recovered) -> Result<(), Failure> {
        let nonce = transaction.envelope.nonce();
        let of_sender = self.seen(Some(transaction.sender))?;
        let other = of_sender.into_iter().find(|pending| pending.nonce == nonce);
        // What was sent here is in the content, which knows more of it.
        let is_own = |hash: &B256| self.content.lock().by_hash.contains_key(hash);
        match other.map(|other| other.hash) {
            Some(hash) if hash != transaction.hash() && !is_own(&hash) => {
                Err(server("replacement transaction underpriced"))
            }
            _ => Ok(()),
        }
    }

    /// Transactions that the validator has seen and not executed, here or elsewhere.
    fn seen(&self, sender: Option<Address>) -> Result<Vec<PendingTransaction>, Failure> {
        self.chain.under_way(UnderWayQuery::Of(sender))
    }

    /// Sends what follows a sender's account without a gap and was not sent, in order.
    fn advance(self: &Arc<Self>, sender: Address, nonce: u64) {
        let due = self.content.lock().due(sender, nonce);
        for (hash, raw) in due {
            // Submitted here, so that they are in order; a task waits for each result.
            let begun = self.connection.begin(raw);
            let pool = Arc::clone(self);
            tokio::spawn(async move {
                let result = match begun {
                    Ok(begun) => begun.finish().await,
                    Err(error) => Err(error),
                };
                pool.settle(hash, sender, result).await;
            });
        }
    }

    async fn settle(
        self: &Arc<Self>,
        hash: B256,
        sender: Address,
        result: Result<Completed, CallError>,
    ) {
        match result {
            Ok(Completed { outcome: Outcome::Applied(_), receipt, .. }) => {
                self.content.lock().apply(hash, receipt);
            }
            Ok(Completed { outcome: Outcome::Refused(reason), .. }) => {
                let reason = String::from_utf8_lossy(&reason);
                tracing::debug!(%hash, %reason, "a transaction is refused");
                self.content.lock().refuse(hash, &reason);
            }
            Err(error) => {
                tracing::debug!(%hash, %error, "a transaction is sent again");
                tokio::time::sleep(PAUSE).await;
                self.content.lock().put_at(hash, Stage::Held);
            }
        }
        self.refresh(sender);
    }

    /// Looks at a sender's again, now that the state may be another.
    fn refresh(self: &Arc<Self>, sender: Address) {
        match self.chain.account(None, sender) {
            Ok(account) => {
                self.content.lock().prune_below(sender, account.nonce);
                self.advance(sender, account.nonce);
            }
            // The first height of the next run leads here again.
            Err(error) if passes(&error) => {}
            Err(error) => tracing::warn!(%error, "the state cannot be read"),
        }
    }

    /// Looks at those that wait for others or for the state, each time that a height is executed;
    /// for ever.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut heights = self.chain.beside.heights();
        while heights.changed().await.is_ok() {
            let senders = self.content.lock().unsettled();
            if senders.is_empty() {
                continue;
            }
            let pool = Arc::clone(&self);
            let refreshed = tokio::task::spawn_blocking(move || {
                senders.into_iter().for_each(|sender| pool.refresh(sender));
            });
            // Fails only when the runtime ends.
            drop(refreshed.await);
        }
    }

    /// A transaction that waits here, or is under way elsewhere.
    pub(super) fn get(&self, hash: B256) -> Result<Option<Arc<Recovered>>, Failure> {
        let waiting = self.content.lock().by_hash.get(&hash).map(Waiting::transaction);
        if waiting.is_some() {
            return Ok(waiting);
        }
        let seen: Option<PendingTransaction> =
            self.chain.under_way(UnderWayQuery::Transaction(hash))?;
        Ok(seen
            .as_ref()
            .map(PendingTransaction::recovered)
            .transpose()
            .map_err(internal)?
            .map(Arc::new))
    }

    /// Transactions that are under way, here or elsewhere, and those that wait here for others
    /// before them; of a sender or of all, by sender and nonce.
    pub(super) fn transactions(
        &self,
        sender: Option<Address>,
    ) -> Result<(Vec<Pooled>, Vec<Pooled>), Failure> {
        let (pending, queued) = self.content.lock().split(sender);
        let mut pending: BTreeMap<_, _> = pending.into_iter().collect();
        for of_one in self.seen(sender)?.chunk_by(|one, next| one.sender == next.sender) {
            let next = self.chain.account(None, of_one[0].sender)?.nonce;
            // Of those before it views show already what they came to.
            for seen in of_one.iter().filter(|seen| seen.nonce >= next) {
                let Entry::Vacant(place) = pending.entry((seen.sender, seen.nonce)) else {
                    continue;
                };
                let transaction = Arc::new(seen.recovered().map_err(internal)?);
                place.insert(Pooled { transaction, bytes: seen.raw.len() });
            }
        }
        let queued = queued.into_iter().filter(|(place, _)| !pending.contains_key(place));
        let queued = queued.map(|(_, pooled)| pooled).collect();
        Ok((pending.into_values().collect(), queued))
    }

    /// Waits until a transaction that was sent here just now is executed here, or turned out not to
    /// be, and is [`RECEIPT_AFTER`] old. Who asks for a receipt as soon as it has sent gets it with
    /// one question, and need not ask again a moment later, which for most tools is seconds.
    pub(super) async fn settled(&self, hash: &B256) {
        let Some((since, here)) = self.content.lock().under_way(hash) else { return };
        if let Some(mut here) = here {
            // What is closed is executed.
            let _ = timeout_at((since + EXECUTED_WITHIN).into(), here.changed()).await;
        }
        sleep_until((since + RECEIPT_AFTER).into()).await;
    }

    /// Proof of a transaction's place in the order, if it was sent here and not long ago.
    pub(super) fn receipt(&self, hash: &B256) -> Option<Shown> {
        self.content.lock().receipts.by_hash.get(hash).cloned()
    }

    /// The nonce after those that wait without a gap.
    pub(super) fn next_nonce(&self, sender: Address) -> Result<u64, Failure> {
        // Read before the state is: what leaves in between is in that state.
        let mut waiting = self.content.lock().nonces(sender);
        waiting.extend(self.seen(Some(sender))?.iter().map(|seen| seen.nonce));
        waiting.sort_unstable();
        let nonce = self.chain.account(None, sender)?.nonce;
        Ok(next_nonce(&waiting, nonce))
    }
}

/// Transactions by sender and nonce.
type Placed = Vec<((Address, u64), Pooled)>;

impl Content {
    /// Takes a transaction; `next` is its sender's next nonce in the state.
    fn insert(&mut self, hash: B256, waiting: Waiting, next: u64) -> Result<(), Failure> {
        if self.by_hash.contains_key(&hash) {
            return Err(server("already known"));
        }
        let (sender, tx) = (waiting.transaction.sender, &waiting.transaction.envelope);
        let nonce = tx.nonce();
        let (bytes, has_gap) = (waiting.raw.len(), self.has_gap(sender, next, nonce));
        if !self.has_room(bytes, has_gap) {
            self.drop_held_for(HELD_FOR);
            if !self.has_room(bytes, has_gap) {
                return Err(server("txpool is full"));
            }
        }
        let replaced = self.by_sender.get(&sender).and_then(|all| all.get(&nonce)).copied();
        if let Some(replaced) = replaced {
            let old = &self.by_hash[&replaced];
            let least = old.transaction.envelope.max_fee_per_gas().saturating_mul(11) / 10;
            if old.stage != Stage::Held || tx.max_fee_per_gas() <= least {
                return Err(server("replacement transaction underpriced"));
            }
            self.remove(replaced);
        }
        self.arrivals.note(hash, waiting.since, RECEIPT_AFTER);
        self.bytes += waiting.raw.len();
        self.by_sender.entry(sender).or_default().insert(nonce, hash);
        self.by_hash.insert(hash, waiting);
        Ok(())
    }

    /// When a transaction came, if it is here or came just now; and what is closed when it is here
    /// no more, unless it waits for others, which may never come.
    fn under_way(&self, hash: &B256) -> Option<(Instant, Option<watch::Receiver<()>>)> {
        match self.by_hash.get(hash) {
            Some(waiting) if waiting.stage == Stage::Held => None,
            Some(waiting) => Some((waiting.since, Some(waiting.here.subscribe()))),
            None => self.arrivals.of(hash).map(|since| (since, None)),
        }
    }

    /// Transactions of a sender, or of all, that are under way; and those that wait for others.
    fn split(&self, sender: Option<Address>) -> (Placed, Placed) {
        let of = |all: (&Address, &BTreeMap<u64, B256>)| -> Vec<_> {
            let (sender, all) = (*all.0, all.1.iter());
            all.map(|(nonce, hash)| ((sender, *nonce), &self.by_hash[hash])).collect()
        };
        let all: Vec<_> = match sender {
            Some(sender) => {
                self.by_sender.get_key_value(&sender).map(of).into_iter().flatten().collect()
            }
            None => self.by_sender.iter().flat_map(of).collect(),
        };
        let (held, sent): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, waiting)| waiting.stage == Stage::Held);
        let pooled = |all: Vec<((Address, u64), &Waiting)>| {
            all.into_iter().map(|(place, waiting)| (place, waiting.pooled())).collect()
        };
        (pooled(sent), pooled(held))
    }

    /// Tells whether a nonce waits for others that are not here.
    fn has_gap(&self, sender: Address, next: u64, nonce: u64) -> bool {
        next_nonce(&self.nonces(sender), next) < nonce
    }

    fn has_room(&self, bytes: usize, has_gap: bool) -> bool {
        self.by_hash.len() < WAITING_MAX
            && self.bytes + bytes <= WAITING_BYTES_MAX
            && (!has_gap || self.has_room_in_queue(bytes))
    }

    fn has_room_in_queue(&self, bytes: usize) -> bool {
        if self.by_hash.len() < QUEUED_MAX && self.bytes + bytes <= QUEUED_BYTES_MAX {
            return true;
        }
        let held = || self.by_hash.values().filter(|waiting| waiting.stage == Stage::Held);
        let held_bytes: usize = held().map(|waiting| waiting.raw.len()).sum();
        held().count() < QUEUED_MAX && held_bytes + bytes <= QUEUED_BYTES_MAX
    }

    /// Drops transactions that have waited for others for `age` or longer.
    fn drop_held_for(&mut self, age: Duration) {
        let is_old =
            |waiting: &Waiting| waiting.stage == Stage::Held && waiting.since.elapsed() >= age;
        let old = self.by_hash.iter().filter(|(_, waiting)| is_old(waiting));
        let old: Vec<B256> = old.map(|(hash, _)| *hash).collect();
        old.into_iter().for_each(|hash| self.remove(hash));
    }

    /// Takes the transactions that follow without a gap and were not sent, and marks them as sent.
    fn due(&mut self, sender: Address, nonce: u64) -> Vec<(B256, Bytes)> {
        let all = self.by_sender.get(&sender).into_iter().flat_map(|all| all.range(nonce..));
        let row = all.zip(nonce..).take_while(|((at, _), next)| *at == next);
        let row: Vec<B256> = row.map(|((_, hash), _)| *hash).collect();
        let mut due = Vec::new();
        for hash in row {
            let waiting = self.by_hash.get_mut(&hash).expect("both maps hold it");
            if waiting.stage == Stage::Held {
                waiting.stage = Stage::Sent;
                due.push((hash, waiting.raw.clone()));
            }
        }
        due
    }

    /// Nonces of a sender's transactions, in ascending order.
    fn nonces(&self, sender: Address) -> Vec<u64> {
        self.by_sender.get(&sender).into_iter().flat_map(BTreeMap::keys).copied().collect()
    }

    fn apply(&mut self, hash: B256, receipt: Option<Shown>) {
        if let Some(shown) = receipt {
            self.receipts.put(hash, shown);
        }
        self.put_at(hash, Stage::Applied);
    }

    /// Keeps or removes a transaction that the committee refused, by the reason.
    fn refuse(&mut self, hash: B256, reason: &str) {
        let is_of_nonce = reason.starts_with("nonce ");
        if is_of_nonce && reason.contains("too low") {
            // The committee has executed its nonce, perhaps with it; the state here follows.
            self.put_at(hash, Stage::Applied);
        } else if is_of_nonce || reason == "exceeds block gas limit" {
            self.put_at(hash, Stage::Held);
        } else {
            self.remove(hash);
        }
    }

    fn remove(&mut self, hash: B256) {
        let Some(waiting) = self.by_hash.remove(&hash) else { return };
        self.bytes -= waiting.raw.len();
        let sender = waiting.transaction.sender;
        let Some(all) = self.by_sender.get_mut(&sender) else { return };
        all.remove(&waiting.transaction.envelope.nonce());
        if all.is_empty() {
            self.by_sender.remove(&sender);
        }
    }

    fn put_at(&mut self, hash: B256, stage: Stage) {
        if let Some(waiting) = self.by_hash.get_mut(&hash) {
            waiting.stage = stage;
        }
    }

    /// Removes transactions below the account's nonce: executed, or replaced by others. One that
    /// was sent stays until its result comes.
    fn prune_below(&mut self, sender: Address, nonce: u64) {
        let passed = self.by_sender.get(&sender).into_iter().flat_map(|all| all.range(..nonce));
        let passed: Vec<B256> = passed.map(|(_, hash)| *hash).collect();
        for hash in passed {
            if self.by_hash[&hash].stage != Stage::Sent {
                self.remove(hash);
            }
        }
    }

    /// Senders of which something may be sent or forgotten once the state is another.
    fn unsettled(&self) -> Vec<Address> {
        let waits = |hash: &B256| self.by_hash[hash].stage != Stage::Sent;
        let unsettled = self.by_sender.iter().filter(|(_, all)| all.values().any(waits));
        unsettled.map(|(sender, _)| *sender).collect()
    }
}

/// The nonce after those of `waiting`, in ascending order, that follow `nonce` without a gap.
fn next_nonce(waiting: &[u64], nonce: u64) -> u64 {
    let later = waiting.iter().filter(|at| **at >= nonce);
    later.fold(nonce, |next, at| if *at == next { next + 1 } else { next })
}

impl Receipts {
    fn put(&mut self, hash: B256, shown: Shown) {
        self.bytes += receipt_bytes(&shown);
        match self.by_hash.insert(hash, shown) {
            Some(before) => self.bytes -= receipt_bytes(&before),
            None => self.order.push_back(hash),
        }
        while self.order.len() > RECEIPTS || self.bytes > RECEIPTS_BYTES_MAX {
            let oldest = self.order.pop_front().expect("there are some");
            let oldest = self.by_hash.remove(&oldest).expect("both hold it");
            self.bytes -= receipt_bytes(&oldest);
        }
    }
}

/// A transaction's part of the bytes of a receipt, which those of its request share.
fn receipt_bytes((receipt, _): &Shown) -> usize {
    RECEIPT_BYTES + receipt.request.len() / receipt.reply.results.len().max(1)
}

#[cfg(test)]
mod tests;
