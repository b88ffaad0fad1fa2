//! The executor: a service behind a session table, exactly once (★).
//!
//! A block is executed in one transaction of the store: the service's state, the sessions, the
//! height with its decided record and root. A crash therefore leaves all of a height or nothing of
//! it. Commits are in memory until a checkpoint of the store has them, which is written while later
//! heights execute. After a crash the log replays the heights that the store lost, and since
//! execution is deterministic they come to the same roots.
//!
//! # What is in the store
//!
//! | key | value |
//! |---|---|
//! | `d` ‖ height (big-endian) | its decided record, for the last 512 heights |
//! | `e` | how far execution came ([`ExecutedUpTo`], the session root, the service's name) |
//! | `c` ‖ client | its [`Session`], what its kept results take, and when it was used last |
//! | `r` ‖ client ‖ sequence (big-endian) | a completed request's height and results |
//! | `o` ‖ height (big-endian) ‖ client | a session with kept results, by its last use |
//! | `o` | bytes of all kept results |
//! | `s` ‖ key | the service's own |
//!
//! The log may lose the decided records of its unsynced end, and the store may become durable past
//! them. The records kept here fill that hole when the log is opened; without them a height could
//! be executed everywhere and served by nobody after a power cut of the whole committee.
//!
//! # The root
//!
//! [`Header`] says what a height's root covers. The session root chains over the blocks:
//! `H(previous session root, changed sessions in the order of their clients, the requests' root)`.
//! It depends on the history, as cheap as the change is small; two replicas that executed the same
//! blocks agree on it.
//!
//! # Snapshots
//!
//! A snapshot holds the keys `c`, `r`, `o` and `s` as they are, and the figures of `e` in its
//! manifest; not what differs from replica to replica, the decided records with their certificates.
//! Neither root can be computed from it: whoever installs one relies on members that vouch for it.

mod kept_results;
mod session;
mod snapshot;
mod view;

pub use session::Session;
pub use snapshot::SnapshotJob;
pub use view::StateView;

use crate::StorageError;
use crate::history::{Before, StateHistory, Writing};
use crate::store::{Checkpoint, Store, Transaction};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use kept_results::ClientEntry;
use quorate_crypto::merkle::Tree;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, hash_parts};
use quorate_types::executed::Completion;
use quorate_types::machine::{Block, DecidedRecord, Executed, ExecutedUpTo, QueryResult};
use quorate_types::request::Answer;
use quorate_types::service::{
    BlockContext, IndexEntries, KeyRange, Operation, Outcome, Reader, Remembered, Service, State,
    StateError, Visitor,
};
use quorate_types::{ClientId, Header, Height, Request, Results};
use session::{CompletedResult, RequestStatus};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

const EXECUTED: &[u8] = b"e";
const SERVICE: u8 = b's';
const DECIDED: u8 = b'd';
/// Heights whose decided records are kept: twice as many as may be undurable.
const DECIDED_KEPT: u64 = 512;
/// Bytes of changes that the store and a history may hold in memory before a checkpoint is due; as
/// many again may come while that is written.
const PENDING_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Schedule of an executor's checkpoints.
///
/// Each is written while the heights up to the next one execute; one that is due waits for the one
/// before, and execution with it. Not durable are therefore at most twice as many heights and bytes
/// as are told here, and so many are replayed after a crash.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutorConfig {
    /// Every so many heights a checkpoint is begun.
    pub durable_every: u64,
    /// A checkpoint is also due when the bodies executed since the last one began have so many
    /// bytes.
    pub durable_bytes: u64,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        Self { durable_every: 128, durable_bytes: 16 * 1024 * 1024 }
    }
}

/// A service with its sessions and its store.
pub struct Executor {
    store: Box<dyn Store>,
    service: Box<dyn Service>,
    config: ExecutorConfig,
    record: Option<ExecutedRecord>,
    /// Heights and bytes executed since the last checkpoint began.
    heights_pending: u64,
    bytes_pending: u64,
    /// Checkpoint that may be on its way, and the height that it is of.
    checkpoint: Option<(Height, Checkpoint)>,
    durable: Height,
    failure: Option<StorageError>,
    /// Most bytes of kept results: a constant, but for tests.
    kept_bytes_max: u64,
    history: Option<Writing>,
}

