//! Phases of a run, each in a process of its own: memory and bytes are those of one phase, and no
//! cache is older than it. Each prints its figures as JSON.

use crate::process::{
    disk_bytes, forget_pages, peak_memory, processor_seconds, quantile, thread_seconds,
    written_bytes,
};
use crate::stores::{Kind, Store};
use crate::workload::{Changes, NUMBER_KEY, Random, changed, changes, key, value, version};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{Write, stdout};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

/// Keys of a transaction that fills a store.
const FILL_KEYS: usize = 100_000;

/// Most keys that come in random order when a store is filled: above, a B-tree would be written
/// several times before the first update.
const RANDOM_FILL_KEYS_MAX: u64 = 1_000_000;

/// Most keys that are read, and one key in so many at most: those read before should leave most
/// pages cold.
const READS_MAX: u64 = 20_000;
const KEYS_PER_READ: u64 = 50;

/// Buckets that are scanned, and entries of one.
const SCANS: u64 = 2_000;
const BUCKET_ENTRIES: usize = 16;

/// A store and its content.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Store that is measured
    #[arg(long)]
    pub(crate) store: Kind,
    /// Number of its keys, of 32 bytes
    #[arg(long, default_value_t = 100_000)]
    pub(crate) keys: u64,
    /// Bytes of each value, 8 at least
    #[arg(long, default_value_t = 128)]
    pub(crate) value_bytes: usize,
    /// Folder on the disk that is measured
    #[arg(long, default_value = ".")]
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Phase {
    /// Puts all keys into a store
    Fill,
    /// Updates random keys in checkpoints
    Update { checkpoint: u64, updates: u64 },
    /// Opens and reads, first with cold caches
    Read,
    /// Writes checkpoints until it is killed, and prints when each begins and is over
    Crash { checkpoint: u64 },
    /// Opens after a crash, and checks what is there
    Reopen { checkpoint: u64 },
}

/// Figures of [`Phase::Fill`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    /// Keys came in their order, and not in a random one.
    sorted: bool,
    seconds: f64,
    /// A key.
    processor_us: f64,
    written_bytes: f64,
}

/// Figures of [`Phase::Update`]. An update is one of those that were drawn, whether its key was
/// drawn before or not, and includes the reading of the former value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Updates {
    pub(crate) checkpoint: u64,
    pub(crate) updates: u64,
    /// An update: reading, and writing with all that is done beside.
    pub(crate) read_us: f64,
    pub(crate) write_us: f64,
    pub(crate) written_bytes: f64,
    /// A checkpoint, by the clock, from its begin until it is durable.
    pub(crate) p50_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) disk_mb: f64,
    pub(crate) peak_mb: f64,
}

/// Figures of [`Phase::Read`]: medians by the clock.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reads {
    pub(crate) open_s: f64,
    pub(crate) get_cold_us: f64,
    pub(crate) get_warm_us: f64,
    pub(crate) scan_us: Option<f64>,
}

/// Figures of [`Phase::Reopen`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reopened {
    pub(crate) open_s: f64,
    /// Number of the checkpoint that was found, whole.
    pub(crate) number: u64,
}

impl Phase {
    pub(crate) fn carry_out(&self, subject: &Subject) {
        match *self {
            Self::Fill => print(&subject.fill()),
            Self::Update { checkpoint, updates } => print(&subject.update(checkpoint, updates)),
            Self::Read => print(&subject.read()),
            Self::Crash { checkpoint } => subject.write_until_killed(checkpoint),
            Self::Reopen { checkpoint } => print(&subject.reopen(checkpoint)),
        }
    }

    /// Its arguments on the command line.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match *self {
            Self::Fill => vec!["fill".into()],
            Self::Update { checkpoint, updates } => {
                vec!["update".into(), checkpoint.to_string(), updates.to_string()]
            }
            Self::Read => vec!["read".into()],
            Self::Crash { checkpoint } => vec!["crash".into(), checkpoint.to_string()],
            Self::Reopen { checkpoint } => vec!["reopen".into(), checkpoint.to_string()],
        }
    }
}

fn print(figures: &impl Serialize) {
    say(&serde_json::to_string(figures).expect("figures"));
}

/// Prints a line at once.
fn say(line: &str) {
    println!("{line}");
    stdout().flush().expect("somebody reads");
}

/// Figures that a phase printed.
pub(crate) fn parsed<T: DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
}

impl Subject {
    fn open(&self) -> Box<dyn Store> {
        self.store.open(&self.folder, self.keys)
    }

    fn fill(&self) -> Fill {
        let sorted = self.keys > RANDOM_FILL_KEYS_MAX;
        let mut order: Vec<(u64, u64)> = (0..self.keys)
            .map(|number| {
                let place = u64::from_be_bytes(key(number)[..8].try_into().expect("eight bytes"));
                (if sorted { place } else { number }, number)
            })
            .collect();
        order.sort_unstable();
        let mut store = self.open();
        let (began, processor, written) = (Instant::now(), processor_seconds(), written_bytes());
        let mut harness = 0.0;
        for part in order.chunks(FILL_KEYS) {
            let before = thread_seconds();
            let pair = |&(_, number)| (key(number), value(number, 0, self.value_bytes));
            let mut changes: Changes = part.iter().map(pair).collect();
            changes.insert(NUMBER_KEY, value(0, 0, self.value_bytes));
            harness += thread_seconds() - before;
            store.write(&changes);
        }
        store.settle();
        let keys = self.keys as f64;
        Fill {
            sorted,
            seconds: began.elapsed().as_secs_f64(),
            processor_us: (processor_seconds() - processor - harness) * 1e6 / keys,
            written_bytes: (written_bytes() - written) as f64 / keys,
        }
    }

