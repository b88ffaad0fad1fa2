//! The report of a closed shard, as a folder: chunks of its locks, and what its authority signed.

use super::PayEpochError;
use super::passes::{in_order, place_of};
use crate::payments::locks::Locks;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentitySecret};
use quorate_payments::Network;
use quorate_payments::change::{
    CHUNK_ENTRIES, Closing, LockEntry, chunk_leaf, decode_chunk, encode_chunk,
};
use quorate_storage::{Disk, RealDisk, StorageError};
use quorate_types::ReplicaId;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file of what was signed, which begins with the authority and the shard.
pub(super) const CLOSING: &str = "closing";
const UNNAMED: &str = "unnamed";

/// More bytes than a chunk has.
const CHUNK_BYTES_MAX: u64 = 1024 * 1024;

/// What a report's authority signed, and the leaves that its root is over.
#[derive(BorshSerialize, BorshDeserialize)]
struct Signed {
    closing: Closing,
    leaves: Vec<Digest>,
}

/// Report of a shard that its authority closed, found in a folder.
#[derive(Debug)]
pub struct ClosedReport {
    folder: PathBuf,
    closing: Closing,
    leaves: Vec<Digest>,
}

/// A report that is written, entry by entry in ascending order.
pub(super) struct ReportWriter {
    disk: RealDisk,
    pending: Vec<LockEntry>,
    leaves: Vec<Digest>,
    count: u64,
}

impl ReportWriter {
    /// Begins a report in a folder, in the place of one that was not finished.
    pub(super) fn begin(folder: &Path) -> Result<Self, StorageError> {
        let disk = RealDisk::open(folder)?.without_zeroing();
        Ok(Self { disk, pending: Vec::new(), leaves: Vec::new(), count: 0 })
    }

    pub(super) fn push(&mut self, entry: LockEntry) -> Result<(), StorageError> {
        self.pending.push(entry);
        self.count += 1;
        if self.pending.len() == CHUNK_ENTRIES { self.write_chunk() } else { Ok(()) }
    }

    fn write_chunk(&mut self) -> Result<(), StorageError> {
        let number = u32::try_from(self.leaves.len()).expect("a chunk has thousands of entries");
        let bytes = encode_chunk(&self.pending);
        write(&mut self.disk, &chunk_name(number), &bytes)?;
        self.leaves.push(chunk_leaf(number, &bytes));
        self.pending.clear();
        Ok(())
    }

    /// Ends the report, durably, with what `sign` makes of its count and leaves.
    pub(super) fn finish(
        mut self,
        sign: impl FnOnce(u64, &[Digest]) -> Closing,
    ) -> Result<Closing, StorageError> {
        if !self.pending.is_empty() {
            self.write_chunk()?;
        }
        let closing = sign(self.count, &self.leaves);
        let signed = Signed { closing, leaves: std::mem::take(&mut self.leaves) };
        let bytes = borsh::to_vec(&signed).expect("encoding into memory cannot fail");
        write(&mut self.disk, CLOSING, &bytes)?;
        Ok(closing)
    }
}

/// Writes a file whole, durably, or not at all.
fn write(disk: &mut RealDisk, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
    let written = disk.write(UNNAMED, bytes);
    let named = written.and_then(|()| disk.rename(UNNAMED, name));
    let synced = named.and_then(|()| disk.sync_directory());
    synced.map_err(|error| StorageError::io("write", disk.locate(name), &error))
}

/// Chunk of a report that is none, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadChunk {
    /// Not what the authority signed: whoever gave it may have made it up.
    Unsigned,
    /// What it signed, and no chunk of a report: not whole, or not in order.
    Unsound,
}

/// What an authority signed of a report, and how far its chunks were read.
#[derive(Debug)]
struct ChunkReader {
    count: u64,
    leaves: Vec<Digest>,
    /// Number of the chunk that comes next, and the entry before it.
    next: u32,
    last: Option<LockEntry>,
}

impl ChunkReader {
    fn new(closing: &Closing, leaves: Vec<Digest>) -> Self {
        Self { count: closing.count, leaves, next: 0, last: None }
    }

