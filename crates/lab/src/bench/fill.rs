//! A full state before the load: every key is put once.
//!
//! In batches, one request each, by sessions of their own in a closed loop: each has as many
//! requests under way as it takes, and what is not taken is brought again. Keys come in an order
//! that is not theirs. The state grows meanwhile from nothing to all keys.

use super::committee::Committee;
use super::config::BenchConfig;
use super::{BenchError, Progress, sessions};
use crate::load::measure::OperationResult;
use crate::load::sessions::ends;
use crate::load::{Answer, Answers, LoadConfig, PUT_BYTES, Shape, TICK, Target, key_of};
use crate::written::Written;
use bytes::Bytes;
use quorate_engine::Session;
use quorate_ledger::kv::{Operation, Step};
use quorate_report::results::beside::Filled;
use quorate_report::text::thousands;
use quorate_types::Committee as Members;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Puts of a request.
const BATCH: u64 = 64;

/// Keys follow one another at this distance. It is prime and above the number of keys, so that each
/// comes once.
const STRIDE: u64 = 2_654_435_761;

/// Sessions, and no fewer than members, so that each member is the first of one.
const SESSIONS_MIN: usize = 4;

/// A committee that answers nothing for so long will not be full.
const SILENCE: Duration = Duration::from_secs(60);

/// Puts every key, and waits until every validator has executed that.
pub(super) fn fill(
    config: &BenchConfig,
    committee: &mut Committee,
    members: &Arc<Members>,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Filled, BenchError> {
    let count = SESSIONS_MIN.max(members.size());
    let load = LoadConfig { shape: Shape::Closed, sessions: Some(count), ..config.load.clone() };
    let mine = BenchConfig { load, ..config.clone() };
    let client = sessions::open_for_single(&mine, Arc::clone(members))?;
    let (target, answers) = ends(&client, count);
    drop(client);
    let keys = config.load.keys;
    let written = Written::beneath(committee.folder());
    let (began, mut shown) = (Instant::now(), None);
    let mut filler = Filler::new(target, answers, Batches::of(&config.load));
    let put = filler.run(&mut |done| {
        let second = began.elapsed().as_secs();
        if shown.replace(second) == Some(second) {
            return Ok(());
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        committee.check_alive()?;
        let rate = done as f64 / began.elapsed().as_secs_f64();
        let [done, keys, rate] = [done, keys, rate as u64].map(thousands);
        progress.tick(second, format!("filling the state: {done} of {keys} keys, {rate} puts/s"));
        Ok(())
    });
    put?;
    let level = committee.await_level("the state was filled", interrupted)?;
    let seconds = level.duration_since(began).as_secs_f64();
    let each = (keys * u64::from(config.processes())) as f64;
    let written = written.since().map(|bytes| (bytes / each).round());
    let (puts_tps, retried) = ((keys as f64 / seconds).round(), filler.retried);
    let seconds = (seconds * 1_000.0).round() / 1_000.0;
    Ok(Filled { keys, batch: BATCH, seconds, puts_tps, retried, written_bytes_per_key: written })
}

/// The puts of all keys, in batches.
struct Batches {
    keys: u64,
    value_bytes: usize,
    random: ChaCha8Rng,
}

impl Batches {
    fn of(load: &LoadConfig) -> Self {
        let value_bytes = load.tx_bytes.saturating_sub(PUT_BYTES);
        Self { keys: load.keys, value_bytes, random: ChaCha8Rng::seed_from_u64(load.seed) }
    }

    fn count(&self) -> u64 {
        self.keys.div_ceil(BATCH)
    }

    /// Keys in the first so many.
    fn keys_in(&self, batches: u64) -> u64 {
        self.keys.min(batches * BATCH)
    }

    fn operation(&mut self, number: u64) -> Bytes {
        // As often as it is made it is the same.
        self.random.set_stream(number);
        self.random.set_word_pos(0);
        let places = number * BATCH..self.keys_in(number + 1);
        let put = |place: u64| {
            let key = u128::from(place) * u128::from(STRIDE) % u128::from(self.keys);
            let mut value = vec![0; self.value_bytes];
            self.random.fill_bytes(&mut value);
            Step::put(key_of(u64::try_from(key).expect("below the number of keys")), value)
        };
        Operation::batch(places.map(put)).encode()
    }
}

/// A closed loop that brings each batch until it is executed.
struct Filler<T, A> {
    target: T,
    answers: A,
    batches: Batches,
    next: u64,
    again: VecDeque<u64>,
    /// Batches of each session that are under way.
    under_way: Vec<u64>,
    done: u64,
    retried: u64,
}

impl<T: Target, A: Answers> Filler<T, A> {
    fn new(target: T, answers: A, batches: Batches) -> Self {
        let under_way = vec![0; target.sessions()];
        let again = VecDeque::new();
        Self { target, answers, batches, next: 0, again, under_way, done: 0, retried: 0 }
    }

    /// Brings all; `hear` gets the number of keys that were put so far.
    fn run(
        &mut self,
        hear: &mut dyn FnMut(u64) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let mut heard = Instant::now();
        while self.done < self.batches.count() {
            self.offer();
            if let Some(first) = self.answers.next(10 * TICK) {
                let before = self.done;
                self.take_in(first)?;
                if self.done > before {
                    heard = Instant::now();
                }
            }
            if heard.elapsed() >= SILENCE {
                let seconds = SILENCE.as_secs();
                return Err(self.failed(format!("nothing was put for {seconds} s")));
            }
            hear(self.batches.keys_in(self.done))?;
        }
        Ok(())
    }

    fn offer(&mut self) {
        for session in 0..self.under_way.len() {
            while self.under_way[session] < Session::WINDOW {
                let Some(number) = self.next_batch() else { return };
                let operation = self.batches.operation(number);
                if !self.target.submit(session, vec![(number, operation)]) {
                    self.again.push_back(number);
                    return;
                }
                self.under_way[session] += 1;
            }
        }
    }

    fn next_batch(&mut self) -> Option<u64> {
        let again = self.again.pop_front();
        let fresh = again.is_none() && self.next < self.batches.count();
        self.next += u64::from(fresh);
        again.or_else(|| fresh.then(|| self.next - 1))
    }

    /// Takes in an answer and those that came with it.
    fn take_in(&mut self, first: Answer) -> Result<(), BenchError> {
        let (mut answer, mut is_full) = (Some(first), false);
        while let Some(Answer { session, mark, result }) = answer {
            self.under_way[session] -= 1;
            match result {
                OperationResult::Done { refused: false, .. } => self.done += 1,
                OperationResult::Done { refused: true, .. } => {
                    return Err(self.failed("the store refused a batch".to_owned()));
                }
                OperationResult::NotTaken => {
                    self.again.push_back(mark);
                    self.retried += 1;
                    is_full = true;
                }
            }
            answer = self.answers.next(Duration::ZERO);
        }
        if is_full {
            thread::sleep(TICK);
        }
        Ok(())
    }

    fn failed(&self, reason: String) -> BenchError {
        let done = self.batches.keys_in(self.done);
        BenchError::Fill { done, keys: self.batches.keys, reason }
    }
}

#[cfg(test)]
mod tests;