/// Entry that is stored under [`EXECUTED`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct ExecutedRecord {
    service: String,
    header: Header,
    operations: u64,
    decided: Vec<u8>,
}

impl ExecutedRecord {
    fn executed(&self) -> ExecutedUpTo {
        ExecutedUpTo {
            header: self.header,
            decided: Bytes::copy_from_slice(&self.decided),
            operations: self.operations,
            recent: Vec::new(),
        }
    }
}

impl Executor {
    /// Opens a store, and says how far it came.
    ///
    /// # Errors
    /// [`StorageError::OtherService`] and [`StorageError::StateDamaged`] when the store is not this
    /// service's; [`StorageError::State`] when it cannot be read.
    pub fn open(
        store: Box<dyn Store>,
        service: Box<dyn Service>,
        config: ExecutorConfig,
    ) -> Result<(Self, Option<ExecutedUpTo>), StorageError> {
        let record = load_record(store.as_ref())?;
        if let Some(record) = &record
            && record.service != service.name()
        {
            return Err(StorageError::OtherService {
                found: record.service.clone(),
                configured: service.name().to_owned(),
                height: record.header.height,
            });
        }
        let durable = record.as_ref().map_or(Height(0), |record| record.header.height);
        let (mut store, mut service) = (store, service);
        if record.is_none() {
            fill(store.as_mut(), service.as_mut())?;
        }
        let mut executor = Self {
            store,
            service,
            config,
            record,
            heights_pending: 0,
            bytes_pending: 0,
            checkpoint: None,
            durable,
            failure: None,
            kept_bytes_max: kept_results::BYTES_MAX,
            history: None,
        };
        executor.open_service(executor.record.as_ref().map(|record| record.header))?;
        let mut executed = executor.executed();
        if let Some(executed) = &mut executed {
            executed.recent = load_recent(executor.store.as_ref(), executed.height())?;
        }
        Ok((executor, executed))
    }

    /// Has a history kept from now on of what the service's state was, of the keys that the service
    /// chooses ([`Service::remembered`]).
    pub fn keep_history(&mut self, history: Arc<dyn StateHistory>) {
        history.begin(self.height());
        self.history = Some(Writing(history));
    }

    /// Returns `true` if the service's reader may be asked of past states.
    #[must_use]
    pub fn is_asked_of_the_past(&self) -> bool {
        self.service.remembered().is_some()
    }

    /// History of the state, where one is kept.
    #[must_use]
    pub fn history(&self) -> Option<Arc<dyn StateHistory>> {
        self.history.as_ref().map(|Writing(history)| Arc::clone(history))
    }

    /// Height that execution came to, durably or not; `None` before any.
    #[must_use]
    pub fn executed(&self) -> Option<ExecutedUpTo> {
        self.record.as_ref().map(ExecutedRecord::executed)
    }

    /// Executes the next height.
    ///
    /// Every request that its client had not completed is executed, whole and in the block's order;
    /// operations that the service does not admit are refused with its reason. A repeat is not
    /// executed: its first answer goes out again, if it is still kept ([`Session`] says when it
    /// is).
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails, and the same for ever after.
    ///
    /// # Panics
    /// When the height is not the next one, or the service does not give one outcome for each
    /// operation: going on would part this replica from the others.
    pub fn execute(&mut self, block: &Block) -> Result<Executed, StorageError> {
        assert_eq!(block.height(), self.height().next(), "heights execute one after the other");
        self.check()?;
        let result = self.execute_block(block);
        let (record, executed) = self.settle(result)?;
        self.record = Some(record);
        self.heights_pending += 1;
        self.bytes_pending += block.bodies.iter().map(|body| body.raw.len() as u64).sum::<u64>();
        if self.is_checkpoint_due() {
            self.begin_checkpoint()?;
        }
        self.look_at_checkpoint()?;
        Ok(executed)
    }

    /// The height up to which everything is durable.
    #[must_use]
    pub fn durable(&self) -> Height {
        self.durable
    }

    fn height(&self) -> Height {
        self.record.as_ref().map_or(Height(0), |record| record.header.height)
    }

    /// Begins to make durable what was executed so far; waits for the checkpoint before.
    fn begin_checkpoint(&mut self) -> Result<(), StorageError> {
        self.await_checkpoint()?;
        let begun = match self.history() {
            Some(history) => self.store.checkpoint_after(Box::new(move || history.make_durable())),
            None => self.store.checkpoint(),
        };
        let begun = begun.map_err(StorageError::from);
        let checkpoint = self.settle(begun)?;
        self.checkpoint = Some((self.height(), checkpoint));
        (self.heights_pending, self.bytes_pending) = (0, 0);
        Ok(())
    }