    fn update(&self, checkpoint: u64, updates: u64) -> Updates {
        let checkpoints = updates.div_ceil(checkpoint);
        let mut store = self.open();
        let first = number(&mut *store) + 1;
        // Caches as they are when a validator has run for a while.
        let measured = first + checkpoints.div_ceil(10);
        self.write(&mut *store, first..measured, checkpoint);
        store.settle();
        let (processor, written) = (processor_seconds(), written_bytes());
        let mut spent = self.write(&mut *store, measured..measured + checkpoints, checkpoint);
        store.settle();
        let updates = checkpoint * checkpoints;
        let an_update = 1e6 / updates as f64;
        let processor = processor_seconds() - processor - spent.harness - spent.reading;
        Updates {
            checkpoint,
            updates,
            read_us: spent.reading * an_update,
            write_us: processor * an_update,
            written_bytes: (written_bytes() - written) as f64 / updates as f64,
            p50_ms: quantile(&mut spent.checkpoints_ms, 0.5),
            max_ms: quantile(&mut spent.checkpoints_ms, 1.0),
            disk_mb: disk_bytes(&self.folder) as f64 / 1e6,
            peak_mb: peak_memory() as f64 / 1e6,
        }
    }

    /// Writes checkpoints of these numbers, and reads each key's former value before.
    fn write(&self, store: &mut dyn Store, numbers: Range<u64>, updates: u64) -> Spent {
        let mut spent = Spent::default();
        for checkpoint in numbers {
            let began = thread_seconds();
            let numbers = changed(checkpoint, updates, self.keys);
            let changes = changes(checkpoint, &numbers, self.value_bytes);
            let drawn = thread_seconds();
            for &number in &numbers {
                let former = store.get(&key(number)).expect("every key is there");
                assert!(version(&former) < checkpoint && former.len() == self.value_bytes);
            }
            spent.harness += drawn - began;
            spent.reading += thread_seconds() - drawn;
            let began = Instant::now();
            store.write(&changes);
            spent.checkpoints_ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        spent
    }

    fn read(&self) -> Reads {
        forget_pages(&self.folder);
        let began = Instant::now();
        let mut store = self.open();
        number(&mut *store);
        let open_s = began.elapsed().as_secs_f64();
        // Opening may have read all of it.
        forget_pages(&self.folder);
        let mut random = Random::new(1);
        let reads = READS_MAX.min(self.keys / KEYS_PER_READ);
        let keys: Vec<_> = (0..reads).map(|_| key(random.below(self.keys))).collect();
        let mut get = || {
            let one = |key| timed(|| store.get(key).expect("every key is there").len());
            let mut all: Vec<f64> = keys.iter().map(one).map(|(us, _)| us).collect();
            quantile(&mut all, 0.5)
        };
        let get_cold_us = get();
        get();
        let get_warm_us = get();
        let from: Vec<_> = (0..SCANS).map(|_| key(random.below(self.keys))).collect();
        let mut scan = || {
            let one = |key| timed(|| store.scan(key, BUCKET_ENTRIES));
            let all = from.iter().map(one).map(|(us, is_there)| is_there.map(|_| us));
            all.collect::<Option<Vec<f64>>>().map(|mut all| quantile(&mut all, 0.5))
        };
        scan();
        Reads { open_s, get_cold_us, get_warm_us, scan_us: scan() }
    }

    fn write_until_killed(&self, updates: u64) {
        let mut store = self.open();
        let first = number(&mut *store) + 1;
        for checkpoint in first.. {
            let numbers = changed(checkpoint, updates, self.keys);
            let changes = changes(checkpoint, &numbers, self.value_bytes);
            say("begun");
            store.write(&changes);
            say(&checkpoint.to_string());
        }
    }

    /// All of the last checkpoint is there, and nothing of the next.
    fn reopen(&self, updates: u64) -> Reopened {
        forget_pages(&self.folder);
        let began = Instant::now();
        let mut store = self.open();
        let last = number(&mut *store);
        let open_s = began.elapsed().as_secs_f64();
        for number in changed(last, updates, self.keys) {
            let value = store.get(&key(number)).expect("every key is there");
            assert_eq!(version(&value), last, "a change of the last checkpoint is lost");
        }
        for number in changed(last + 1, updates, self.keys) {
            let value = store.get(&key(number)).expect("every key is there");
            assert!(version(&value) <= last, "a change of no checkpoint is there");
        }
        Reopened { open_s, number: last }
    }
}

/// What checkpoints took: processor seconds of the thread, and milliseconds by the clock.
#[derive(Default)]
struct Spent {
    harness: f64,
    reading: f64,
    checkpoints_ms: Vec<f64>,
}

/// Number of the checkpoint that a store has.
fn number(store: &mut dyn Store) -> u64 {
    version(&store.get(&NUMBER_KEY).expect("a filled store"))
}

/// Microseconds by the clock.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let outcome = work();
    (began.elapsed().as_secs_f64() * 1e6, outcome)
}
