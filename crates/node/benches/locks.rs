//! What an authority's locks cost: recovering ten million of them, and going on over what was spent
//! before: `cargo bench -p quorate-node --bench locks [-- LOCKS [SPENT]]`.
//!
//! With SPENT, so many inputs are put on disk at once before anything is locked: a start, look-ups
//! and the rate of locking are measured over them, and the rate over none beside it. What is there
//! was written just before, and is in the system's memory as far as that goes.

use quorate_crypto::{IdentityKey, Signature, hash};
use quorate_node::payments::{Locks, recover};
use quorate_payments::{Core, CoreKind, Lock, LockStatus, OutputId, TxId};
use quorate_storage::{LogConfig, Owner, RUN_KEY_BYTES, RUN_VALUE_BYTES, RealDisk, RunItem, Runs};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Locks in a group: what a busy authority syncs together.
const GROUP: u64 = 256;

/// Look-ups of each kind.
const LOOKUPS: u64 = 1_000_000;

/// Locks from which a rate is taken.
const RATED: u64 = 1_500_000;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let locks = numbers.next().unwrap_or(10_000_000);
    let spent = numbers.next().unwrap_or(0);
    println!("{locks} locks of one input, over nothing:");
    measure(locks, 0);
    if spent > 0 {
        println!("{RATED} locks, over {spent} inputs spent before:");
        measure(RATED, spent);
    }
}

fn measure(locks: u64, spent: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    if spent > 0 {
        let began = Instant::now();
        load(folder.path(), spent);
        println!("  {:.1} s to load", began.elapsed().as_secs_f64());
    }
    let mut open = start(folder.path(), "  a start before");
    if spent > 0 {
        look_up(&open, spent);
    }
    let rate = add(&mut open, locks.min(RATED));
    println!("  {rate:.0} locks a second, with a sync for every {GROUP}");
    add(&mut open, locks.saturating_sub(RATED));
    open.await_work().expect("ends");
    drop(open);
    start(folder.path(), "  a start after");
}

/// Puts inputs on disk that nobody locked.
fn load(folder: &Path, spent: u64) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = RealDisk::open(&folder.join("spent")).expect("opens").without_zeroing();
    let runs = Runs::open(Box::new(disk), &Owner::nobody()).expect("opens");
    let items = (0..usize::try_from(spent).expect("some")).map(|number| item(number as u64, spent));
    runs.add(0, items).expect("adds");
}

/// The items are made in their order, and are as spread as hashes.
fn item(number: u64, spent: u64) -> RunItem {
    let mut key = [0; RUN_KEY_BYTES];
    key[..32].copy_from_slice(&spent_input(number, spent).tx.0.0);
    (key, [1; RUN_VALUE_BYTES])
}

fn spent_input(number: u64, spent: u64) -> OutputId {
    let mut name = hash(&number.to_le_bytes());
    name.0[..8].copy_from_slice(&(number * (u64::MAX / spent)).to_be_bytes());
    OutputId { tx: TxId(name), index: 0 }
}

fn start(folder: &Path, what: &str) -> Locks {
    let config = LogConfig { retention_bytes: 1 << 28, ..LogConfig::default() };
    let began = Instant::now();
    let open = recover(folder, &Owner::nobody(), config).expect("opens");
    let (seconds, set) = (began.elapsed().as_secs_f64(), open.spent());
    let bytes = |name: &str| bytes(&folder.join(name)) as f64 / 1e9;
    println!(
        "{what}: {:.2} s, {} inputs of which {} in memory, {} MB resident, {:.2} GB of log and {:.2} GB of runs",
        seconds,
        set.len(),
        set.hot_len(),
        resident_bytes() >> 20,
        bytes("locks"),
        bytes("spent"),
    );
    open
}

fn look_up(open: &Locks, spent: u64) {
    // Scattered over all: a number's successor is far from it.
    let present = |number: u64| spent_input(number * 7_919 * 104_729 % spent, spent);
    let absent = |number: u64| OutputId { tx: TxId(hash(&number.to_be_bytes())), index: 9 };
    for (what, input, is_there) in
        [("absent", &absent as &dyn Fn(u64) -> OutputId, false), ("present", &present, true)]
    {
        let mut nanoseconds: Vec<u128> = (0..LOOKUPS)
            .map(|number| {
                let input = input(number);
                let began = Instant::now();
                let found = black_box(open.spent().get(input).expect("looks up"));
                let taken = began.elapsed().as_nanos();
                assert_eq!(found.is_some(), is_there);
                taken
            })
            .collect();
        nanoseconds.sort_unstable();
        let micros = |part: usize| nanoseconds[nanoseconds.len() * part / 1_000] as f64 / 1e3;
        println!(
            "  {what}: p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs",
            micros(500),
            micros(990),
            micros(999)
        );
    }
}

/// Locks so many more, each looked up twice before as an order is; returns how many a second.
fn add(open: &mut Locks, count: u64) -> f64 {
    let began = Instant::now();
    let first = open.next();
    for sequence in first..first + count {
        let lock = lock(sequence);
        for _ in 0..2 {
            let status = open.spent().locked(lock.core.id, &lock.core.locks);
            assert_eq!(status, Ok(LockStatus::Free));
        }
        open.spent().lock(&lock);
        open.append(&lock).expect("appends");
        if sequence % GROUP == GROUP - 1 {
            open.commit().expect("commits");
        }
    }
    open.commit().expect("commits");
    count as f64 / began.elapsed().as_secs_f64()
}

fn lock(sequence: u64) -> Lock {
    let number = sequence.to_le_bytes();
    let input = OutputId { tx: TxId(hash(&number)), index: 1 };
    let core = Core {
        id: TxId(hash(&[&b"spends"[..], &number].concat())),
        payer: IdentityKey([7; 32]),
        locks: vec![input],
        kind: CoreKind::Spend,
        outputs: hash(&[&b"outputs"[..], &number].concat()),
        signature: Signature([9; 64]),
    };
    Lock { sequence, core }
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
}

/// Resident memory of this process; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