    /// Number of the chunk that comes next.
    fn missing(&self) -> Option<u32> {
        ((self.next as usize) < self.leaves.len()).then_some(self.next)
    }

    /// Entries of the chunk that comes next (★): what was signed, all but the last chunk full, so
    /// that none is read for little, and everything in ascending order.
    fn read(&mut self, bytes: &[u8]) -> Result<Vec<LockEntry>, BadChunk> {
        let is_signed = chunk_leaf(self.next, bytes) == self.leaves[self.next as usize];
        if !is_signed && !mutants::active(Mutant::PayTrustChunks) {
            return Err(BadChunk::Unsigned);
        }
        let before = u64::from(self.next) * CHUNK_ENTRIES as u64;
        let expected = (self.count - before.min(self.count)).min(CHUNK_ENTRIES as u64);
        let is_next = |entries: &Vec<LockEntry>| {
            let is_whole = entries.len() as u64 == expected;
            (is_whole && self.last < entries.first().copied())
                || mutants::active(Mutant::PayTakeUnsoundChunks)
        };
        let entries = decode_chunk(bytes).filter(is_next).ok_or(BadChunk::Unsound)?;
        self.last = entries.last().copied();
        self.next += 1;
        Ok(entries)
    }
}

/// Another authority's report, as its parts come in.
pub(super) struct ReportCopy {
    folder: PathBuf,
    disk: RealDisk,
    signed: Vec<u8>,
    chunks: ChunkReader,
}

impl ReportCopy {
    /// Begins with what the authority signed, if that is `closing` (★), and goes on with the chunks
    /// that an earlier attempt left in the folder.
    pub(super) fn begin(
        folder: &Path,
        ended: &Network,
        closing: &Closing,
        signed: &[u8],
    ) -> Result<Self, PayEpochError> {
        let (found, leaves) = open_signed(folder, ended, signed)?;
        if found != *closing && !mutants::active(Mutant::PayBeginWithUnordered) {
            let reason = "it is not the one that was ordered".into();
            return Err(PayEpochError::Report { folder: folder.to_owned(), reason });
        }
        let disk = RealDisk::open(folder)?.without_zeroing();
        let (folder, signed) = (folder.to_owned(), signed.to_vec());
        let mut copy = Self { folder, disk, signed, chunks: ChunkReader::new(closing, leaves) };
        while let Some(number) = copy.missing()
            && let Ok(bytes) = fs::read(copy.folder.join(chunk_name(number)))
            && copy.chunks.read(&bytes).is_ok()
        {}
        Ok(copy)
    }

    /// Number of the chunk that comes next.
    pub(super) fn missing(&self) -> Option<u32> {
        self.chunks.missing()
    }

    /// Takes the chunk that comes next; within, why it is none.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Result<(), BadChunk>, PayEpochError> {
        let name = chunk_name(self.chunks.next);
        if let Err(bad) = self.chunks.read(bytes) {
            return Ok(Err(bad));
        }
        write(&mut self.disk, &name, bytes)?;
        Ok(Ok(()))
    }

    /// Ends the copy, of which no chunk is missing.
    pub(super) fn finish(mut self) -> Result<(), PayEpochError> {
        Ok(write(&mut self.disk, CLOSING, &self.signed)?)
    }
}

/// What an authority signed, and the leaves of its chunks, if it signed that (★).
fn open_signed(
    folder: &Path,
    ended: &Network,
    bytes: &[u8],
) -> Result<(Closing, Vec<Digest>), PayEpochError> {
    let unsound = |reason: String| PayEpochError::Report { folder: folder.to_owned(), reason };
    let Signed { closing, leaves } = Signed::try_from_slice(bytes)
        .map_err(|_| unsound("its file `closing` is not what was written".into()))?;
    closing.check(ended).map_err(|error| unsound(error.to_string()))?;
    if !closing.has_leaves(&leaves) {
        return Err(unsound("its list of chunks is not what its authority signed".into()));
    }
    Ok((closing, leaves))
}

pub(super) fn chunk_name(number: u32) -> String {
    format!("chunk-{number:08}")
}

