//! Noticing that a wallet's book is not the one that it was (★): a small file beside it says how
//! far it was written.
//!
//! A book that was cut, set back to an older copy, or replaced by another one does not know what
//! the wallet signed since, and would sign a second transaction over the same coins. The book is
//! written first, then the mark, then a payment is shown to anybody: so a crash leaves a book that
//! is ahead of its mark, and never one behind it.
//!
//! ```text
//! two slots, written in turn, each of 64 bytes:
//!     count: u64 ‖ end of the book: u64 ‖ chain of its records: 32 bytes ‖ check: 16 bytes
//! ```

use quorate_crypto::{Digest, hash_parts};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SLOT_BYTES: usize = 64;
const CHECK_BYTES: usize = 16;

/// Extent of a book: where it ends, and a hash over all its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) end: u64,
    pub(super) chain: Digest,
}

impl Extent {
    /// Extent of a book without a record.
    pub(super) const EMPTY: Self = Self { end: 0, chain: Digest::ZERO };

    /// Extent with one more record, whose bytes in the file these are.
    pub(super) fn with(self, record: &[u8]) -> Self {
        let chain = hash_parts("quorate v1 wallet: chain of records", &[&self.chain.0, record]);
        Self { end: self.end + record.len() as u64, chain }
    }
}

/// The mark of one book.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
    count: u64,
}

/// Path of a book's mark.
pub(super) fn path_of(book: &Path) -> PathBuf {
    book.with_extension("mark")
}

impl Mark {
    /// Opens a book's mark, or makes one, and returns what it says; nothing where it says nothing.
    pub(super) fn open(book: &Path, is_new: bool) -> io::Result<(Self, Option<Extent>)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(is_new).mode(0o600);
        let file = options.open(path_of(book))?;
        let mut slots = [0; 2 * SLOT_BYTES];
        let mut read = 0;
        while read < slots.len() {
            match file.read_at(&mut slots[read..], read as u64)? {
                0 => break,
                bytes => read += bytes,
            }
        }
        let newest = slots.chunks(SLOT_BYTES).filter_map(decode).max_by_key(|(count, _)| *count);
        let count = newest.map_or(0, |(count, _)| count);
        Ok((Self { file, count }, newest.map(|(_, extent)| extent)))
    }

    /// Says, durably, how far the book is written.
    pub(super) fn write(&mut self, extent: Extent) -> io::Result<()> {
        let count = self.count + 1;
        let place = (count % 2) * SLOT_BYTES as u64;
        self.file.write_all_at(&encode(count, extent), place)?;
        self.file.sync_data()?;
        self.count = count;
        Ok(())
    }
}

fn encode(count: u64, extent: Extent) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&count.to_le_bytes());
    slot[8..16].copy_from_slice(&extent.end.to_le_bytes());
    slot[16..48].copy_from_slice(&extent.chain.0);
    let check = hash_parts("quorate v1 wallet: mark", &[&slot[..48]]);
    slot[48..].copy_from_slice(&check.0[..CHECK_BYTES]);
    slot
}

/// Content of a slot; nothing where its writing was interrupted.
fn decode(slot: &[u8]) -> Option<(u64, Extent)> {
    let word = |at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().expect("8 bytes"));
    let chain = Digest(slot[16..48].try_into().expect("32 bytes"));
    let (count, extent) = (word(0), Extent { end: word(8), chain });
    (encode(count, extent) == slot).then_some((count, extent))
}

#[cfg(test)]
mod tests {
    use super::{Extent, Mark, path_of};

    #[test]
    fn a_torn_mark_says_what_it_said_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let book = folder.path().join("wallet");
        assert!(Mark::open(&book, false).is_err(), "absent");
        let (mut mark, said) = Mark::open(&book, true).expect("made");
        assert_eq!(said, None);
        let first = Extent::EMPTY.with(b"first");
        let second = first.with(b"second");
        assert_eq!(second.end, 11);
        mark.write(first).expect("written");
        mark.write(second).expect("written");
        assert_eq!(Mark::open(&book, false).expect("opened").1, Some(second));
        let whole = std::fs::read(path_of(&book)).expect("read");
        for at in 0..64 {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            std::fs::write(path_of(&book), torn).expect("written");
            assert_eq!(Mark::open(&book, false).expect("opened").1, Some(first), "byte {at}");
        }
    }
}
