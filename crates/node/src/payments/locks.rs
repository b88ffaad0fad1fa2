//! An authority's locks on disk: the archive of all of them in order, and the runs of what they
//! came to, which hold what is not in memory.
//!
//! What was locked since the last move is in the hot part of the [`SpentSet`]; at a start it is
//! made from the archive, from where the runs end. When it has grown to [`HOT_INPUTS`], a thread of
//! its own moves what is durable to a new run, and another merges runs; locking goes on meanwhile.

pub(super) mod cold;

use crate::threads::give_way;
use borsh::BorshDeserialize;
use cold::{ColdRuns, item, key};
use quorate_payments::{Lock, Locked, OutputId, SpentSet};
use quorate_storage::{Archive, Disk, Durability, LogConfig, Owner, RealDisk, Runs, StorageError};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Locked inputs in memory from which on they are worth moving: some 150 MB.
pub(super) const HOT_INPUTS: usize = 1_000_000;

/// Folder of the runs, beside that of the log.
pub(super) const SPENT_FOLDER: &str = "spent";

/// The locks on disk.
#[derive(Debug)]
pub struct Locks {
    archive: Archive,
    runs: Arc<Runs>,
    spent: Arc<SpentSet>,
    hot_max: usize,
    moving: Option<Work>,
    merging: Option<Work>,
}

/// Work on a thread of its own.
type Work = JoinHandle<Result<(), StorageError>>;

/// Opens the locks of `owner` in a folder, and the set that they come to.
///
/// # Errors
/// When they are somebody else's, the disk fails, or something that was promised is gone.
pub fn recover(folder: &Path, owner: &Owner, config: LogConfig) -> Result<Locks, StorageError> {
    recover_into(folder, owner, config, Ok)
}

/// The same, into a set that `prepare` has put in what the locks are read with: coins under
/// release, and what earlier epochs left.
///
/// # Errors
/// What `prepare` fails with, too.
pub(super) fn recover_into(
    folder: &Path,
    owner: &Owner,
    config: LogConfig,
    prepare: impl FnOnce(SpentSet) -> Result<SpentSet, StorageError>,
) -> Result<Locks, StorageError> {
    let open = |folder: &Path| match config.durability {
        Durability::Fsync => RealDisk::open(folder),
        Durability::Os => RealDisk::open(folder).map(RealDisk::without_zeroing),
    };
    let log = open(&folder.join("locks"))?;
    // Written once, from start to end, and synced whatever the log's durability.
    let runs = RealDisk::open(&folder.join(SPENT_FOLDER))?.without_zeroing();
    Locks::open((Box::new(log), Box::new(runs)), owner, (config, HOT_INPUTS), prepare)
}

impl Locks {
    /// Returns `true` if there are locks in a folder, whoever's.
    pub(super) fn has_begun(folder: &Path) -> Result<bool, StorageError> {
        Archive::has_begun(&folder.join("locks"))
    }

    fn open(
        (log, runs): (Box<dyn Disk>, Box<dyn Disk>),
        owner: &Owner,
        (config, hot_max): (LogConfig, usize),
        prepare: impl FnOnce(SpentSet) -> Result<SpentSet, StorageError>,
    ) -> Result<Self, StorageError> {
        let mut runs = Runs::open(runs, owner)?;
        let covered = runs.covered();
        // Drawn by the system, anew for each map.
        let random = RandomState::new();
        let hot = prepare(SpentSet::new(0, [0_u8, 1].map(|word| random.hash_one(word))))?;
        let mut first = None;
        let archive = Archive::open(log, owner, config, |number, entry| {
            first.get_or_insert(number);
            if number >= covered {
                hot.lock(&read_lock(number, entry)?);
            }
            Ok(())
        })?;
        let begins = first.unwrap_or_else(|| archive.next());
        if begins > covered || archive.next() < covered {
            return Err(gap(begins, archive.next(), covered));
        }
        // Only now: what is refused stays as it was found.
        runs.sweep()?;
        let runs = Arc::new(runs);
        let spent = Arc::new(hot.over(Arc::new(ColdRuns(Arc::clone(&runs)))));
        Ok(Self { archive, runs, spent, hot_max, moving: None, merging: None })
    }

    /// Set of the locked inputs, for threads that check orders.
    #[must_use]
    pub fn spent(&self) -> &Arc<SpentSet> {
        &self.spent
    }