    fn await_checkpoint(&mut self) -> Result<(), StorageError> {
        let ended = self.checkpoint.as_ref().map(|(_, checkpoint)| checkpoint.wait());
        ended.map_or(Ok(()), |outcome| self.end_checkpoint(outcome))
    }

    /// Returns `true` while a checkpoint may be on its way.
    #[must_use]
    pub fn is_checkpoint_under_way(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Takes note of a checkpoint that is over by now.
    ///
    /// # Errors
    /// [`StorageError::State`] when it failed, and the same for ever after.
    pub fn look_at_checkpoint(&mut self) -> Result<(), StorageError> {
        let outcome = |(_, checkpoint): &(Height, Checkpoint)| {
            let early = mutants::active(Mutant::DurableEarly).then_some(Ok(()));
            early.or_else(|| checkpoint.outcome())
        };
        let ended = self.checkpoint.as_ref().and_then(outcome);
        ended.map_or(Ok(()), |outcome| self.end_checkpoint(outcome))
    }

    fn end_checkpoint(&mut self, outcome: Result<(), StateError>) -> Result<(), StorageError> {
        self.settle(outcome.map_err(StorageError::from))?;
        if let Some((height, _)) = self.checkpoint.take() {
            self.durable = height;
        }
        Ok(())
    }

    /// Makes everything executed so far durable, and waits for it.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails, and the same for ever after.
    pub fn make_durable(&mut self) -> Result<(), StorageError> {
        self.check()?;
        if self.heights_pending > 0 {
            self.begin_checkpoint()?;
        }
        self.await_checkpoint()
    }

    /// Reads the service's state as of the executed height; what is in it is the service's to say.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn query<T>(
        &self,
        read: impl FnOnce(&dyn State) -> Result<T, StateError>,
    ) -> Result<T, StorageError> {
        self.check()?;
        Ok(read(&Committed { store: self.store.as_ref() })?)
    }

