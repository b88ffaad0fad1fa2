//! Items in the order of their keys, in files that are never changed: what a payment authority
//! locked, beyond what it keeps in memory.
//!
//! A *run* is what was added at once, sorted, in *pieces* of some hundred megabytes: a file of
//! blocks, and a file of what is kept of it in memory, which is the first key of every block and a
//! filter of some two bytes an item. So a look-up of what is not there reads nothing, of what is
//! there one block; and a start reads neither. Runs of like size are merged, so that there are few
//! to ask: each is at least twice as large as all that came after it.
//!
//! # What is promised
//!
//! * What [`Runs::add`] returned from is durable: it counts once the *manifest* that names its
//!   pieces is, and that is written last. Pieces without a manifest are remains of a crash.
//! * ★ Nothing that is damaged or missing is ever taken for absent. At a start every piece that
//!   the manifest names has to be there, with its length, and its filter with the hash that the
//!   manifest has of it. Blocks are checked as they are read.
//! * Readers take no lock, and never wait for a run that is written or merged. Who holds
//!   [`Runs::snapshot`] reads on in files that are removed meanwhile.
//! * Memory is in proportion to a piece while one is written, whatever is merged.

mod files;
mod manifest;
mod merge;
mod piece;

use crate::disk::Disk;
use crate::{Owner, StorageError};
use arc_swap::ArcSwap;
use manifest::{Directory, Manifest, PieceEntry};
use merge::Merge;
use parking_lot::Mutex;
use piece::{Piece, PieceWriter, beginning, name};
use std::sync::Arc;

/// Bytes of a key.
pub const RUN_KEY_BYTES: usize = 34;

/// Bytes of what a key stands for.
pub const RUN_VALUE_BYTES: usize = 40;

/// A key and what it stands for.
pub type RunItem = ([u8; RUN_KEY_BYTES], [u8; RUN_VALUE_BYTES]);

/// Items in one piece: 156 MB on disk, 5 MB in memory, 70 MB while it is written.
const PIECE_ITEMS: u64 = 2 * 1024 * 1024;

/// One directory of runs. Shared among the threads that look up, add and merge.
pub struct Runs {
    directory: Mutex<Directory>,
    owner: Owner,
    piece_items: u64,
    view: ArcSwap<View>,
    /// Only one merge at a time.
    merging: Mutex<()>,
}

/// The runs at one moment.
#[derive(Debug, Default)]
struct View {
    /// Number of entries, as the host counts them, that the items came of.
    covered: u64,
    /// Oldest, and largest, first.
    runs: Vec<Arc<Run>>,
}

/// What was added, or merged, at once.
#[derive(Debug)]
struct Run {
    pieces: Vec<Piece>,
    /// Beginning of the first key of each piece, side by side: searching them touches little.
    beginnings: Box<[u64]>,
}

impl Runs {
    /// Opens or begins the runs of `owner`. What no manifest names stays until [`Runs::sweep`].
    ///
    /// # Errors
    /// When they are not `owner`'s, the disk fails, or something is damaged or missing.
    pub fn open(disk: Box<dyn Disk>, owner: &Owner) -> Result<Self, StorageError> {
        Self::open_with(disk, owner, PIECE_ITEMS)
    }

    pub(crate) fn open_with(
        disk: Box<dyn Disk>,
        owner: &Owner,
        piece_items: u64,
    ) -> Result<Self, StorageError> {
        let (directory, manifest) = Directory::open(disk, owner)?;
        let open = |entry: &PieceEntry| Piece::open(&*directory.disk, entry, owner);
        let mut view = View { covered: manifest.covered, runs: Vec::new() };
        for entries in &manifest.runs {
            let pieces = entries.iter().map(open).collect::<Result<_, _>>()?;
            view.runs.push(Arc::new(Run::of(pieces)));
        }
        Ok(Self {
            directory: Mutex::new(directory),
            owner: owner.clone(),
            piece_items,
            view: ArcSwap::from_pointee(view),
            merging: Mutex::new(()),
        })
    }

