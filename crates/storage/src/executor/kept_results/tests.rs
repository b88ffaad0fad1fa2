use super::super::tests::{NEVER, block, named, open, sequences};
use super::{BY_USE, ClientEntry, DROPPED_MIN, load_bytes, session};
use crate::StorageError;
use crate::executor::Executor;
use crate::store::{MemoryStore, Store};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_crypto::IdentitySecret;
use quorate_types::{ClientId, Height, NetworkId, Request};
use std::collections::BTreeMap;

/// Bytes of the one kind of result that these tests leave.
fn result_bytes() -> u64 {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    executor.execute(&block(1, &[named(1, 0)])).expect("works");
    executor.session_entry(named(1, 0).client).kept
}

/// An executor that keeps so many results.
fn keeping(store: &MemoryStore, results: u64) -> Executor {
    let mut executor = open(store, &NEVER);
    executor.kept_bytes_max = results * result_bytes();
    executor
}

impl Executor {
    fn session_entry(&self, client: ClientId) -> ClientEntry {
        ClientEntry::load(client, |key| self.store.get(key)).expect("whole")
    }
}

/// Every entry of a store.
fn entries(store: &mut dyn Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut entries = BTreeMap::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        entries.insert(key.to_vec(), value.to_vec());
        Ok(())
    };
    store.view().expect("read").scan(&mut visit).expect("shown");
    entries
}

#[test]
fn results_of_the_longest_unused_session_go_first() {
    let mut executor = keeping(&MemoryStore::new(), 4);
    let first = [named(1, 0), named(1, 1), named(2, 0)];
    executor.execute(&block(1, &first)).expect("works");
    executor.execute(&block(2, &[named(1, 2)])).expect("works");
    let all = [named(1, 0), named(1, 1), named(1, 2), named(2, 0)];
    let repeats = executor.execute(&block(3, &all)).expect("works");
    assert_eq!(sequences(&repeats), [0, 1, 2, 0], "four are kept");

    executor.execute(&block(4, &[named(3, 0)])).expect("works");
    let repeats = executor.execute(&block(5, &all)).expect("works");
    assert_eq!(sequences(&repeats), [0, 1, 2], "client 2 was silent for longest");
    executor.execute(&block(6, &[named(3, 1)])).expect("works");
    let repeats = executor.execute(&block(7, &[all.as_slice(), &[named(3, 0)]].concat()));
    let repeats = repeats.expect("works");
    assert_eq!(sequences(&repeats), [0], "of a session all go at once");
    assert_eq!(repeats.operations, 0, "and none is executed again");

    let executed = executor.execute(&block(8, &[named(2, 1), named(1, 3)])).expect("works");
    assert_eq!(sequences(&executed), [1, 3], "their sessions go on");
    assert_eq!(executor.session(named(1, 0).client).expect("read").lowest, 4);
}

#[test]
fn a_height_may_leave_more_than_is_kept() {
    let mut executor = keeping(&MemoryStore::new(), 1);
    let all: Vec<Request> = (1..=5).map(|client| named(client, 0)).collect();
    let executed = executor.execute(&block(1, &all)).expect("works");
    assert_eq!(executed.answers.len(), 5, "answered, once");
    let repeats = executor.execute(&block(2, &all)).expect("works");
    assert_eq!((repeats.answers.len(), repeats.operations), (1, 0));
}

