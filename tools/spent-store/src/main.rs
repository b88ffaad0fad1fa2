//! Spent inputs in an LSM tree, fjall, as an authority would have them in place of its runs:
//! `cargo run --release --manifest-path tools/spent-store/Cargo.toml -- INPUTS`.
//!
//! For `cargo bench -p quorate-node --bench locks -- 0 INPUTS` to be held against: names that are
//! hashes, in the order in which they come, a sync for every 256, until what is due in the
//! background is done; look-ups of what is absent and present; and inputs locked on top, each
//! looked up twice before. A start at the end, with the same look-ups.

use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    PartitioningPolicy, PinningPolicy,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Inputs that a sync ends.
const GROUP: u64 = 256;

/// Look-ups of each kind.
const LOOKUPS: u64 = 500_000;

/// Inputs locked on top.
const RATED: u64 = 500_000;

fn main() {
    let inputs = std::env::args().nth(1).and_then(|number| number.parse().ok());
    let inputs: u64 = inputs.expect("usage: spent-store INPUTS");
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path());
    let (began, used) = (Instant::now(), cpu_seconds());
    store.lock(0..inputs, false);
    let locked = began.elapsed().as_secs_f64();
    store.settle();
    println!(
        "{inputs} inputs: {:.0} a second, {:.1} s until nothing is due, {:.2} µs of processor time each, {} MB resident, {} MB on disk",
        inputs as f64 / locked,
        began.elapsed().as_secs_f64(),
        (cpu_seconds() - used) * 1e6 / inputs as f64,
        resident_mb(),
        disk_bytes(folder.path()) >> 20,
    );
    store.look_up(inputs);
    let began = Instant::now();
    store.lock(inputs..inputs + RATED, true);
    let rate = RATED as f64 / began.elapsed().as_secs_f64();
    println!("  {rate:.0} more a second, each looked up twice before");
    drop(store);
    let began = Instant::now();
    let store = Store::open(folder.path());
    println!("  a start: {:.2} s", began.elapsed().as_secs_f64());
    store.look_up(inputs);
    println!("  {} MB resident", resident_mb());
}

/// Filters as large as those of runs and all in memory, blocks as large and as little compressed,
/// and half a gigabyte for blocks that are read.
struct Store {
    database: Database,
    spent: Keyspace,
}

impl Store {
    fn open(folder: &Path) -> Self {
        let database = Database::builder(folder).cache_size(512 << 20).open().expect("opens");
        let bits = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(18.0));
        let options = || {
            KeyspaceCreateOptions::default()
                .manual_journal_persist(true)
                .filter_policy(FilterPolicy::all(bits))
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_partitioning_policy(PartitioningPolicy::all(false))
                .index_block_partitioning_policy(PartitioningPolicy::all(false))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        };
        let spent = database.keyspace("spent", options).expect("opens");
        Self { database, spent }
    }

    fn lock(&self, numbers: std::ops::Range<u64>, asks: bool) {
        for number in numbers {
            let key = key(number, 0);
            for _ in 0..if asks { 2 } else { 0 } {
                assert!(self.get(&key).is_none());
            }
            self.spent.insert(key, value(number)).expect("inserts");
            if number % GROUP == GROUP - 1 {
                self.database.persist(PersistMode::SyncData).expect("syncs");
            }
        }
        self.database.persist(PersistMode::SyncData).expect("syncs");
    }

    /// Waits until nothing is due in the background.
    fn settle(&self) {
        while self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
            sleep(Duration::from_millis(5));
        }
    }

    fn get(&self, key: &[u8; 34]) -> Option<fjall::UserValue> {
        self.spent.get(key).expect("reads")
    }

    fn look_up(&self, inputs: u64) {
        for (what, place, is_there) in [("absent", 1, false), ("present", 0, true)] {
            let mut nanoseconds: Vec<u128> = (0..LOOKUPS)
                .map(|number| {
                    // Scattered over all: a number's successor is far from it.
                    let key = key(number * 7_919 * 104_729 % inputs, place);
                    let began = Instant::now();
                    let found = self.get(&key);
                    let taken = began.elapsed().as_nanos();
                    assert_eq!(found.is_some(), is_there);
                    taken
                })
                .collect();
            nanoseconds.sort_unstable();
            let micros = |part: usize| nanoseconds[nanoseconds.len() * part / 1_000] as f64 / 1e3;
            let (half, most, nearly_all) = (micros(500), micros(990), micros(999));
            println!("  {what}: p50 {half:.2} µs, p99 {most:.2} µs, p99.9 {nearly_all:.2} µs");
        }
    }
}

fn key(number: u64, place: u8) -> [u8; 34] {
    let mut key = [place; 34];
    key[..32].copy_from_slice(blake3::hash(&number.to_le_bytes()).as_bytes());
    key
}

/// Name of the transaction that holds the input, and the number of the lock.
fn value(number: u64) -> [u8; 40] {
    let mut value = [0; 40];
    value[..32].copy_from_slice(blake3::hash(&number.to_be_bytes()).as_bytes());
    value[32..].copy_from_slice(&number.to_le_bytes());
    value
}

/// Processor time of all threads.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => disk_bytes(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}