    /// Removes what no manifest names, remains of a crash; before anything is added.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sweep(&mut self) -> Result<(), StorageError> {
        let manifest = manifest(&self.view.load());
        self.directory.lock().remove_others(&manifest)
    }

    /// Number of entries that the items came of; 0 where nothing was ever added.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.view.load().covered
    }

    /// Number of items in all runs together; no key is in two.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.view.load().runs.iter().map(|run| run.len()).sum()
    }

    /// Returns `true` without items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a key stands for; `None` where it is certain that nothing has it.
    ///
    /// # Errors
    /// When the disk fails or what it gives back is damaged.
    pub fn get(
        &self,
        key: &[u8; RUN_KEY_BYTES],
    ) -> Result<Option<[u8; RUN_VALUE_BYTES]>, StorageError> {
        self.view.load().get(key)
    }

    /// Adds items that no run has, in ascending order; everything that the first `covered` entries
    /// came to is in the runs then. Durable, and found by readers, when it returns.
    ///
    /// # Errors
    /// When the disk fails; the runs are then what they were, and nothing more may be added.
    ///
    /// # Panics
    /// When the items are out of order, which is a defect.
    pub fn add(
        &self,
        covered: u64,
        items: impl ExactSizeIterator<Item = RunItem>,
    ) -> Result<(), StorageError> {
        let run = match items.len() as u64 {
            0 => None,
            count => Some(self.write_run(count, items.map(Ok))?),
        };
        self.publish(|view| View {
            covered,
            runs: view.runs.iter().cloned().chain(run.map(Arc::new)).collect(),
        })
    }

    /// Returns `true` if runs wait to be merged.
    #[must_use]
    pub fn is_merge_due(&self) -> bool {
        merge_from(&self.view.load().runs).is_some()
    }

    /// Merges the runs that are due, if any. Others look up and add meanwhile.
    ///
    /// # Errors
    /// When the disk fails or something is damaged; the runs are then what they were.
    pub fn merge(&self) -> Result<(), StorageError> {
        let _alone = self.merging.lock();
        let begun = self.view.load_full();
        let Some(from) = merge_from(&begun.runs) else { return Ok(()) };
        let merged = &begun.runs[from..];
        let count = merged.iter().map(|run| run.len()).sum();
        let run = Arc::new(self.write_run(count, Merge::of(merged))?);
        // What was added meanwhile comes after those that were merged.
        self.publish(|view| View {
            covered: view.covered,
            runs: view.runs[..from]
                .iter()
                .chain([&run])
                .chain(&view.runs[begun.runs.len()..])
                .cloned()
                .collect(),
        })
    }

    /// The runs as they are now, to be read in the order of their keys.
    #[must_use]
    pub fn snapshot(&self) -> RunsSnapshot {
        RunsSnapshot(self.view.load_full())
    }

    fn write_run(
        &self,
        mut left: u64,
        mut items: impl Iterator<Item = Result<RunItem, StorageError>>,
    ) -> Result<Run, StorageError> {
        let mut pieces = Vec::new();
        let mut last = None;
        while left > 0 {
            let count = left.min(self.piece_items);
            let mut writer = {
                let mut directory = self.directory.lock();
                let number = directory.next_number();
                PieceWriter::begin(&mut *directory.disk, number, count, &self.owner)?
            };
            for _ in 0..count {
                let item = items.next().expect("as many items as were counted")?;
                assert!(last < Some(item.0), "items come in the order of their keys");
                last = Some(item.0);
                writer.push(&item)?;
            }
            let (index, file) = writer.finish()?;
            pieces.push(Piece::keep(&mut *self.directory.lock().disk, index, file)?);
            left -= count;
        }
        Ok(Run::of(pieces))
    }

    /// Has a manifest name other runs: durable first (★), then for readers.
    fn publish(&self, edit: impl FnOnce(&View) -> View) -> Result<(), StorageError> {
        let mut directory = self.directory.lock();
        let before = self.view.load_full();
        let view = edit(&before);
        let (old, new) = (manifest(&before), manifest(&view));
        directory.write(&new, &self.owner)?;
        self.view.store(Arc::new(view));
        directory.replace(&old, &new)
    }
}

impl View {
    fn get(
        &self,
        key: &[u8; RUN_KEY_BYTES],
    ) -> Result<Option<[u8; RUN_VALUE_BYTES]>, StorageError> {
        let name = name(key);
        for piece in self.runs.iter().filter_map(|run| run.piece_of(key)) {
            if piece.may_have(name)
                && let Some(found) = piece.read(key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Run {
    fn of(pieces: Vec<Piece>) -> Self {
        let beginnings = pieces.iter().map(|piece| beginning(piece.first())).collect();
        Self { pieces, beginnings }
    }

    fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.entry().items).sum()
    }

    /// The one piece in which a key may be.
    fn piece_of(&self, key: &[u8; RUN_KEY_BYTES]) -> Option<&Piece> {
        let begins = beginning(key);
        let after = self.beginnings.partition_point(|first| *first <= begins);
        // More than one is asked only where their first keys begin alike.
        self.pieces[..after].iter().rev().find(|piece| piece.first() <= key)
    }
}

/// Runs at one moment, whatever is added or merged since.
#[derive(Debug)]
pub struct RunsSnapshot(Arc<View>);

impl RunsSnapshot {
    /// Number of entries that the items came of.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.0.covered
    }

    /// What a key stood for at that moment; `None` where it is certain that nothing had it. Many
    /// after another are faster than by [`Runs::get`]: their filters are read side by side.
    ///
    /// # Errors
    /// When the disk fails or what it gives back is damaged.
    pub fn get(
        &self,
        key: &[u8; RUN_KEY_BYTES],
    ) -> Result<Option<[u8; RUN_VALUE_BYTES]>, StorageError> {
        self.0.get(key)
    }

    /// All items in the order of their keys; ends with an error when the disk fails or something is
    /// damaged.
    pub fn iter(&self) -> impl Iterator<Item = Result<RunItem, StorageError>> + use<> {
        Merge::of(&self.0.runs)
    }
}

fn manifest(view: &View) -> Manifest {
    let entries = |run: &Arc<Run>| run.pieces.iter().map(|piece| *piece.entry()).collect();
    Manifest { covered: view.covered, runs: view.runs.iter().map(entries).collect() }
}

/// The first of the runs that are to be one: each before it is at least twice as large as all after
/// it together.
fn merge_from(runs: &[Arc<Run>]) -> Option<usize> {
    let (newest, older) = runs.split_last()?;
    let mut total = newest.len();
    let mut from = older.len();
    while let Some(run) = from.checked_sub(1).map(|before| &older[before])
        && run.len() < 2 * total
    {
        total += run.len();
        from -= 1;
    }
    (from < older.len()).then_some(from)
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = self.view.load();
        write!(f, "Runs({} of {} entries)", view.runs.len(), view.covered)
    }
}

#[cfg(test)]
mod tests;