    /// Puts a query of the state to the service, as of the executed height: its answer with a
    /// proof, or why there is none, and the height's header. `None` before anything was executed.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn answer(&self, query: &[u8]) -> Result<Option<QueryResult>, StorageError> {
        self.check()?;
        let Some(record) = &self.record else { return Ok(None) };
        let state = Committed { store: self.store.as_ref() };
        let answer = self.service.query(&state, query)?;
        Ok(Some(QueryResult { header: record.header, answer }))
    }

    /// The state as of the executed height, for reading on other threads.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn view(&mut self) -> Result<StateView, StorageError> {
        self.check()?;
        Ok(StateView { height: self.height(), view: self.store.view()?, history: self.history() })
    }

    /// Reader that answers queries of views; `None` if the service has none.
    #[must_use]
    pub fn reader(&self) -> Option<Arc<dyn Reader>> {
        self.service.reader()
    }

    /// Shows the service its state, and compares that with what the last height came to.
    fn open_service(&mut self, header: Option<Header>) -> Result<(), StorageError> {
        let state = Committed { store: self.store.as_ref() };
        self.service.open(&state)?;
        let is_whole = match header {
            Some(header) => self.service.root(&state)? == header.state,
            None => true,
        };
        is_whole.then_some(()).ok_or(StorageError::StateDamaged { entry: "service's state" })
    }

    /// Session of a client: the requests of it that took effect.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn session(&self, client: ClientId) -> Result<Session, StorageError> {
        self.check()?;
        Ok(ClientEntry::load(client, |key| self.store.get(key))?.session)
    }

    /// Returns `true` if the root of the last height stands for all of the service's state, read
    /// anew.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn is_whole(&self) -> Result<bool, StorageError> {
        self.check()?;
        Ok(self.service.is_whole(&Committed { store: self.store.as_ref() })?)
    }

    /// Number of clients of whom a request took effect.
    ///
    /// # Errors
    /// [`StorageError::State`] when the store fails.
    pub fn sessions(&self) -> Result<u64, StorageError> {
        self.check()?;
        let (from, to) = ([session::FIRST], [session::FIRST + 1]);
        let mut sessions = 0;
        self.store.scan(KeyRange { from: &from, to: Some(&to) }, &mut |_, _| {
            sessions += 1;
            ControlFlow::Continue(())
        })?;
        Ok(sessions)
    }

    /// Height that execution came to as a store has it, whatever its service; `None` before any.
    ///
    /// # Errors
    /// [`StorageError::StateDamaged`] and [`StorageError::State`] when it cannot be read.
    pub fn height_in(store: &dyn Store) -> Result<Option<Height>, StorageError> {
        Ok(load_record(store)?.map(|record| record.header.height))
    }

    fn check(&self) -> Result<(), StorageError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn settle<T>(&mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        result.inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// Time does not go backwards for a service, though what fills a slot that nothing was decided
    /// for has no time, and slots of several views were stamped by several clocks.
    fn stamp_of(&self, block: &Block) -> u64 {
        let before = self.record.as_ref().map_or(0, |before| before.header.proposed_at_ms);
        block.payload.header.proposed_at_ms.max(before)
    }

    fn is_checkpoint_due(&self) -> bool {
        let history = self.history.as_ref();
        let of_history = history.map_or(0, |Writing(history)| history.pending_bytes());
        self.heights_pending >= self.config.durable_every
            || self.bytes_pending >= self.config.durable_bytes
            || self.store.pending_bytes() + of_history >= PENDING_BYTES_MAX
    }

    fn execute_block(&mut self, block: &Block) -> Result<(ExecutedRecord, Executed), StorageError> {
        let context = BlockContext { height: block.height(), proposed_at_ms: self.stamp_of(block) };
        let mut transaction = self.store.begin()?;
        let sorted = sort_requests(transaction.as_ref(), block)?;
        let keeps = |Writing(history): &Writing| history.oldest().is_some();
        let remembered =
            self.history.as_ref().filter(|it| keeps(it)).and_then(|_| self.service.remembered());
        let mut state = ServiceState::new(transaction.as_mut(), remembered);
        let outcomes = execute_requests(self.service.as_mut(), &mut state, context, &sorted.fresh)?;
        let (before, index) = (mem::take(&mut state.before), mem::take(&mut state.index));
        let state = self.service.root(&state)?;
        if mutants::active(Mutant::SplitCommit) {
            transaction.commit(true)?;
            transaction = self.store.begin()?;
        }

        let mut clients = sorted.clients;
        let kept_before = kept_results::kept_by(&clients);
        let mut answers = sorted.repeats;
        let mut leaves = Vec::with_capacity(outcomes.len());
        for ((index, request), results) in (0..).zip(&sorted.fresh).zip(outcomes) {
            let result = CompletedResult::new(block.height(), Results::new(results));
            leaves.push(completion(request, &result).leaf(block.height(), index));
            let client = clients.get_mut(&request.client).expect("sorted with its entry");
            client.complete(transaction.as_mut(), request, &result)?;
            answers.push((request, result, Some(index)));
        }
        let requests = Tree::new(&leaves).root();
        let header = Header {
            height: block.height(),
            proposed_at_ms: context.proposed_at_ms,
            state,
            sessions: session_root(
                self.record.as_ref().map_or(Digest::ZERO, |record| record.header.sessions),
                &clients,
                requests,
            ),
            requests,
        };
        if !clients.is_empty() && !mutants::active(Mutant::ForgetSessions) {
            let (height, bytes_max) = (block.height(), self.kept_bytes_max);
            kept_results::store(transaction.as_mut(), height, &clients, kept_before, bytes_max)?;
        }
        let operations = sorted.fresh.iter().map(|request| request.operations.len() as u64).sum();
        let record = ExecutedRecord {
            service: self.service.name().to_owned(),
            header,
            operations: operations + self.record.as_ref().map_or(0, |before| before.operations),
            decided: block.decided.to_vec(),
        };
        let encoded = borsh::to_vec(&record).expect("encoding into memory cannot fail");
        transaction.put(EXECUTED, &encoded)?;
        transaction.put(&decided_key(block.height()), &block.decided)?;
        if let Some(old) = block.height().0.checked_sub(DECIDED_KEPT) {
            transaction.delete(&decided_key(Height(old)))?;
        }
        transaction.commit(false)?;
        if let Some(Writing(history)) = &self.history {
            history.record(block.height(), before, index);
        }

        let answers = answers.into_iter().filter_map(answer).collect();
        Ok((record, Executed { header, leaves, answers, operations }))
    }
}

