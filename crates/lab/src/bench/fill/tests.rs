use super::{BATCH, Batches, Filler};
use crate::bench::BenchError;
use crate::bench::config::sample;
use crate::load::measure::OperationResult;
use crate::load::{Answer, Answers, LoadConfig, Operations, Target};
use parking_lot::Mutex;
use quorate_engine::Session;
use quorate_ledger::kv::{Operation, Step};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SESSIONS: usize = 3;

/// A store that does not take every so many-th request, and executes the others at once.
#[derive(Default)]
struct Store {
    turns_away: u64,
    refuses: bool,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    puts: u64,
    requests: u64,
    answers: VecDeque<Answer>,
    waiting_most: usize,
}

#[derive(Clone)]
struct End(Arc<Mutex<Store>>);

impl Target for End {
    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        let mut store = self.0.lock();
        for (mark, operation) in operations {
            store.requests += 1;
            let taken = store.turns_away == 0 || !store.requests.is_multiple_of(store.turns_away);
            let done = OperationResult::Done { at: Instant::now(), refused: store.refuses };
            let result = if taken { done } else { OperationResult::NotTaken };
            if taken {
                store.execute(&operation);
            }
            store.answers.push_back(Answer { session, mark, result });
            store.waiting_most = store.waiting_most.max(store.answers.len());
        }
        true
    }
}

impl Store {
    fn execute(&mut self, operation: &[u8]) {
        let Ok(Operation::Batch(steps)) = Operation::decode(operation) else {
            panic!("a batch");
        };
        assert!(steps.len() as u64 <= BATCH);
        for step in steps {
            let Step::Put { key, value } = step else { panic!("a put") };
            self.values.insert(key.to_vec(), value.to_vec());
            self.puts += 1;
        }
    }
}

impl Answers for End {
    fn next(&mut self, _: Duration) -> Option<Answer> {
        self.0.lock().answers.pop_front()
    }
}

/// Fills a store; how many keys were heard of last, what became of it, and the store.
fn fill(keys: u64, store: Store) -> (u64, u64, Result<(), BenchError>, Arc<Mutex<Store>>) {
    let end = End(Arc::new(Mutex::new(store)));
    let load = LoadConfig { keys, ..sample().load };
    let mut filler = Filler::new(end.clone(), end.clone(), Batches::of(&load));
    let mut last = 0;
    let result = filler.run(&mut |done| {
        assert!(done >= last);
        last = done;
        Ok(())
    });
    (last, filler.retried, result, end.0)
}

#[test]
fn every_key_is_put_once_whatever_is_turned_away() {
    for (keys, turns_away) in [(1, 0), (BATCH, 0), (10_001, 0), (10_001, 3), (1_000, 2)] {
        let (heard, retried, result, store) = fill(keys, Store { turns_away, ..Store::default() });
        let store = store.lock();
        assert!(result.is_ok());
        assert_eq!((heard, store.puts), (keys, keys), "turned away: {turns_away}");
        assert_eq!(store.values.len() as u64, keys, "each key once");
        assert_eq!(retried, store.requests - keys.div_ceil(BATCH));
        assert_eq!(retried > 0, turns_away > 0);
        let last = format!("{:012x}", keys - 1);
        let value = &store.values[last.as_bytes()];
        assert_eq!(value.len(), 512 - 22, "an operation of the load has as many bytes");
        assert!(store.waiting_most <= SESSIONS * Session::WINDOW as usize);
    }
}

#[test]
fn values_differ_and_are_the_same_each_time() {
    let load = LoadConfig { keys: 1_000, ..sample().load };
    let (mut one, mut other) = (Batches::of(&load), Batches::of(&load));
    let forth: Vec<_> = (0..one.count()).map(|number| one.operation(number)).collect();
    let back: Vec<_> = (0..other.count()).rev().map(|number| other.operation(number)).collect();
    assert!(forth.iter().eq(back.iter().rev()));
    assert!(forth.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn what_the_store_refuses_is_an_error() {
    let (_, _, result, _) = fill(500, Store { refuses: true, ..Store::default() });
    let said = result.unwrap_err().to_string();
    assert_eq!(
        said,
        "the state was not filled: 0 of 500 keys were put, then the store refused a batch"
    );
}

#[test]
fn whoever_hears_of_it_may_end_it() {
    let end = End(Arc::default());
    let mut filler = Filler::new(end.clone(), end, Batches::of(&sample().load));
    let result = filler.run(&mut |_| Err(BenchError::Interrupted));
    assert!(matches!(result, Err(BenchError::Interrupted)));
}
