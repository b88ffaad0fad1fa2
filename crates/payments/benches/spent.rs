//! Maps that a spent set could be: inserts and lookups a second, and memory an entry.
//!
//! ```text
//! cargo bench -p quorate-payments --bench spent            # 10 million entries
//! cargo bench -p quorate-payments --bench spent -- 1000000
//! ```
//!
//! Keys are hashes, as names of transactions are. Each candidate has a process of its own, since
//! memory that one gave back would be counted as the next one's. Rates are the best of three maps.

use dashmap::DashMap;
use parking_lot::Mutex;
use quorate_crypto::hash;
use quorate_payments::{Locked, OutputId, SpentSet, TxId};
use rustix::time::{ClockId, clock_gettime};
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::process::Command;

/// Entries, unless an argument says otherwise.
const ENTRIES: u64 = 10_000_000;

/// Maps that are filled one after the other.
const ROUNDS: usize = 3;

/// Shards of the maps behind locks.
const SHARDS: usize = 64;

trait Candidate: Send + Sync {
    fn insert(&self, key: OutputId, value: Locked);
    fn has(&self, key: OutputId) -> bool;
}

impl Candidate for SpentSet {
    fn insert(&self, key: OutputId, value: Locked) {
        SpentSet::insert(self, key, value);
    }

    fn has(&self, key: OutputId) -> bool {
        self.get(key).expect("it is all in memory").is_some()
    }
}

impl Candidate for DashMap<OutputId, Locked> {
    fn insert(&self, key: OutputId, value: Locked) {
        self.entry(key).or_insert(value);
    }

    fn has(&self, key: OutputId) -> bool {
        self.get(&key).is_some()
    }
}

impl Candidate for scc::HashMap<OutputId, Locked> {
    fn insert(&self, key: OutputId, value: Locked) {
        self.entry_sync(key).or_insert(value);
    }

    fn has(&self, key: OutputId) -> bool {
        self.read_sync(&key, |_, value| *value).is_some()
    }
}

impl Candidate for papaya::HashMap<OutputId, Locked> {
    fn insert(&self, key: OutputId, value: Locked) {
        self.pin().get_or_insert(key, value);
    }

    fn has(&self, key: OutputId) -> bool {
        self.pin().get(&key).is_some()
    }
}

/// A map of the standard library's kind behind each of some locks.
struct Sharded {
    hasher: RandomState,
    shards: Vec<Mutex<hashbrown::HashMap<OutputId, Locked, RandomState>>>,
}

impl Sharded {
    fn new() -> Self {
        let hasher = RandomState::new();
        let shard = || Mutex::new(hashbrown::HashMap::with_hasher(hasher.clone()));
        Self { shards: (0..SHARDS).map(|_| shard()).collect(), hasher }
    }

    fn shard(&self, key: &OutputId) -> &Mutex<hashbrown::HashMap<OutputId, Locked, RandomState>> {
        // Bits that the maps use neither for places nor for tags.
        &self.shards[(self.hasher.hash_one(key) >> 48) as usize % SHARDS]
    }
}

impl Candidate for Sharded {
    fn insert(&self, key: OutputId, value: Locked) {
        self.shard(&key).lock().entry(key).or_insert(value);
    }

    fn has(&self, key: OutputId) -> bool {
        self.shard(&key).lock().contains_key(&key)
    }
}

const CANDIDATES: [&str; 5] = ["SpentSet", "papaya", "dashmap", "scc", "locks, hashbrown"];

fn candidate(name: &str) -> Box<dyn Candidate> {
    match name {
        "SpentSet" => Box::new(SpentSet::default()),
        "dashmap" => Box::new(DashMap::<OutputId, Locked>::new()),
        "scc" => Box::new(scc::HashMap::<OutputId, Locked>::new()),
        "papaya" => Box::new(papaya::HashMap::<OutputId, Locked>::new()),
        "locks, hashbrown" => Box::new(Sharded::new()),
        other => panic!("no candidate {other}"),
    }
}

fn key(number: u64) -> OutputId {
    OutputId { tx: TxId(hash(&number.to_le_bytes())), index: (number % 4) as u16 }
}

/// Keys a second through `work`, which is done by so many threads, each on its part of the keys.
/// Seconds are those of the threads' processor time, so that others on the machine count as little
/// as may be; a thread that sleeps for a lock is not charged for it.
fn rate(keys: &[OutputId], threads: usize, work: impl Fn(&OutputId) + Sync) -> f64 {
    let seconds: f64 = std::thread::scope(|scope| {
        let work = &work;
        let parts = keys.chunks(keys.len().div_ceil(threads)).map(|part| {
            scope.spawn(move || {
                let began = processor_time();
                part.iter().for_each(work);
                processor_time() - began
            })
        });
        let running: Vec<_> = parts.collect();
        running.into_iter().map(|one| one.join().expect("it does not panic")).sum()
    });
    keys.len() as f64 * threads as f64 / seconds
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of it");
    let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    1_024 * kilobytes.expect("a number")
}

fn measure(name: &str, entries: u64) {
    let keys: Vec<OutputId> = (0..entries).map(key).collect();
    let value = |key: &OutputId| Locked { tx: key.tx, sequence: u64::from(key.index) };
    let mut rates = [0.0_f64; 4];
    let mut bytes = None;
    for _ in 0..ROUNDS {
        for (at, threads) in [1, 2].into_iter().enumerate() {
            let before = resident();
            let map = candidate(name);
            let inserts = rate(&keys, threads, |key| map.insert(*key, value(key)));
            bytes.get_or_insert(resident().saturating_sub(before) / entries);
            let lookups = rate(&keys, threads, |key| assert!(black_box(map.has(*key))));
            for (best, rate) in rates[2 * at..].iter_mut().zip([inserts, lookups]) {
                *best = best.max(rate);
            }
        }
    }
    let millions: Vec<String> = rates.iter().map(|rate| format!("{:6.2}", rate / 1e6)).collect();
    println!("{name:18} {} {:6}", millions.join(" "), bytes.expect("measured at first"));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let number =
        |at: usize| arguments.get(at).map_or(ENTRIES, |one| one.parse().expect("a number"));
    if let [flag, name, ..] = &arguments[..]
        && flag == "--one"
    {
        return measure(name, number(2));
    }
    let entries = number(0);
    println!(
        "{entries} entries; millions a second of processor time, one thread and two; bytes an entry"
    );
    println!("                   insert lookup insert lookup  bytes");
    let this = std::env::current_exe().expect("a running program has a file");
    for name in CANDIDATES {
        let one = ["--one", name, &entries.to_string()];
        let status = Command::new(&this).args(one).status().expect("it runs again");
        assert!(status.success(), "{name}");
    }
}