/// Results of so many operations of a client's first request.
fn first_of(client: u8, number: u32, operations: usize) -> Request {
    let mut seed = [client; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    let operations = vec![Bytes::from_static(b"!"); operations];
    let secret = IdentitySecret::from_seed(seed);
    Request::sign(&secret, NetworkId::default(), 0, &operations).expect("within limits")
}

/// Where many sessions keep little and a height would keep much, it costs so many sessions at most,
/// and then keeps less.
#[test]
fn what_a_height_drops_is_bounded_by_what_it_orders() {
    let mut executor = open(&MemoryStore::new(), &NEVER);
    let few: Vec<Request> = (0..600).map(|number| first_of(1, number, 1)).collect();
    executor.execute(&block(1, &few)).expect("works");
    let keeps = |executor: &Executor, requests: &[Request]| {
        let entries = requests.iter().map(|request| executor.session_entry(request.client));
        entries.filter(|entry| entry.kept > 0).count()
    };
    assert_eq!(keeps(&executor, &few), 600);
    let each = executor.session_entry(few[0].client).kept;
    executor.kept_bytes_max = 600 * each;

    let much: Vec<Request> = (0..40).map(|number| first_of(2, number, 256)).collect();
    let executed = executor.execute(&block(2, &much)).expect("works");
    assert_eq!(executed.answers.len(), 40, "answered, all of them");
    assert_eq!(keeps(&executor, &few), 600 - DROPPED_MIN);
    let kept = keeps(&executor, &much);
    assert!(0 < kept && kept < 40, "{kept} of what was new");
    let transaction = executor.store.begin().expect("begun");
    assert!(load_bytes(transaction.as_ref()).expect("whole") <= 600 * each);
}

/// Requests of a few clients, some of them repeats, by height.
fn histories() -> impl Strategy<Value = Vec<Vec<Request>>> {
    let request = (1_u8..6, 0_u64..90).prop_map(|(client, sequence)| named(client, sequence));
    prop::collection::vec(prop::collection::vec(request, 0..20), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The figures in the store are true, within the bound, and the same after a restart.
    #[test]
    fn what_is_kept_is_counted(heights in histories(), results in 1_u64..40) {
        let (mut store, mut restarted) = (MemoryStore::new(), MemoryStore::new());
        let mut executor = keeping(&store, results);
        for (height, requests) in (1..).zip(&heights) {
            executor.execute(&block(height, requests)).expect("works");
            let mut other = keeping(&restarted, results);
            other.execute(&block(height, requests)).expect("works");

            let all = entries(&mut store);
            prop_assert_eq!(&all, &entries(&mut restarted));
            let begins_with = |kind: u8| all.iter().filter(move |(key, _)| key[0] == kind);
            let kept: u64 = begins_with(b'r').map(|(_, result)| result.len() as u64).sum();
            let mut transaction = executor.store.begin().expect("begun");
            prop_assert_eq!(load_bytes(transaction.as_mut()).expect("whole"), kept);
            drop(transaction);
            prop_assert!(kept <= executor.kept_bytes_max);

            let mut by_use = begins_with(BY_USE[0]).filter(|(key, _)| key.len() > 1).count();
            for (key, _) in begins_with(b'c') {
                let client = ClientId(quorate_crypto::IdentityKey(*key.last_chunk().expect("32")));
                let entry = executor.session_entry(client);
                let results = begins_with(b'r').filter(|(key, _)| key[1..33] == client.0.0);
                let bytes: u64 = results.map(|(_, value)| value.len() as u64).sum();
                prop_assert_eq!(entry.kept, bytes);
                let is_listed = entry.used_at != Height(0);
                prop_assert_eq!(is_listed, entry.kept > 0);
                by_use -= usize::from(is_listed);
            }
            prop_assert_eq!(by_use, 0, "and nothing else is listed");
        }
    }
}

/// An entry that is listed and keeps nothing is damage, and no reason to go on looking for ever.
#[test]
fn a_listed_session_that_keeps_nothing_is_damage() {
    let mut executor = keeping(&MemoryStore::new(), 1);
    executor.execute(&block(1, &[named(1, 0)])).expect("works");
    let client = named(1, 0).client;
    let mut transaction = executor.store.begin().expect("begun");
    let entry = ClientEntry::load(client, |key| transaction.get(key)).expect("whole");
    let damaged = ClientEntry { kept: 0, ..entry };
    transaction.put(&session::key(client), &damaged.encode()).expect("put");
    transaction.commit(false).expect("committed");
    let error = executor.execute(&block(2, &[named(2, 0)])).expect_err("noticed");
    assert_eq!(error, StorageError::StateDamaged { entry: "order of sessions" });
}