impl ClosedReport {
    /// Opens a report of the epoch of `network`, as its authority signed it (★).
    ///
    /// # Errors
    /// When it cannot be read, or is not signed.
    pub fn open(folder: &Path, network: &Network) -> Result<Self, PayEpochError> {
        let bytes = read(&folder.join(CLOSING))?;
        let (closing, leaves) = open_signed(folder, network, &bytes)?;
        Ok(Self { folder: folder.to_owned(), closing, leaves })
    }

    /// What its authority signed.
    #[must_use]
    pub fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Entries in ascending order, every chunk checked as it is read (★); ends with an error where
    /// one is not what was signed.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<LockEntry, PayEpochError>> {
        let mut chunks = ChunkReader::new(&self.closing, self.leaves.clone());
        let mut broken = false;
        let read = move || {
            let number = chunks.missing().filter(|_| !broken)?;
            let entries = self.chunk(number, &mut chunks);
            broken = entries.is_err();
            Some(entries)
        };
        std::iter::from_fn(read).flat_map(|chunk| match chunk {
            Ok(entries) => entries.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    fn chunk(
        &self,
        number: u32,
        chunks: &mut ChunkReader,
    ) -> Result<Vec<LockEntry>, PayEpochError> {
        let path = self.folder.join(chunk_name(number));
        let size =
            fs::metadata(&path).map_err(|source| PayEpochError::Io { path: path.clone(), source });
        if size?.len() > CHUNK_BYTES_MAX {
            return Err(self.unsound(&format!("chunk {number} is larger than any")));
        }
        chunks.read(&read(&path)?).map_err(|bad| match bad {
            BadChunk::Unsigned => self.unsound(&format!("chunk {number} is not what was signed")),
            BadChunk::Unsound => {
                self.unsound(&format!("chunk {number} is not whole, or not in order"))
            }
        })
    }

    fn unsound(&self, reason: &str) -> PayEpochError {
        PayEpochError::Report { folder: self.folder.clone(), reason: reason.into() }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, PayEpochError> {
    fs::read(path).map_err(|source| PayEpochError::Io { path: path.to_owned(), source })
}

/// Shard of an authority that reports what it locked.
pub(in crate::payments) struct Reporter<'a> {
    pub(in crate::payments) network: &'a Network,
    pub(in crate::payments) identity: &'a IdentitySecret,
    /// Index of the authority, and its shard.
    pub(in crate::payments) place: (ReplicaId, u16),
}

/// Writes the report of everything that was locked in this epoch, in the order of transactions; the
/// one that is there stays, and is refused for another change than its own (★: an honest authority
/// makes no two).
pub(in crate::payments) fn write_report(
    locks: &mut Locks,
    folder: &Path,
    reporter: &Reporter<'_>,
    next: Digest,
) -> Result<Closing, PayEpochError> {
    let Reporter { network, identity, place } = *reporter;
    if let Ok(report) = ClosedReport::open(folder, network) {
        let is_same = report.closing.next == next || mutants::active(Mutant::PayCloseTwice);
        return if is_same {
            Ok(report.closing)
        } else {
            Err(report.unsound("this shard was closed for another change, for good"))
        };
    }
    locks.move_all()?;
    if locks.spent().hot_len() > 0 {
        // Without a thread for the move. Done again, it may have one.
        return Err(PayEpochError::NotSettled);
    }
    let mut writer = ReportWriter::begin(folder)?;
    let locks = &*locks;
    let closing = locks.spent().closing()?;
    let read = |push: &mut dyn FnMut(LockEntry)| {
        closing.decided().for_each(&mut *push);
        for locked in locks.settled() {
            let (input, locked) = locked?;
            if let Some(entry) = closing.entry(input, locked) {
                push(entry);
            }
        }
        Ok::<(), PayEpochError>(())
    };
    let place_of_entry = |(tx, _): &LockEntry| place_of(tx);
    in_order(locks.spent().len(), place_of_entry, read, |entries| {
        Ok(entries.into_iter().try_for_each(|entry| writer.push(entry))?)
    })?;
    let sign =
        |count, leaves: &[Digest]| Closing::sign(network, identity, place, next, (count, leaves));
    Ok(writer.finish(sign)?)
}
