//! What an authority's locks cost: recovering ten million of them, and going on over what was spent
//! before: `cargo bench -p quorate-node --bench locks [-- LOCKS [SPENT]]`.
//!
//! With SPENT, so many inputs are put on disk before anything is locked, in the runs that moves of
//! a million each leave: a start, look-ups and the rate of locking are measured over them, and the
//! rate over none beside it. What is there was written just before, and is in the system's memory
//! as far as that goes.

use quorate_crypto::{IdentityKey, Signature, hash};
use quorate_node::payments::{Locks, SpentFill, recover};
use quorate_payments::{Core, CoreKind, Lock, LockStatus, OutputId, TxId};
use quorate_storage::{LogConfig, Owner};
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
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

/// Loads over each, in turn.
const ROUNDS: usize = 5;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let locks = numbers.next().unwrap_or(10_000_000);
    let spent = numbers.next().unwrap_or(0);
    if locks > 0 {
        println!("{locks} locks of one input, over nothing:");
        over_nothing(locks);
    }
    if spent > 0 {
        println!("{RATED} locks, over {spent} inputs spent before and over none, in turn:");
        over_spent(spent);
    }
}

fn over_nothing(locks: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut open = start(folder.path(), "  a start before");
    let rate = add(&mut open, locks.min(RATED));
    println!("  {rate}, with a sync for every {GROUP}");
    add(&mut open, locks.saturating_sub(RATED));
    open.await_work().expect("ends");
    drop(open);
    start(folder.path(), "  a start after");
}

fn over_spent(spent: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (over, fill) = (folder.path().join("over"), SpentFill::new(spent));
    let began = Instant::now();
    fill.write(&over, &Owner::nobody()).expect("writes");
    println!("  {:.1} s to fill {} runs", began.elapsed().as_secs_f64(), fill.runs());
    let mut open = start(&over, "  a start before");
    look_up(&open, &fill, spent);
    let mut none = start(&folder.path().join("none"), "  a start over none");
    let mut rates: Vec<[Rate; 2]> = Vec::new();
    for _ in 0..ROUNDS {
        let share = RATED / ROUNDS as u64;
        rates.push([&mut none, &mut open].map(|open| add(open, share)));
    }
    let median = |which: usize| {
        let mut sorted: Vec<Rate> = rates.iter().map(|rates| rates[which]).collect();
        sorted.sort_by(|one, other| one.second.total_cmp(&other.second));
        sorted[ROUNDS / 2]
    };
    println!("  over none {}, over them {}: medians of {ROUNDS}", median(0), median(1));
    open.await_work().expect("ends");
    drop(open);
    start(&over, "  a start after");
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

fn look_up(open: &Locks, fill: &SpentFill, spent: u64) {
    let inputs: Vec<OutputId> = (0..LOOKUPS)
        .map(|number| OutputId { tx: TxId(hash(&number.to_le_bytes())), index: 9 })
        .collect();
    let began = Instant::now();
    let found = inputs.iter().filter(|input| open.spent().get(**input) != Ok(None)).count();
    let each = began.elapsed().as_secs_f64() * 1e6 / LOOKUPS as f64;
    println!("  absent, one after another: {each:.2} µs each ({found} found)");
    // Scattered over all: a number's successor is far from it.
    let present = |number: u64| fill.input(number * 7_919 * 104_729 % spent);
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

/// Speed of locking.
#[derive(Clone, Copy)]
struct Rate {
    second: f64,
    cpu_us: f64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { second, cpu_us } = self;
        write!(f, "{second:.0} locks a second, {cpu_us:.2} µs of processor time each")
    }
}

/// Locks so many more, each looked up twice before as an order is.
fn add(open: &mut Locks, count: u64) -> Rate {
    let (began, used) = (Instant::now(), cpu_seconds());
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
    Rate {
        second: count as f64 / began.elapsed().as_secs_f64(),
        cpu_us: (cpu_seconds() - used) * 1e6 / count as f64,
    }
}

/// Processor time of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
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