    /// Sequence number of the next lock, which is the number of locks so far.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.archive.next()
    }

    /// Adds a lock to the group that [`Locks::commit`] ends.
    ///
    /// # Errors
    /// When the disk failed: for good.
    ///
    /// # Panics
    /// When locks do not come in their order, which is a defect.
    pub fn append(&mut self, lock: &Lock) -> Result<(), StorageError> {
        let bytes = borsh::to_vec(lock).expect("encoding into memory cannot fail");
        let number = self.archive.append(&bytes)?;
        assert_eq!(number, lock.sequence, "locks are appended in their order");
        Ok(())
    }

    /// Makes the group durable, and begins a move or a merge where one is due.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        self.archive.commit()?;
        self.end_work()?;
        if self.moving.is_none() && self.spent.hot_len() >= self.hot_max {
            self.begin_move();
        }
        if self.merging.is_none() && self.runs.is_merge_due() {
            let runs = Arc::clone(&self.runs);
            self.merging = begin("merge", move || runs.merge());
        }
        Ok(())
    }

    /// A lock by its number; `None` when it was pruned.
    ///
    /// # Errors
    /// When the disk fails or the entry is damaged.
    pub fn read(&self, number: u64) -> Result<Option<Lock>, StorageError> {
        self.archive.read(number)?.map(|entry| read_lock(number, &entry)).transpose()
    }

    /// Moves everything that is durable now out of memory, and waits for it.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn move_all(&mut self) -> Result<(), StorageError> {
        self.archive.commit()?;
        self.await_work()?;
        self.begin_move();
        self.await_work()?;
        self.runs.merge()
    }

    /// Inputs out of memory, in their order, with what they were locked for in this epoch.
    pub(super) fn settled(
        &self,
    ) -> impl Iterator<Item = Result<(OutputId, Locked), StorageError>> + use<> {
        let items = self.runs.snapshot().iter();
        items.map(|item| item.map(|(key, value)| (cold::input(&key), cold::locked(&value))))
    }

    /// Starts a move on a thread of its own: entries are read out of the set while it grows.
    fn begin_move(&mut self) {
        let (runs, spent) = (Arc::clone(&self.runs), Arc::clone(&self.spent));
        let durable = self.next();
        self.moving = begin("move", move || {
            spent.move_out(durable, |moved| {
                // What a release gave to another transaction may be on disk already, for the one
                // that it was locked for: that stays, for no key is in two runs.
                let before = runs.snapshot();
                let mut fresh = Vec::with_capacity(moved.len());
                for one in moved {
                    if before.get(&key(one.0))?.is_none() {
                        fresh.push(one);
                    }
                }
                drop(before);
                runs.add(durable, fresh.iter().map(|(input, locked)| item(*input, *locked)))
            })
        });
    }

    fn end_work(&mut self) -> Result<(), StorageError> {
        if let Some(done) = self.moving.take_if(|moving| moving.is_finished()) {
            finish(done)?;
            self.archive.prune_below(self.runs.covered())?;
        }
        self.merging.take_if(|merging| merging.is_finished()).map_or(Ok(()), finish)
    }

    /// Waits for moves and merges under way. Without, they end by themselves, and hold the folder
    /// until then.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn await_work(&mut self) -> Result<(), StorageError> {
        while self.moving.is_some() || self.merging.is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.end_work()?;
        }
        Ok(())
    }
}

/// Work that others go before; without a thread for it the next commit tries again.
fn begin(
    name: &str,
    work: impl FnOnce() -> Result<(), StorageError> + Send + 'static,
) -> Option<Work> {
    let work = move || {
        give_way();
        work()
    };
    Builder::new().name(name.into()).spawn(work).ok()
}

fn finish(work: Work) -> Result<(), StorageError> {
    work.join().expect("neither a move nor a merge panics")
}

fn read_lock(number: u64, entry: &[u8]) -> Result<Lock, StorageError> {
    let lock = Lock::try_from_slice(entry).ok().filter(|lock| lock.sequence == number);
    lock.ok_or_else(|| damaged(format!("lock {number} does not decode")))
}

fn gap(begins: u64, ends: u64, covered: u64) -> StorageError {
    damaged(format!(
        "the log has locks {begins} to {ends} and the runs in `spent` those before {covered}: some are missing"
    ))
}

fn damaged(reason: String) -> StorageError {
    StorageError::Corrupt { file: "the locks".into(), offset: 0, reason }
}

#[cfg(test)]
mod tests;