/// Writes the service's beginning, before anything is executed. A crash in between leaves none of
/// it.
fn fill(store: &mut dyn Store, service: &mut dyn Service) -> Result<(), StorageError> {
    let mut transaction = store.begin()?;
    let mut state = ServiceState::new(transaction.as_mut(), None);
    service.genesis(&mut state)?;
    if state.is_changed {
        transaction.commit(true)?;
    }
    Ok(())
}

/// A block's requests by what is to be done with them.
struct Sorted<'a> {
    /// Requests to be executed, in the block's order.
    fresh: Vec<&'a Request>,
    /// Executed before, and the answer is still there.
    repeats: Vec<Completed<'a>>,
    /// The clients in `fresh`, as they were before.
    clients: BTreeMap<ClientId, ClientEntry>,
}

/// A request with what it came to, and its place at this height if it took effect here.
type Completed<'a> = (&'a Request, CompletedResult, Option<u32>);

/// Deduplicates in the block's order.
fn sort_requests<'a>(
    transaction: &dyn Transaction,
    block: &'a Block,
) -> Result<Sorted<'a>, StorageError> {
    let mut sorted = Sorted { fresh: Vec::new(), repeats: Vec::new(), clients: BTreeMap::new() };
    // The sessions as they will be after what was seen of the block so far.
    let mut ahead: BTreeMap<ClientId, Session> = BTreeMap::new();
    let mut answered = BTreeSet::new();
    for request in block.bodies.iter().flat_map(|body| &body.requests) {
        let client = request.client;
        let session = match ahead.entry(client) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let stored = ClientEntry::load(client, |key| transaction.get(key))?;
                sorted.clients.insert(client, stored);
                entry.insert(stored.session)
            }
        };
        match session.status(request.sequence) {
            RequestStatus::Fresh => {
                session.mark(request.sequence);
                answered.insert((client, request.sequence));
                sorted.fresh.push(request);
            }
            RequestStatus::Completed => {
                if mutants::active(Mutant::ExecuteTwice) {
                    sorted.fresh.push(request);
                } else if answered.insert((client, request.sequence))
                    && let Some(result) = CompletedResult::load(transaction, request)?
                {
                    sorted.repeats.push((request, result, None));
                }
            }
            RequestStatus::TooFarAhead => {}
        }
    }
    let executing: BTreeSet<ClientId> = sorted.fresh.iter().map(|request| request.client).collect();
    sorted.clients.retain(|client, _| executing.contains(client));
    Ok(sorted)
}

/// Executes the admitted operations of all requests in one call; one list of outcomes for each
/// request.
fn execute_requests(
    service: &mut dyn Service,
    state: &mut dyn State,
    context: BlockContext,
    requests: &[&Request],
) -> Result<Vec<Vec<Outcome>>, StateError> {
    let operations = requests.iter().flat_map(|request| {
        let client = request.client;
        request.operations.iter().map(move |bytes| Operation { client, bytes })
    });
    let (mut admitted, mut refusals) = (Vec::new(), Vec::new());
    for operation in operations {
        match service.admit(operation) {
            Ok(()) => {
                admitted.push(operation);
                refusals.push(None);
            }
            Err(reason) => refusals.push(Some(Outcome::Refused(Bytes::from(reason)))),
        }
    }
    let outcomes = service.execute(state, context, &admitted)?;
    assert_eq!(
        outcomes.len(),
        admitted.len(),
        "{}: one outcome for each operation",
        service.name()
    );
    let mut outcomes = outcomes.into_iter();
    let mut all = refusals
        .into_iter()
        .map(|refusal| refusal.unwrap_or_else(|| outcomes.next().expect("counted above")));
    Ok(requests
        .iter()
        .map(|request| all.by_ref().take(request.operations.len()).collect())
        .collect())
}

/// The session root after these clients' requests took effect.
fn session_root(
    before: Digest,
    changed: &BTreeMap<ClientId, ClientEntry>,
    requests: Digest,
) -> Digest {
    if changed.is_empty() {
        return before;
    }
    let mut entries = Vec::new();
    for (client, entry) in changed {
        entries.extend_from_slice(&client.0.0);
        entries.extend_from_slice(&entry.session.encode());
    }
    hash_parts("quorate v1 session root", &[&before.0, &entries, &requests.0])
}

