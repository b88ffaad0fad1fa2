//! A log of entries, and where each key's last one is: what is durable of a store.
//!
//! ```text
//! folder:   0000000007.values ─ 0000000007.keys ─ 0000000008.values ─ …
//!           segments, oldest first: a ring, written at one end and cleaned at the other
//!
//! segment:   0  record of the owner and the format, number u32, salt u32, end of the segment
//!               before (batch u64, part u32, commits u8, crc u32), CRC-32C of all before it u32
//!         4096  frame ─ frame ─ …, at multiples of 8
//!
//! frame:     0  magic "QVF1"                   24  commits u8, three zeroes
//!            4  bytes of entries u32           28  crc of the frame before in this batch u32
//!            8  batch u64                      32  CRC-32C of the entries, from that one on, u32
//!           16  number in the batch u32        36  CRC-32C, from the salt on, of the 36 before it
//!           20  first segment u32              40  entry ─ entry ─ …
//!
//! entry:     0  CRC-32C of all behind it u32    6  length of the value u32, all ones: removed
//!            4  length of the key u16          10  key, value
//! ```
//!
//! Numbers are little-endian. A *batch* is a checkpoint: changes in the order of their keys, and
//! what was cleaned. It counts with its last frame, which commits it (★), and which is
//! written when all other files of the batch are synced: one sync for each file. Memory has all
//! keys in order with their places ([`index`]), whole, and no values.
//!
//! # Cleaning
//!
//! Once the log has more than twice the bytes that live, and two small segments, a batch goes on
//! cleaning the oldest segment: entries that still count are copied into the batch, as many as it
//! has changes twice over. A segment that is clean is none of the store's from this batch on, and
//! its file is removed once the batch is durable (★). Every byte goes round once at most for each
//! that is new, whatever the changes are: the log writes no more than twice what changes take. A
//! log of keys that change at random goes round with a fifth to a quarter alive.
//!
//! Only the oldest segment is cleaned. So nothing older than its removals exists, and they are
//! not copied: they have nothing left to hide. ★ Segments that a batch gave up are not read
//! again, be their files there or not, for a key that was removed would come back.
//!
//! # Opening
//!
//! The last batch with its end says which segments there have to be. Keys of all but the last of
//! them come from files of their own ([`keys`]), those of the last from its frames. ★ Bytes that
//! were durable and are not what they were are told: as damage, at opening or when they are read.
//! Of the end alone that cannot be known: a last batch that is changed looks like one that a power
//! cut tore, and a newest segment of zeroes like one that was never written. The store is then what
//! the batch before left.

mod batch;
mod format;
mod index;
mod keys;
mod read;
mod recover;
mod ring;
mod segment;
mod writer;

use super::{Changes, Entries};
use crate::disk::Disk;
use crate::error::{STATE_FULL, STATE_REFUSED};
use crate::{Owner, StorageError, WantsRoom};
use parking_lot::Mutex;
use quorate_types::service::StateError;
pub(super) use read::Snapshot;
use ring::Writer;
use std::io;
use std::sync::Arc;

/// Sizes of files and frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Fewest bytes of a segment.
    pub(super) segment_min: u32,
    /// Most bytes of a segment, but for one with a large entry.
    pub(super) segment_max: u32,
    /// Bytes of entries at which a frame ends.
    pub(super) frame: u32,
}

impl Sizes {
    pub(super) const DEFAULT: Self =
        Self { segment_min: 1 << 20, segment_max: 512 << 20, frame: 256 << 10 };
}

/// Keys and values in a folder of its own.
#[derive(Debug)]
pub(super) struct ValueLog {
    writer: Mutex<Writer>,
    current: Mutex<Arc<Snapshot>>,
}

impl ValueLog {
    /// Opens the log, or begins one.
    ///
    /// # Errors
    /// [`StorageError::Foreign`] when it is not `owner`'s, [`StorageError::Format`] when another
    /// version wrote it; when it is damaged, or the disk fails.
    pub(super) fn open(
        disk: Box<dyn Disk>,
        owner: &Owner,
        sizes: Sizes,
    ) -> Result<Self, StorageError> {
        let writer = Writer::recover(disk, owner, sizes)?;
        let current = Mutex::new(writer.snapshot());
        Ok(Self { writer: Mutex::new(writer), current })
    }

    /// What is durable now.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.lock())
    }

    /// Makes changes durable, all of them or none (★).
    ///
    /// # Errors
    /// When the disk fails, for good; or a segment that is cleaned is damaged.
    pub(super) fn write(&self, changes: &Changes) -> Result<(), StateError> {
        let mut writer = self.writer.lock();
        writer.write(changes)?;
        *self.current.lock() = writer.snapshot();
        Ok(())
    }

    /// Replaces everything, durably: all of it or nothing (★).
    ///
    /// # Errors
    /// The first error among the entries, which changes nothing; or when the disk fails, for good.
    pub(super) fn replace(&self, entries: &mut Entries<'_>) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        writer.replace(entries)?;
        *self.current.lock() = writer.snapshot();
        Ok(())
    }
}

/// What a disk refused.
fn refused(error: &io::Error) -> StateError {
    match error.kind() {
        _ if error.wants_room() => StateError(STATE_FULL.to_owned()),
        io::ErrorKind::UnexpectedEof => damaged("a file ends too soon"),
        _ => StateError(format!("{STATE_REFUSED}: {error}")),
    }
}

/// Something was durable and is not what it was.
fn damaged(how: &str) -> StateError {
    StateError(format!("its file is damaged ({how})"))
}

#[cfg(test)]
mod tests;
