//! An authority's locks on disk: the archive of all of them in order, and the checkpoint of what
//! they came to, from which the set in memory is made at a start.

use borsh::BorshDeserialize;
use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;
use quorate_payments::{Lock, Locked, OutputId, SpentSet};
use quorate_storage::{
    Archive, Checkpoints, Disk, Durability, LogConfig, Owner, RealDisk, StorageError,
};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Locks after which a checkpoint is worth writing, if it is not yet twice as many as the last one
/// had.
const CHECKPOINT_LOCKS: u64 = 1_000_000;

/// An input with what it is locked for, in a checkpoint.
const ITEM_BYTES: usize = 34 + 32 + 8;

/// Items that go to the set together at a start, and lots of them that wait.
const LOT_ITEMS: usize = 8_192;
const LOTS_MAX: usize = 16;

/// The locks on disk.
#[derive(Debug)]
pub struct Locks {
    archive: Archive,
    checkpoints: Arc<Mutex<Checkpoints>>,
    spent: Arc<SpentSet>,
    /// Number of locks that the newest checkpoint covers.
    covered: u64,
    writing: Option<JoinHandle<Result<u64, StorageError>>>,
}

/// Opens the locks of `owner` in a folder, and the set that they come to.
///
/// # Errors
/// When they are somebody else's, the disk fails, or something that was promised is gone.
pub fn recover(folder: &Path, owner: &Owner, config: LogConfig) -> Result<Locks, StorageError> {
    let open = |folder: &Path| match config.durability {
        Durability::Fsync => RealDisk::open(folder),
        Durability::Os => RealDisk::open(folder).map(RealDisk::without_zeroing),
    };
    let checkpoints = RealDisk::open(&folder.join("checkpoints"))?;
    Locks::open(Box::new(open(&folder.join("locks"))?), Box::new(checkpoints), owner, config)
}

impl Locks {
    fn open(
        log: Box<dyn Disk>,
        checkpoints: Box<dyn Disk>,
        owner: &Owner,
        config: LogConfig,
    ) -> Result<Self, StorageError> {
        let checkpoints = Checkpoints::open(checkpoints, owner)?;
        let covered = checkpoints.sequence();
        let room = usize::try_from(checkpoints.bytes() / ITEM_BYTES as u64).unwrap_or(0);
        // Drawn by the system, anew for each map.
        let random = RandomState::new();
        let seed = [0_u8, 1].map(|word| random.hash_one(word));
        let spent = Arc::new(SpentSet::new(room, seed));
        let archive = restore_beside(&spent, |restore| {
            checkpoints.read(|part| read_items(part, restore))?;
            let mut first = None;
            let archive = Archive::open(log, owner, config, |number, entry| {
                first.get_or_insert(number);
                if number >= covered {
                    let Lock { sequence, core } = read_lock(number, entry)?;
                    let locked = Locked { tx: core.id, sequence };
                    core.locks.iter().for_each(|input| restore.add(*input, locked));
                }
                Ok(())
            })?;
            let begins = first.unwrap_or_else(|| archive.next());
            if begins > covered || archive.next() < covered {
                return Err(gap(begins, archive.next(), covered));
            }
            Ok(archive)
        })?;
        let checkpoints = Arc::new(Mutex::new(checkpoints));
        Ok(Self { archive, checkpoints, spent, covered, writing: None })
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

    /// Makes the group durable, and begins a checkpoint where one is due.
    ///
    /// # Errors
    /// When the disk failed: for good.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        self.archive.commit()?;
        self.take_checkpoint()?;
        let since = self.next() - self.covered;
        if self.writing.is_none() && since >= CHECKPOINT_LOCKS.max(self.covered / 2) {
            self.begin_checkpoint();
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

    /// Writes a checkpoint of everything that is durable now, and waits for it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn checkpoint(&mut self) -> Result<(), StorageError> {
        self.archive.commit()?;
        if self.writing.is_none() {
            self.begin_checkpoint();
        }
        while self.writing.is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.take_checkpoint()?;
        }
        Ok(())
    }

    /// Starts a checkpoint on a thread of its own: entries are read out of the set while it grows.
    fn begin_checkpoint(&mut self) {
        let (checkpoints, spent) = (Arc::clone(&self.checkpoints), Arc::clone(&self.spent));
        let sequence = self.next();
        let write = move || write_checkpoint(&checkpoints, &spent, sequence);
        // Without a thread the next commit tries again.
        self.writing = Builder::new().name("checkpoint".into()).spawn(write).ok();
    }