fn completion(request: &Request, result: &CompletedResult) -> Completion {
    Completion {
        client: request.client,
        sequence: request.sequence,
        request: request.digest(),
        results: result.digest,
    }
}

fn answer((request, result, index): Completed<'_>) -> Option<Answer> {
    let CompletedResult { height, results, .. } = result;
    let results = results?;
    Some(Answer { client: request.client, sequence: request.sequence, height, results, index })
}

fn load_record(store: &dyn Store) -> Result<Option<ExecutedRecord>, StorageError> {
    let Some(bytes) = store.get(EXECUTED)? else {
        return Ok(None);
    };
    let damaged = |_| StorageError::StateDamaged { entry: "executed height" };
    ExecutedRecord::try_from_slice(&bytes).map(Some).map_err(damaged)
}

fn decided_key(height: Height) -> [u8; 9] {
    let mut key = [DECIDED; 9];
    key[1..].copy_from_slice(&height.0.to_be_bytes());
    key
}

fn load_recent(store: &dyn Store, last: Height) -> Result<Vec<DecidedRecord>, StorageError> {
    let first = last.0.saturating_sub(DECIDED_KEPT - 1).max(1);
    let mut records = Vec::new();
    for height in (first..=last.0).map(Height) {
        if let Some(bytes) = store.get(&decided_key(height))? {
            records.push(DecidedRecord { height, bytes: Bytes::from(bytes) });
        }
    }
    Ok(records)
}

fn service_key(key: &[u8]) -> Vec<u8> {
    let mut prefixed = Vec::with_capacity(1 + key.len());
    prefixed.push(SERVICE);
    prefixed.extend_from_slice(key);
    prefixed
}

/// Shows the service its own keys between these.
fn scan_service(
    keys: KeyRange<'_>,
    visit: &mut Visitor<'_>,
    scan: impl FnOnce(KeyRange<'_>, &mut Visitor<'_>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let (from, to) = (service_key(keys.from), keys.to.map(service_key));
    let to = to.unwrap_or_else(|| vec![SERVICE + 1]);
    let keys = KeyRange { from: &from, to: Some(&to) };
    scan(keys, &mut |key, value| visit(&key[1..], value))
}

/// The service's part of a transaction.
struct ServiceState<'a, 'b> {
    transaction: &'a mut (dyn Transaction + 'b),
    is_changed: bool,
    /// Chooses the keys of which a history keeps what they were, where there is one.
    remembered: Option<Remembered>,
    /// Values of those keys before they were changed here.
    before: Before,
    /// What is added to the index.
    index: IndexEntries,
}

impl<'a, 'b> ServiceState<'a, 'b> {
    fn new(transaction: &'a mut (dyn Transaction + 'b), remembered: Option<Remembered>) -> Self {
        let (before, index) = Default::default();
        Self { transaction, is_changed: false, remembered, before, index }
    }

    /// Notes what a key is before it is changed for the first time.
    fn remember(&mut self, key: &[u8], stored: &[u8]) -> Result<(), StateError> {
        if self.remembered.is_some_and(|is_remembered| is_remembered(key))
            && !self.before.contains_key(key)
        {
            self.before.insert(key.to_vec(), self.transaction.get(stored)?);
        }
        Ok(())
    }
}

impl State for ServiceState<'_, '_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.transaction.get(&service_key(key))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.is_changed = true;
        let stored = service_key(key);
        self.remember(key, &stored)?;
        self.transaction.put(&stored, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.is_changed = true;
        let stored = service_key(key);
        self.remember(key, &stored)?;
        self.transaction.delete(&stored)
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        scan_service(keys, visit, |keys, visit| self.transaction.scan(keys, visit))
    }

    /// It is kept with the history.
    fn index_entries(&mut self) -> Option<&mut IndexEntries> {
        self.remembered.map(|_| &mut self.index)
    }
}

/// The service's part of what is committed; for reading.
struct Committed<'a> {
    store: &'a dyn Store,
}

impl State for Committed<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.store.get(&service_key(key))
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a query cannot write".into()))
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a query cannot write".into()))
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        scan_service(keys, visit, |keys, visit| self.store.scan(keys, visit))
    }
}

#[cfg(test)]
mod tests;