    fn take_checkpoint(&mut self) -> Result<(), StorageError> {
        let Some(done) = self.writing.take_if(|writing| writing.is_finished()) else {
            return Ok(());
        };
        // A panic in there is a defect that shows itself in the log of panics; locks go on without.
        if let Ok(sequence) = done.join() {
            self.covered = sequence?;
            self.archive.prune_below(self.covered)?;
        }
        Ok(())
    }
}

/// Everything locked by the first `sequence` locks (★: and nothing later, which may not be
/// durable).
fn write_checkpoint(
    checkpoints: &Mutex<Checkpoints>,
    spent: &SpentSet,
    sequence: u64,
) -> Result<u64, StorageError> {
    let mut failure = None;
    checkpoints.lock().write(sequence, |writer| {
        spent.visit(|input, locked| {
            if locked.sequence < sequence && failure.is_none() {
                failure = writer.push(&item(input, locked)).err();
            }
        });
        failure.map_or(Ok(()), Err)
    })?;
    Ok(sequence)
}

/// Fills the set on a thread of its own: reading and checking on one core, the set's memory on
/// another.
fn restore_beside<T>(
    spent: &SpentSet,
    read: impl FnOnce(&mut Restore) -> Result<T, StorageError>,
) -> Result<T, StorageError> {
    std::thread::scope(|scope| {
        let (lots, taken) = bounded::<Vec<(OutputId, Locked)>>(LOTS_MAX);
        scope.spawn(move || {
            for (input, locked) in taken.iter().flatten() {
                spent.insert(input, locked);
            }
        });
        let mut restore = Restore { lots, lot: Vec::with_capacity(LOT_ITEMS) };
        let result = read(&mut restore);
        restore.send();
        result
    })
}

/// Gathers what was read for the thread that puts it into the set.
struct Restore {
    lots: Sender<Vec<(OutputId, Locked)>>,
    lot: Vec<(OutputId, Locked)>,
}

impl Restore {
    fn add(&mut self, input: OutputId, locked: Locked) {
        self.lot.push((input, locked));
        if self.lot.len() == LOT_ITEMS {
            self.send();
        }
    }

    fn send(&mut self) {
        let lot = std::mem::replace(&mut self.lot, Vec::with_capacity(LOT_ITEMS));
        self.lots.send(lot).expect("the other thread takes all that come");
    }
}

fn item(input: OutputId, locked: Locked) -> [u8; ITEM_BYTES] {
    let mut bytes = [0; ITEM_BYTES];
    bytes[..32].copy_from_slice(&input.tx.0.0);
    bytes[32..34].copy_from_slice(&input.index.to_le_bytes());
    bytes[34..66].copy_from_slice(&locked.tx.0.0);
    bytes[66..].copy_from_slice(&locked.sequence.to_le_bytes());
    bytes
}

fn read_items(part: &[u8], restore: &mut Restore) -> Result<(), StorageError> {
    for bytes in part.chunks(ITEM_BYTES) {
        let parsed = <(OutputId, quorate_payments::TxId, u64)>::try_from_slice(bytes);
        let (input, tx, sequence) = parsed.map_err(|_| unreadable("a checkpoint's item", 0))?;
        restore.add(input, Locked { tx, sequence });
    }
    Ok(())
}

fn read_lock(number: u64, entry: &[u8]) -> Result<Lock, StorageError> {
    let lock = Lock::try_from_slice(entry).ok().filter(|lock| lock.sequence == number);
    lock.ok_or_else(|| unreadable("lock", number))
}

fn unreadable(what: &str, number: u64) -> StorageError {
    StorageError::Corrupt {
        file: "the locks".into(),
        offset: 0,
        reason: format!("{what} {number} does not decode"),
    }
}

fn gap(begins: u64, ends: u64, covered: u64) -> StorageError {
    StorageError::Corrupt {
        file: "the locks".into(),
        offset: 0,
        reason: format!(
            "the log has locks {begins} to {ends} and the checkpoint those before {covered}: some are missing"
        ),
    }
}

#[cfg(test)]
mod tests;
